"""Plans as the solver handles them: judged in ticks, told apart, and kept in order."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np

from partita.solver.arrays import IntArray
from partita.solver.costs import LayerPlan
from partita.solver.figures import ACCURACY, MOST_TICKS, Figures
from partita.solver.grouping import Groups
from partita.solver.instance import Instance
from partita.solver.measure import Measures, graph_of, measure
from partita.solver.recompute import choose_options

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

    ``key`` orders plans: objective first, then peak memory, bytes between nodes, unevenness, and the plan itself.
    """

    plan: Plan
    measures: Measures
    signature: Signature
    key: tuple[int, int, int, int, Signature]

    @property
    def objective(self) -> int:
        """What is minimized, in ticks or bytes."""
        return self.key[0]

    @property
    def variant(self) -> int:
        """Which of the problem's schedules the plan runs."""
        return self.signature[0]


class Judge:
    """Measures plans and tells which are allowed.

    Parameters
    ----------
    instance, figures, groups
        The problem, its times in ticks and its groups.
    variant
        Which of the problem's schedules it has.

    Attributes
    ----------
    metric
        What is minimized: ``iteration_time``, ``bottleneck_time`` or ``peak_memory``.
    capacities
        Bytes that a rank may use on every kind of device, shape (Q,).
    iteration_limit, bottleneck_limit
        What no plan exceeds, in ticks; None for no limit.
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
        limits = problem.limits
        self.metric = "iteration_time" if problem.objective == "tokens_per_second" else str(problem.objective)
        self.capacities = instance.capacities
        self.iteration_limit = self._floor(limits.iteration_time_s)
        self.bottleneck_limit = self._floor(limits.bottleneck_time_s)
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

    def _floor(self, seconds: float | None) -> int | None:
        """Give a limit in ticks, with a tolerance that makes up for rounding."""
        if seconds is None:
            return None
        assert self.figures.tick is not None, "the solver counts in ticks"
        return int(min((seconds * (1 + LIMIT_TOLERANCE) + self.figures.blur) / self.figures.tick, MOST_TICKS))

    def among_equals(self, objective: int) -> "Judge":
        """Give the judge that wants the smallest peak memory of plans as good as this objective, in ticks."""
        other, most = copy(self), within_rounding(objective)
        other.metric = "peak_memory"
        if self.metric == "iteration_time":
            other.iteration_limit = most
        else:
            other.bottleneck_limit = most
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

    def with_options(self, plans: Sequence[Plan]) -> list[Plan]:
        """Choose the options of recompute that suit plans best, where there is a choice and it is not made."""
        if not self.instance.ways.choosable:
            return list(plans)
        return [plan if plan.option is not None else replace(plan, option=self._best_options(plan)) for plan in plans]

    def _best_options(self, plan: Plan) -> IntArray:
        graph = graph_of(self.instance, plan.num_stages)
        smallest = self.metric == "peak_memory"
        return choose_options(self.instance, self.figures, self.by_layer(plan), graph, self.capacities, smallest)

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
        capacities = self.capacities[self.instance.topology.kind_of[plan.location]]
        if (measures.memory.by_rank > capacities).any():
            return None
        if self.iteration_limit is not None and measures.iteration > self.iteration_limit:
            return None
        if self.bottleneck_limit is not None and measures.bottleneck > self.bottleneck_limit:
            return None
        location = self.instance.topology.canonical(plan.location)
        signature = (self.variant, tuple(plan.stage.tolist()), tuple(location.tolist()))
        key = (
            self.objective(measures),
            measures.peak_memory,
            measures.inter_node_bytes,
            int(measures.load.max() - measures.load.min()),
            signature,
        )
        return Judged(Plan(plan.stage, location, plan.option), measures, signature, key)

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

    def most_memory(self, in_flight: int) -> int:
        """Give the bytes of everything on one stage that keeps so many microbatches, receive buffers apart."""
        instance = self.instance
        layers, kept = instance.ways.most, in_flight
        once = layers.weight.sum() + layers.gradient.sum() + layers.optimizer.sum() + layers.workspace.max()
        for storages in (instance.weights, instance.buffers):
            once += storages.bytes.sum() + storages.gradient_bytes.sum() + storages.optimizer_bytes.sum()
        saved = kept * int(layers.activation.sum() + instance.shared.bytes.sum())
        return int(once) + saved + int(instance.topology.reserves.max())

    def objective(self, measures: Measures) -> int:
        """Give what is minimized, in ticks or bytes."""
        if self.metric == "peak_memory":
            return measures.peak_memory
        return int(measures.bottleneck if self.metric == "bottleneck_time" else measures.iteration)


LIMIT_TOLERANCE = ACCURACY
"""A plan that meets a time limit to this fraction keeps it."""


def within_rounding(objective: int) -> int:
    """Give the largest objective, in ticks, that equals this one but for the rounding to ticks."""
    return objective + int(objective * ACCURACY)


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

    def equal_to(self, objective: int) -> list[Judged]:
        """Give the plans that are as good as this objective."""
        return [each for each in self._plans.values() if each.objective <= within_rounding(objective)]

    def best_of(self, variant: int) -> Judged | None:
        """Give the first plan in order of a variant."""
        return self._first.get(variant)

    def best(self, excluded: set[Signature]) -> Judged | None:
        """Give the first plan in order that is not excluded."""
        candidates = [each for signature, each in self._plans.items() if signature not in excluded]
        return min(candidates, key=lambda each: each.key, default=None)
