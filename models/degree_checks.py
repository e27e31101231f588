"""Why no choice of degrees has room on the nodes."""

from collections.abc import Sequence

from partita.models.cluster import Cluster
from partita.models.naming import MAX_LISTED, quoted
from partita.models.quantities import as_choices
from partita.models.training import Training

Fault = tuple[Sequence[str | int], str, object]
"""Where a problem is at fault, why, and the value that is there."""


def degrees_fault(cluster: Cluster, training: Training) -> Fault | None:
    """Tell why no choice of degrees leaves room for a single stage, looking at the numbers of devices alone.

    Returns
    -------
    Fault or None
        None where some choice does; whether nodes are alike enough for its replicas is told by ``no_room``.
    """
    tensor = min(as_choices(training.tensor_parallel))
    largest = max(cluster.nodes, key=lambda node: node.count)
    if tensor > largest.count:
        detail = (
            f"a group of {tensor} tensor-parallel devices stays inside a node, and the largest, "
            f"{quoted(largest.replica_names()[0])}, has {largest.count}; choose tensor_parallel of at most "
            f"{largest.count}"
        )
        return ("training", "tensor_parallel"), detail, training.tensor_parallel
    groups = sum(node.replicas * (node.count // tensor) for node in cluster.nodes)
    replicas = min(each for each, _, _ in training.batches())
    if replicas <= groups:
        return None
    if replicas > min(as_choices(training.data_parallel)):
        detail = (
            f"{_left_by_batch(training)}; they need {replicas} groups of {tensor} devices for a stage, and the nodes "
            f"have room for {groups}; choose another global_batch_size, or more numbers of replicas or microbatches"
        )
        return ("training", "global_batch_size"), detail, training.global_batch_size
    has = "" if groups * tensor == cluster.num_devices else f", in which {groups} such groups have room"
    detail = (
        f"tensor_parallel x data_parallel = {tensor} x {replicas} devices for a stage, but there are "
        f"{cluster.num_devices}{has}; choose smaller degrees"
    )
    return ("training",), detail, None


def no_room(cluster: Cluster, training: Training) -> str:
    """Say why no choice of degrees fits on the nodes, although there are devices enough."""
    largest = max(node.count for node in cluster.nodes)
    left = {each for each, _, _ in training.batches()}
    by_batch = "" if left == set(as_choices(training.data_parallel)) else f"{_left_by_batch(training)}; "
    other = ", another global_batch_size" if by_batch else ""
    return (
        f"{by_batch}no choice of tensor_parallel, data_parallel and replicas_per_node fits on nodes of up to {largest} "
        "devices: every node of a stage holds replicas_per_node x tensor_parallel devices of it, and there are "
        "data_parallel / replicas_per_node such nodes, equal and without links of their own; choose smaller degrees"
        f"{other}, or leave replicas_per_node out"
    )


def _left_by_batch(training: Training) -> str:
    """Say which numbers of replicas go with the batch that is asked for."""
    left = sorted({each for each, _, _ in training.batches()})
    return f"global_batch_size ({training.global_batch_size}) leaves data_parallel {_either(left)} alone"


def _either(numbers: Sequence[int]) -> str:
    """List numbers, the first few of many."""
    shown = ", ".join(str(each) for each in numbers[:MAX_LISTED])
    more = len(numbers) - MAX_LISTED
    return f"{shown} and {more} more" if more > 0 else shown
