"""Degrees chosen for each stage, by trying every plan: the formulas of the steady state, written from the problem."""

from collections.abc import Iterator
from itertools import pairwise, product
from math import ceil, inf

from partita.models.layer import Layer
from partita.models.problem import Problem
from partita.models.quantities import as_choices

Stage = frozenset[str]
Degrees = tuple[int, int]
Costs = dict[str, float]


def least_bottleneck(problem: Problem) -> float:
    """Give the smallest bottleneck of all plans in seconds; infinite where none fits."""
    limit = problem.limits.bottleneck_time_s or inf
    best = min((value for stages in _divisions(problem) for value in _of_division(problem, stages)), default=inf)
    return best if best <= limit * (1 + 1e-12) else inf


def _of_division(problem: Problem, stages: list[Stage]) -> Iterator[float]:
    """Give the least bottleneck for all degrees of these stages."""
    training = problem.training
    every = list(product(as_choices(training.tensor_parallel), as_choices(training.data_parallel)))
    for degrees in product(every, repeat=len(stages)):
        devices, replicas = sum(t * d for t, d in degrees), sum(d for _, d in degrees)
        if devices <= problem.cluster.num_devices and replicas <= training.num_microbatches:
            yield max(stage_seconds(problem, stages, list(degrees), index) for index in range(len(stages)))


def _divisions(problem: Problem) -> Iterator[list[Stage]]:
    """Give every division into stages in which no layer comes before one that it reads."""
    names = [layer.name for layer in problem.model.layers]
    for stage_of in product(range(len(names)), repeat=len(names)):
        place = dict(zip(names, stage_of, strict=True))
        count = max(stage_of) + 1
        if set(stage_of) == set(range(count)) and _admits(problem, place):
            yield [frozenset(name for name in names if place[name] == stage) for stage in range(count)]


def _admits(problem: Problem, place: dict[str, int]) -> bool:
    """Tell whether layers come in order, together where that is demanded, and apart only where a boundary may lie."""
    allowed = problem.constraints.cut_after
    return all(
        place[a] == place[b] if allowed is not None and a not in allowed else place[a] <= place[b]
        for a, b, *_ in _edges(problem)
    ) and all(len({place[name] for name in group}) == 1 for group in problem.constraints.together)


def _edges(problem: Problem) -> list[tuple[str, str, str, int, int]]:
    """Give producer, consumer, name, and bytes in either pass of every edge."""
    layers = problem.model.layers
    if problem.model.tensors is None:
        return [(a.name, b.name, a.name, a.output_bytes, a.output_bytes) for a, b in pairwise(layers)]
    return [
        (tensor.producer, consumer, tensor.name, tensor.bytes, tensor.backward_bytes)
        for tensor in problem.model.tensors
        for consumer in tensor.consumers
    ]


def stage_seconds(problem: Problem, stages: list[Stage], degrees: list[Degrees], index: int) -> float:
    """Give the seconds per microbatch of a stage with its best recompute; infinite where it does not fit."""
    (t, d), training = degrees[index], problem.training
    flight = ceil(sum(each for _, each in degrees[index:]) / d)
    layers = [layer for layer in problem.model.layers if layer.name in stages[index]]
    kinds = [_kinds(problem, layer) for layer in layers]
    if problem.constraints.recompute == "stage":
        named = sorted({kind for each in kinds for kind in each if kind})
        chosen = [tuple(kind if kind in each else None for each in kinds) for kind in [None, *named]]
    else:
        chosen = list(product(*kinds))
    times = []
    for ways in chosen:
        costs = [_costs(problem, layer, t, kind) for layer, kind in zip(layers, ways, strict=True)]
        times.append(_computing(problem, costs, flight, index, stages))
    busy, beside = min(times), 0.0
    crossing = _crossing(problem, stages, index, t)
    if training.communication == "blocking":
        busy += sum(crossing)
    else:
        beside = max(crossing, default=0.0) / d
    return max(busy / d + _exchange(problem, layers, t, d), beside)


def _kinds(problem: Problem, layer: Layer) -> list[str | None]:
    """Give the kinds of recompute that a layer may run by; None is none."""
    asked = problem.constraints.recompute
    named = list(dict.fromkeys(option.recompute for option in layer.options if option.recompute))
    if asked in ("choose", "stage"):
        return [None, *named]
    return [asked if asked in named else None]


