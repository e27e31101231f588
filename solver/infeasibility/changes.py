"""Single changes of a problem without a plan after which there is one, each found by planning the changed problem.

Only a limit of the core is worth changing: as it stands, the core leaves no plan. A limit on a metric or on memory
becomes the smallest one that can be kept: what the metric is at least while all other limits hold. Besides, where the
core has such a limit, other kinds of recompute and fewer microbatches are tried. The size of a change is the relative
change of the number, or 1 for a constraint that is left out and for another kind of recompute.
"""

from collections.abc import Callable, Sequence
from typing import Any, get_args

from partita.models.infeasibility import Change, NamedLimit
from partita.models.layer import RECOMPUTE_WORDS
from partita.models.objective import MetricName
from partita.models.problem import Problem
from partita.models.quantities import MAX_BYTES, as_choices
from partita.models.schedule_rules import can_run
from partita.solver.deadline import Deadline
from partita.solver.infeasibility.attempts import ANY, Attempt, attempt, has_plan
from partita.solver.infeasibility.change_words import instead, left_out, more_memory, other_limit, other_recompute
from partita.solver.infeasibility.demands import changed, keep_only, kind_of, named_limits, with_value
from partita.solver.variants import allowed_stage_counts

BATCH = "/training/num_microbatches"
"""The field whose change does another amount of work in an iteration, and therefore comes last."""

WHOLE = 1.0
"""The size of a change that is not one of a number."""

Tried = tuple[Change | None, bool]
"""The change that was found, None where none works, and whether the search for it ended in time."""

Try = Callable[[Problem, Deadline], Tried]


def find_changes(problem: Problem, core: Sequence[NamedLimit], deadline: Deadline) -> tuple[list[Change], bool]:
    """Give the single changes that work, and whether everything was tried.

    The smallest comes first; fewer microbatches, with which an iteration does less, come last. Every field gets an
    equal part of the time that is left when its turn comes.

    Parameters
    ----------
    problem
        A problem proven to have no plan.
    core
        Limits of it that cannot hold together.
    deadline
        When to end.
    """
    tries = [_try_for(problem, limit) for limit in core]
    if any(_is_figure(limit) for limit in core):
        tries += [_recompute(kind) for kind in _other_recomputes(problem)] + [_fewer_microbatches]
    found: list[Change] = []
    in_time = True
    for number, each in enumerate(tries):
        change, known = each(problem, deadline.part(1 / (len(tries) - number)))
        found += [] if change is None else [change]
        in_time &= known
    return sorted(found, key=lambda change: (change.pointer == BATCH, change.size)), in_time


def _is_figure(limit: NamedLimit) -> bool:
    """Tell whether a limit is one on memory or on a metric."""
    return limit.name.startswith(("limits.", "cluster."))


def _try_for(problem: Problem, limit: NamedLimit) -> Try:
    """Give the way in which a limit is changed."""
    if limit.name.startswith("cluster."):
        single = len(problem.cluster.kinds) == 1
        return lambda problem, deadline: (memory_by_minimum if single else memory_by_halving)(problem, limit, deadline)
    if limit.name == "training.num_stages":
        return lambda problem, deadline: _stages(problem, limit, deadline)
    metric = _objective_of(limit)
    if metric is not None:
        return lambda problem, deadline: _bound(problem, limit, metric, deadline)
    return lambda problem, deadline: _left_out(problem, limit, deadline)


def _objective_of(limit: NamedLimit) -> str | None:
    """Give the objective with which the metric of a limit is sought; None for other limits."""
    section, _, field = limit.name.partition(".")
    names = (field, field.removesuffix("_s"), field.removesuffix("_bytes"))
    return next((name for name in names if section == "limits" and name in get_args(MetricName)), None)


