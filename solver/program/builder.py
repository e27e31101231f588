"""Assembles the program of a configuration, with cutoffs and no-good cuts (C15, C16), and reads plans from it."""

from dataclasses import dataclass

import numpy as np
import pulp

from partita.solver.arrays import IntArray
from partita.solver.domains import Domains
from partita.solver.event_graph import EventGraph
from partita.solver.figures import Figures
from partita.solver.grouping import Groups
from partita.solver.instance import Instance
from partita.solver.plans import Plan
from partita.solver.program.assignment import Assignment, add_apart, add_assignment
from partita.solver.program.linear import Linear, Program, Variable
from partita.solver.program.memory import MemoryRows
from partita.solver.program.placement import add_placement
from partita.solver.program.scale import Scale
from partita.solver.program.sums import SumRows, add_devices
from partita.solver.program.timing import TimingRows
from partita.solver.program.traffic import TrafficRows
from partita.solver.program.transfers import TransferBuilder
from partita.solver.program.ways import WayRows
from partita.solver.targets import Target
from partita.solver.upper_bounds import most_traffic
from partita.solver.warm_start import Frame


@dataclass(frozen=True)
class Limits:
    """Largest values of the metrics, in ticks, bytes and devices; None where a metric does not matter.

    ``sums`` are weighted sums with the largest value of each.
    """

    iteration: int | None
    bottleneck: int | None
    memory: int
    devices: int | None = None
    traffic: int | None = None
    makespan: int | None = None
    sums: tuple[tuple[Target, int], ...] = ()

    @property
    def impossible(self) -> bool:
        """Whether some value would have to be below 0."""
        values = (self.iteration, self.bottleneck, self.memory, self.devices, self.traffic, self.makespan)
        return any(value is not None and value < 0 for value in (*values, *(most for _, most in self.sums)))


@dataclass(frozen=True)
class Request:
    """What is asked of a configuration.

    Attributes
    ----------
    target
        What is minimized.
    limits
        Cutoffs of all metrics, that of the objective included.
    excluded
        Plans that must not be found again.
    apart
        Sets of groups on stages that all differ.
    """

    target: Target
    limits: Limits
    excluded: tuple[Plan, ...]
    apart: tuple[IntArray, ...] = ()


@dataclass(frozen=True)
class Setting:
    """What a configuration is made of: the problem in ticks, its stages, and what every kind of device holds."""

    instance: Instance
    figures: Figures
    groups: Groups
    graph: EventGraph
    frame: Frame
    capacities: IntArray


class StageProgram:
    """The program of a configuration.

    Parameters
    ----------
    setting
        The configuration.
    domains
        What is left to decide.
    cuts
        Path cuts, shape (cuts, C).
    request
        What is sought.
    scale
        Units for the backend.
    most_time
        A time that no plan worth finding exceeds, in ticks.

    Attributes
    ----------
    unit
        Ticks, bytes, devices or units of a weighted sum for one unit of the program's objective.
    """

    def __init__(
        self, setting: Setting, domains: Domains, cuts: IntArray, request: Request, scale: Scale, most_time: int
    ) -> None:
        self._setting, self._scale = setting, scale
        instance, figures, frame = setting.instance, setting.figures, setting.frame
        self._program = program = Program("stages", scale.integer)
        self._assignment = add_assignment(program, setting.groups, domains, frame.num_stages, frame.optional)
        self._placement = add_placement(program, self._assignment, instance.topology, setting.graph.pipeline)
        graph, rank_of = setting.graph, setting.graph.pipeline.rank_of
        builder = TransferBuilder(program, self._assignment, self._placement, scale, instance, figures, graph)
        transfers = builder.build()
        varying = [table for case in figures.cases for table in case.by_way]
        varying += [sizes for case in instance.cases for sizes in case.ways.sizes]
        self._ways = WayRows(program, self._assignment, self._placement, instance, rank_of, varying)
        memory = MemoryRows(program, self._assignment, scale, instance, graph.pipeline, self._ways)
        for passing, of_case in zip(memory.passing, transfers.received, strict=True):
            for rank, received in zip(rank_of.tolist(), of_case, strict=True):
                passing[rank].add(received)
        memory.add_capacity(np.minimum(request.limits.memory, setting.capacities))
        limits, wanted = request.limits, self._counts(request)
        longest = _at_most(limits.bottleneck, _at_most(limits.iteration, most_time) // instance.microbatches)
        timing = TimingRows(program, self._assignment, scale, instance, figures, transfers, graph, self._ways, longest)
        metrics: dict[str, Variable] = {}
        if "peak_memory" in wanted:
            metrics["peak_memory"] = memory.add_peak(min(frame.capacity, limits.memory))
        if "bottleneck_time" in wanted or limits.bottleneck is not None:
            metrics["bottleneck_time"] = timing.add_bottleneck(_at_most(limits.bottleneck, most_time))
        if "iteration_time" in wanted or limits.iteration is not None or limits.makespan is not None:
            most = _at_most(limits.iteration, most_time)
            makespan = timing.add_makespan(cuts, _at_most(limits.makespan, most))
            metrics["iteration_time"] = timing.add_iteration(makespan, self._placement, memory.weights_held, most)
        if "inter_node_bytes" in wanted or limits.traffic is not None:
            traffic = TrafficRows(program, self._placement, scale, instance, graph.pipeline, transfers)
            most = most_traffic(instance, frame.num_stages)
            metrics["inter_node_bytes"] = traffic.add_traffic(_at_most(limits.traffic, most))
        if "num_devices" in wanted:
            metrics["num_devices"] = add_devices(program, graph.pipeline.num_ranks * instance.width)
        sums = SumRows(program, scale, metrics)
        for target, most in limits.sums:
            sums.add_limit(target, most)
        self.unit = sums.minimize(request.target)
        add_apart(program, self._assignment, request.apart)
        for plan in request.excluded:
            self._exclude(plan)

    @staticmethod
    def _counts(request: Request) -> set[str]:
        """Name the metrics that are minimized, or limited in sums."""
        targets = [request.target, *(target for target, _ in request.limits.sums)]
        return {part.metric for target in targets for part in target.parts}

    @property
    def problem(self) -> pulp.LpProblem:
        """The problem for a backend."""
        return self._program.problem

    @property
    def contradiction(self) -> bool:
        """Whether the rows contradict each other without any search."""
        return self._program.contradiction

    @property
    def num_variables(self) -> int:
        """How many variables the program has."""
        return len(self._program.problem.variables())

    def _exclude(self, plan: Plan) -> None:
        """Add C16 for a plan: it fails when a stage's first decision differs."""
        assignment: Assignment = self._assignment
        offset = self._setting.frame.num_stages - plan.num_stages
        different = Linear()
        if offset > self._setting.frame.optional or offset < 0:
            return
        for group, place in enumerate((plan.stage + offset).tolist()):
            row = assignment.thresholds[group]
            different.add(1).add(row[place], -1).add(row[place + 1])
        if self._placement.on is not None:
            for rank, place in enumerate(plan.location.tolist(), start=offset):
                different.add(1).add(self._placement.on[rank][place], -1)
        self._program.at_least("no_good", different, 1)

    def decode(self) -> Plan:
        """Read the plan from the solved variables; empty stages at the front are left out."""
        stage = self._assignment.decode()
        used = [bool((stage == number).any()) for number in range(self._setting.frame.num_stages)]
        location = self._placement.decode([used[int(stages[0])] for stages in self._setting.graph.pipeline.stages_of])
        renumbered = np.cumsum(used) - 1
        return Plan(renumbered[stage], location, self._ways.decode())


def _at_most(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else min(value, otherwise)
