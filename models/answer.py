"""The answer: ranked plans, how good they are proven to be, and why there may be none."""

from typing import Literal, Self

from pydantic import Field

from partita.models.answer_plan import Boundary, Metrics, Stage, TiedWeight
from partita.models.base import Many, Model
from partita.models.infeasibility import Change, NamedLimit
from partita.models.objective import MetricName, Objective
from partita.models.problem import Problem
from partita.models.scenario import ScenarioResult
from partita.models.schedule import Schedule

Status = Literal["optimal", "feasible", "infeasible", "no_solution"]


class Candidate(Model):
    """One plan.

    Attributes
    ----------
    rank
        1 for the best.
    schedule
        The schedule that it runs.
    tensor_parallel, data_parallel, replicas_per_node
        Its degrees, and how many replicas of a stage share a node.
    num_microbatches, microbatch_size
        Microbatches of an iteration in each replica, and samples of a microbatch.
    metrics, stages, boundaries, tied_weights
        What it costs and what it is.
    scenario, scenarios
        Where there are several scenarios: the one whose stages and boundaries are shown, the longest in an answer, and
        the metrics of each. Those of the plan are then times over all of them, by ``problem.over_scenarios``, and the
        largest sizes.
    best_bound
        Proven bound on every plan that is not ranked before this one, in the unit of the objective; None if unknown.
    """

    rank: int
    schedule: Schedule
    tensor_parallel: int = 1
    data_parallel: int = 1
    replicas_per_node: int = 1
    num_microbatches: int = 1
    microbatch_size: int = 1
    metrics: Metrics
    stages: Many[Stage]
    boundaries: Many[Boundary] = ()
    tied_weights: Many[TiedWeight] = ()
    scenario: str | None = None
    scenarios: Many[ScenarioResult] = ()
    best_bound: float | None = None

    @property
    def as_shown(self) -> Self:
        """The same plan with the metrics of the scenario whose stages and boundaries it shows."""
        for each in self.scenarios:
            if each.name == self.scenario:
                return self.model_copy(update={"metrics": each.metrics, "scenarios": ()})
        return self

    @property
    def longest(self) -> str | None:
        """The scenario in which an iteration takes longest, the first of equal ones; None without several."""
        each = max(self.scenarios, key=lambda result: result.metrics.iteration_time_s, default=None)
        return None if each is None else each.name


class Baseline(Model):
    """What a simple rule would have given: its metrics, its stages and whether they fit into memory."""

    metrics: Metrics
    stage_sizes: Many[int]
    fits: bool


ScheduleStatus = Literal["optimal", "feasible", "cut_off", "infeasible", "no_solution"]


class ScheduleResult(Model):
    """What was found in one of several configurations: of schedule, degrees and batch.

    Attributes
    ----------
    schedule
        The schedule.
    tensor_parallel, data_parallel, replicas_per_node, num_microbatches, microbatch_size
        The degrees and the batch, as in ``Candidate``.
    status
        As for the answer; ``cut_off`` where the search ended early because its bound is worse than a plan of another
        configuration.
    objective_value
        That of its best plan, in the unit of the objective; None where there is none.
    best_bound
        Proven bound on any of its plans; None if unknown.
    """

    schedule: Schedule
    tensor_parallel: int = 1
    data_parallel: int = 1
    replicas_per_node: int = 1
    num_microbatches: int = 1
    microbatch_size: int = 1
    status: ScheduleStatus
    objective_value: float | None = None
    best_bound: float | None = None


class LevelResult(Model):
    """What is known at one level of a lexicographic objective.

    Attributes
    ----------
    objective
        The metric.
    value
        That of the best plan.
    best_bound
        Proven bound on it for plans that are as good at all levels before it; None if unknown.
    """

    objective: MetricName
    value: float | None
    best_bound: float | None = None


class Finding(Model):
    """One limit that cannot be kept.

    Attributes
    ----------
    limit
        The name of the limit.
    message
        The finding in words.
    layer, stage, device
        Where, as far as it can be told.
    needed, available, short_by
        In ``unit``; None where it is not a matter of numbers.
    """

    limit: str
    message: str
    layer: str | None = None
    stage: int | None = None
    device: str | None = None
    needed: int | float | None = None
    available: int | float | None = None
    short_by: int | float | None = None
    unit: Literal["bytes", "s", "devices"] | None = None


