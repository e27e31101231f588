"""How the model is trained: schedule, microbatches, parallel degrees and optimizer."""

from math import prod
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from partita.models.base import Faults, Many, Model, at_most, unique
from partita.models.choices import MAX_CHOICES, TrainingChoice, batches
from partita.models.orders import check_orders
from partita.models.quantities import Choice, Count, Seconds, as_choices, is_list
from partita.models.schedule import Schedule, ScheduleField

MAX_MICROBATCHES = 65_536

OptimizerName = Literal["none", "sgd", "sgd_momentum", "adam", "adam_mixed"]
Communication = Literal["overlapped", "blocking"]
Routing = Literal["relay", "direct", "host"]
Runtime = Literal["generic", "torch", "none"]
GradientExchange = Literal["full_duplex", "half_duplex"]
ExchangeAfter = Literal["batch", "round"]

BytesFactor = Annotated[float, Field(ge=0, le=1e6)]


class Optimizer(Model):
    """What training adds to the weights.

    Attributes
    ----------
    gradient_bytes_per_weight_byte
        Bytes of gradient for every byte of weights.
    state_bytes_per_weight_byte
        Bytes of optimizer state (moments, master weights) for every byte of weights.
    step_s
        Seconds of the optimizer step, once per iteration.
    """

    gradient_bytes_per_weight_byte: BytesFactor
    state_bytes_per_weight_byte: BytesFactor
    step_s: Seconds = 0.0


def _optimizer(gradient: float, state: float) -> Optimizer:
    return Optimizer(gradient_bytes_per_weight_byte=gradient, state_bytes_per_weight_byte=state)


OPTIMIZERS: dict[OptimizerName, Optimizer] = {
    "none": _optimizer(0.0, 0.0),
    "sgd": _optimizer(1.0, 0.0),
    "sgd_momentum": _optimizer(1.0, 1.0),
    "adam": _optimizer(1.0, 2.0),
    "adam_mixed": _optimizer(2.0, 6.0),
}
"""The named optimizers. ``adam`` keeps all in one precision. ``adam_mixed`` has weights of 2 bytes, gradients of 4 and
12 bytes of master weight and moments: 18 bytes per parameter."""


def _optimizer_form(value: object) -> str | None:
    """Give the tag of the form in which an optimizer is written; None where it is neither."""
    if isinstance(value, dict | Optimizer):
        return "(factors)"
    return "(name)" if isinstance(value, str) else None


OptimizerField = Annotated[
    Annotated[OptimizerName, Tag("(name)")] | Annotated[Optimizer, Tag("(factors)")],
    Discriminator(_optimizer_form, custom_error_type="optimizer_form", custom_error_message="neither form"),
]
"""An optimizer's name, or its factors."""


Microbatches = Annotated[int, Field(ge=1, le=MAX_MICROBATCHES)]
MicrobatchesChoice = Annotated[
    Annotated[Microbatches, Tag("(number)")]
    | Annotated[
        Many[Microbatches], Field(min_length=1), unique("the number"), at_most(MAX_CHOICES, "choices"), Tag("(list)")
    ],
    Discriminator(is_list),
]
"""A number of microbatches, or a list of different ones to choose from."""


