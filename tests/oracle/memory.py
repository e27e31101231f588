"""What a stage keeps on each of its devices, item by item."""

from dataclasses import dataclass

from oracle.facts import Facts, Held
from oracle.partitions import Partition
from oracle.simulation import most_in_flight, rank_orders
from oracle.traffic import Traffic


@dataclass(frozen=True)
class StageMemory:
    """Bytes, and the number of microbatches in flight."""

    weights_bytes: int
    gradients_bytes: int
    optimizer_bytes: int
    buffers_bytes: int
    activations_bytes: int
    in_flight: int
    communication_bytes: int
    workspace_bytes: int
    reserve_bytes: int

    @property
    def total_bytes(self) -> int:
        """Give the sum."""
        model = self.weights_bytes + self.gradients_bytes + self.optimizer_bytes + self.buffers_bytes
        moving = self.activations_bytes + self.communication_bytes + self.workspace_bytes
        return model + moving + self.reserve_bytes


def memory_of_stages(facts: Facts, partition: Partition, traffic: Traffic) -> list[StageMemory]:
    """Add up the memory of every stage."""
    num_stages = max(partition) + 1
    orders = rank_orders(facts.schedule, num_stages, facts.microbatches)
    return [
        _memory(facts, stage, {layer for layer, at in enumerate(partition) if at == stage}, orders[stage], traffic)
        for stage in range(num_stages)
    ]


def _memory(facts: Facts, stage: int, layers: set[int], order: list[tuple[str, int]], traffic: Traffic) -> StageMemory:
    """Add up one stage: its own weights and each shared thing once."""

    def held(things: list[Held]) -> list[int]:
        return [thing.bytes for thing in things if thing.layers & layers]

    weights = [facts.weight_bytes[layer] for layer in layers] + held(facts.weights)
    saved = sum(facts.activation_bytes[layer] for layer in layers) + sum(held(facts.shared))
    in_flight = most_in_flight(order)
    received = 0
    if facts.routing != "host":
        received += sum(sum(sizes) for (_, high), sizes in traffic.forward.items() if high == stage)
        received += sum(sum(sizes) for (low, _), sizes in traffic.backward.items() if low == stage)
    return StageMemory(
        weights_bytes=sum(weights),
        gradients_bytes=sum(round(size * facts.gradient_factor) for size in weights),
        optimizer_bytes=sum(round(size * facts.state_factor) for size in weights),
        buffers_bytes=sum(held(facts.buffers)),
        activations_bytes=in_flight * saved,
        in_flight=in_flight,
        communication_bytes=received,
        workspace_bytes=max(facts.workspace_bytes[layer] for layer in layers),
        reserve_bytes=facts.reserve_bytes,
    )
