"""Which operations every stage can repeat for itself, and which must stay together.

A source depends on buffers and constants alone: a mask, position ids, a rotary table. It is repeated where it is read
and never sent. Operations that touch memory which is written in place stay on one stage, up to the last write; of a
buffer or an input, which no boundary carries, all of them do.
"""

from partita.models.pytorch.records import CapturedGraph, Operation


def sources(graph: CapturedGraph) -> frozenset[str]:
    """Give the operations that are repeated in every stage that reads them.

    They depend on nothing but buffers and constants, draw no random numbers, need no gradient, and no other operation
    writes to what they make.
    """
    spoiled: set[int] = set()  # storages written by operations that are no sources
    while True:
        found: set[str] = set()
        for operation in graph.operations.values():
            if (
                not (operation.random or operation.requires_grad or operation.parameters)
                and all(name in found for name in operation.inputs)
                and not operation.written & graph.held_storages
                and not operation.touched & spoiled
            ):
                found.add(operation.name)
        others = {number for each in graph.operations.values() if each.name not in found for number in each.written}
        if others <= spoiled:
            return frozenset(found)
        spoiled |= others


def bound_together(graph: CapturedGraph) -> list[list[Operation]]:
    """Give the groups of operations that one stage must run: those around every storage that is written in place."""
    given = {graph.values[name].storage for name in graph.inputs}
    last: dict[int, int] = {}
    for operation in graph.operations.values():
        for number in operation.written:
            last[number] = operation.position
    always = graph.held_storages | given
    return [
        [
            operation
            for operation in graph.operations.values()
            if number in operation.touched and (number in always or operation.position <= until)
        ]
        for number, until in sorted(last.items())
    ]


def needed_sources(graph: CapturedGraph, repeated: frozenset[str], operations: tuple[str, ...]) -> tuple[str, ...]:
    """Give the sources that operations read, directly or through others, in the order of the graph."""
    waiting = [name for each in operations for name in graph.operations[each].inputs if name in repeated]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [each for each in graph.operations[name].inputs if each in repeated]
            waiting += _writers(graph, repeated, name)
    return tuple(name for name in graph.operations if name in found)


def _writers(graph: CapturedGraph, repeated: frozenset[str], name: str) -> list[str]:
    """Give the sources that write to what a source makes: they run with it, whether or not they are read."""
    touched = graph.operations[name].touched
    return [each for each in repeated if graph.operations[each].written & touched]
