"""The configurations of training that a problem spans: each a problem of its own, plans judged in common ticks."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

from partita.models.choices import TrainingChoice
from partita.models.errors import InvalidInput
from partita.models.problem import Problem
from partita.models.quantities import as_choices
from partita.models.schedule_rules import can_run
from partita.solver.bounds import least_metric
from partita.solver.evaluation import Evaluator
from partita.solver.families import Families
from partita.solver.figures import common_tick, make_figures, sizes_of_ticks
from partita.solver.instance import Instance
from partita.solver.plans import Judge
from partita.solver.targets import TIMES, Span, make_targets
from partita.solver.upper_bounds import longest_busy, longest_time, most_traffic


@dataclass(frozen=True)
class Variant:
    """A problem in one of its configurations of training.

    Attributes
    ----------
    choice, scale
        The configuration, and how many samples an iteration has, the first variant's being 1.
    instance, judge
        The problem in arrays, and what judges its plans.
    stage_counts
        The numbers of stages that it allows, ascending.
    """

    choice: TrainingChoice
    scale: float
    instance: Instance
    judge: Judge
    stage_counts: list[int]

    @cached_property
    def evaluator(self) -> Evaluator:
        """The referee of its plans."""
        return Evaluator(self.instance)


def make_variants(problem: Problem, cap: float = inf) -> list[Variant]:
    """Make one variant for every configuration that can have one of the numbers of stages asked for.

    Parameters
    ----------
    problem
        What to plan.
    cap
        No transfer counts more than so many seconds, for as many samples as the first configuration has.

    Raises
    ------
    InvalidInput
        When there is no such configuration.
    """
    every = [(choice, problem.with_choice(choice)) for choice in problem.choices()]
    found = [(choice, each, stages) for choice, each in every if (stages := allowed_stage_counts(each))]
    if not found:
        detail = "no choice of degrees leaves room for a number of stages asked for; choose smaller degrees"
        raise InvalidInput.at("/training", detail, None, "too_few_devices")
    choices, counts = [choice for choice, _, _ in found], [each for _, _, each in found]
    families = Families()
    instances = [families.instance(choice, each) for choice, each, _ in found]
    tick, blur = common_tick([(instance, max(each)) for instance, each in zip(instances, counts, strict=True)], cap)
    scales = sizes_of_ticks(instances)
    judges = [
        Judge(
            instance, make_figures(instance, tick * scale, blur * scale, cap * scale), families.groups(choice), number
        )
        for number, (choice, instance, scale) in enumerate(zip(choices, instances, scales, strict=True))
    ]
    levels = make_targets(problem.objective, lambda metric: _span(judges, counts, metric))
    return [
        Variant(choice, scale, instance, judge.aiming(levels), each)
        for choice, scale, instance, judge, each in zip(choices, scales, instances, judges, counts, strict=True)
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
    longest = longest_busy if metric == "bottleneck_time" else longest_time
    return longest(instance, judge.figures, num_stages)


def allowed_stage_counts(problem: Problem) -> list[int]:
    """Give the numbers of stages that a problem in one configuration allows, ascending."""
    training = problem.training
    (schedule,) = training.schedules
    if schedule.stages is not None:
        return [schedule.stages]
    most = problem.most_stages()
    asked = range(1, most + 1) if training.num_stages is None else sorted(as_choices(training.num_stages))
    return [
        count
        for count in asked
        if count <= most and can_run(schedule.kind, schedule.chunks, count, training.microbatches)
    ]
