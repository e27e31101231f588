"""Which layers can be exchanged without changing anything but names."""

from collections.abc import Hashable

from partita.models.problem import Problem

Look = list[Hashable]
"""What tells a layer from others, but for its name."""


def equal_layers(problem: Problem) -> list[list[int]]:
    """Give the sets of layers that can be exchanged: of equal costs, tensors, storages and demands; each ascending.

    A thing that a layer has for itself is told by its bytes, one that it shares with others by which it is; so the
    layers of a set do not read from each other.
    """
    model = problem.model
    if model.tensors is None:  # in a chain every layer reads from another one
        return []
    looks: dict[str, Look] = {layer.name: [layer.model_dump_json(exclude={"name"})] for layer in model.layers}
    for number, tensor in enumerate(model.tensors):
        sizes = tensor.bytes, tensor.gradient_bytes, tensor.direction
        looks[tensor.producer].append(("writes", *sizes, tuple(sorted(tensor.consumers))))
        for name in tensor.consumers:
            looks[name].append(("reads", number))
    _note_storages(looks, problem)
    _note_demands(looks, problem)
    sets: dict[Hashable, list[int]] = {}
    for at, layer in enumerate(model.layers):
        first, *others = looks[layer.name]
        sets.setdefault((first, *sorted(others, key=repr)), []).append(at)
    return [each for each in sets.values() if len(each) > 1]


def _note_storages(looks: dict[str, Look], problem: Problem) -> None:
    """Note the weights, buffers and shared activations of every layer."""
    model = problem.model
    storages = [("weight", number, each.bytes, each.layers) for number, each in enumerate(model.weights)]
    storages += [
        (f"buffer {each.mutated}", number, each.bytes, each.layers) for number, each in enumerate(model.buffers)
    ]
    storages += [("shared", number, each.bytes, each.layers) for number, each in enumerate(model.shared_activations)]
    for kind, number, size, layers in storages:
        for name in layers:
            looks[name].append((kind, size) if len(layers) == 1 else (kind, size, number))


def _note_demands(looks: dict[str, Look], problem: Problem) -> None:
    """Note what is demanded of every layer."""
    asked = problem.constraints
    for name, stage in asked.pins.items():
        looks[name].append(("pin", stage))
    for field, groups in (("together", asked.together), ("apart", asked.apart)):
        for number, group in enumerate(groups):
            for name in group:
                looks[name].append((field, number))
    for name in asked.cut_after or ():
        looks[name].append(("cut", True))
