"""When everything of a plan happens: actions, transfers, memory of the devices, and the critical path.

The times are those of the event graph, so what follows the makespan once per iteration has no place on the timeline,
and transfers never queue for a link. With ``blocking`` an action contains the transfers of its stage, and the receiver
starts when the sender starts to send: there are no transfers of their own then.
"""

from dataclasses import dataclass, replace
from math import isclose
from typing import Literal

import numpy as np

from partita.models.answer import Candidate
from partita.models.errors import InvalidInput
from partita.models.naming import listing, quoted
from partita.models.problem import Problem
from partita.solver.arrays import FloatArray
from partita.solver.checks import InternalError
from partita.solver.costs import kept_bytes, sum_by
from partita.solver.evaluation import Evaluator
from partita.solver.event_graph import FORWARD, EventGraph
from partita.solver.layout import Layout, given_by, lay_out
from partita.solver.measure import graph_of
from partita.solver.support import refuse_degrees_per_stage, refuse_unsupported

MOST_ACTIONS = 500_000
"""Actions of the longest timeline that is written down."""
ACCURACY = 1e-9
"""Times that differ by less than this fraction are the same: an answer's figures went through text."""

Direction = Literal["forward", "backward"]


@dataclass(frozen=True, slots=True)
class Action:
    """What a rank computes without a break.

    Attributes
    ----------
    rank, devices
        Where.
    kind, stage, microbatch
        F forward pass, B whole backward pass, I input gradient, W weight gradient.
    start_s, end_s
        Seconds from the beginning of the iteration; with ``blocking`` the transfers of the stage are included.
    critical
        Whether it is on the critical path.
    """

    rank: int
    devices: tuple[str, ...]
    kind: str
    stage: int
    microbatch: int
    start_s: float
    end_s: float
    critical: bool


@dataclass(frozen=True, slots=True)
class Transfer:
    """An overlapped transfer that takes time; ``from_stage`` sends, ``path`` names the links that it takes."""

    from_stage: int
    to_stage: int
    direction: Direction
    microbatch: int
    path: tuple[str, ...]
    start_s: float
    end_s: float
    critical: bool


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the critical path: an action or a transfer until the next one on the path starts."""

    of: Action | Transfer
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class RankMemory:
    """The memory of each device of a rank over time.

    Attributes
    ----------
    rank, devices, capacity_bytes
        Which devices, and how much each of them has.
    steps
        Times in seconds, ascending, and the bytes in use from then on. A microbatch counts from the start of its
        forward pass; workspace, receive buffers and the reserve always.
    """

    rank: int
    devices: tuple[str, ...]
    capacity_bytes: int
    steps: tuple[tuple[float, int], ...]

    @property
    def peak_bytes(self) -> int:
        """The most that is in use at any time."""
        return max(size for _, size in self.steps)


@dataclass(frozen=True, slots=True)
class Timeline:
    """When everything of a plan happens in one iteration.

    Attributes
    ----------
    makespan_s
        From the start of the first action to the end of the last.
    once_s
        What follows the makespan once per iteration: all-reduces and the optimizer step.
    blocking
        Whether actions contain their transfers.
    actions
        Of one rank after the other, in order of time.
    transfers
        Of one pair of stages after the other, forward ones first, in order of time; none with ``blocking``.
    memory
        Of every rank.
    critical_path
        One longest path, first to last: each piece starts when the one before it ends, and they add up to the
        makespan. There can be other paths as long.
    """

    makespan_s: float
    once_s: float
    blocking: bool
    actions: tuple[Action, ...]
    transfers: tuple[Transfer, ...]
    memory: tuple[RankMemory, ...]
    critical_path: tuple[Piece, ...]

    @property
    def num_ranks(self) -> int:
        """How many ranks there are."""
        return len(self.memory)


def timeline(problem: Problem, candidate: Candidate) -> Timeline:
    """Compute the timeline of a candidate from its problem, and check it against the candidate's own figures.

    Parameters
    ----------
    problem, candidate
        The problem and one of the candidates of an answer to it, whether or not it keeps all limits.

    Raises
    ------
    NotSupportedYet, InvalidInput
        When the problem cannot be planned; when the candidate's stages are no plan for it (pointers start at
        ``/plan``); when there are too many actions.
    InternalError
        When the candidate's figures are not those that its stages have.
    """
    refuse_degrees_per_stage(problem, "a timeline")
    configured = in_shown_scenario(problem.configured(candidate), candidate)
    refuse_unsupported(configured)
    return _Writer(laid_out(configured, candidate), candidate.as_shown).timeline()


def in_scenario(problem: Problem, candidate: Candidate, name: str) -> Candidate:
    """Give a candidate with the stages and boundaries that it has in another of its scenarios than the longest.

    Parameters
    ----------
    problem, candidate
        The problem and one of the candidates of an answer to it.
    name
        The scenario.

    Raises
    ------
    InvalidInput
        At ``/scenarios``, when the problem has no such scenario; as ``timeline`` does otherwise.
    """
    chosen = [each for each in problem.scenarios if each.name == name]
    if not chosen:
        known = listing([each.name for each in problem.scenarios], "; there are ") or "; the problem has no scenarios"
        raise InvalidInput.at("/scenarios", f"there is no scenario {quoted(name)}{known}", None, "unknown_name")
    if name == candidate.scenario or len(problem.scenarios) < 2:
        return candidate
    refuse_degrees_per_stage(problem, "a timeline")
    configured = problem.configured(candidate).in_scenario(chosen[0])
    refuse_unsupported(configured)
    layout = laid_out(configured, candidate)
    priced = Evaluator(layout.instance).candidate(layout.plan, candidate.rank, layout.devices)
    shown = {"scenario": name, "stages": priced.stages, "boundaries": priced.boundaries}
    return candidate.model_copy(update=shown)


def laid_out(problem: Problem, candidate: Candidate) -> Layout:
    """Lay out a candidate's stages and places for a problem in its configuration."""
    layout = lay_out(problem, given_by(candidate, ("layers", "options", "devices")))
    if any(stage.options for stage in candidate.stages):
        return layout
    # Nothing is recomputed, where a plan without options would choose.
    return replace(layout, plan=replace(layout.plan, option=np.zeros_like(layout.plan.option)))


