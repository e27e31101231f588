"""The plans that are one move away from a given one, and the best of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, islice

import numpy as np

from partita.models.answer import Move, MoveKind
from partita.models.answer_plan import Metrics
from partita.models.cluster import ExpandedNode
from partita.models.constraints import Constraints
from partita.models.naming import quoted
from partita.models.problem import Problem
from partita.solver.arrays import IntArray
from partita.solver.costs import LayerPlan
from partita.solver.deadline import Deadline
from partita.solver.evaluation import Evaluator
from partita.solver.figures import make_figures
from partita.solver.group_moves import moves, predecessors_of
from partita.solver.grouping import Groups, group_layers
from partita.solver.instance import build_instance
from partita.solver.layout import locations_of, nodes_of
from partita.solver.measure import graph_of
from partita.solver.recompute import best_plan
from partita.solver.review import Priced, broken
from partita.solver.session import Session
from partita.solver.starts import stage_of_groups
from partita.solver.topology import node_sets
from partita.solver.yardstick import better, deciding

MOST_OF_A_KIND, MOST_ENTRIES, LEAST_OF_A_KIND = 4096, 50_000_000, 64
"""Moves of one kind that are measured: at most so many; fewer where a plan has many actions and layers, but not less
than the last figure."""

MOST_CHECKED = 1000
"""The best moves, of which the first that breaks no limit is chosen."""

BATCH = 64
"""Plans measured at once."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A plan one move away, and the move.

    Attributes
    ----------
    plan, devices
        The plan, and the devices of every rank.
    kind, message
        The move.
    layers, ends, ranks
        What moves from which stage to which; whose devices change.
    """

    plan: LayerPlan
    devices: list[tuple[str, ...]]
    kind: MoveKind
    message: str
    layers: tuple[str, ...] = ()
    ends: tuple[int, int] | None = None
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class BestMove:
    """The best single move, if there is one; how many were measured, and whether these are all."""

    move: Move | None
    measured: int
    complete: bool


def best_move(priced: Priced, session: Session, deadline: Deadline) -> BestMove:
    """Find the single move that improves a plan most, measured exactly.

    Moves are: one boundary by any number of groups of layers; one group to a neighboring stage, with those that must
    go along; two ranks exchange their devices; one rank changes to free devices. No stage is left empty.

    Parameters
    ----------
    priced
        The plan under its schedule.
    session
        Of the problem.
    deadline
        When to stop measuring.

    Returns
    -------
    BestMove
        Where the plan breaks limits, with the best move after which it breaks none, even if the value is worse. Without
        one where there is no such move, or where the objective has no value.
    """
    measured = 0
    neighbors = Neighborhood(priced)
    evaluator = Evaluator(neighbors.instance)
    ranked: list[tuple[Metrics, Changed]] = []
    now = priced.candidate.metrics
    for batch in _batches(neighbors.all(), deadline):
        measured += len(batch)
        all_measures = evaluator.measure_all([each.plan for each in batch])
        for changed, measures in zip(batch, all_measures, strict=True):
            location = changed.plan.location
            if evaluator.instance.fits(location, measures.needed):  # the others need no report to be refused
                ranked.append((evaluator.metrics(measures, location), changed))
    ranked.sort(key=lambda each: session.preference(each[0]))
    if not priced.findings:
        ranked = [each for each in ranked if better(session.sticks, each[0], now)]
    complete = neighbors.complete and not deadline.passed and len(ranked) <= MOST_CHECKED
    move = next(_allowed(ranked[:MOST_CHECKED], priced, session, evaluator, deadline), None)
    return BestMove(move, measured, complete)


def _allowed(
    ranked: list[tuple[Metrics, Changed]],
    priced: Priced,
    session: Session,
    evaluator: Evaluator,
    deadline: Deadline,
) -> Iterator[Move]:
    """Give the moves after which the plan breaks no limit, in their order, each priced by the referee."""
    now = priced.candidate.metrics
    for _, changed in ranked:
        if deadline.passed:
            return
        candidate = evaluator.candidate(changed.plan, 1, changed.devices)
        stick = deciding(session.sticks, candidate.metrics, now)
        before, after = stick.reported(now), stick.reported(candidate.metrics)
        if before is None or after is None or broken(evaluator.instance, candidate, changed.plan.stage):
            continue
        yield _reported(changed, before, after, stick.gain(before, after))


def _batches(all_: Iterator[Changed], deadline: Deadline) -> Iterator[list[Changed]]:
    """Take plans a batch at a time while there is time."""
    while not deadline.passed:
        batch = list(islice(all_, BATCH))
        if not batch:
            return
        yield batch


def _reported(changed: Changed, before: float, after: float, gained: float) -> Move:
    """Describe a move for the answer."""
    return Move(
        kind=changed.kind,
        message=changed.message,
        layers=changed.layers,
        from_stage=None if changed.ends is None else changed.ends[0],
        to_stage=None if changed.ends is None else changed.ends[1],
        ranks=changed.ranks,
        devices=tuple(changed.devices[rank] for rank in changed.ranks),
        objective_value=after,
        gain=gained,
        relative_gain=gained / abs(before) if before else None,
    )


class Neighborhood:
    """The plans one move away from a given one.

    Parameters
    ----------
    priced
        The given plan.

    Attributes
    ----------
    instance
        The problem with the plan's schedule, without queues, on the nodes of the plan and one free node of every kind.
    complete
        Whether no move had to be left out so far.
    """

    def __init__(self, priced: Priced) -> None:
        laid = priced.layout
        self._stage, self._num_stages = laid.plan.stage, laid.plan.num_stages
        placed = laid.devices or laid.instance.topology.devices(laid.plan.location)
        problem = laid.instance.problem
        unqueued = problem.training.model_copy(update={"queueing": False})  # a queue is no part of any objective
        self.instance = build_instance(
            problem.model_copy(update={"training": unqueued}), _nodes_for(problem, placed), self._num_stages
        )
        self.complete = True
        self._figures = make_figures(self.instance)
        self._devices = placed
        self._location = locations_of(self.instance.topology, len(placed), placed)
        self._names = [layer.name for layer in problem.model.layers]
        pipeline = graph_of(self.instance, self._num_stages).pipeline
        self._stages_of = pipeline.stages_of
        actions = sum(len(order) for order in pipeline.orders)
        entries = actions + 10 * len(self._names)
        self._most = min(MOST_OF_A_KIND, max(LEAST_OF_A_KIND, MOST_ENTRIES // entries))

    def all(self) -> Iterator[Changed]:
        """Give the neighbors of every kind, the smallest moves of a kind first."""
        for kind in (self._moved_layers(), self._exchanged(), self._placed_elsewhere()):
            yield from islice(kind, self._most)
            self.complete &= next(kind, None) is None

    def _moved_layers(self) -> Iterator[Changed]:
        """Move boundaries, and groups that are not next to one."""
        groups, stage = self._units()
        seen = set()
        for kind, moving, target in chain(_boundary_moves(stage), _group_moves(groups, stage)):
            if (target, tuple(moving)) in seen:
                continue
            seen.add((target, tuple(moving)))
            moved = np.concatenate([groups.members[group] for group in moving])
            expanded = self._stage.copy()
            expanded[moved] = target
            origin, layers = int(self._stage[moved[0]]), tuple(self._names[layer] for layer in sorted(moved.tolist()))
            message = f"move {_phrase(layers)} from stage {origin} to stage {target}"
            yield Changed(self._plan(expanded, self._location), self._devices, kind, message, layers, (origin, target))

    def _plan(self, stage: IntArray, location: IntArray) -> LayerPlan:
        """Give a plan whose recompute, where it is chosen, suits it best."""
        return best_plan(self.instance, self._figures, stage, location)

    def _units(self) -> tuple[Groups, IntArray]:
        """Give what moves as one, and the stage of each: groups or, where the plan tears one, layers."""
        groups = group_layers(self.instance)
        stage = stage_of_groups(groups, self._stage)
        if stage is not None:
            return groups, stage
        problem = self.instance.problem
        free = problem.model_copy(
            update={"constraints": Constraints(), "model": problem.model.model_copy(update={"buffers": ()})}
        )
        groups = group_layers(replace(self.instance, problem=free))
        stage = stage_of_groups(groups, self._stage)
        assert stage is not None, "the plan keeps the order of the layers"
        return groups, stage

    def _exchanged(self) -> Iterator[Changed]:
        """Let two ranks exchange their devices."""
        for first, second in combinations(range(len(self._location)), 2):
            if self._location[first] == self._location[second]:
                continue
            location, devices = self._location.copy(), list(self._devices)
            location[[first, second]] = location[[second, first]]
            devices[first], devices[second] = devices[second], devices[first]
            message = f"exchange the devices of {self._stages(first)} and {self._stages(second)}"
            yield from self._if_other(location, devices, "exchange", message, (first, second))

    def _placed_elsewhere(self) -> Iterator[Changed]:
        """Put one rank on devices that no other uses."""
        topology = self.instance.topology
        used = {name for each in self._devices for name in each}
        free = {
            place: slot
            for place, location in enumerate(topology.locations)
            for slot in reversed(location.slots)
            if used.isdisjoint(slot)
        }
        for rank in range(len(self._location)):
            for place, slot in free.items():
                if place != self._location[rank]:
                    location, devices = self._location.copy(), list(self._devices)
                    location[rank], devices[rank] = place, slot
                    now = self._devices[rank]
                    message = f"put {self._stages(rank)} on {_run(slot)} instead of {_run(now)}"
                    yield from self._if_other(location, devices, "devices", message, (rank,))

    def _if_other(
        self, location: IntArray, devices: list[tuple[str, ...]], kind: MoveKind, message: str, ranks: tuple[int, ...]
    ) -> Iterator[Changed]:
        """Give a placement unless it differs from the given one in the names of equal devices only."""
        canonical = self.instance.topology.canonical
        if (canonical(location) != canonical(self._location)).any():
            yield Changed(self._plan(self._stage, location), devices, kind, message, ranks=ranks)

    def _stages(self, rank: int) -> str:
        """Name the stages of a rank."""
        numbers = self._stages_of[rank].tolist()
        return f"stage{'s' if len(numbers) > 1 else ''} {' and '.join(map(str, numbers))}"


Moving = tuple[MoveKind, list[int], int]
"""A kind of move, the groups that move and the stage to which they move."""


def _boundary_moves(stage: IntArray) -> Iterator[Moving]:
    """Move the last groups of a stage to the next one, or the first to the one before; few groups first."""
    own = [np.flatnonzero(stage == number).tolist() for number in range(int(stage.max()) + 1)]
    for count in range(1, max(len(groups) for groups in own)):
        for number, groups in enumerate(own):
            if count < len(groups) and number + 1 < len(own):
                yield "boundary", groups[-count:], number + 1
            if count < len(groups) and number > 0:
                yield "boundary", groups[:count], number - 1


def _group_moves(groups: Groups, stage: IntArray) -> Iterator[Moving]:
    """Move single groups of a graph; in a chain that is to move a boundary."""
    if not groups.total_order:
        for moving, step in moves(groups, predecessors_of(groups), stage):
            yield "layers", moving, int(stage[moving[0]]) + step


def _nodes_for(problem: Problem, devices: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Give the sets of nodes in use, those with links of their own, and the first free set of every kind."""
    used = {nodes_of(each) for each in devices}
    names, span = {name for each in used for name in each}, len(nodes_of(devices[0]))
    linked = {end.partition(":")[0] for link in problem.cluster.links for end in link.between}
    free: dict[ExpandedNode, tuple[str, ...]] = {}
    for members in node_sets(problem.cluster, len(devices[0]) // span, span):
        own, smallest = tuple(node.name for node in members), members[-1]
        if names.isdisjoint(own) and not (span == 1 and own[0] in linked):
            free.setdefault(replace(smallest, name="", index_of_group=0), own)
    unlinked = {(name,) for name in linked - names} if span == 1 else set()
    return sorted(used | unlinked | set(free.values()))


def _phrase(layers: Sequence[str]) -> str:
    """Name a few layers."""
    if len(layers) == 1:
        return quoted(layers[0])
    return f"{len(layers)} layers, {quoted(layers[0])} to {quoted(layers[-1])},"


def _run(devices: Sequence[str]) -> str:
    """Name the devices of one rank."""
    return devices[0] if len(devices) == 1 else f"{devices[0]} … {devices[-1]}"