class Infeasibility(Model):
    """Why there is no plan.

    Attributes
    ----------
    message
        The reason in words.
    findings
        The limits that cannot be kept, with numbers.
    limits_in_force
        The limits that together leave no plan.
    smallest_change
        The smallest change that would allow one; with ``findings``, which arithmetic gives, what is needed at least.
        None if none was found.
    core
        Where arithmetic shows no reason: limits that cannot be kept together, whatever else is given up.
    minimal
        Whether every limit of the core is needed: any of them left out, there is a plan that keeps the others of the
        core. False where that was not looked for, or time ran out.
    changes
        Single changes of which each allows a plan that keeps everything else, smallest first; fewer microbatches, with
        which an iteration does less, come last.
    all_tried
        Whether it is known of every change whether it works; False where that was not sought, or time ran out.
    """

    message: str
    findings: Many[Finding] = ()
    limits_in_force: Many[str] = ()
    smallest_change: str | None = None
    core: Many[NamedLimit] = ()
    minimal: bool = False
    changes: Many[Change] = ()
    all_tried: bool = False


MoveKind = Literal["boundary", "layers", "exchange", "devices"]


class Move(Model):
    """One change of a given plan.

    Attributes
    ----------
    kind
        ``boundary``: one boundary moves. ``layers``: layers change to a neighboring stage, others of their stage stay
        on both sides. ``exchange``: two ranks exchange their devices. ``devices``: a rank runs on other devices.
    message
        The change in words.
    layers, from_stage, to_stage
        What moves; None where no layer does.
    ranks, devices
        Whose devices change, and the new devices of each.
    objective_value
        That of the plan after the move, in the unit of the objective; of a list of metrics by the first that changes.
    gain
        By how much that is better than before, in the same unit; negative where the move makes a plan possible that
        breaks limits, at a worse value.
    relative_gain
        The same as a fraction of the value before; None where that is 0.
    """

    kind: MoveKind
    message: str
    layers: Many[str] = ()
    from_stage: int | None = None
    to_stage: int | None = None
    ranks: Many[int] = ()
    devices: Many[Many[str]] = ()
    objective_value: float
    gain: float
    relative_gain: float | None


class Comparison(Model):
    """How a given plan compares with the best plan and with its own neighbors.

    Attributes
    ----------
    best_status
        How the search for the best plan ended; None where none was made.
    best_value, best_bound
        The objective of the best plan found, and the proven bound on any plan's; None if unknown.
    gap
        By how much the best plan found is better, as a fraction of the given plan's value; negative where the given
        plan is better because it breaks limits. Of a list of metrics by the first that tells the two apart. None if
        unknown.
    move
        The single move that improves the plan most or, where it breaks limits, the best one after which it breaks
        none; None where there is no such move.
    moves_measured, all_moves
        How many moves were measured, and whether these are all.
    """

    best_status: Status | None = None
    best_value: float | None = None
    best_bound: float | None = None
    gap: float | None = None
    move: Move | None = None
    moves_measured: int
    all_moves: bool


class Effort(Model):
    """What the search took: solver, wall-clock seconds, rounds, cuts added and variables."""

    solver: str
    wall_s: float
    iterations: int = 0
    cuts: int = 0
    variables: int = 0


class Answer(Model):
    """The answer to a problem.

    Attributes
    ----------
    status
        Judged from incumbent and bound.
    objective
        As asked.
    best_bound
        Proven bound on the objective of any plan, in its unit; None if unknown. Of a list of metrics, on the first.
    relative_gap
        Distance between the best plan and the bound, as a fraction of the plan; None if unknown.
    levels
        Where the objective is a list of metrics: what is known of each. The status is ``optimal`` where all are proven.
    candidates
        The plans, best first, after one that ``search.keep`` keeps.
    schedules
        Where several schedules, degrees or batches are compared: what was found in each configuration, best first.
    baselines
        What simple rules would have given, by their names.
    infeasibility
        Why there is no plan; None unless the status is ``infeasible``.
    comparison
        How a plan that was given compares with the best one; None where plans were searched for.
    assumptions, warnings
        What the figures rest on; what looks like a mistake.
    solver
        The effort; the only part that may differ between two runs of one problem.
    problem, problem_digest
        The problem, where asked for, and its digest.
    version
        The version of Partita.
    """

    status: Status
    objective: Objective
    best_bound: float | None = None
    relative_gap: float | None = None
    levels: Many[LevelResult] = ()
    candidates: Many[Candidate] = ()
    schedules: Many[ScheduleResult] = ()
    baselines: dict[str, Baseline] = Field(default={})
    infeasibility: Infeasibility | None = None
    comparison: Comparison | None = None
    assumptions: Many[str] = ()
    warnings: Many[str] = ()
    solver: Effort | None = None
    problem: Problem | None = None
    problem_digest: str
    version: str