def in_shown_scenario(problem: Problem, candidate: Candidate) -> Problem:
    """Give the problem in the scenario whose stages the candidate shows, where there are several."""
    if len(problem.scenarios) < 2:
        return problem
    shown = [each for each in problem.scenarios if each.name == candidate.scenario]
    if not shown or candidate.as_shown is candidate:
        detail = "the plan names no scenario of the problem; plan it again"
        raise InvalidInput.at("/plan/scenario", detail, candidate.scenario, "unknown_name")
    return problem.in_scenario(shown[0])


class _Writer:
    """Writes the timeline of a plan."""

    def __init__(self, layout: Layout, candidate: Candidate) -> None:
        self.instance, self.plan = layout.instance, layout.plan
        self.graph: EventGraph = graph_of(layout.instance, len(candidate.stages))
        if self.graph.nodes.num_actions > MOST_ACTIONS:
            detail = (
                f"a timeline of {self.graph.nodes.num_actions} actions is too long, at most {MOST_ACTIONS} are "
                "written down; plan fewer microbatches: the steady state of fewer is the same"
            )
            raise InvalidInput.at("/training/num_microbatches", detail, str(layout.instance.microbatches), "too_large")
        evaluator = Evaluator(layout.instance)
        self.measures = evaluator.measures(layout.plan)
        self.priced = evaluator.candidate(layout.plan, candidate.rank, layout.devices)
        _check_figures(self.priced, candidate)
        self.start, self.end = _starts_and_ends(self.graph, self.measures.row)
        self.path = self.graph.critical_nodes(self.measures.row)
        self.critical = np.zeros(len(self.end), dtype=bool)
        self.critical[self.path] = True
        self.devices = {stage.rank: stage.devices for stage in self.priced.stages}

    def timeline(self) -> Timeline:
        """Write everything down."""
        makespan = float(self.measures.makespan)
        actions, transfers = self._actions(), self._transfers()
        events: dict[int, Action | Transfer] = dict(enumerate(actions)) | transfers
        if not isclose(makespan, max(action.end_s for action in actions), rel_tol=ACCURACY):
            raise InternalError(f"the last action does not end at the makespan of {makespan!r} s")
        return Timeline(
            makespan_s=makespan,
            once_s=float(self.measures.once),
            blocking=self.instance.blocking,
            actions=actions,
            transfers=tuple(transfers.values()),
            memory=self._memory(actions),
            critical_path=self._pieces(events, makespan),
        )

    def _actions(self) -> tuple[Action, ...]:
        nodes, rank_of = self.graph.nodes, self.graph.pipeline.rank_of
        rows = zip(
            nodes.kind.tolist(),
            nodes.stage.tolist(),
            rank_of[nodes.stage].tolist(),
            nodes.microbatch.tolist(),
            self.start.tolist(),
            self.end.tolist(),
            self.critical.tolist(),
            strict=False,  # actions come before transfers, which have neither kind nor stage
        )
        return tuple(
            Action(rank, self.devices[rank], "FBIW"[kind], stage, microbatch, start, end, critical)
            for kind, stage, rank, microbatch, start, end, critical in rows
        )

    def _transfers(self) -> dict[int, Transfer]:
        """Give the transfers that take time, by node."""
        nodes, pairs = self.graph.nodes, self.graph.pairs.tolist()
        paths = {(each.from_stage, each.to_stage): each.path for each in self.priced.boundaries}
        found: dict[int, Transfer] = {}
        for node in range(nodes.num_actions, self.graph.num_nodes):
            start, end = float(self.start[node]), float(self.end[node])
            if end > start:
                ends: tuple[int, int] = tuple(pairs[int(nodes.pair[node])])
                forward = int(nodes.direction[node]) == FORWARD
                sender, receiver = ends if forward else ends[::-1]
                found[node] = Transfer(
                    from_stage=sender,
                    to_stage=receiver,
                    direction="forward" if forward else "backward",
                    microbatch=int(nodes.microbatch[node]),
                    path=paths[ends],
                    start_s=start,
                    end_s=end,
                    critical=bool(self.critical[node]),
                )
        return found

    def _pieces(self, events: dict[int, Action | Transfer], makespan: float) -> tuple[Piece, ...]:
        """Cut the critical path where its nodes start; transfers that take no time are left out."""
        path = [events[node] for node in self.path.tolist() if node in events]
        cuts = [each.start_s for each in path] + [makespan]
        return tuple(Piece(each, cuts[i], cuts[i + 1]) for i, each in enumerate(path))

    def _memory(self, actions: tuple[Action, ...]) -> tuple[RankMemory, ...]:
        """Follow the orders of the ranks."""
        whole, for_weights = kept_bytes(self.instance, self.plan, self.graph.pipeline.rank_of)
        (memory,) = self.measures.memory
        constant = memory.by_rank - sum_by(memory.rank_of, memory.activations, self.graph.pipeline.num_ranks)
        of_rank: list[list[Action]] = [[] for _ in constant]
        for action in actions:
            of_rank[action.rank].append(action)
        found = []
        capacities = {stage.rank: stage.memory.capacity_bytes for stage in self.priced.stages}
        for rank, own in enumerate(of_rank):
            steps = _memory_steps(own, int(constant[rank]), whole.tolist(), for_weights.tolist())
            total = int(memory.by_rank[rank])
            found.append(RankMemory(rank, self.devices[rank], capacities[rank], tuple(steps)))
            if found[-1].peak_bytes != total:
                raise InternalError(
                    f"rank {rank} uses up to {found[-1].peak_bytes} bytes over time, but {total} in all"
                )
        return tuple(found)


