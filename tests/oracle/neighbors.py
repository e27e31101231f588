"""Every plan that is one move away from another: moved layers, exchanged ranks, a rank on a free device."""

from collections.abc import Iterator
from itertools import combinations

from oracle.facts import read_facts
from oracle.partitions import Partition
from oracle.placements import Placement
from partita.models.problem import Problem


def one_step(partition: Partition, other: Partition) -> bool:
    """Tell whether two partitions differ in layers that all change from one stage to one next to it."""
    changes = {(here, there) for here, there in zip(partition, other, strict=True) if here != there}
    return len(changes) == 1 and all(abs(here - there) == 1 for here, there in changes)


def smallest_steps(problem: Problem, partition: Partition) -> Iterator[Partition]:
    """Give the partitions in which one layer changes to a neighboring stage, with those that must go along.

    What must go along is found by adding, again and again, every layer that keeps a tensor from going backward.
    """
    facts = read_facts(problem)
    ways = [
        (tensor.producer, consumer) for tensor in facts.tensors if not tensor.backward for consumer in tensor.consumers
    ]
    for layer, stage in enumerate(partition):
        for step in (-1, 1):
            moved = list(partition)
            moved[layer] = stage + step
            for _ in partition:
                for producer, consumer in ways:
                    if moved[producer] > moved[consumer]:
                        moved[consumer if step > 0 else producer] = stage + step
            yield tuple(moved)


def other_placements(problem: Problem, placement: Placement) -> Iterator[Placement]:
    """Give the placements in which two ranks have exchanged their devices, or one has changed to free ones."""
    for first, second in combinations(range(len(placement)), 2):
        exchanged = list(placement)
        exchanged[first], exchanged[second] = placement[second], placement[first]
        yield tuple(exchanged)
    for rank in range(len(placement)):
        for slot in slots_of(problem):
            if slot not in placement:
                yield (*placement[:rank], slot, *placement[rank + 1 :])


def slots_of(problem: Problem) -> list[str]:
    """Give the first devices of all slots."""
    facts = read_facts(problem)
    degree = facts.tensor_parallel * facts.data_parallel
    nodes = problem.cluster.expanded_nodes()
    return [f"{node.name}:{slot * degree}" for node in nodes for slot in range(node.count // degree)]
