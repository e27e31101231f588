"""Finds in a captured module the layers of a problem that was made from it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from partita.models.profile import ModelProfile
from partita.models.pytorch.capturing import Capture
from partita.models.pytorch.errors import CannotCapture
from partita.models.pytorch.layers import CapturedLayer, Depth, coarsen


def matched(capture: Capture, model: ModelProfile) -> Capture:
    """Give a capture whose layers are those of a profile, whatever depth it was made with.

    Parameters
    ----------
    capture
        The module.
    model
        Its profile, as it stands in a problem.

    Raises
    ------
    CannotCapture
        When the inputs have other shapes or types than the profile says, or no depth gives its layers.
    """
    if model.measurement is not None:
        _check_inputs(capture, model)
    wanted = [layer.name for layer in model.layers]
    found = None
    for layers in _all_depths(capture):
        if [layer.name for layer in layers] == wanted:
            return replace(capture, layers=layers)
        found = found or layers
    known = {layer.name for layer in found or ()}
    odd = next((name for name in wanted if name not in known), wanted[0])
    raise CannotCapture(
        f"its layers are not those of the problem, which has {len(wanted)}, among them {odd!r}; "
        "profile the same function again and plan with that"
    )


def _all_depths(capture: Capture) -> Iterator[tuple[CapturedLayer, ...]]:
    """Give the layers for every depth, those that it was captured with first."""
    yield capture.layers
    deepest = max(
        (call.path.count(".") + 1 for each in capture.graph.operations.values() for call in each.calls), default=0
    )
    words: Sequence[Depth] = ("blocks", "points", "operations")
    for depth in (*words, *range(1, deepest + 1)):
        yield coarsen(capture.graph, depth)


def _check_inputs(capture: Capture, model: ModelProfile) -> None:
    """Refuse inputs of other shapes or types than those that were profiled."""
    given = [
        (tuple(capture.graph.values[name].shape), capture.graph.values[name].dtype) for name in capture.graph.inputs
    ]
    assert model.measurement is not None
    profiled = [(tuple(each.shape), each.dtype) for each in model.measurement.inputs]
    if given != profiled:
        raise CannotCapture(
            f"its inputs are {_words(given)}, those profiled {_words(profiled)}; give inputs like these"
        )


def _words(inputs: Sequence[tuple[tuple[int, ...], str]]) -> str:
    return ", ".join(f"{dtype}{list(shape)}" for shape, dtype in inputs) or "none"
