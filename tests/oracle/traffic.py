"""What passes between stages for one microbatch, and how long it takes."""

from dataclasses import dataclass, field

from oracle.facts import Facts
from oracle.partitions import Partition

Pair = tuple[int, int]
"""Two stages, the lower one first."""


@dataclass
class Traffic:
    """The sizes of the tensors that every pair of stages exchanges, per pass.

    A pair is a key where there is a connection at all, even one without a tensor. ``forward_moves`` and
    ``backward_moves`` are, by stage, the sizes of what it writes to and reads from host memory; they are filled for
    routing over the host only.
    """

    forward: dict[Pair, list[int]] = field(default_factory=dict)
    backward: dict[Pair, list[int]] = field(default_factory=dict)
    forward_moves: list[list[int]] = field(default_factory=list)
    backward_moves: list[list[int]] = field(default_factory=list)


def find_traffic(facts: Facts, partition: Partition, num_stages: int) -> Traffic:
    """Follow every tensor on its route."""
    if facts.routing == "relay":
        return _relay(facts, partition, num_stages)
    if facts.routing == "direct":
        return _direct(facts, partition, num_stages)
    return _host(facts, partition, num_stages)


def _relay(facts: Facts, partition: Partition, num_stages: int) -> Traffic:
    """Let every tensor cross each boundary between the first and the last stage that has to do with it."""
    traffic = _adjacent(facts, num_stages)
    for tensor in facts.tensors:
        stages = [partition[tensor.producer], *(partition[consumer] for consumer in tensor.consumers)]
        for lower in range(min(stages), max(stages)):
            if not tensor.backward:
                traffic.forward[lower, lower + 1].append(tensor.bytes)
            if facts.trains:
                traffic.backward[lower, lower + 1].append(tensor.bytes if tensor.backward else tensor.gradient_bytes)
    return traffic


def _direct(facts: Facts, partition: Partition, num_stages: int) -> Traffic:
    """Send every tensor of some bytes once from its producer's stage to each other stage that reads it."""
    traffic = _adjacent(facts, num_stages)
    for tensor in facts.tensors:
        start, readers = _ends(partition, tensor.producer, tensor.consumers)
        size_back = tensor.bytes if tensor.backward else tensor.gradient_bytes
        for reader in readers:
            pair = min(start, reader), max(start, reader)
            if tensor.bytes and not tensor.backward:
                traffic.forward.setdefault(pair, []).append(tensor.bytes)
            if size_back and facts.trains:
                traffic.backward.setdefault(pair, []).append(size_back)
    return traffic


def _host(facts: Facts, partition: Partition, num_stages: int) -> Traffic:
    """Write every tensor once and read it once by each other stage; each reader sends its gradient back."""
    traffic = _adjacent(facts, num_stages)
    traffic.forward_moves = [[] for _ in range(num_stages)]
    traffic.backward_moves = [[] for _ in range(num_stages)]
    for tensor in facts.tensors:
        start, readers = _ends(partition, tensor.producer, tensor.consumers)
        if tensor.bytes and readers and not tensor.backward:
            _through_host(traffic.forward, traffic.forward_moves, start, readers, tensor.bytes)
        if tensor.bytes and readers and tensor.backward and facts.trains:
            _through_host(traffic.backward, traffic.backward_moves, start, readers, tensor.bytes)
        if tensor.gradient_bytes and not tensor.backward and facts.trains:
            for reader in readers:
                _through_host(traffic.backward, traffic.backward_moves, reader, [start], tensor.gradient_bytes)
    return traffic


def _through_host(
    transfers: dict[Pair, list[int]], moves: list[list[int]], writer: int, readers: list[int], size: int
) -> None:
    """Note one write and the reads that follow."""
    moves[writer].append(size)
    for reader in readers:
        moves[reader].append(size)
        transfers.setdefault((min(writer, reader), max(writer, reader)), []).append(size)


def _adjacent(facts: Facts, num_stages: int) -> Traffic:
    """Connect every stage with the next one."""
    pairs = [(lower, lower + 1) for lower in range(num_stages - 1)]
    return Traffic({pair: [] for pair in pairs}, {pair: [] for pair in pairs} if facts.trains else {})


def _ends(partition: Partition, producer: int, consumers: tuple[int, ...]) -> tuple[int, list[int]]:
    """Give the producer's stage and the other stages that hold a consumer, each once."""
    start = partition[producer]
    return start, sorted({partition[consumer] for consumer in consumers} - {start})
