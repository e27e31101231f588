"""Jobs and batches as clients see them; what the server answers with and the client reads."""

from typing import Literal

from partita.models.answer import Answer
from partita.models.base import Many, Model
from partita.models.front import Front
from partita.service.problem_document import ProblemDocument

State = Literal["queued", "running", "succeeded", "failed", "cancelled"]

Activity = Literal["improving", "searching", "silent"]


class Health(Model):
    """The server is alive, or ready; ``version`` is that of Partita."""

    status: str
    version: str


class KeyDocument(Model):
    """Who sends a request.

    Attributes
    ----------
    name
        What its key is called; null where the server asks for none.
    role
        What it may do: ``read`` looks, ``solve`` asks and changes too, ``admin`` watches the whole service.
    """

    name: str | None
    role: Literal["read", "solve", "admin"]


class JobProgress(Model):
    """How far a running job is.

    Attributes
    ----------
    phase
        What the search does.
    incumbent, best_bound, relative_gap
        The objective's value of the best plan so far, the proven bound and the gap between them; null where unknown.
    points
        How many points of a front are found; null for a plan.
    activity
        ``improving``: something better was found or proven lately. ``searching``: the process works, but found nothing
        better lately. ``silent``: it shows no sign of life; at its time limit it is killed.
    improved_at, alive_at
        When something better was found or proven, and when the last sign of life came.
    """

    phase: str
    incumbent: float | None
    best_bound: float | None
    relative_gap: float | None
    points: int | None
    activity: Activity
    improved_at: str | None
    alive_at: str


class JobDocument(Model):
    """A job.

    Attributes
    ----------
    id, kind
        Its name, and what is done: ``plan`` or ``frontier``.
    state
        ``queued``, ``running``, ``succeeded`` (there is an answer, maybe that there is no plan), ``failed`` or
        ``cancelled``.
    batch, name
        The batch that it belongs to, and its name there.
    created_at, started_at, finished_at
        Moments in UTC.
    ahead
        How many of your jobs are solved before this one, while it waits.
    progress
        How far it is, while it runs.
    answer
        The answer, once it succeeded; a list of jobs leaves it out.
    failure
        Why it failed.
    """

    id: str
    kind: Literal["plan", "frontier"]
    state: State
    batch: str | None
    name: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    ahead: int | None = None
    progress: JobProgress | None = None
    failure: ProblemDocument | None = None
    answer: Answer | Front | None = None


class Figure(Model):
    """A figure in words; ``part`` where it belongs to the one before it."""

    name: str
    text: str
    part: bool


class Report(Model):
    """An answer or a front in words, those of the command line.

    Attributes
    ----------
    headline
        What was asked and how it ended.
    refusal
        That limits cannot be kept; null where they are.
    explanation
        How good the best plan is proven to be or what is known of the front, or why there is no plan, line by line.
    figures
        What the candidate costs, and what simple rules would have cost; none of a front.
    bottleneck
        What the candidate waits for in steady state; null of a front, and where there is no candidate.
    """

    headline: str
    refusal: str | None
    explanation: Many[str]
    figures: Many[Figure]
    bottleneck: str | None


class Evaluated(Model):
    """The answer about a given plan, and the same in words."""

    answer: Answer
    report: Report


class JobList(Model):
    """Jobs, the newest first; ``next`` leads to older ones, null where there are none."""

    jobs: Many[JobDocument]
    next: str | None


class Forecast(Model):
    """When a batch will have ended, if nothing changes.

    Attributes
    ----------
    method
        What the forecast rests on.
    backlog
        Your jobs that are solved until then, those that come first too; of equal ones, one.
    arrival_per_s, service_per_s
        Measured rates of the last two minutes, or since the batch was taken: of your jobs that arrive and come first,
        and of your jobs that are solved.
    remaining_s, finished_at
        Seconds left, and the moment in UTC; null where nothing was solved yet or no end is in sight.
    """

    method: str
    backlog: int
    arrival_per_s: float
    service_per_s: float
    remaining_s: float | None
    finished_at: str | None


class BatchDocument(Model):
    """A batch.

    Attributes
    ----------
    id, created_at
        Its name, and when it was taken, in UTC.
    total
        How many problems it holds.
    queued, running, succeeded, failed, cancelled
        How many of them are in each state. An equal problem waits until the one that is solved in its place ends.
    forecast
        When it will have ended; null once it has.
    """

    id: str
    created_at: str
    total: int
    queued: int
    running: int
    succeeded: int
    failed: int
    cancelled: int
    forecast: Forecast | None


class BatchList(Model):
    """Batches, the newest first and without forecasts; ``next`` leads to older ones, null where there are none."""

    batches: Many[BatchDocument]
    next: str | None


class BatchResult(Model):
    """The end of one problem of a batch.

    Attributes
    ----------
    index, name
        Its place in the batch, from 0, and its name there.
    job
        The job.
    status
        ``succeeded``, ``failed`` or ``cancelled``.
    failure
        Why it failed.
    answer
        The answer.
    """

    index: int
    name: str | None
    job: str
    status: State
    failure: ProblemDocument | None
    answer: Answer | None
