"""Pins, groups and allowed boundaries that name real layers and do not contradict each other."""

from collections.abc import Collection, Mapping, Sequence

from partita.models.base import Faults
from partita.models.constraints import Constraints
from partita.models.naming import check_known, quoted
from partita.models.tensor import Buffer


def check_demands(
    faults: Faults,
    constraints: Constraints,
    layers: Collection[str],
    most_stages: int,
    buffers: Sequence[Buffer] = (),
) -> None:
    """Refuse demands on layers or stages that do not exist, and demands that contradict each other.

    Parameters
    ----------
    faults
        Where the faults go, with places from the problem's root.
    constraints
        The demands.
    layers
        The names of the model's layers.
    most_stages
        The largest number of stages that a plan may have.
    buffers
        The model's buffers; the layers of one that is written to share a stage.
    """
    for name, stage in constraints.pins.items():
        check_known(faults, ("constraints", "pins", name), "layer", name, layers)
        if stage >= most_stages:
            detail = f"{quoted(name)} is pinned to stage {stage}; stages are numbered 0 to {most_stages - 1} at most"
            faults.add(("constraints", "pins", name), detail, stage, "unknown_stage")
    for field, groups in (("together", constraints.together), ("apart", constraints.apart)):
        for index, group in enumerate(groups):
            for position, name in enumerate(group):
                check_known(faults, ("constraints", field, index, position), "layer", name, layers)
    for position, name in enumerate(constraints.cut_after or ()):
        check_known(faults, ("constraints", "cut_after", position), "layer", name, layers)
    leader = joined(constraints.together)
    written = [buffer for buffer in buffers if buffer.mutated]
    sharing = joined([*constraints.together, *(buffer.layers for buffer in written)])
    _check_pins(faults, constraints, leader)
    _check_apart(faults, constraints.apart, leader, sharing, written)
    _check_apart_pins(faults, constraints, sharing)


def joined(groups: Sequence[Sequence[str]]) -> dict[str, str]:
    """Give for every name in a group one name that stands for all it is joined with, over any number of groups."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        path = []
        while leader.setdefault(name, name) != name:
            path.append(name)
            name = leader[name]
        for passed in path:
            leader[passed] = name
        return name

    for group in groups:
        for name in group[1:]:
            leader[find(name)] = find(group[0])
    return {name: find(name) for name in list(leader)}


def _check_pins(faults: Faults, constraints: Constraints, leader: Mapping[str, str]) -> None:
    """Refuse layers that belong together but are pinned to different stages."""
    pinned: dict[str, str] = {}  # a joined set's leader: the first of its layers that is pinned
    for name, stage in constraints.pins.items():
        if name not in leader:
            continue
        other = pinned.setdefault(leader[name], name)
        if constraints.pins[other] != stage:
            detail = (
                f"{quoted(name)} and {quoted(other)} belong together but are pinned to stages {stage} and "
                f"{constraints.pins[other]}; pin both to one stage or take them apart"
            )
            faults.add(("constraints", "pins", name), detail, stage)


def _check_apart(
    faults: Faults,
    apart: Sequence[Sequence[str]],
    leader: Mapping[str, str],
    sharing: Mapping[str, str],
    written: Sequence[Buffer],
) -> None:
    """Refuse layers that are apart but belong together (``leader``), or share a stage by what they write to as well."""
    for index, group in enumerate(apart):
        first: dict[str, str] = {}
        for position, name in enumerate(group):
            other = first.setdefault(sharing.get(name, name), name)
            if other != name:
                pair = f"{quoted(name)} and {quoted(other)}"
                if leader.get(name, name) == leader.get(other, other):
                    detail = f"{pair} belong together and cannot be apart; remove one of the two demands"
                else:
                    detail = f"{pair} {_shared(name, other, written)}; take one of them out of this group"
                faults.add(("constraints", "apart", index, position), detail, name)


def _shared(name: str, other: str, written: Sequence[Buffer]) -> str:
    """Say why two layers cannot be apart, one of the reasons being what they write to."""
    for buffer in written:
        if name in buffer.layers and other in buffer.layers:
            return f"write to one buffer, {quoted(buffer.name)}, so they share a stage and cannot be apart"
    return "share a stage by together and the buffers that are written to, and cannot be apart"


def _check_apart_pins(faults: Faults, constraints: Constraints, sharing: Mapping[str, str]) -> None:
    """Refuse layers that are apart but pinned to one stage, each by its own pin or by one of a layer it shares with."""
    pins: dict[str, dict[int, str]] = {}  # by the leader of those that share a stage: the pinned layer of every stage
    for name, stage in constraints.pins.items():
        pins.setdefault(sharing.get(name, name), {}).setdefault(stage, name)
    told: set[tuple[str, str]] = set()
    for group in constraints.apart:
        first: dict[int, str] = {}  # the first layer of the group on every stage
        for name in group:
            for stage, pinned in pins.get(sharing.get(name, name), {}).items():
                other = first.setdefault(stage, name)
                if sharing.get(other, other) == sharing.get(name, name) or (pinned, other) in told:
                    continue
                told.add((pinned, other))
                by = "" if pinned == name else f" ({quoted(name)} by {quoted(pinned)}, which shares its stage)"
                detail = (
                    f"{quoted(name)} and {quoted(other)} are apart but pinned to one stage, {stage}{by}; pin one of "
                    "them to another stage or take it out of constraints.apart"
                )
                faults.add(("constraints", "pins", pinned), detail, stage)
