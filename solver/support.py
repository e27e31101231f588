"""What a problem may ask for that cannot be planned yet; it is refused by name, never ignored."""

from collections.abc import Collection

from partita.models.errors import Fault, NotSupportedYet
from partita.models.objective import metrics_of
from partita.models.problem import Problem
from partita.models.quantities import as_choices
from partita.solver.steady.limits import refused_with_degrees, refused_without_degrees
from partita.solver.ways import CHOSEN


def refuse_unsupported(problem: Problem, metrics: Collection[str] | None = None, place: str = "/objective") -> None:
    """Refuse what is valid but cannot be planned yet.

    Parameters
    ----------
    problem
        What is asked.
    metrics, place
        What plans are judged by, and the pointer to it; None for the objective of the problem.

    Raises
    ------
    NotSupportedYet
        Naming every such field.
    """
    asked = metrics_of(problem.objective) if metrics is None else metrics
    faults = [
        Fault(pointer, f"not supported yet: {what}; {remedy}", None, NotSupportedYet.default_code)
        for pointer, what, remedy in _unsupported(problem, asked, place)
    ]
    if faults:
        raise NotSupportedYet(faults)


def refuse_degrees_per_stage(problem: Problem, what: str) -> None:
    """Refuse what has no meaning for plans in steady state whose degrees differ from stage to stage.

    Raises
    ------
    NotSupportedYet
        Saying that ``what`` is not possible for them.
    """
    if problem.training.per_stage_degrees:
        detail = f"not supported yet: {what} of plans with degrees chosen for each stage; leave it false"
        place = "/training/per_stage_degrees"
        raise NotSupportedYet([Fault(place, detail, None, NotSupportedYet.default_code)])


def _unsupported(problem: Problem, metrics: Collection[str], place: str) -> list[tuple[str, str, str]]:
    """List pointer, feature and remedy of everything that is not supported."""
    training = problem.training
    if training.per_stage_degrees:
        return refused_with_degrees(problem)
    found = refused_without_degrees(problem)
    if training.queueing and training.communication == "blocking":
        remedy = "write communication 'overlapped', or leave queueing false"
        found.append(("/training/queueing", "queues of transfers that occupy their stages (blocking)", remedy))
    if len(problem.scenarios) > 1:
        found += _unsupported_in_scenarios(problem, metrics, place)
    if problem.limits.bubble_fraction is not None and _busy_differs(problem):
        what = (
            "a limit on the bubble where plans keep the devices busy for different times (it is a ratio of two times)"
        )
        found.append(("/limits/bubble_fraction", what, "limit iteration_time_s instead"))
    return found + _unsupported_degrees(problem)


def _unsupported_in_scenarios(problem: Problem, metrics: Collection[str], place: str) -> list[tuple[str, str, str]]:
    """List what several scenarios rule out."""
    training, found = problem.training, []
    if training.queueing:
        found.append(("/training/queueing", "queues with several scenarios", "leave it false"))
    if training.routing == "host":
        found.append(("/training/routing", "host routing with several scenarios", "use relay or direct"))
    if problem.over_scenarios == "expected":
        return found
    remedy = "minimize and limit iteration_time, or write over_scenarios 'expected'"
    for metric, field in (("bottleneck_time", "bottleneck_time_s"), ("tokens_per_second", "tokens_per_second")):
        if metric in metrics:
            found.append((place, f"{metric} of the worst scenario", remedy))
        if getattr(problem.limits, field) is not None:
            found.append((f"/limits/{field}", f"a limit on {metric} of the worst scenario", remedy))
    if problem.limits.microbatches_per_second is not None:
        what = "a limit on microbatches_per_second of the worst scenario"
        found.append(("/limits/microbatches_per_second", what, remedy))
    return found


def _busy_differs(problem: Problem) -> bool:
    """Tell whether plans keep the devices busy for different times: by transfers, kinds of device, or recompute."""
    chosen = problem.constraints.recompute in CHOSEN
    return (
        problem.training.communication == "blocking"
        or len(problem.cluster.kinds) > 1
        or chosen
        or len(problem.scenarios) > 1
    )


def _unsupported_degrees(problem: Problem) -> list[tuple[str, str, str]]:
    """List what several devices for a stage rule out: links between single devices, routing through several hosts."""
    training, cluster = problem.training, problem.cluster
    found = []
    width = max(as_choices(training.tensor_parallel)) * max(as_choices(training.data_parallel))
    if width > 1 and any(":" in end for link in cluster.links for end in link.between):
        found.append(("/cluster/links", "links between devices with stages of several devices", "link the nodes"))
    if training.routing == "host" and sum(node.replicas for node in cluster.nodes) > 1:
        what = "routing through the host's memory across several nodes"
        found.append(("/training/routing", what, "use relay or direct"))
    return found
