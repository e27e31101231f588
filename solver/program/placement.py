"""Where every rank runs, and which class of path joins two ranks (C9, C10)."""

from dataclasses import dataclass, field

import numpy as np

from partita.solver.arrays import IntArray
from partita.solver.pipeline import Pipeline
from partita.solver.program.assignment import Assignment
from partita.solver.program.linear import Linear, Program, Variable
from partita.solver.topology import Topology


@dataclass(frozen=True)
class Placement:
    """Locations of the ranks.

    Attributes
    ----------
    topology
        The locations.
    on
        y_rn by rank and location; None when there is but one placement.
    fixed
        The locations used when nothing is decided, shape (R,).
    used
        By rank: 1, or an expression where the stage of the rank may be empty.
    joined
        The variables of the classes of path between two ranks that were made so far.
    """

    topology: Topology
    on: list[list[Variable]] | None
    fixed: IntArray
    used: list[Linear | int]
    joined: dict[tuple[int, int], dict[int, Variable]] = field(default_factory=dict)

    def decode(self, used: list[bool]) -> IntArray:
        """Read the location of every rank in use from the solved variables."""
        if self.on is None:
            return self.fixed[: sum(used)]
        return np.array(
            [
                max(range(len(row)), key=lambda place: row[place].varValue or 0)
                for row, in_use in zip(self.on, used, strict=True)
                if in_use
            ],
            dtype=np.int64,
        )


def one_placement(topology: Topology) -> bool:
    """Tell whether all placements are one but for the names of equal devices."""
    slots = set(topology.slots.tolist())
    return len(topology.locations) == 1 or (slots == {1} and len(set(topology.alike.tolist())) == 1)


def add_placement(program: Program, assignment: Assignment, topology: Topology, pipeline: Pipeline) -> Placement:
    """Add C9, unless there is but one placement."""
    ranks = range(pipeline.num_ranks)
    used = [assignment.used[int(stages[0])] for stages in pipeline.stages_of]
    fixed = topology.in_order(len(ranks))
    assert fixed is not None, "configurations have no more ranks than slots"
    if one_placement(topology):
        return Placement(topology, None, fixed, used)
    places = range(len(topology.locations))
    on = [[program.binary(f"y_{rank}_{place}") for place in places] for rank in ranks]
    for rank in ranks:
        somewhere = Linear()
        for place in places:
            somewhere.add(on[rank][place])
        program.equal("placed", somewhere.add(used[rank], -1), 0)
    for place in places:
        room = Linear(int(topology.slots[place]))
        for rank in ranks:
            room.add(on[rank][place], -1)
        program.at_least("slots", room, 0)
    _add_first_use(program, topology, on)
    return Placement(topology, on, fixed, used)


def _add_first_use(program: Program, topology: Topology, on: list[list[Variable]]) -> None:
    """Let a location be used only after the one before it in its set of interchangeable locations."""
    previous: dict[int, int] = {}
    for place, alike in enumerate(topology.alike.tolist()):
        earlier = previous.get(alike)
        previous[alike] = place
        if earlier is None:
            continue
        before = Linear()
        for rank in range(len(on)):
            program.at_least("first_use", Linear().add(before).add(on[rank][place], -1), 0)
            before = before.add(on[rank][earlier])


def add_path_classes(
    program: Program, placement: Placement, ends: tuple[int, int], classes: list[int]
) -> dict[int, Variable]:
    """Add C10 for a pair of ranks, once: a variable for each class of path that costs more than the cheapest.

    Parameters
    ----------
    ends
        The two ranks, in either order.
    classes
        The classes that need a variable.
    """
    assert placement.on is not None
    class_of, used, (first, second) = placement.topology.class_of, placement.used, sorted(ends)
    chosen = placement.joined.setdefault((first, second), {})
    for number in classes:
        if number in chosen:
            continue
        variable = program.binary(f"z_{first}_{second}_{number}")
        for near, far in ((first, second), (second, first)):
            for place in np.flatnonzero((class_of == number).any(axis=1)).tolist():
                # The places that are not of the class say the same with fewer variables: a clause for most clusters.
                link = Linear(1).add(variable).add(placement.on[near][place], -1).add(used[far], -1)
                for other in np.flatnonzero(class_of[place] != number).tolist():
                    link.add(placement.on[far][other])
                program.at_least("path_class", link, 0)
        chosen[number] = variable
    return {number: chosen[number] for number in classes}


def add_node_changes(
    program: Program, placement: Placement, pipeline: Pipeline, classes: dict[int, dict[int, Variable]]
) -> None:
    """Say what follows for neighbors: of c + 1 ranks in a row, c the most on a node, two are on different nodes.

    Parameters
    ----------
    classes
        For every boundary, the variables of the classes that join different nodes.
    """
    most = placement.topology.most_on_a_node
    known: set[tuple[int, ...]] = set()
    for start in range(pipeline.num_stages - most):
        ranks = pipeline.rank_of[start : start + most + 1].tolist()
        if len(set(ranks)) <= most or tuple(ranks) in known:
            continue
        known.add(tuple(ranks))
        changes = Linear()
        for boundary in range(start, start + most):
            for variable in classes[boundary].values():
                changes.add(variable)
        program.at_least("node_change", changes.add(placement.used[ranks[0]], -1), 0)
