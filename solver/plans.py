"""Plans as the solver handles them: judged in ticks, told apart, and kept in order."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np

from partita.solver.arrays import IntArray
from partita.solver.ceilings import ceilings
from partita.solver.costs import LayerPlan
from partita.solver.figures import ACCURACY, MOST_TICKS, Figures
from partita.solver.grouping import Groups
from partita.solver.instance import Instance
from partita.solver.measure import Measures, graph_of, measure
from partita.solver.recompute import choose_options
from partita.solver.targets import MEMORY, TIMES, Target, counted, single

Signature = tuple[int, tuple[int, ...], tuple[int, ...]]
"""Variant, stage of every group and location of every rank, equal places named in order of use."""


@dataclass(frozen=True, slots=True)
class Plan:
    """An assignment.

    Attributes
    ----------
    stage
        Stage of every group, shape (G,).
    location
        Location of every rank, shape (R,).
    option
        The option of recompute of every layer, shape (L,); None for the one that suits the plan best.
    """

    stage: IntArray
    location: IntArray
    option: IntArray | None = None

    @property
    def num_stages(self) -> int:
        """How many stages there are."""
        return int(self.stage.max()) + 1


@dataclass(frozen=True, slots=True)
class Judged:
    """A plan with its figures in ticks and bytes.

    ``key`` orders plans: what is minimized, level by level, then peak memory, bytes between nodes, unevenness, and the
    plan itself.
    """

    plan: Plan
    measures: Measures
    signature: Signature
    key: tuple[tuple[int, ...], int, int, int, Signature]

    @property
    def objective(self) -> int:
        """What is minimized first: in ticks, bytes, devices or the unit of a weighted sum."""
        return self.key[0][0]

    @property
    def variant(self) -> int:
        """Which of the problem's configurations the plan is for."""
        return self.signature[0]


