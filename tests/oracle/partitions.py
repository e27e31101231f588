"""Every way to give the layers to a number of stages."""

from collections.abc import Iterator

from oracle.facts import Facts, read_facts
from partita.models.problem import Problem

Partition = tuple[int, ...]
"""The stage of every layer, by the layer's position."""


def stage_counts(problem: Problem) -> list[int]:
    """Give the numbers of stages that are allowed, fill their ranks, and have a slot for each rank."""
    facts = read_facts(problem)
    degree = facts.tensor_parallel * facts.together
    slots = sum(node.count // degree for node in problem.cluster.expanded_nodes())
    asked = problem.training.num_stages
    if asked is None:
        asked = tuple(range(1, len(facts.names) + 1))
    counts = asked if isinstance(asked, tuple) else (asked,)
    return [
        count
        for count in sorted(counts)
        if count <= len(facts.names) and facts.runs(count) and facts.ranks_for(count) <= slots
    ]


def partitions(problem: Problem, num_stages: int) -> Iterator[Partition]:
    """Yield every allowed partition into exactly ``num_stages`` stages, none of them empty."""
    facts = read_facts(problem)
    for partition in _ordered(facts, num_stages):
        if set(partition) == set(range(num_stages)) and keeps_constraints(problem, facts, partition):
            yield partition


def _ordered(facts: Facts, num_stages: int) -> Iterator[Partition]:
    """Yield every partition in which no layer is before the producer of a forward tensor that it reads."""
    producers: list[list[int]] = [[] for _ in facts.names]
    for tensor in facts.tensors:
        if not tensor.backward:
            for consumer in tensor.consumers:
                producers[consumer].append(tensor.producer)

    def extend(begun: list[int]) -> Iterator[Partition]:
        layer = len(begun)
        if layer == len(facts.names):
            yield tuple(begun)
            return
        if num_stages - len(set(begun)) > len(facts.names) - layer:
            return  # more empty stages than layers left
        first = max((begun[producer] for producer in producers[layer]), default=0)
        for stage in range(first, num_stages):
            yield from extend([*begun, stage])

    return extend([])


def keeps_constraints(problem: Problem, facts: Facts, partition: Partition) -> bool:
    """Tell whether pins, together, apart, cut_after and mutated buffers are respected."""
    stage = dict(zip(facts.names, partition, strict=True))
    asked = problem.constraints
    if any(stage[name] != pinned for name, pinned in asked.pins.items()):
        return False
    if any(len({stage[name] for name in group}) > 1 for group in asked.together):
        return False
    if any(len({stage[name] for name in group}) < len(group) for group in asked.apart):
        return False
    if any(len({stage[name] for name in buffer.layers}) > 1 for buffer in problem.model.buffers if buffer.mutated):
        return False
    if asked.cut_after is None:
        return True
    return all(
        facts.names[tensor.producer] in asked.cut_after
        for tensor in facts.tensors
        if not tensor.backward
        and {partition[consumer] for consumer in tensor.consumers} != {partition[tensor.producer]}
    )
