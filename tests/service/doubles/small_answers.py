"""Small answers made by hand, and their reports, for the tests of the service."""

import io
from typing import Any

from small_problems import as_bytes, chain

from partita.models.answer import Answer, Candidate
from partita.models.answer_plan import Memory, Metrics, Stage
from partita.models.problem import Problem, read_problem
from partita.models.schedule import Schedule

PROBLEM = read_problem(as_bytes(chain()))


def metrics(time: float = 12.0, tokens: float | None = 100.0, bubble: float | None = 0.25, **more: Any) -> Metrics:
    """Give metrics that fit no plan in particular."""
    figures = {"peak_memory_bytes": 2**30, "bottleneck_time_s": 3.0, "microbatches_per_second": 1 / 3}
    return Metrics(
        iteration_time_s=time,
        tokens_per_second=tokens,
        bubble_fraction=bubble,
        inter_node_bytes=0,
        num_devices=1,
        **{**figures, **more},
    )


def stage(index: int, *layers: str, total: int = 10, rank: int | None = None, **more: Any) -> Stage:
    """Give a stage on a device of 20 bytes; ``more`` are figures of its memory, or ``recompute``."""
    place = index if rank is None else rank
    recompute = more.pop("recompute", ())
    memory = {**dict.fromkeys(Memory.model_fields, 0), "total_bytes": total, "capacity_bytes": 20, **more}
    return Stage(
        index=index,
        rank=place,
        devices=(f"node0:{place}",),
        layers=layers,
        recompute=recompute,
        forward_s=1.0,
        backward_s=0.0,
        weight_gradient_s=0.0,
        memory=Memory(**memory),
    )


def candidate(*stages: Stage, schedule: Schedule | str = "forward_only", rank: int = 1, **more: Any) -> Candidate:
    """Give a plan of these stages."""
    given = Schedule.model_validate({"kind": schedule}) if isinstance(schedule, str) else schedule
    return Candidate(rank=rank, schedule=given, stages=stages, **{"metrics": metrics(), **more})


def answer(**changes: Any) -> Answer:
    """Give the answer with a plan of two stages, with some members replaced."""
    whole = {
        "status": "optimal",
        "objective": "iteration_time",
        "best_bound": 12.0,
        "relative_gap": 0.0,
        "candidates": (candidate(stage(0, "a", "c"), stage(1, "b")),),
        "problem_digest": "sha256:0",
        "version": "0",
        **changes,
    }
    return Answer(**whole)


def report(given: Answer, problem: Problem = PROBLEM) -> str:
    """Print the report as it goes to a file."""
    from partita.service.reports.report import print_report

    file = io.StringIO()
    print_report(given, problem, file)
    return file.getvalue()