class Judge:
    """Measures plans and tells which are allowed.

    Parameters
    ----------
    instance, figures, groups
        The problem, its times in ticks and its groups.
    variant
        Which of the problem's configurations it has.

    Attributes
    ----------
    target, levels
        What is minimized; all that is, one after the other among plans that are equal so far.
    capacities
        Bytes that a rank may use on every kind of device, shape (Q,).
    limits
        What no plan exceeds, by metric, in ticks, bytes and devices.
    kept
        Targets with a value that no plan exceeds.
    pins, pinned_layer
        The stage of every pinned group, and the layer that pins it.
    torn
        Pairs of layers that must share a stage but are pinned to different ones.
    apart
        Sets of groups on stages that all differ.
    """

    def __init__(self, instance: Instance, figures: Figures, groups: Groups, variant: int = 0) -> None:
        self.instance, self.figures, self.groups, self.variant = instance, figures, groups, variant
        problem = instance.problem
        index = problem.model.layer_index()
        self.levels: tuple[Target, ...] = (single("iteration_time"),)
        self.target = self.levels[0]
        self.capacities = instance.capacities
        self.limits: dict[str, int] = {}
        for ceiling in ceilings(instance):
            most = self._floor(ceiling.most) if ceiling.metric in TIMES else int(ceiling.most)
            self.limits[ceiling.metric] = min(most, self.limits.get(ceiling.metric, most))
        self.kept: tuple[tuple[Target, int], ...] = ()
        self.pins: dict[int, int] = {}
        self.pinned_layer: dict[int, str] = {}
        self.torn: list[tuple[str, str]] = []
        for name, stage in problem.constraints.pins.items():
            group = int(groups.group_of[index[name]])
            first = self.pinned_layer.setdefault(group, name)
            if self.pins.setdefault(group, stage) != stage:
                self.torn.append((first, name))
        self.apart = [
            np.array([groups.group_of[index[name]] for name in each], dtype=np.int64)
            for each in problem.constraints.apart
        ]

    @property
    def capacity(self) -> int:
        """Bytes that a rank may use on the largest devices."""
        return int(self.capacities.max())

    def _floor(self, seconds: float) -> int:
        """Give a limit in ticks, with a tolerance that makes up for rounding."""
        assert self.figures.tick is not None, "the solver counts in ticks"
        return int(min((seconds * (1 + LIMIT_TOLERANCE) + self.figures.blur) / self.figures.tick, MOST_TICKS))

    @property
    def metric(self) -> str:
        """The name of what is minimized: a metric, or ``weighted``."""
        return self.target.name

    def minds(self, metric: str) -> bool:
        """Tell whether a metric is limited, or minimized at any level."""
        targets = [*self.levels, *(target for target, _ in self.kept)]
        return metric in self.limits or any(target.counts(metric) for target in targets)

    @property
    def sees_makespan(self) -> bool:
        """Whether the makespan is limited, or matters for what is minimized first."""
        limited = "iteration_time" in self.limits or self.instance.problem.limits.bubble_fraction is not None
        kept = any(target.counts("iteration_time") for target, _ in self.kept)
        return limited or kept or self.target.counts("iteration_time")

    def makespan_limit(self, num_ranks: int) -> int | None:
        """Give the longest makespan, in ticks, with which the bubble stays within its limit; None for no limit.

        Every plan that the limit is allowed for keeps its devices busy equally long.
        """
        most = self.instance.problem.limits.bubble_fraction
        if most is None:
            return None
        work = int((self.figures.forward + self.figures.backward).sum()) * self.instance.microbatches
        return int(min(work / ((1 - most) * num_ranks) * (1 + LIMIT_TOLERANCE), MOST_TICKS))

    def aiming(self, levels: Sequence[Target]) -> "Judge":
        """Give the judge with the same limits that wants the first of some targets, and then the others."""
        other = copy(self)
        other.levels, other.target = tuple(levels), levels[0]
        return other

    def keeping(self, target: Target, most: int) -> "Judge":
        """Give the judge of the plans whose value of a target is at most this."""
        other = copy(self)
        if target.name == MEMORY.name:
            other.capacities = np.minimum(self.capacities, most)
        other.kept = (*self.kept, (target, most))
        return other

    def admits(self, stage: IntArray) -> bool:
        """Tell whether an assignment of groups keeps pins and groups apart (order and filled stages are given)."""
        pinned = all(stage[group] == where for group, where in self.pins.items())
        return pinned and all(len(np.unique(stage[each])) == len(each) for each in self.apart)

    def judge(self, plans: Sequence[Plan], with_paths: bool = False) -> list[Judged | None]:
        """Measure plans of equally many stages; None in place of those that break a limit or a constraint."""
        plans = self.with_options(plans)
        admitted = [self.admits(plan.stage) for plan in plans]
        allowed = [plan for plan, fine in zip(plans, admitted, strict=True) if fine]
        measured = iter(self.measure_all(allowed, with_paths) if allowed else [])
        return [
            self._judged(plan, next(measured)) if fine else None for plan, fine in zip(plans, admitted, strict=True)
        ]

    def with_options(self, plans: Sequence[Plan], exact: bool = False) -> list[Plan]:
        """Choose the options of recompute that suit plans best, where there is a choice and it is not made."""
        if not self.instance.ways.choosable:
            return list(plans)
        return [
            plan if plan.option is not None else replace(plan, option=self._best_options(plan, exact)) for plan in plans
        ]

    def _best_options(self, plan: Plan, exact: bool) -> IntArray:
        graph = graph_of(self.instance, plan.num_stages)
        smallest = self.target.name == MEMORY.name
        return choose_options(self.instance, self.figures, self.by_layer(plan), graph, self.capacities, smallest, exact)

    def by_layer(self, plan: Plan) -> LayerPlan:
        """Give a plan layer by layer."""
        stage = plan.stage[self.groups.group_of]
        return LayerPlan(stage, plan.location, np.zeros_like(stage) if plan.option is None else plan.option)

    def assess(self, plan: Plan, measures: Measures) -> Judged | None:
        """Judge a plan that has been measured; None where it breaks a limit or a constraint."""
        return self._judged(plan, measures) if self.admits(plan.stage) else None

    def rejudge(self, judged: "Judged") -> "Judged | None":
        """Judge a plan that another judge of the same problem has measured."""
        return self.assess(judged.plan, judged.measures)

    def _judged(self, plan: Plan, measures: Measures) -> Judged | None:
        if not self._within_limits(plan, measures):
            return None
        location = self.instance.topology.canonical(plan.location)
        signature = (self.variant, tuple(plan.stage.tolist()), tuple(location.tolist()))
        figures = counted(measures)
        key = (
            tuple(target.value(figures) for target in self.levels),
            measures.peak_memory,
            measures.inter_node_bytes,
            int(measures.load.max() - measures.load.min()),
            signature,
        )
        return Judged(Plan(plan.stage, location, plan.option), measures, signature, key)

    def _within_limits(self, plan: Plan, measures: Measures) -> bool:
        """Tell whether a plan breaks no limit."""
        figures, makespan = counted(measures), self.makespan_limit(len(measures.load))
        capacities = self.capacities[self.instance.topology.kind_of[plan.location]]
        return (
            bool((measures.needed <= capacities).all())
            and all(figures[metric] <= most for metric, most in self.limits.items())
            and all(target.value(figures) <= most for target, most in self.kept)
            and (makespan is None or measures.makespan <= makespan)
        )

    def possible_counts(self, stage_counts: Sequence[int]) -> list[int]:
        """Give the numbers of stages that the groups can fill and the slots can hold."""
        slots, ranks = self.instance.topology.num_slots, self.instance.num_ranks
        return [count for count in stage_counts if count <= len(self.groups) and ranks(count) <= slots]

    def measure(self, plan: Plan) -> Measures:
        """Measure one plan, whether or not it is allowed."""
        return self.measure_all([plan])[0]

    def measure_all(self, plans: Sequence[Plan], with_paths: bool = False) -> list[Measures]:
        """Measure plans of equally many stages, whether or not they are allowed."""
        expanded = [self.by_layer(plan) for plan in self.with_options(plans)]
        return measure(self.instance, self.figures, plans[0].num_stages, expanded, with_paths)

    @property
    def largest_memory(self) -> int:
        """Bytes that no plan exceeds on any device: every layer, all microbatches in flight, and all that is sent."""
        instance = self.instance
        stages = instance.problem.most_stages()
        sent = max(int(case.edges.total.sum()) for case in instance.cases) * instance.receive_buffers
        shared = max(int(case.shared.bytes.sum()) for case in instance.cases)
        again = instance.microbatches * shared  # what is shared counts for every stage
        return min(self.capacity, self.most_memory(instance.microbatches) + stages * again + stages**2 * sent)

    def most_memory(self, in_flight: int) -> int:
        """Give the bytes of everything on one stage that keeps so many microbatches, receive buffers apart."""
        instance = self.instance
        every = [case.ways.most for case in instance.cases]
        layers = every[0]
        once = layers.weight.sum() + layers.gradient.sum() + layers.optimizer.sum()
        once += max(int(case.workspace.max()) for case in every)
        for storages in (instance.weights, instance.buffers):
            once += storages.total.sum()
        saved = in_flight * max(
            int(most.activation.sum() + case.shared.bytes.sum())
            for most, case in zip(every, instance.cases, strict=True)
        )
        return int(once) + saved + int(instance.topology.reserves.max())


