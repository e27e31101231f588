"""A problem as plain numbers: one configuration, with every option of its layers applied."""

from dataclasses import dataclass

from partita.models.layer import Layer
from partita.models.problem import Problem

TIMES = ("forward_s", "backward_s")
BYTES = ("activation_bytes", "workspace_bytes", "weight_bytes", "output_bytes")


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
    activation_bytes: list[int]
    workspace_bytes: list[int]
    weight_bytes: list[int]
    tensors: list[Tensor]
    weights: list[Held]
    buffers: list[Held]
    shared: list[Held]
    schedule: str
    trains: bool
    microbatches: int
    tokens: int
    tensor_parallel: int
    data_parallel: int
    memory_bytes: int
    reserve_bytes: int
    gradient_factor: float
    state_factor: float
    step_s: float
    blocking: bool
    routing: str


def read_facts(problem: Problem) -> Facts:
    """Turn a problem of one configuration into plain numbers."""
    model, training = problem.model, problem.training
    tensor_parallel, data_parallel = training.tensor_parallel, training.data_parallel
    assert isinstance(tensor_parallel, int) and isinstance(data_parallel, int)
    (kind,) = {node.device for node in problem.cluster.nodes}
    device = problem.cluster.devices[kind]
    assert len(problem.scenarios) <= 1
    situation = {
        "device": kind,
        "recompute": None if problem.constraints.recompute == "none" else problem.constraints.recompute,
        "tensor_parallel": tensor_parallel,
        "scenario": problem.scenarios[0].name if problem.scenarios else None,
    }
    costs = [layer_costs(layer, situation, device.speed) for layer in model.layers]
    where = {layer.name: position for position, layer in enumerate(model.layers)}
    trains = training.schedule.kind != "forward_only"
    optimizer = training.optimizer_factors()
    return Facts(
        names=[layer.name for layer in model.layers],
        forward_s=[cost["forward_s"] for cost in costs],
        backward_s=[cost["backward_s"] if trains else 0.0 for cost in costs],
        activation_bytes=[int(cost["activation_bytes"]) for cost in costs],
        workspace_bytes=[int(cost["workspace_bytes"]) for cost in costs],
        weight_bytes=[int(cost["weight_bytes"]) for cost in costs],
        tensors=_tensors(problem, costs, where),
        weights=[Held(w.name, w.bytes, frozenset(where[name] for name in w.layers)) for w in model.weights],
        buffers=[Held(b.name, b.bytes, frozenset(where[name] for name in b.layers)) for b in model.buffers],
        shared=[Held("", s.bytes, frozenset(where[name] for name in s.layers)) for s in model.shared_activations],
        schedule=training.schedule.kind,
        trains=trains,
        microbatches=training.num_microbatches,
        tokens=training.num_microbatches * training.microbatch_size * training.sequence_length * data_parallel,
        tensor_parallel=tensor_parallel,
        data_parallel=data_parallel,
        memory_bytes=device.memory_bytes,
        reserve_bytes=device.reserve_bytes,
        gradient_factor=optimizer.gradient_bytes_per_weight_byte,
        state_factor=optimizer.state_bytes_per_weight_byte,
        step_s=optimizer.step_s if trains else 0.0,
        blocking=training.communication == "blocking",
        routing=training.routing,
    )


def layer_costs(layer: Layer, situation: dict[str, str | int | None], speed: float) -> dict[str, float]:
    """Apply the layer's options: those with the fewest selectors first, in the order given.

    A time from an option that names the kind of device is that kind's own; any other is divided by its speed.
    """
    costs: dict[str, float] = {field: getattr(layer, field) for field in BYTES}
    costs |= {field: getattr(layer, field) / speed for field in TIMES}
    matching = []
    for option in layer.options:
        asked = {name: getattr(option, name) for name in situation if getattr(option, name) is not None}
        if all(situation[name] == value for name, value in asked.items()):
            matching.append((len(asked), option))
    for _, option in sorted(matching, key=lambda pair: pair[0]):
        costs |= {field: getattr(option, field) for field in BYTES if getattr(option, field) is not None}
        divisor = 1.0 if option.device is not None else speed
        costs |= {field: getattr(option, field) / divisor for field in TIMES if getattr(option, field) is not None}
    return costs


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
