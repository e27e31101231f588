"""Stages as lists of module names, as torchtitan takes them, and the layers that they mean."""

import re
from collections.abc import Sequence

from partita.models.errors import Fault, InvalidInput, short_value
from partita.models.naming import listing, quoted

LOSS = "loss"
"""The layer that is no module: the loss of a captured model, at its end."""

_OPTION = re.compile(r"\bmodule_fqns_per_model_part\b\s*=\s*(?P<lists>\[(?:\s*\[[^][]*\]\s*,?)*\s*\])")
_LIST = re.compile(r"\[([^][]*)\]")
_NAME = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)')\s*""")


def torchtitan_option(text: str) -> list[list[str]] | None:
    """Find torchtitan's ``module_fqns_per_model_part`` in a file of options, TOML or Python; None where it is not."""
    found = _OPTION.search(text)
    if found is None:
        return None
    parts = []
    for part in _LIST.finditer(found["lists"][1:-1]):
        names = [_NAME.fullmatch(item) for item in part[1].split(",") if item.strip()]
        if None in names:
            return None
        parts.append([name[1] or name[2] or "" for name in names if name is not None])
    return parts


def without_loss(layers: Sequence[str]) -> tuple[str, ...]:
    """Give the layers that are modules: all but a loss at the end, which frameworks take as a function."""
    return tuple(layers[:-1]) if len(layers) > 1 and layers[-1] == LOSS else tuple(layers)


def layers_of_modules(
    parts: Sequence[Sequence[str]], layers: Sequence[str], pointer: str
) -> tuple[tuple[str, ...], ...]:
    """Give the layers of every stage of torchtitan's lists: those that are named, and those of modules named.

    ``layers.0`` means the layers ``layers.0`` and ``layers.0.attention``; a layer called ``loss`` at the end of the
    model, which is no module, is on the last stage.

    Parameters
    ----------
    parts
        The names of the modules of every stage.
    layers
        The names of the model's layers, in order.
    pointer
        Where the lists stand in their document.

    Raises
    ------
    InvalidInput
        When a name means no layer, or a layer is named twice or not at all.
    """
    stage_of = {name: stage for stage, names in enumerate(parts) for name in names}
    used: set[str] = set()
    stages: list[list[str]] = [[] for _ in parts]
    left: list[str] = []
    modules = without_loss(layers)
    for layer in modules:
        steps = layer.split(".")
        name = next((each for end in range(len(steps), 0, -1) if (each := ".".join(steps[:end])) in stage_of), None)
        if name is None:
            left.append(layer)
            continue
        used.add(name)
        stages[stage_of[name]].append(layer)
    stages[-1] += layers[len(modules) :]
    faults = _faults(parts, layers, used, pointer)
    if left:
        detail = f"{len(left)} of {len(layers)} layers are in no part: {listing(left)}; add them"
        faults.append(Fault(pointer, detail, None, "missing_layers"))
    if not faults and [] in stages:
        faults.append(Fault(f"{pointer}/{stages.index([])}", "this part holds no layer; leave it out", None, "parts"))
    if faults:
        raise InvalidInput(faults)
    return tuple(tuple(stage) for stage in stages)


def _faults(parts: Sequence[Sequence[str]], layers: Sequence[str], used: set[str], pointer: str) -> list[Fault]:
    """Refuse names that mean nothing, and names that stand twice."""
    faults, seen = [], set[str]()
    for stage, names in enumerate(parts):
        for position, name in enumerate(names):
            if name in seen:
                detail = f"{quoted(name)} is listed twice; a module is on one stage"
            elif name not in used:
                detail = f"there is no layer {quoted(name)}, nor one inside{listing(layers, '; there are ')}"
            else:
                detail = ""
            if detail:
                faults.append(Fault(f"{pointer}/{stage}/{position}", detail, short_value(name), "unknown_name"))
            seen.add(name)
    return faults[:20]
