"""The ways to run a layer with recompute, and what it keeps in each of them."""

from collections.abc import Mapping
from dataclasses import dataclass

from partita.models.pytorch.passes import Forward, recomputing
from partita.models.pytorch.policies import FULL, Policy
from partita.models.pytorch.records import CapturedGraph
from partita.models.pytorch.segments import Segment

_MUTATED = "has been mutated"
"""What torch says in the backward pass when an operation wrote to a result that was saved."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a layer runs and what it keeps beside its inputs.

    Attributes
    ----------
    run
        The forward pass.
    kept
        The storages of the values that leave the layer, as the captured graph numbers them.
    kept_bytes
        Of all other storages, which no other layer can know.
    own_bytes
        Of both together.
    """

    run: Forward
    kept: frozenset[int] = frozenset()
    kept_bytes: int = 0
    own_bytes: int = 0


def ways_to_recompute(
    graph: CapturedGraph, segment: Segment, policies: Mapping[str, Policy], *, random: bool
) -> dict[str, Way]:
    """Give the ways by the names of their options.

    A policy is left out where it saves a result that the layer itself writes to afterwards, which torch refuses.

    Parameters
    ----------
    graph, segment
        The captured graph and the part that is the layer.
    policies
        Options beside ``full``.
    random
        Whether the layer draws random numbers.
    """
    ways = {FULL: Way(recomputing(segment, random=random))}
    for name, policy in policies.items():
        way = _selective(graph, segment, policy, recomputing(segment, random=random, policy=policy))
        if way is not None:
            ways[name] = way
    return ways


def _selective(graph: CapturedGraph, segment: Segment, policy: Policy, run: Forward) -> Way | None:
    """Run a layer once and note what it keeps; None where it writes to what is saved."""
    inputs = segment.example(graph)
    arriving = {each.untyped_storage()._cdata for each in inputs}
    outputs = run(*inputs)
    saved = {key: storage for key, storage in policy.take_kept().items() if key not in arriving}
    leaving = {
        output.untyped_storage()._cdata: graph.values[name].storage
        for name, output in zip(segment.outputs, outputs, strict=True)
    }
    trained = [output for output in outputs if output.requires_grad]
    try:
        for output in trained[:1]:
            output.sum().backward()
    except RuntimeError as error:
        if _MUTATED not in str(error):
            raise
        return None
    held = graph.held_storages
    number = {key: leaving[key] for key in saved if key in leaving and leaving[key] not in held}
    total = sum(storage.nbytes() for storage in saved.values())
    others = sum(storage.nbytes() for key, storage in saved.items() if key not in number)
    return Way(run, frozenset(number.values()), others, total)
