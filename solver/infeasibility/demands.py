"""The limits that a problem sets, each with a name of its own, and the problem with some of them left out.

What is no limit in this sense stays: layers and their costs, the number of devices, links, the schedule, microbatches,
the kind of recompute, and buffers that are written to.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypeVar

from partita.models.base import Model
from partita.models.cluster import Cluster
from partita.models.errors import join_pointer
from partita.models.infeasibility import NamedLimit
from partita.models.naming import listing, quoted
from partita.models.objective import Limits
from partita.models.problem import Problem
from partita.models.quantities import MAX_BYTES, as_choices
from partita.models.training import Training

ModelType = TypeVar("ModelType", bound=Model)

MEMORY = "memory_bytes"

BOUNDS: dict[str, str] = {
    "peak_memory_bytes": "no device holds more than {} bytes",
    "iteration_time_s": "an iteration takes at most {:.10g} s",
    "bottleneck_time_s": "a microbatch takes at most {:.10g} s in steady state",
    "tokens_per_second": "at least {:.10g} tokens per second",
    "microbatches_per_second": "at least {:.10g} microbatches per second in steady state",
    "num_devices": "a plan uses at most {} devices",
    "inter_node_bytes": "at most {} bytes pass between nodes in an iteration",
    "bubble_fraction": "devices are idle for at most {:.10g} of the time",
}
"""What the limits on metrics demand, in words."""


def named_limits(problem: Problem) -> list[NamedLimit]:
    """Give every limit of a problem; first those that a user can change least."""
    return [*_of_devices(problem), *_of_stages(problem), *_of_constraints(problem), *_of_metrics(problem)]


def keep_only(problem: Problem, kept: Collection[NamedLimit]) -> Problem:
    """Give the problem without its limits but those kept."""
    pointers = {limit.pointer for limit in kept}
    names = problem.cluster.kinds
    free = {name: {MEMORY: MAX_BYTES} for name in names if _of("cluster", "devices", name, MEMORY) not in pointers}
    devices = problem.cluster.devices
    cluster = changed(
        problem.cluster,
        devices={name: changed(device, **free.get(name, {})) for name, device in devices.items()},
    )
    asked = problem.constraints
    constraints = changed(
        asked,
        pins={name: at for name, at in asked.pins.items() if _of("constraints", "pins", name) in pointers},
        together=_kept(pointers, "together", asked.together),
        apart=_kept(pointers, "apart", asked.apart),
        cut_after=asked.cut_after if _of("constraints", "cut_after") in pointers else None,
    )
    open_ = [field for field in Limits.model_fields if _of("limits", field) not in pointers]
    training = problem.training
    if _of("training", "num_stages") not in pointers:
        training = changed(training, num_stages=None)
    return changed(
        problem,
        cluster=cluster,
        training=training,
        limits=changed(problem.limits, **dict.fromkeys(open_)),
        constraints=constraints,
    )


def with_value(problem: Problem, limit: NamedLimit, value: object) -> Problem:
    """Give the problem with another number in place of a limit on a metric, on memory or on the number of stages."""
    section, _, field = limit.name.partition(".")
    if section == "limits":
        return changed(problem, limits=changed(problem.limits, **{field: value}))
    if section == "training":
        return changed(problem, training=changed(problem.training, **{field: value}))
    kind = kind_of(limit, problem.cluster)
    devices = problem.cluster.devices
    more = {kind: changed(devices[kind], **{MEMORY: value})}
    return changed(problem, cluster=changed(problem.cluster, devices={**devices, **more}))


def kind_of(limit: NamedLimit, cluster: Cluster) -> str:
    """Give the kind of device whose memory the limit is."""
    return next(name for name in cluster.devices if _of("cluster", "devices", name, MEMORY) == limit.pointer)


def changed(model: ModelType, **fields: object) -> ModelType:
    """Give a copy of a model with other values in some fields."""
    return model.model_copy(update=fields)


def _of(*place: str | int) -> str:
    return join_pointer(place)


def _kept(pointers: Collection[str], field: str, groups: Sequence[Sequence[str]]) -> tuple[Sequence[str], ...]:
    """Give the groups of layers that are kept."""
    return tuple(group for index, group in enumerate(groups) if _of("constraints", field, index) in pointers)


def _limit(place: Sequence[str | int], value: Any, words: str) -> NamedLimit:
    return NamedLimit(name=".".join(map(str, place)), pointer=join_pointer(place), value=value, words=words)


def _of_devices(problem: Problem) -> Iterator[NamedLimit]:
    for name in problem.cluster.kinds:
        device = problem.cluster.devices[name]
        reserved = f", {device.reserve_bytes} bytes of them reserved" if device.reserve_bytes else ""
        words = f"a device {quoted(name)} has {device.memory_bytes} bytes{reserved}"
        yield _limit(("cluster", "devices", name, MEMORY), device.memory_bytes, words)


def _of_stages(problem: Problem) -> Iterator[NamedLimit]:
    training: Training = problem.training
    if training.num_stages is None or any(schedule.stages is not None for schedule in training.schedules):
        return
    numbers = as_choices(training.num_stages)
    words = f"the number of stages is {' or '.join(map(str, numbers))}"
    value: Any = list(numbers) if isinstance(training.num_stages, tuple) else training.num_stages
    yield _limit(("training", "num_stages"), value, words)


def _of_constraints(problem: Problem) -> Iterator[NamedLimit]:
    asked = problem.constraints
    if asked.cut_after is not None:
        after = listing(asked.cut_after, "after ") or "nowhere"
        yield _limit(("constraints", "cut_after"), list(asked.cut_after), f"boundaries lie {after} only")
    for field, demand in (("together", "are on one stage"), ("apart", "are on different stages")):
        for index, group in enumerate(getattr(asked, field)):
            yield _limit(("constraints", field, index), list(group), f"{listing(group)} {demand}")
    for name, stage in asked.pins.items():
        yield _limit(("constraints", "pins", name), stage, f"{quoted(name)} is on stage {stage}")


def _of_metrics(problem: Problem) -> Iterator[NamedLimit]:
    for field in Limits.model_fields:
        value = getattr(problem.limits, field)
        if value is not None:
            yield _limit(("limits", field), value, BOUNDS[field].format(value))