class Training(Model):
    """One iteration of training or inference.

    Attributes
    ----------
    schedule
        The order of the passes; a list of schedules to compare.
    num_stages
        Stages of the whole pipeline (with several chunks per rank: all of them); a list to choose from; None for any
        number that fits.
    num_microbatches
        Microbatches of an iteration in each replica; a list to choose from. With ``global_batch_size`` it may be None:
        it then follows.
    microbatch_size
        Samples of a microbatch; a list to choose from. Costs of layers are for the first of them; at another one they
        come from the options that name it, or else are in proportion.
    global_batch_size
        Samples of an iteration over all replicas: only configurations in which ``num_microbatches`` x
        ``microbatch_size`` x ``data_parallel`` is this number are considered. None: not fixed.
    sequence_length
        Tokens of a sample.
    tensor_parallel
        Devices that share every layer of a stage, inside a node; a list to choose from. Costs come from the options of
        layers that name the degree, or else are as given.
    data_parallel
        Replicas of every stage, each with microbatches of its own; a list to choose from.
    replicas_per_node
        How many replicas of a stage share a node, where they are on several; a list to choose from, None for any.
    gradient_overlap
        The part of the gradients' all-reduce over the replicas that is hidden behind computing, 0 to 1.
    shard_optimizer
        Whether the replicas divide the optimizer's state between them.
    optimizer
        A name or factors; None means ``none`` where nothing is trained and ``adam_mixed`` otherwise.
    communication
        ``overlapped``: a transfer only delays the next stage. ``blocking``: it occupies both stages.
    per_stage_degrees
        Whether the degrees are chosen for each stage, in steady state: objective ``bottleneck_time`` only. Then
        ``num_microbatches`` are those of the whole batch, which the replicas of a stage share, and the gradients are
        exchanged once for all of them, or as ``gradient_exchange_after`` says.
    gradient_exchange
        ``half_duplex`` where the replicas of a stage do not send and receive gradients at the same time, so that the
        exchange takes twice as long; with ``per_stage_degrees`` only.
    gradient_exchange_after
        ``batch``: replicas exchange gradients once for all microbatches of the batch. ``round``: each time that every
        replica of the stage has run one microbatch, as PipeDream's do; with ``per_stage_degrees`` only.
    routing
        How a tensor reaches a stage that is not the next one.
    runtime
        Whose receive buffers are counted: ``generic`` has one per direction, ``torch`` (torch.distributed.pipelining)
        one per direction for every microbatch, ``none`` (with ``per_stage_degrees`` only) has none: what arrives counts
        in ``activation_bytes``.
    queueing
        Whether transfers that share an uplink are also simulated as a queue.
    """

    schedule: ScheduleField
    num_stages: Choice | None = None
    num_microbatches: MicrobatchesChoice | None = None
    microbatch_size: Choice = 1
    global_batch_size: Count | None = None
    sequence_length: Annotated[int, Field(ge=1, le=2**40)] = 1
    tensor_parallel: Choice = 1
    data_parallel: Choice = 1
    replicas_per_node: Choice | None = None
    gradient_overlap: Annotated[float, Field(ge=0, le=1)] = 0.0
    shard_optimizer: bool = False
    optimizer: OptimizerField | None = None
    communication: Communication = "overlapped"
    per_stage_degrees: bool = False
    gradient_exchange: GradientExchange = "full_duplex"
    gradient_exchange_after: ExchangeAfter = "batch"
    routing: Routing = "relay"
    runtime: Runtime = "generic"
    queueing: bool = False

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """The schedules to compare; a single schedule is a choice of one."""
        return self.schedule if isinstance(self.schedule, tuple) else (self.schedule,)

    @property
    def trains(self) -> bool:
        """Whether there is a backward pass; the schedules agree on it."""
        return self.schedules[0].trains

    def schedule_place(self, index: int) -> tuple[str | int, ...]:
        """Give the path of one of the schedules, from here."""
        return ("schedule", index) if isinstance(self.schedule, tuple) else ("schedule",)

    @property
    def microbatches(self) -> int:
        """Microbatches of an iteration, where there is no choice left."""
        return single(self.num_microbatches)

    @property
    def replicas_together(self) -> int:
        """Replicas of a stage that share a node, where there is no choice of degrees left; all, if nothing is said."""
        return single(self.data_parallel if self.replicas_per_node is None else self.replicas_per_node)

    def batches(self) -> list[tuple[int, int, int]]:
        """Give the replicas, microbatches and samples of a microbatch to choose from."""
        counts = None if self.num_microbatches is None else as_choices(self.num_microbatches)
        sizes = as_choices(self.microbatch_size)
        found = batches(as_choices(self.data_parallel), counts, sizes, self.global_batch_size)
        return [each for each in found if each[1] <= MAX_MICROBATCHES]

    def iteration_samples(self) -> list[int]:
        """Give the samples that an iteration can have, over all replicas, ascending."""
        return sorted({replicas * count * size for replicas, count, size in self.batches()})

    def samples_at_once(self) -> list[int]:
        """Give the samples of a microbatch over all replicas, of every configuration, ascending."""
        return sorted({replicas * size for replicas, _, size in self.batches()})

    def with_choice(self, choice: TrainingChoice) -> Self:
        """Give the same training in one configuration alone, one of those listed here."""
        return self.model_copy(
            update={
                "schedule": choice.schedule,
                "tensor_parallel": choice.tensor_parallel,
                "data_parallel": choice.data_parallel,
                "replicas_per_node": choice.replicas_per_node,
                "num_microbatches": choice.num_microbatches,
                "microbatch_size": choice.microbatch_size,
            }
        )

    @model_validator(mode="after")
    def _check(self) -> Self:
        faults = Faults()
        _check_batches(faults, self)
        for index, schedule in enumerate(self.schedules):
            if schedule.orders is not None and not faults.count:
                place, before = (*self.schedule_place(index), "orders"), faults.count
                if isinstance(self.num_microbatches, int):
                    check_orders(faults, place, schedule.orders, self.num_microbatches)
                else:
                    detail = "custom orders run one number of microbatches; write it as num_microbatches"
                    faults.add(("num_microbatches",), detail, self.num_microbatches, "microbatches")
                if faults.count == before:
                    _check_stages(faults, self, index)
        faults.raise_if_any("Training")
        return self

    def optimizer_factors(self) -> Optimizer:
        """Give the bytes and seconds that the optimizer adds."""
        if isinstance(self.optimizer, Optimizer):
            return self.optimizer
        return OPTIMIZERS[self.optimizer or ("adam_mixed" if self.trains else "none")]


