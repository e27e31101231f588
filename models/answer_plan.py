"""The parts of a priced plan: metrics, stages, boundaries and tied weights."""

from typing import Annotated, Literal

from pydantic import Field

from partita.models.base import Many, Model

ByteCount = Annotated[int, Field(ge=0)]


class Metrics(Model):
    """What a plan costs.

    Attributes
    ----------
    iteration_time_s
        Makespan and what happens once per iteration.
    tokens_per_second
        Over all data-parallel replicas; None where an iteration takes no time.
    peak_memory_bytes
        The largest total of any device.
    bottleneck_time_s
        The longest busy time per microbatch of any device, all its stages together, or, with ``overlapped``, of any
        boundary in one direction.
    microbatches_per_second
        In steady state: one in every ``bottleneck_time_s``; None where that is 0.
    bubble_fraction
        The idle share of device time, 0 to 1; None where an iteration takes no time.
    inter_node_bytes
        Bytes between nodes in one iteration, of the transfers between stages, in one replica.
    num_devices
        Devices in use, those of all replicas together.
    queued_iteration_time_s
        The iteration's time where transfers that share an uplink wait for each other; None unless
        ``training.queueing`` asks for it.
    queueing_gap
        By how much that exceeds ``iteration_time_s``, as a fraction of ``queued_iteration_time_s``; None where it is
        not asked for.
    """

    iteration_time_s: float
    tokens_per_second: float | None
    peak_memory_bytes: ByteCount
    bottleneck_time_s: float
    microbatches_per_second: float | None
    bubble_fraction: float | None
    inter_node_bytes: ByteCount
    num_devices: Annotated[int, Field(ge=1)]
    queued_iteration_time_s: float | None = None
    queueing_gap: float | None = None


class Memory(Model):
    """A stage's share of each of its devices, in bytes, at the moment when the device's activations are largest.

    What the stages of a device have in common is counted at one of them only: a weight or buffer that several of them
    use, the workspace, the reserve. So the totals of the stages of a device add up to the device's total.

    Attributes
    ----------
    weights_bytes, gradients_bytes, optimizer_bytes, buffers_bytes
        Model state.
    activations_bytes, in_flight
        What ``in_flight`` microbatches keep from forward to backward, and what others still keep for their weight
        gradient.
    awaiting_weight_gradient
        Microbatches, at the same moment, whose input gradient is done and whose weight gradient is still to come.
    communication_bytes, workspace_bytes
        Buffers for transfers; the largest transient need of a layer.
    reserve_bytes
        Kept free on purpose; part of ``total_bytes``.
    total_bytes, capacity_bytes
        The sum of all that is needed; the device's whole memory.
    """

    weights_bytes: ByteCount
    gradients_bytes: ByteCount
    optimizer_bytes: ByteCount
    buffers_bytes: ByteCount
    activations_bytes: ByteCount
    in_flight: int
    awaiting_weight_gradient: int = 0
    communication_bytes: ByteCount
    workspace_bytes: ByteCount
    reserve_bytes: ByteCount
    total_bytes: ByteCount
    capacity_bytes: ByteCount


class Stage(Model):
    """One stage of a plan.

    Attributes
    ----------
    index, rank
        Position among the stages; the rank that runs it, counted from 0: stages of one rank share its devices.
    devices, device
        The devices that hold it (``node0:5``), and of what kind they are.
    layers, recompute
        Its layers, and those of them that are recomputed.
    options
        Where recompute is chosen: the option of every layer that is recomputed.
    forward_s, backward_s, weight_gradient_s
        Seconds for one microbatch; ``weight_gradient_s`` is part of ``backward_s``.
    memory
        Its share of each of its devices.
    tensor_parallel, data_parallel
        Its degrees, where they are chosen for each stage; None otherwise. Its replicas take turns: each runs one of
        ``data_parallel`` microbatches.
    """

    index: int
    rank: int
    devices: Many[str]
    device: str = ""
    layers: Many[str]
    recompute: Many[str] = ()
    options: dict[str, str] = Field(default={})
    forward_s: float
    backward_s: float
    weight_gradient_s: float
    memory: Memory
    tensor_parallel: int | None = None
    data_parallel: int | None = None


class CrossingTensor(Model):
    """A tensor that crosses a boundary, or its gradient.

    Attributes
    ----------
    name, bytes
        Of the tensor, and what is sent for one microbatch.
    shape, dtype, stride
        What it looks like; the strides in elements. None where the problem does not say.
    direction
        The pass that moves it.
    """

    name: str
    bytes: ByteCount
    shape: Many[int] | None = None
    dtype: str | None = None
    stride: Many[int] | None = None
    direction: Literal["forward", "backward"] = "forward"


class Boundary(Model):
    """What passes between two stages for one microbatch, and how.

    Attributes
    ----------
    from_stage, to_stage
        Indices of the stages, in forward direction.
    tensors
        What crosses.
    forward_bytes, backward_bytes
        Bytes in either direction.
    path
        The links taken, by name.
    bandwidth_bytes_per_s, latency_s
        Of the path, in one direction; the bandwidth is None where nothing is sent (one device).
    transfer_s, backward_transfer_s
        Lower bounds on the seconds of the forward and the backward transfer.
    """

    from_stage: int
    to_stage: int
    tensors: Many[CrossingTensor]
    forward_bytes: ByteCount
    backward_bytes: ByteCount
    path: Many[str]
    bandwidth_bytes_per_s: float | None
    latency_s: float
    transfer_s: float
    backward_transfer_s: float


class TiedWeight(Model):
    """A weight on several stages; ``synchronised_bytes`` of gradient are exchanged once per iteration."""

    name: str
    stages: Many[int]
    synchronised_bytes: ByteCount