LIMIT_TOLERANCE = ACCURACY
"""A plan that meets a time limit to this fraction keeps it."""

MOST_KEPT = 2000
"""Plans kept in a pool; the worst are forgotten."""


@dataclass
class PlanPool:
    """The best plans found so far, each once."""

    _plans: dict[Signature, Judged] = field(default_factory=dict)
    _first: dict[int, Judged] = field(default_factory=dict)

    def add(self, judged: Judged | None) -> None:
        """Keep a plan, unless it is None."""
        if judged is not None:
            first = self._first.get(judged.variant)
            if first is None or judged.key < first.key:
                self._first[judged.variant] = judged
            known = self._plans.get(judged.signature)
            if known is None or judged.key < known.key:
                self._plans[judged.signature] = judged
            if len(self._plans) > 2 * MOST_KEPT:
                kept = sorted(self._plans.values(), key=lambda each: each.key)[:MOST_KEPT]
                self._plans = {each.signature: each for each in kept}

    def up_to(self, objective: int) -> list[Judged]:
        """Give the plans that are at least as good as this objective."""
        return [each for each in self._plans.values() if each.objective <= objective]

    def best_of(self, variant: int) -> Judged | None:
        """Give the first plan in order of a variant."""
        return self._first.get(variant)

    def best(self, excluded: set[Signature]) -> Judged | None:
        """Give the first plan in order that is not excluded."""
        candidates = [each for signature, each in self._plans.items() if signature not in excluded]
        return min(candidates, key=lambda each: each.key, default=None)
