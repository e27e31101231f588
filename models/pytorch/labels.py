"""Which module every operation belongs to when modules become layers."""

from collections.abc import Mapping

from partita.models.pytorch.records import CapturedGraph, Operation


def block_labels(graph: CapturedGraph, names: tuple[str, ...]) -> dict[str, str]:
    """Give for operations the repeated block they belong to, or the largest module beside the blocks.

    A block is a module with a number for a name that has a sibling of its own class, as in a ``ModuleList``; of blocks
    within blocks the outermost counts. Operations between modules have no label.
    """
    blocks = _blocks(graph)
    if not blocks:
        return _deep_enough(graph, names)
    above = {path for block in blocks for path in _ancestors(block)}
    return _labels(graph, {name: _first(graph.operations[name], blocks, above) for name in names})


def depth_labels(graph: CapturedGraph, names: tuple[str, ...], depth: int) -> dict[str, str]:
    """Give for operations the module that they belong to, its path cut after ``depth`` names."""
    return _labels(graph, {name: _at_depth(graph.operations[name], depth) for name in names})


def _deep_enough(graph: CapturedGraph, names: tuple[str, ...]) -> dict[str, str]:
    """Give labels at the smallest depth at which there are at least two modules; at the deepest, if there is none."""
    deepest = max((len(_steps(call.path)) for each in graph.operations.values() for call in each.calls), default=1)
    labels: dict[str, str] = {}
    for depth in range(1, deepest + 1):
        labels = depth_labels(graph, names, depth)
        if len(set(labels.values())) > 1:
            break
    return labels


def _blocks(graph: CapturedGraph) -> frozenset[str]:
    """Give the paths of the repeated blocks that are not inside others."""
    kinds: dict[str, str] = {call.path: call.kind for each in graph.operations.values() for call in each.calls}
    series: dict[tuple[str, str], list[str]] = {}
    for path, kind in kinds.items():
        parent, _, last = path.rpartition(".")
        if last.isdigit():
            series.setdefault((parent, kind), []).append(path)
    found = {path for paths in series.values() if len(paths) > 1 for path in paths}
    return frozenset(path for path in found if not found & set(_ancestors(path)))


def _first(operation: Operation, blocks: frozenset[str], above: set[str]) -> str | None:
    """Give the outermost call around an operation that is a block or beside all blocks."""
    for call in operation.calls:
        if call.path in blocks or call.path not in above:
            return call.name
    return None


def _at_depth(operation: Operation, depth: int) -> str | None:
    """Give the module around an operation whose path has at most ``depth`` names, or the path cut there."""
    if not operation.calls:
        return None
    fitting = [call for call in operation.calls if len(_steps(call.path)) <= depth]
    deepest = operation.calls[-1]
    if len(_steps(deepest.path)) <= depth:
        return deepest.name
    cut = ".".join(_steps(deepest.path)[:depth])
    return fitting[-1].name if fitting and fitting[-1].path == cut else cut


def _labels(graph: CapturedGraph, found: Mapping[str, str | None]) -> dict[str, str]:
    """Leave out labels of modules that have labeled ones inside, and of the loss."""
    inner = {path for label in found.values() if label for path in _ancestors(label.partition("@")[0])}
    kept = {name: label for name, label in found.items() if label and label.partition("@")[0] not in inner}
    return {name: label for name, label in kept.items() if not graph.operations[name].in_loss}


def _steps(path: str) -> list[str]:
    return path.split(".")


def _ancestors(path: str) -> list[str]:
    """Give the paths of the modules around a module, the root not among them."""
    steps = _steps(path)
    return [".".join(steps[:length]) for length in range(1, len(steps))]