def _bound(problem: Problem, limit: NamedLimit, metric: str, deadline: Deadline) -> Tried:
    """Find the limit on a metric that can just be kept."""
    free = changed(with_value(problem, limit, None), objective=metric)
    best = attempt(free, deadline.part(LEAST_SHARE), relative_gap=0.0)
    if best.plan is None:
        return None, best.works is not None
    value = getattr(best.plan.metrics, limit.name.partition(".")[2])
    reached = best if problem.objective == metric else _plan(with_value(problem, limit, value), deadline)
    return _change(limit, value, other_limit(limit, value), reached, smallest=best.proven)


def memory_by_minimum(problem: Problem, limit: NamedLimit, deadline: Deadline) -> Tried:
    """Find the memory that devices of the only kind need at least."""
    free = changed(with_value(problem, limit, MAX_BYTES), objective="peak_memory")
    best = attempt(free, deadline.part(LEAST_SHARE), relative_gap=0.0)
    if best.plan is None:
        return None, best.works is not None
    needed = best.plan.metrics.peak_memory_bytes
    reached = best if problem.objective == "peak_memory" else _plan(with_value(problem, limit, needed), deadline)
    words = more_memory(kind_of(limit, problem.cluster), limit, needed)
    return _change(limit, needed, words, reached, smallest=best.proven)


def memory_by_halving(problem: Problem, limit: NamedLimit, deadline: Deadline) -> Tried:
    """Find by halving the memory that devices of one kind among several need at least."""
    any_plan = attempt(with_value(problem, limit, MAX_BYTES), deadline.part(LEAST_SHARE / 2), relative_gap=ANY)
    if any_plan.plan is None:
        return None, any_plan.works is not None
    part = deadline.part(LEAST_SHARE)
    known, before = any_plan.plan.metrics.peak_memory_bytes, limit.value
    assert isinstance(before, int), "memory is given in whole bytes"
    needed, smallest = last_working(
        range(known, before, -1), lambda size: size == known or has_plan(with_value(problem, limit, size), part)
    )
    assert needed is not None, "the plan that was found fits into what it needs"
    reached = _plan(with_value(problem, limit, needed), deadline)
    words = more_memory(kind_of(limit, problem.cluster), limit, needed)
    return _change(limit, needed, words, reached, smallest=smallest)


def _stages(problem: Problem, limit: NamedLimit, deadline: Deadline) -> Tried:
    """Find the nearest number of stages with which there is a plan, the smaller one of two."""
    free = with_value(problem, limit, None)
    any_plan = attempt(free, deadline.part(LEAST_SHARE / 2), relative_gap=ANY)
    if any_plan.plan is None:
        return None, any_plan.works is not None
    asked, known = as_choices(problem.training.num_stages or ()), len(any_plan.plan.stages)
    part, smallest = deadline.part(LEAST_SHARE), True
    for number in sorted(_possible_stages(free), key=lambda each: (_distance(each, asked), each)):
        if number in asked:
            continue
        works = number == known or has_plan(with_value(problem, limit, number), part)
        smallest &= works is not None
        if works:
            break
    nearest = min(asked, key=lambda each: (abs(each - number), each))
    reached = _plan(with_value(problem, limit, number), deadline)
    change, in_time = _change(limit, number, instead("stage", number, asked), reached, smallest=smallest)
    assert change is not None
    return changed(change, size=abs(number - nearest) / nearest), in_time


def _possible_stages(problem: Problem) -> set[int]:
    """Give all numbers of stages that one of the configurations can run."""
    each = [allowed_stage_counts(problem.with_choice(choice)) for choice in problem.choices()]
    return set().union(*each)


def _distance(number: int, asked: Sequence[int]) -> int:
    return min(abs(number - each) for each in asked)


def _left_out(problem: Problem, limit: NamedLimit, deadline: Deadline) -> Tried:
    """Try to do without a constraint."""
    others = [each for each in named_limits(problem) if each.pointer != limit.pointer]
    reached = _plan(keep_only(problem, others), deadline)
    if not reached.works:
        return None, reached.works is not None
    return _change(limit, None, left_out(limit), reached, smallest=True)


