"""The schedules that a problem lets choose from: each a problem of its own, its plans judged in common ticks."""

from dataclasses import dataclass
from functools import cached_property
from math import inf

from partita.models.problem import Problem
from partita.models.quantities import as_choices
from partita.models.schedule_rules import can_run
from partita.solver.evaluation import Evaluator
from partita.solver.figures import common_tick, make_figures
from partita.solver.grouping import group_layers
from partita.solver.instance import Instance, build_instance
from partita.solver.plans import Judge


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
    variants = []
    for number, (instance, each) in enumerate(zip(instances, counts, strict=True)):
        judge = Judge(instance, make_figures(instance, tick, blur, cap), group_layers(instance), number)
        variants.append(Variant(instance, judge, each))
    return variants


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
