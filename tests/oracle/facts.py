"""A problem as plain numbers: one configuration, with every option of its layers applied."""

from collections.abc import Sequence
from dataclasses import dataclass

from oracle.orders import Order, allows, rank_orders, ranks_of_stages
from partita.models.layer import Layer, LayerOption
from partita.models.problem import Problem
from partita.models.schedule import Schedule

TIMES = ("forward_s", "backward_s", "weight_gradient_s")
BYTES = ("activation_bytes", "weight_gradient_bytes", "workspace_bytes", "weight_bytes", "output_bytes")


@dataclass(frozen=True)
class Tensor:
    """An edge: layers by position; ``backward`` where the backward pass moves it."""

    producer: int
    consumers: tuple[int, ...]
    bytes: int
    gradient_bytes: int
    backward: bool


@dataclass(frozen=True)
class Held:
    """Bytes that belong to several layers, given by position."""

    name: str
    bytes: int
    layers: frozenset[int]


@dataclass(frozen=True)
class Facts:
    """What the oracle knows of a problem; lists go by the position of the layer."""

    names: list[str]
    forward_s: list[float]
    backward_s: list[float]
    weight_gradient_s: list[float]
    activation_bytes: list[int]
    weight_gradient_bytes: list[int]
    workspace_bytes: list[int]
    weight_bytes: list[int]
    tensors: list[Tensor]
    weights: list[Held]
    buffers: list[Held]
    shared: list[Held]
    schedule: str
    chunks: int
    orders: tuple[Order, ...] | None
    trains: bool
    microbatches: int
    tokens: int
    tensor_parallel: int
    data_parallel: int
    together: int
    """Replicas of a stage that share a node."""
    overlap: float
    """The part of the replicas' all-reduce that does not count."""
    sharing: int
    """Replicas that divide the optimizer's state between them."""
    memory_bytes: int
    reserve_bytes: int
    gradient_factor: float
    state_factor: float
    step_s: float
    blocking: bool
    routing: str
    buffers_for_all: bool
    """Whether there is a receive buffer for every microbatch."""

    def runs(self, num_stages: int) -> bool:
        """Tell whether the schedule has orders for a number of stages."""
        if self.orders:
            return num_stages == len(ranks_of_stages(self.orders))
        ranks, left = divmod(num_stages, self.chunks)
        return left == 0 and allows(self.schedule, ranks, self.microbatches)

    def ranks_for(self, num_stages: int) -> int:
        """Give the number of ranks that run a number of stages."""
        return len(self.orders) if self.orders else num_stages // self.chunks

    def orders_for(self, num_stages: int) -> tuple[Order, ...]:
        """Give the orders of the ranks that run a number of stages."""
        return self.orders or rank_orders(self.schedule, self.ranks_for(num_stages), self.microbatches, self.chunks)


