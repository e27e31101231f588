"""Numbers of stages that get a layer and a device each, and that the schedules can run."""

from collections.abc import Sequence
from typing import NamedTuple

from partita.models.base import Faults
from partita.models.cluster import Cluster
from partita.models.degree_checks import degrees_fault
from partita.models.profile import ModelProfile
from partita.models.quantities import as_choices
from partita.models.schedule import Schedule
from partita.models.schedule_rules import can_run, microbatches_fault, nearest, stages_fault
from partita.models.training import Training

Place = Sequence[str | int]


class _Room(NamedTuple):
    """What bounds the number of stages.

    Attributes
    ----------
    layers
        How many layers there are.
    settings
        The most ranks, and the microbatches, of every configuration of degrees and batch; most ranks first.
    """

    layers: int
    settings: tuple[tuple[int, int], ...]

    @property
    def ranks(self) -> int:
        """The most ranks of any configuration."""
        return self.settings[0][0]

    @property
    def microbatches(self) -> int:
        """The microbatches of the configuration with the most ranks."""
        return self.settings[0][1]

    def most(self, schedule: Schedule) -> int:
        """Give the most stages that get a layer and a device each."""
        return min(self.layers, self.ranks * schedule.chunks)

    def holds(self, schedule: Schedule, stages: int) -> bool:
        """Tell whether a schedule can have so many stages."""
        if schedule.stages is not None:
            return stages == schedule.stages and stages <= self.layers
        return stages <= self.layers and any(
            stages <= ranks * schedule.chunks and can_run(schedule.kind, schedule.chunks, stages, microbatches)
            for ranks, microbatches in self.settings
        )

    def largest(self, schedule: Schedule) -> int:
        """Give the largest number of stages that a schedule can have; 0 where there is none."""
        if schedule.stages is not None:
            return min(schedule.stages, self.layers)
        return next((number for number in range(self.most(schedule), 0, -1) if self.holds(schedule, number)), 0)


def most_stages(model: ModelProfile, cluster: Cluster, training: Training) -> int:
    """Give the largest number of stages that the layers can fill, the devices hold and one of the schedules run."""
    room = _room(model, cluster, training)
    return max(room.largest(schedule) for schedule in training.schedules)


def check_stages(faults: Faults, model: ModelProfile, cluster: Cluster, training: Training) -> None:
    """Refuse numbers of stages that cannot all get a layer and a device, or that a schedule cannot run.

    A fault of one schedule among several points at that schedule; else at the number of stages or of microbatches.
    """
    fault = degrees_fault(cluster, training)
    if fault is not None:
        faults.add(*fault, code="too_few_devices")
        return
    room = _room(model, cluster, training)
    for position, stages in enumerate(_asked(training)):
        if stages > room.layers:
            faults.add(_stages_place(training, position), _too_few_layers(stages, training, room), stages, TOO_MANY)
    for index, schedule in enumerate(training.schedules):
        place = ("training", *training.schedule_place(index))
        if schedule.orders is not None:
            _check_orders(faults, place, schedule, room)
        elif training.num_stages is None:
            _check_any(faults, place, training, schedule, room)
        else:
            _check_numbers(faults, place, training, schedule, room)


TOO_MANY = "too_many_stages"


