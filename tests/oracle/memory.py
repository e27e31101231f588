"""What a rank keeps on each of its devices, item by item."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import ceil

from oracle.facts import Facts, Held
from oracle.orders import Order, ranks_of_stages
from oracle.partitions import Partition
from oracle.traffic import Traffic

Moment = tuple[tuple[int, int], ...]
"""Of every stage of a rank: the microbatches in flight, and those whose weight gradient alone is still to come."""


@dataclass(frozen=True)
class RankMemory:
    """Bytes of all stages of a rank, each shared thing once; the moments at which most activations are kept.

    ``kept`` is, by stage, what a microbatch in flight keeps, and one that waits for its weight gradient.
    """

    stages: tuple[int, ...]
    weights_bytes: int
    gradients_bytes: int
    optimizer_bytes: int
    buffers_bytes: int
    activations_bytes: int
    kept: list[tuple[int, int]]
    fullest: frozenset[Moment]
    communication_bytes: int
    workspace_bytes: int
    reserve_bytes: int

    @property
    def total_bytes(self) -> int:
        """Give the sum."""
        model = self.weights_bytes + self.gradients_bytes + self.optimizer_bytes + self.buffers_bytes
        moving = self.activations_bytes + self.communication_bytes + self.workspace_bytes
        return model + moving + self.reserve_bytes


def memory_of_ranks(
    facts: Facts, partition: Partition, traffic: Traffic, orders: Sequence[Order], reserves: Sequence[int] | None = None
) -> list[RankMemory]:
    """Add up the memory of every rank; ``reserves`` are those of the ranks' devices where they differ."""
    rank_of = ranks_of_stages(orders)
    received = _receive_buffers(facts, traffic, rank_of)
    ranks = []
    for rank, order in enumerate(orders):
        layers = {layer for layer, stage in enumerate(partition) if rank_of[stage] == rank}
        weights = [facts.weight_bytes[layer] for layer in layers] + held(facts.weights, layers)
        states = [round(size * facts.state_factor) for size in weights]
        kept = [_kept(facts, partition, stage) for stage in stages_in(order)]
        activations, fullest = _most_activations(facts, kept, order)
        ranks.append(
            RankMemory(
                stages=stages_in(order),
                weights_bytes=sum(weights),
                gradients_bytes=sum(round(size * facts.gradient_factor) for size in weights),
                optimizer_bytes=sum(ceil(Fraction(state, facts.sharing)) for state in states),
                buffers_bytes=sum(held(facts.buffers, layers)),
                activations_bytes=activations,
                kept=kept,
                fullest=fullest,
                communication_bytes=received[rank],
                workspace_bytes=max(facts.workspace_bytes[layer] for layer in layers),
                reserve_bytes=facts.reserve_bytes if reserves is None else reserves[rank],
            )
        )
    return ranks


def held(things: list[Held], layers: set[int]) -> list[int]:
    """Give the sizes of those things that one of the layers uses."""
    return [thing.bytes for thing in things if thing.layers & layers]


def stages_in(order: Order) -> tuple[int, ...]:
    """Give the stages of an order, in their own order."""
    return tuple(sorted({stage for _, stage, _ in order}))


@cache
def moments(order: Order) -> frozenset[Moment]:
    """Walk through an order; say what is kept during each action and after it."""
    flying = dict.fromkeys(stages_in(order), 0)
    waiting = dict.fromkeys(stages_in(order), 0)

    def now() -> Moment:
        return tuple(zip(flying.values(), waiting.values(), strict=True))

    seen = {now()}
    for kind, stage, _ in order:
        if kind == "F":
            flying[stage] += 1
        seen.add(now())
        if kind in ("B", "I"):
            flying[stage] -= 1
        if kind == "I":
            waiting[stage] += 1
        if kind == "W":
            waiting[stage] -= 1
        seen.add(now())
    return frozenset(seen)


def _kept(facts: Facts, partition: Partition, stage: int) -> tuple[int, int]:
    """Give what a stage keeps of a microbatch in flight, and of one that waits for its weight gradient."""
    layers = {layer for layer, at in enumerate(partition) if at == stage}
    shared = sum(held(facts.shared, layers))
    in_flight = sum(facts.activation_bytes[layer] for layer in layers)
    return shared + in_flight, shared + sum(facts.weight_gradient_bytes[layer] for layer in layers)


def _most_activations(facts: Facts, kept: list[tuple[int, int]], order: Order) -> tuple[int, frozenset[Moment]]:
    """Give the most bytes that the stages of a rank keep together, and when they do."""
    if not facts.trains:
        return 0, frozenset([((0, 0),) * len(kept)])
    sizes = {
        moment: sum(
            flying * in_flight + waiting * postponed
            for (flying, waiting), (in_flight, postponed) in zip(moment, kept, strict=True)
        )
        for moment in moments(order)
    }
    most = max(sizes.values())
    return most, frozenset(moment for moment, size in sizes.items() if size == most)


def _receive_buffers(facts: Facts, traffic: Traffic, rank_of: list[int]) -> list[int]:
    """Give the bytes that each rank receives from others, for as many microbatches as there are buffers."""
    received = [0] * (max(rank_of) + 1)
    if facts.routing == "host":
        return received
    buffers = facts.microbatches if facts.buffers_for_all else 1
    for transfers, receiver in ((traffic.forward, 1), (traffic.backward, 0)):
        for pair, sizes in transfers.items():
            if rank_of[pair[0]] != rank_of[pair[1]]:
                received[rank_of[pair[receiver]]] += buffers * sum(sizes)
    return received