def _starts_and_ends(graph: EventGraph, times: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Give when every node starts and ends; a start is exactly the latest of what the node waits for."""
    nodes, end = graph.nodes, graph.ends(times)
    earlier = np.where(nodes.delay >= 0, times[nodes.delay], 0.0)
    start = np.zeros_like(end)
    np.maximum.at(start, nodes.target, end[nodes.source] - earlier)
    return start, end


def _memory_steps(
    actions: list[Action], constant: int, whole: list[int], for_weights: list[int]
) -> list[tuple[float, int]]:
    """Follow the actions of a rank; without a backward pass nothing is kept.

    Where several changes fall on one time a dip between them is left out, but never a peak.
    """
    steps = [(0.0, constant)]
    if all(action.kind == "F" for action in actions):
        return steps
    size = constant
    for action in actions:
        kept, left = whole[action.stage], for_weights[action.stage]
        size += {"F": kept, "B": -kept, "I": left - kept, "W": -left}[action.kind]
        time = action.start_s if action.kind == "F" else action.end_s
        if steps[-1][0] == time and steps[-1][1] < size:
            steps.pop()
        if not steps or steps[-1][1] != size:
            steps.append((time, size))
    return steps


def _check_figures(priced: Candidate, candidate: Candidate) -> None:
    """Refuse a candidate whose figures are not those of its stages."""
    ours, theirs = priced.metrics.iteration_time_s, candidate.metrics.iteration_time_s
    if not isclose(ours, theirs, rel_tol=ACCURACY):
        raise InternalError(f"the candidate's iteration time is {theirs!r} s, its stages have {ours!r} s")
    if priced.metrics.peak_memory_bytes != candidate.metrics.peak_memory_bytes:
        raise InternalError(
            f"the candidate's peak memory is {candidate.metrics.peak_memory_bytes} bytes, its stages have "
            f"{priced.metrics.peak_memory_bytes}"
        )
    for ours_, theirs_ in zip(priced.stages, candidate.stages, strict=True):
        if ours_.memory.total_bytes != theirs_.memory.total_bytes:
            raise InternalError(
                f"stage {ours_.index} of the candidate has {theirs_.memory.total_bytes} bytes, computed are "
                f"{ours_.memory.total_bytes}"
            )