def _other_recomputes(problem: Problem) -> list[str]:
    """Give the kinds of recompute that layers have options for, without the one in force."""
    asked = problem.constraints.recompute
    named = {option.recompute: None for layer in problem.model.layers for option in layer.options if option.recompute}
    return [] if asked in RECOMPUTE_WORDS - {"none"} else [kind for kind in ("none", *named) if kind != asked]


def _recompute(kind: str) -> Try:
    """Give the way to try another kind of recompute."""

    def find(problem: Problem, deadline: Deadline) -> Tried:
        asked = problem.constraints
        reached = _plan(changed(problem, constraints=changed(asked, recompute=kind)), deadline)
        if not reached.works:
            return None, reached.works is not None
        return _made("/constraints/recompute", asked.recompute, kind, WHOLE, True, other_recompute(kind), reached)

    return find


def _fewer_microbatches(problem: Problem, deadline: Deadline) -> Tried:
    """Find by halving the most microbatches with which there is a plan, where fewer never need more."""
    training, part = problem.training, deadline.part(LEAST_SHARE)
    if training.num_microbatches is None or training.global_batch_size is not None:
        return None, True
    fewest = min(as_choices(training.num_microbatches))
    asked = range(1, problem.most_stages() + 1) if training.num_stages is None else as_choices(training.num_stages)

    def runs(number: int) -> bool:
        return any(
            can_run(schedule.kind, schedule.chunks, count, number) for schedule in training.schedules for count in asked
        )

    def with_number(number: int) -> Problem:
        return changed(problem, training=changed(training, num_microbatches=number))

    if any(schedule.orders is not None for schedule in training.schedules):
        return None, True
    numbers = [number for number in range(1, fewest) if runs(number)]
    number, known = last_working(numbers, lambda number: has_plan(with_number(number), part))
    if number is None:
        return None, known
    words = instead("microbatch", number, as_choices(training.num_microbatches))
    before = training.num_microbatches
    asked_for = list(before) if isinstance(before, tuple) else before
    size = (fewest - number) / fewest
    return _made(BATCH, asked_for, number, size, False, words, _plan(with_number(number), deadline))


LEAST_SHARE = 0.6
"""The part of a field's time in which the smallest change is sought; the rest is for the best plan after it."""


def last_working(numbers: Sequence[int], works: Callable[[int], bool | None]) -> tuple[int | None, bool]:
    """Find the last number that works, where all numbers before one that works do too.

    Returns
    -------
    number
        The last one known to work; None where not even the first is.
    in_time
        Whether each answer was known; ``works`` gives None where it is not.
    """
    first = works(numbers[0]) if numbers else False
    if not first:
        return None, first is not None
    last, beyond, in_time = 0, len(numbers), True
    while beyond - last > 1:
        middle = (last + beyond) // 2
        fine = works(numbers[middle])
        in_time &= fine is not None
        last, beyond = (middle, beyond) if fine else (last, middle)
    return numbers[last], in_time


def _plan(problem: Problem, deadline: Deadline) -> Attempt:
    """Plan a changed problem as the user would."""
    return attempt(problem, deadline, relative_gap=problem.search.relative_gap)


def _change(limit: NamedLimit, value: Any, words: str, reached: Attempt, *, smallest: bool) -> Tried:
    """Put together the change of a limit."""
    number = _is_figure(limit) and value is not None
    size = abs(value - limit.value) / limit.value if number and limit.value else WHOLE
    return _made(limit.pointer, limit.value, value, size, smallest, words, reached)


def _made(
    pointer: str, before: Any, after: Any, size: float, smallest: bool, words: str, reached: Attempt
) -> tuple[Change, bool]:
    """Put together a change, and whether it was looked at to the end."""
    change = Change(
        pointer=pointer,
        from_value=before,
        to_value=after,
        size=size,
        smallest=smallest,
        words=words,
        objective_value=reached.value,
    )
    return change, reached.works is not None
