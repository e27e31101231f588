"""The single configurations of training that a problem's lists of schedules, degrees and batches span."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Protocol

from partita.models.cluster import Cluster
from partita.models.schedule import Schedule

MAX_CHOICES = 4096
"""Configurations that one problem may span."""


class Configured(Protocol):
    """What says which configuration it belongs to."""

    @property
    def schedule(self) -> Schedule: ...  # noqa: D102
    @property
    def tensor_parallel(self) -> int: ...  # noqa: D102
    @property
    def data_parallel(self) -> int: ...  # noqa: D102
    @property
    def replicas_per_node(self) -> int: ...  # noqa: D102
    @property
    def num_microbatches(self) -> int: ...  # noqa: D102
    @property
    def microbatch_size(self) -> int: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class TrainingChoice:
    """One configuration of training.

    Attributes
    ----------
    schedule
        The order of the passes.
    tensor_parallel, data_parallel
        Degrees.
    replicas_per_node
        Replicas of a stage that share a node; a divisor of ``data_parallel``. The others are on further nodes.
    num_microbatches, microbatch_size
        Microbatches of an iteration in each replica, and samples of a microbatch.
    """

    schedule: Schedule
    tensor_parallel: int
    data_parallel: int
    replicas_per_node: int
    num_microbatches: int
    microbatch_size: int


def choice_of(configured: Configured) -> TrainingChoice:
    """Give the configuration that a plan or a result belongs to."""
    return TrainingChoice(
        configured.schedule,
        configured.tensor_parallel,
        configured.data_parallel,
        configured.replicas_per_node,
        configured.num_microbatches,
        configured.microbatch_size,
    )


def batches(
    data_parallel: Sequence[int],
    num_microbatches: Sequence[int] | None,
    microbatch_size: Sequence[int],
    global_batch_size: int | None,
) -> Iterator[tuple[int, int, int]]:
    """Give replicas, microbatches and samples of a microbatch that go together.

    Parameters
    ----------
    data_parallel, num_microbatches, microbatch_size
        What each can be; microbatches may be None where the others decide.
    global_batch_size
        What their product must be; None for anything.
    """
    for replicas, size in product(data_parallel, microbatch_size):
        if num_microbatches is not None:
            for count in num_microbatches:
                if global_batch_size in (None, count * size * replicas):
                    yield replicas, count, size
        elif global_batch_size is not None and global_batch_size % (size * replicas) == 0:
            yield replicas, global_batch_size // (size * replicas), size


def spreads(
    cluster: Cluster, tensor_parallel: int, data_parallel: int, replicas_per_node: Sequence[int] | None
) -> list[int]:
    """Give how many replicas of a stage can share a node, as many as possible first.

    A tensor-parallel group stays inside a node, every node of a stage holds as many replicas of it, and several nodes
    of a stage have equal devices, fabrics and uplinks and no links of their own.

    Parameters
    ----------
    cluster
        The machines.
    tensor_parallel, data_parallel
        Devices of a replica of a stage, and replicas.
    replicas_per_node
        The numbers to choose from; None for any.
    """
    linked = {end.partition(":")[0] for link in cluster.links for end in link.between}

    def has_room(each: int) -> bool:
        fitting = [node for node in cluster.nodes if node.count >= each * tensor_parallel]
        if each == data_parallel:
            return bool(fitting)
        alike: Counter[object] = Counter()
        for node in fitting:
            number = node.replicas - len(linked.intersection(node.replica_names())) if linked else node.replicas
            alike[node.device, node.fabric, node.uplink] += number
        return max(alike.values(), default=0) >= data_parallel // each

    return [
        each
        for each in range(data_parallel, 0, -1)
        if data_parallel % each == 0 and (replicas_per_node is None or each in replicas_per_node) and has_room(each)
    ]