def _room(model: ModelProfile, cluster: Cluster, training: Training) -> _Room:
    least, devices = min(as_choices(training.tensor_parallel)), cluster.num_devices
    settings = {(devices // (least * replicas), count) for replicas, count, _ in training.batches()}
    return _Room(len(model.layers), tuple(sorted(settings, reverse=True)))


def _asked(training: Training) -> tuple[int, ...]:
    return () if training.num_stages is None else as_choices(training.num_stages)


def _stages_place(training: Training, position: int) -> Place:
    """Give the path of a number of stages from the problem's root."""
    listed = isinstance(training.num_stages, tuple)
    return ("training", "num_stages", position) if listed else ("training", "num_stages")


def _too_few_layers(stages: int, training: Training, room: _Room) -> str:
    """Say that a number of stages lacks layers, and the nearest number that every schedule can have."""
    reason = f"{stages} stages need a layer each, but there are {room.layers} layers"

    def works(number: int) -> bool:
        return all(room.holds(schedule, number) for schedule in training.schedules)

    return f"{reason}; {nearest(stages, room.layers, works)}"


def _check_orders(faults: Faults, place: Place, schedule: Schedule, room: _Room) -> None:
    """Refuse custom orders for more ranks or stages than there can be."""
    ranks, stages = len(schedule.orders or ()), schedule.stages or 0
    if ranks > room.ranks:
        detail = f"orders for {ranks} ranks, but the devices allow {room.ranks}"
        faults.add((*place, "orders"), detail, schedule.orders, "too_few_devices")
    if stages > room.layers:
        detail = f"the orders run {stages} stages, which need a layer each, but there are {room.layers} layers"
        faults.add((*place, "orders"), detail, schedule.orders, TOO_MANY)


def _check_any(faults: Faults, place: Place, training: Training, schedule: Schedule, room: _Room) -> None:
    """Refuse a schedule that can have no number of stages at all."""
    if room.largest(schedule):
        return
    if room.layers < schedule.chunks:
        detail = (
            f"{schedule.kind} runs {schedule.chunks} stages on every rank, which need a layer each, but the number of "
            f"layers is {room.layers}; take a schedule with fewer stages on every rank"
        )
        faults.add(place, detail, schedule.kind, TOO_MANY)
    else:
        detail = microbatches_fault(schedule.kind, 1, room.microbatches) or "no number of stages works"
        listed = isinstance(training.schedule, tuple)
        where, value = (place, schedule.kind) if listed else (("training", "num_microbatches"), room.microbatches)
        faults.add(where, detail, value, "microbatches")


def _check_numbers(faults: Faults, place: Place, training: Training, schedule: Schedule, room: _Room) -> None:
    """Refuse numbers of stages that do not fit on the ranks, do not fill them, or with too odd microbatches.

    Of several schedules and several numbers every schedule takes the numbers that it can run.
    """
    listed = isinstance(training.schedule, tuple)
    if listed and isinstance(training.num_stages, tuple):
        if not any(room.holds(schedule, stages) for stages in training.num_stages):
            numbers = ", ".join(str(stages) for stages in training.num_stages)
            detail = f"{schedule.kind} can run none of the numbers of stages asked for ({numbers})"
            most = room.largest(schedule)
            detail += f"; add {most}, or leave num_stages out" if most else "; take it out"
            faults.add(place, detail, schedule.kind, TOO_MANY)
        return
    chunks, most = schedule.chunks, room.most(schedule)
    for position, stages in enumerate(_asked(training)):
        if stages > room.layers:
            continue
        remedy = "; or list a number for each schedule in num_stages, or leave it out" if listed else ""
        where = place if listed else _stages_place(training, position)
        value = schedule.kind if listed else stages
        if room.holds(schedule, stages):
            continue
        fills = stages_fault(schedule.kind, chunks, stages, room.microbatches, most)
        if stages > most:
            each = f" with {chunks} stages each" if chunks > 1 else ""
            reason = f"{stages} stages do not fit on the {room.ranks} ranks{each} that the devices allow"
            works = nearest(stages, most, lambda number: room.holds(schedule, number))
            faults.add(where, f"{reason}; {works}{remedy}", value, TOO_MANY)
        elif fills is not None:
            faults.add(where, fills + remedy, value, "stages_per_rank")
        else:
            odd = microbatches_fault(schedule.kind, stages // chunks, room.microbatches)
            if odd is not None and not listed and not isinstance(training.num_stages, tuple):
                faults.add(("training", "num_microbatches"), odd, room.microbatches, "microbatches")
            elif odd is not None:
                faults.add(where, odd, value, "microbatches")
