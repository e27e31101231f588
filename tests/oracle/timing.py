"""How long an iteration takes: transfers, the run of the pipeline, and what follows it."""

from dataclasses import dataclass

from oracle.facts import Facts
from oracle.partitions import Partition
from oracle.placements import Placement, Way, node_of, way_between
from oracle.simulation import Kind, Wire, rank_orders, run
from oracle.traffic import Pair, Traffic
from partita.models.cluster import Cluster


@dataclass(frozen=True)
class Timing:
    """Seconds; transfers by pair of stages."""

    makespan_s: float
    busy_s: float
    bottleneck_s: float
    synchronization_s: float
    forward_transfer_s: dict[Pair, float]
    backward_transfer_s: dict[Pair, float]


class Ways:
    """The ways between the stages of a placement."""

    def __init__(self, cluster: Cluster, placement: Placement) -> None:
        self._cluster = cluster
        self._placement = placement
        self._known: dict[Pair, Way] = {}

    def between(self, one: int, other: int) -> Way:
        """Give the way between two stages."""
        if (one, other) not in self._known:
            self._known[one, other] = way_between(self._cluster, self._placement[one], self._placement[other])
        return self._known[one, other]

    def fabric(self, stage: int) -> Way:
        """Give the fabric of the stage's node."""
        (node,) = [n for n in self._cluster.expanded_nodes() if n.name == node_of(self._placement[stage])]
        assert node.fabric is not None
        return Way(node.fabric.latency_s, node.fabric.bandwidth_bytes_per_s)


def time_plan(facts: Facts, partition: Partition, traffic: Traffic, ways: Ways) -> Timing:
    """Time one iteration."""
    stages = range(max(partition) + 1)
    members = [[layer for layer, at in enumerate(partition) if at == stage] for stage in stages]
    seconds: dict[Kind, float] = {("F", stage): sum(facts.forward_s[i] for i in members[stage]) for stage in stages}
    if facts.trains:
        seconds |= {("B", stage): sum(facts.backward_s[i] for i in members[stage]) for stage in stages}
    forward = {pair: _transfer(facts, pair, sizes, ways) for pair, sizes in traffic.forward.items()}
    backward = {pair: _transfer(facts, pair, sizes, ways) for pair, sizes in traffic.backward.items()}
    if facts.blocking:
        seconds = _with_transfers(facts, seconds, traffic, ways, forward, backward)
    wires = _wires(facts, len(stages), forward, backward)
    makespan = run(rank_orders(facts.schedule, len(stages), facts.microbatches), seconds, wires)
    loads = [seconds["F", stage] + seconds.get(("B", stage), 0.0) for stage in stages]
    slowest = max(loads)
    if not facts.blocking:
        slowest = max([slowest, *forward.values(), *backward.values()])
    return Timing(
        makespan_s=makespan,
        busy_s=facts.microbatches * sum(seconds.values()),
        bottleneck_s=slowest,
        synchronization_s=_synchronization(facts, partition, members, ways),
        forward_transfer_s=forward,
        backward_transfer_s=backward,
    )


def _transfer(facts: Facts, pair: Pair, sizes: list[int], ways: Ways) -> float:
    """Time what a pair exchanges in one direction; over the host each tensor is written and read, by the fabric."""
    if facts.routing == "host":
        return sum(2 * ways.fabric(pair[0]).seconds(size) for size in sizes)
    return ways.between(*pair).seconds(sum(sizes))


def _with_transfers(
    facts: Facts,
    compute: dict[Kind, float],
    traffic: Traffic,
    ways: Ways,
    forward: dict[Pair, float],
    backward: dict[Pair, float],
) -> dict[Kind, float]:
    """Add to every action the transfers that occupy its stage."""
    seconds = dict(compute)
    if facts.routing == "host":
        for kind, stage in seconds:
            sizes = (traffic.forward_moves if kind == "F" else traffic.backward_moves)[stage]
            seconds[kind, stage] += sum(ways.fabric(stage).seconds(size) for size in sizes)
        return seconds
    for kind, transfers in (("F", forward), ("B", backward)):
        for pair, transfer in transfers.items():
            for stage in pair:
                seconds[kind, stage] += transfer
    return seconds


def _wires(facts: Facts, num_stages: int, forward: dict[Pair, float], backward: dict[Pair, float]) -> list[Wire]:
    """Say which action waits for which, and how long after its end (or before, where the transfer is part of it)."""

    def delay(transfer: float) -> float:
        if not facts.blocking:
            return transfer
        return 0.0 if facts.routing == "host" else -transfer

    wires = [Wire(("F", low), ("F", high), delay(transfer)) for (low, high), transfer in forward.items()]
    wires += [Wire(("B", high), ("B", low), delay(transfer)) for (low, high), transfer in backward.items()]
    if facts.trains:
        wires.append(Wire(("F", num_stages - 1), ("B", num_stages - 1), 0.0))
    return wires


def _synchronization(facts: Facts, partition: Partition, members: list[list[int]], ways: Ways) -> float:
    """Time the exchange of gradients: between replicas of the slowest stage, and of every tied weight."""
    if not facts.trains:
        return 0.0
    replicas = [0.0]
    d = facts.data_parallel
    if d > 1:
        for stage, layers in enumerate(members):
            size = sum(gradient_size(facts, facts.weight_bytes[layer]) for layer in layers)
            size += sum(gradient_size(facts, held.bytes) for held in facts.weights if held.layers & set(layers))
            replicas.append(ways.fabric(stage).seconds(2 * (d - 1) / d * size))
    tied = 0.0
    for held in facts.weights:
        holders = sorted({partition[layer] for layer in held.layers})
        n = len(holders)
        if n > 1:
            moved = 2 * (n - 1) / n * gradient_size(facts, held.bytes)
            tied += max(ways.between(one, other).seconds(moved) for one in holders for other in holders if one < other)
    return max(replicas) + tied


def gradient_size(facts: Facts, weight_bytes: int) -> int:
    """Give the bytes of a weight's gradient; without gradient factor it is as large as the weight."""
    return round(weight_bytes * facts.gradient_factor) if facts.gradient_factor else weight_bytes