def read_facts(
    problem: Problem, kinds: Sequence[str] | None = None, options: Sequence[str | None] | None = None
) -> Facts:
    """Turn a problem of one configuration into plain numbers.

    Every layer runs on a kind of device and by an option of recompute; on the first kind and, unless the problem names
    one, by none, where that is not given.
    """
    model, training = problem.model, problem.training
    tensor_parallel, data_parallel = training.tensor_parallel, training.data_parallel
    assert isinstance(tensor_parallel, int) and isinstance(data_parallel, int)
    together, microbatches, samples = training.replicas_per_node, training.num_microbatches, training.microbatch_size
    together = data_parallel if together is None else together
    assert isinstance(together, int) and isinstance(microbatches, int) and isinstance(samples, int)
    first = problem.cluster.nodes[0].device
    device = problem.cluster.devices[first]
    assert len(problem.scenarios) <= 1
    recompute = problem.constraints.recompute
    fixed = None if recompute in ("none", "choose", "stage") else recompute
    costs = []
    for layer, kind, option in zip(
        model.layers, kinds or [first] * len(model.layers), options or [fixed] * len(model.layers), strict=True
    ):
        situation: dict[str, str | int | None] = {
            "device": kind,
            "recompute": option,
            "tensor_parallel": tensor_parallel,
            "scenario": problem.scenarios[0].name if problem.scenarios else None,
            "microbatch_size": samples,
        }
        costs.append(layer_costs(layer, situation, problem.cluster.devices[kind].speed))
    where = {layer.name: position for position, layer in enumerate(model.layers)}
    schedule = training.schedule
    assert isinstance(schedule, Schedule)
    orders = given_orders(schedule)
    trains = any(kind != "F" for order in orders for kind, _, _ in order) if orders else schedule.kind != "forward_only"
    optimizer = training.optimizer_factors()
    return Facts(
        names=[layer.name for layer in model.layers],
        forward_s=[cost["forward_s"] for cost in costs],
        backward_s=[cost["backward_s"] if trains else 0.0 for cost in costs],
        weight_gradient_s=[cost["weight_gradient_s"] if trains else 0.0 for cost in costs],
        activation_bytes=[int(cost["activation_bytes"]) for cost in costs],
        weight_gradient_bytes=[int(cost["weight_gradient_bytes"]) for cost in costs],
        workspace_bytes=[int(cost["workspace_bytes"]) for cost in costs],
        weight_bytes=[int(cost["weight_bytes"]) for cost in costs],
        tensors=_tensors(problem, costs, where),
        weights=[Held(w.name, w.bytes, frozenset(where[name] for name in w.layers)) for w in model.weights],
        buffers=[Held(b.name, b.bytes, frozenset(where[name] for name in b.layers)) for b in model.buffers],
        shared=[Held("", s.bytes, frozenset(where[name] for name in s.layers)) for s in model.shared_activations],
        schedule=schedule.kind,
        chunks=schedule.chunks,
        orders=orders,
        trains=trains,
        microbatches=microbatches,
        tokens=microbatches * samples * training.sequence_length * data_parallel,
        tensor_parallel=tensor_parallel,
        data_parallel=data_parallel,
        together=together,
        overlap=training.gradient_overlap,
        sharing=data_parallel if training.shard_optimizer else 1,
        memory_bytes=device.memory_bytes,
        reserve_bytes=device.reserve_bytes,
        gradient_factor=optimizer.gradient_bytes_per_weight_byte,
        state_factor=optimizer.state_bytes_per_weight_byte,
        step_s=optimizer.step_s if trains else 0.0,
        blocking=training.communication == "blocking",
        routing=training.routing,
        buffers_for_all=getattr(training, "runtime", "generic") == "torch",
    )


def given_orders(schedule: Schedule) -> tuple[Order, ...] | None:
    """Give the orders of a custom schedule."""
    if schedule.orders is None:
        return None
    return tuple(tuple((each.kind, each.stage, each.microbatch) for each in order) for order in schedule.orders)


def layer_costs(layer: Layer, situation: dict[str, str | int | None], speed: float) -> dict[str, float]:
    """Apply the layer's options: those with the fewest selectors first, in the order given.

    A time from an option that names the kind of device is that kind's own; any other is divided by its speed.
    """
    costs = _own_costs(layer, speed)
    matching = []
    for option in layer.options:
        asked = {name: getattr(option, name) for name in situation if getattr(option, name) is not None}
        if all(situation[name] == value for name, value in asked.items()):
            matching.append((len(asked), option))
    for _, option in sorted(matching, key=lambda pair: pair[0]):
        costs |= _own_costs(option, 1.0 if option.device is not None else speed)
    costs.setdefault("weight_gradient_bytes", costs["activation_bytes"])
    return costs


def _own_costs(source: Layer | LayerOption, speed: float) -> dict[str, float]:
    """Give what a layer or an option says of itself."""
    given = {field: getattr(source, field, None) for field in (*BYTES, *TIMES)}
    return {field: cost / speed if field in TIMES else cost for field, cost in given.items() if cost is not None}


def _tensors(problem: Problem, costs: list[dict[str, float]], where: dict[str, int]) -> list[Tensor]:
    """Give the edges: those listed, or the chain of outputs."""
    if problem.model.tensors is None:
        sizes = [int(cost["output_bytes"]) for cost in costs[:-1]]
        return [Tensor(layer, (layer + 1,), size, size, False) for layer, size in enumerate(sizes)]
    return [
        Tensor(
            producer=where[tensor.producer],
            consumers=tuple(where[name] for name in tensor.consumers),
            bytes=tensor.bytes,
            gradient_bytes=tensor.bytes if tensor.gradient_bytes is None else tensor.gradient_bytes,
            backward=tensor.direction == "backward",
        )
        for tensor in problem.model.tensors
    ]
