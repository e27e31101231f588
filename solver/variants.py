"""The schedules that a problem lets choose from: each a problem of its own, its plans judged in common ticks."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

from partita.models.problem import Problem
from partita.models.quantities import as_choices
from partita.models.schedule_rules import can_run
from partita.solver.bounds import least_metric
from partita.solver.evaluation import Evaluator
from partita.solver.figures import common_tick, longest_time, make_figures
from partita.solver.grouping import group_layers
from partita.solver.instance import Instance, build_instance
from partita.solver.measure import most_traffic
from partita.solver.plans import Judge
from partita.solver.targets import TIMES, Span, make_targets


@dataclass(frozen=True)
class Variant:
    """A problem with one of its schedules.

    Attributes
    ----------
    instance, judge
        The problem in arrays, and what judges its plans.
    stage_counts
        The numbers of stages that it allows, ascending.
    """

    instance: Instance
    judge: Judge
    stage_counts: list[int]

    @cached_property
    def evaluator(self) -> Evaluator:
        """The referee of its plans."""
        return Evaluator(self.instance)


def make_variants(problem: Problem, cap: float = inf) -> list[Variant]:
    """Make one variant for every schedule; no transfer counts more than ``cap`` seconds."""
    instances = [build_instance(problem.with_schedule(schedule)) for schedule in problem.training.schedules]
    counts = [allowed_stage_counts(instance.problem) for instance in instances]
    tick, blur = common_tick([(instance, max(each)) for instance, each in zip(instances, counts, strict=True)], cap)
    judges = [
        Judge(instance, make_figures(instance, tick, blur, cap), group_layers(instance), number)
        for number, instance in enumerate(instances)
    ]
    levels = make_targets(problem.objective, lambda metric: _span(judges, counts, metric))
    return [
        Variant(instance, judge.aiming(levels), each)
        for instance, judge, each in zip(instances, judges, counts, strict=True)
    ]


def _span(judges: Sequence[Judge], counts: Sequence[list[int]], metric: str) -> Span:
    """Give the span of a metric over all plans of some judges, each with its numbers of stages."""
    least = min(least_metric(judge, each, metric) for judge, own in zip(judges, counts, strict=True) for each in own)
    most = max(_most(judge, max(own), metric) for judge, own in zip(judges, counts, strict=True))
    tick = judges[0].figures.tick
    assert tick is not None, "the solver counts in ticks"
    return Span(least, most, tick if metric in TIMES else 1.0)


def _most(judge: Judge, num_stages: int, metric: str) -> int:
    """Bound a metric of all plans of up to so many stages from above."""
    instance = judge.instance
    if metric == "num_devices":
        return instance.num_ranks(num_stages) * instance.width
    if metric == "peak_memory":
        return judge.largest_memory
    if metric == "inter_node_bytes":
        return most_traffic(instance, num_stages)
    return longest_time(instance, judge.figures, num_stages)


def allowed_stage_counts(problem: Problem) -> list[int]:
    """Give the numbers of stages that a problem with one schedule allows, ascending."""
    training = problem.training
    (schedule,) = training.schedules
    if schedule.stages is not None:
        return [schedule.stages]
    most = problem.most_stages()
    asked = range(1, most + 1) if training.num_stages is None else sorted(as_choices(training.num_stages))
    return [
        count
        for count in asked
        if count <= most and can_run(schedule.kind, schedule.chunks, count, training.num_microbatches)
    ]
