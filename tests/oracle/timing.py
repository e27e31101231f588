"""How long an iteration takes: transfers, the run of the pipeline, and what follows it."""

from collections.abc import Sequence
from dataclasses import dataclass

from oracle.facts import Facts
from oracle.memory import held
from oracle.orders import Order, ranks_of_stages
from oracle.partitions import Partition
from oracle.placements import Placement, Way, node_of, way_between
from oracle.simulation import Kind, Run, Wire, busy_time
from oracle.traffic import Pair, Traffic
from partita.models.cluster import Cluster


@dataclass(frozen=True)
class Timing:
    """Seconds; transfers by pair of stages."""

    run: Run
    busy_s: float
    loads_s: list[float]
    """Busy time of every rank for one microbatch."""
    bottleneck_s: float
    synchronization_s: float
    forward_transfer_s: dict[Pair, float]
    backward_transfer_s: dict[Pair, float]


class Ways:
    """The ways between the ranks of a placement."""

    def __init__(self, cluster: Cluster, placement: Placement) -> None:
        self._cluster = cluster
        self._placement = placement
        self._known: dict[Pair, Way] = {}

    def between(self, one: int, other: int) -> Way:
        """Give the way between two ranks."""
        if (one, other) not in self._known:
            self._known[one, other] = way_between(self._cluster, self._placement[one], self._placement[other])
        return self._known[one, other]

    def uplink(self, rank: int) -> Way:
        """Give the way from the rank's node to another one like it."""
        (node,) = [n for n in self._cluster.expanded_nodes() if n.name == node_of(self._placement[rank])]
        assert node.uplink is not None
        return Way(2 * node.uplink.latency_s, node.uplink.bandwidth_bytes_per_s)

    def fabric(self, rank: int) -> Way:
        """Give the fabric of the rank's node."""
        (node,) = [n for n in self._cluster.expanded_nodes() if n.name == node_of(self._placement[rank])]
        assert node.fabric is not None
        return Way(node.fabric.latency_s, node.fabric.bandwidth_bytes_per_s)


def time_plan(facts: Facts, partition: Partition, traffic: Traffic, orders: Sequence[Order], ways: Ways) -> Timing:
    """Time one iteration."""
    rank_of = ranks_of_stages(orders)
    forward = {pair: _transfer(facts, pair, sizes, rank_of, ways) for pair, sizes in traffic.forward.items()}
    backward = {pair: _transfer(facts, pair, sizes, rank_of, ways) for pair, sizes in traffic.backward.items()}
    seconds = _compute(facts, partition)
    if facts.blocking:
        _add_transfers(facts, seconds, traffic, rank_of, ways, forward, backward)
    loads = [0.0] * len(orders)
    for stage, rank in enumerate(rank_of):
        loads[rank] += seconds["F", stage] + seconds["B", stage]
    slowest = max(loads)
    if not facts.blocking:
        slowest = max([slowest, *forward.values(), *backward.values()])
    return Timing(
        run=Run(orders, seconds, _wires(facts, rank_of, forward, backward)),
        busy_s=busy_time(orders, seconds),
        loads_s=loads,
        bottleneck_s=slowest,
        synchronization_s=_synchronization(facts, partition, rank_of, ways),
        forward_transfer_s=forward,
        backward_transfer_s=backward,
    )


def _compute(facts: Facts, partition: Partition) -> dict[Kind, float]:
    """Give the seconds of every kind of action without transfers."""
    seconds: dict[Kind, float] = {(kind, stage): 0.0 for kind in "FBIW" for stage in partition}
    for layer, stage in enumerate(partition):
        seconds["F", stage] += facts.forward_s[layer]
        seconds["B", stage] += facts.backward_s[layer]
        seconds["I", stage] += facts.backward_s[layer] - facts.weight_gradient_s[layer]
        seconds["W", stage] += facts.weight_gradient_s[layer]
    return seconds


def _transfer(facts: Facts, pair: Pair, sizes: list[int], rank_of: list[int], ways: Ways) -> float:
    """Time what a pair exchanges in one direction; over the host each tensor is written and read, by the fabric.

    Between stages of one rank nothing is sent.
    """
    one, other = (rank_of[stage] for stage in pair)
    if one == other:
        return 0.0
    if facts.routing == "host":
        return sum(2 * ways.fabric(one).seconds(size) for size in sizes)
    return ways.between(one, other).seconds(sum(sizes))


def _add_transfers(
    facts: Facts,
    seconds: dict[Kind, float],
    traffic: Traffic,
    rank_of: list[int],
    ways: Ways,
    forward: dict[Pair, float],
    backward: dict[Pair, float],
) -> None:
    """Add to every action the transfers that occupy its rank; a weight gradient has none."""
    for kinds, transfers, moves in (("F", forward, traffic.forward_moves), ("BI", backward, traffic.backward_moves)):
        for kind in kinds:
            if facts.routing == "host":
                for stage, sizes in enumerate(moves):
                    seconds[kind, stage] += sum(ways.fabric(rank_of[stage]).seconds(size) for size in sizes)
                continue
            for pair, transfer in transfers.items():
                for stage in pair:
                    seconds[kind, stage] += transfer


def _wires(facts: Facts, rank_of: list[int], forward: dict[Pair, float], backward: dict[Pair, float]) -> list[Wire]:
    """Say which stage waits for which, how long after its end (or before, where the transfer is part of the action)."""

    def wire(direction: str, source: int, target: int, transfer: float) -> Wire:
        if rank_of[source] == rank_of[target]:
            return Wire(direction, source, target, 0.0, queued=False)
        if facts.blocking:
            delay = 0.0 if facts.routing == "host" else -transfer
            return Wire(direction, source, target, delay, queued=False)
        return Wire(direction, source, target, transfer, queued=True)

    wires = [wire("forward", low, high, transfer) for (low, high), transfer in forward.items()]
    return wires + [wire("backward", high, low, transfer) for (low, high), transfer in backward.items()]


def _synchronization(facts: Facts, partition: Partition, rank_of: list[int], ways: Ways) -> float:
    """Time the exchange of gradients: between replicas of the slowest rank, and of every tied weight."""
    if not facts.trains:
        return 0.0
    replicas = [0.0]
    near, far = facts.together, facts.data_parallel // facts.together
    if near * far > 1:
        for rank in set(rank_of):
            layers = {layer for layer, stage in enumerate(partition) if rank_of[stage] == rank}
            weights = [facts.weight_bytes[layer] for layer in layers] + held(facts.weights, layers)
            size = sum(gradient_size(facts, weight) for weight in weights)
            seconds = 0.0
            if near > 1:
                seconds += ways.fabric(rank).seconds(2 * (near - 1) / near * size)
            if far > 1:
                seconds += ways.uplink(rank).seconds(2 * (far - 1) / far * size / near)
            replicas.append((1 - facts.overlap) * seconds)
    tied = 0.0
    for weight in facts.weights:
        holders = sorted({rank_of[partition[layer]] for layer in weight.layers})
        n = len(holders)
        if n > 1:
            moved = 2 * (n - 1) / n * gradient_size(facts, weight.bytes)
            tied += max(ways.between(one, other).seconds(moved) for one in holders for other in holders if one < other)
    return max(replicas) + tied


def gradient_size(facts: Facts, weight_bytes: int) -> int:
    """Give the bytes of a weight's gradient; without gradient factor it is as large as the weight."""
    return round(weight_bytes * facts.gradient_factor) if facts.gradient_factor else weight_bytes