def _costs(problem: Problem, layer: Layer, t: int, kind: str | None) -> Costs:
    costs = {name: getattr(layer, name) for name in ("forward_s", "backward_s", "activation_bytes", "workspace_bytes")}
    costs |= {"weight_bytes": layer.weight_bytes, "buffer_bytes": layer.buffer_bytes}
    ((device, card),) = problem.cluster.devices.items()
    measured: dict[str, bool] = {}
    for specific in (1, 2, 3):
        for option in layer.options:
            asked = [option.tensor_parallel is not None, option.recompute is not None, option.device is not None]
            fits = option.tensor_parallel in (None, t) and option.recompute in (None, kind)
            if fits and sum(asked) == specific and option.device in (None, device):
                given = {name: value for name in costs if (value := getattr(option, name)) is not None}
                costs |= given
                measured |= dict.fromkeys(given, option.device is not None)
    return {
        name: value / card.speed if name.endswith("_s") and not measured.get(name) else value
        for name, value in costs.items()
    }


def _computing(problem: Problem, costs: list[Costs], flight: int, index: int, stages: list[Stage]) -> float:
    """Give the computing time of a stage; infinite where it does not fit into memory."""
    device = next(iter(problem.cluster.devices.values()))
    factors = problem.training.optimizer_factors()
    factor = 1 + factors.gradient_bytes_per_weight_byte + factors.state_bytes_per_weight_byte
    needed = sum(
        each["weight_bytes"] * factor + each["buffer_bytes"] + flight * each["activation_bytes"] for each in costs
    )
    needed += max(each["workspace_bytes"] for each in costs) + device.reserve_bytes
    if problem.training.runtime != "none":
        for a, b, _, forward, backward in _once(problem, stages):
            needed += forward * (b == index) + backward * (a == index)
    capacity = min(device.memory_bytes, problem.limits.peak_memory_bytes or device.memory_bytes)
    return sum(each["forward_s"] + each["backward_s"] for each in costs) if needed <= capacity else inf


def _once(problem: Problem, stages: list[Stage]) -> list[tuple[int, int, str, int, int]]:
    """Give the ways of all tensors: from stage, to stage, name, bytes in either pass; each way once."""
    place = {name: index for index, stage in enumerate(stages) for name in stage}
    found = set()
    for producer, consumer, name, forward, backward in _edges(problem):
        a, b = place[producer], place[consumer]
        ways = [(a, b)] if problem.training.routing == "direct" else [(k, k + 1) for k in range(a, b)]
        found |= {(*way, name, forward, backward) for way in ways if a != b}
    return sorted(found)


def _crossing(problem: Problem, stages: list[Stage], index: int, t: int) -> list[float]:
    """Give the seconds of every boundary of a stage, forward and backward apart."""
    fabric = problem.cluster.nodes[0].fabric
    assert fabric is not None
    resharding = {tensor.name: tensor.resharding for tensor in problem.model.tensors or ()}
    sizes: dict[tuple[int, int], list[float]] = {
        (k, k + 1): [0.0, 0.0] for k in range(len(stages) - 1) if index in (k, k + 1)
    }
    for a, b, name, forward, backward in _once(problem, stages):
        if index in (a, b):
            here = sizes.setdefault((a, b), [0.0, 0.0])
            more = [each for each in resharding.get(name, ()) if each.tensor_parallel == t]
            extra = sum(each.send_bytes if a == index else each.receive_bytes for each in more)
            here[0] += forward + extra
            here[1] += backward + extra
    return [fabric.latency_s + size / fabric.bandwidth_bytes_per_s for both in sizes.values() for size in both]


def _exchange(problem: Problem, layers: list[Layer], t: int, d: int) -> float:
    if d == 1:
        return 0.0
    training, fabric = problem.training, problem.cluster.nodes[0].fabric
    assert fabric is not None
    factor = training.optimizer_factors().gradient_bytes_per_weight_byte or 1.0
    moved = sum(_costs(problem, layer, t, None)["weight_bytes"] for layer in layers) * factor * 2 * (d - 1) / d
    moved *= 2 if training.gradient_exchange == "half_duplex" else 1
    often = d if training.gradient_exchange_after == "round" else training.num_microbatches
    return (fabric.latency_s + moved / fabric.bandwidth_bytes_per_s) / often