def single(choice: int | tuple[int, ...] | None) -> int:
    """Give the number in a set-up that has no other to choose from."""
    if isinstance(choice, tuple) and len(choice) == 1:
        return choice[0]
    assert isinstance(choice, int), "a configuration has one number of each"
    return choice


def _check_batches(faults: Faults, training: Training) -> None:
    """Refuse too many configurations, and batches that cannot be divided as asked."""
    lists = [training.tensor_parallel, training.data_parallel, training.microbatch_size, training.num_microbatches or 1]
    spanned = prod(len(as_choices(each)) for each in lists) * len(training.schedules)
    if spanned > MAX_CHOICES:
        detail = f"the lists span {spanned} configurations; at most {MAX_CHOICES} can be compared: list fewer values"
        faults.add((), detail, code="too_many_configurations")
    elif training.num_microbatches is None and training.global_batch_size is None:
        detail = "needed: give the number of microbatches, or global_batch_size, from which it follows"
        faults.add(("num_microbatches",), detail, code="missing")
    elif not training.batches():
        least = min(as_choices(training.data_parallel)) * min(as_choices(training.microbatch_size))
        remedy = f"choose a multiple of {least}, up to {least * MAX_MICROBATCHES}"
        if training.num_microbatches is not None:
            remedy = f"choose {least * min(as_choices(training.num_microbatches))}, or leave num_microbatches out"
        detail = f"no choice of num_microbatches x microbatch_size x data_parallel gives this batch; {remedy}"
        faults.add(("global_batch_size",), detail, training.global_batch_size, "batch")


def _check_stages(faults: Faults, training: Training, index: int) -> None:
    """Refuse another number of stages than the orders run."""
    stages = training.schedules[index].stages
    if training.num_stages is None or stages is None or as_choices(training.num_stages) == (stages,):
        return
    if isinstance(training.schedule, tuple):
        detail = f"the orders run {stages} stages, but num_stages asks for another number; plan them on their own"
        faults.add((*training.schedule_place(index), "orders"), detail, training.num_stages)
    else:
        detail = f"the orders run {stages} stages; write {stages}, or leave it out"
        faults.add(("num_stages",), detail, training.num_stages)
