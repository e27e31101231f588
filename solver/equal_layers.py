"""Which layers can be exchanged without changing anything but names."""

from collections.abc import Hashable, Sequence

from partita.models.problem import Problem
from partita.models.tensor import Buffer, SharedActivation, Weight

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
        sizes = tensor.model_dump_json(exclude={"name", "producer", "consumers"})
        looks[tensor.producer].append(("writes", sizes, tuple(sorted(tensor.consumers))))
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
    kinds: dict[str, Sequence[Weight | Buffer | SharedActivation]] = {
        "weight": model.weights,
        "buffer": model.buffers,
        "activation": model.shared_activations,
    }
    for kind, storages in kinds.items():
        for number, storage in enumerate(storages):
            alone = storage.model_dump_json(exclude={"name", "layers"})
            own = (kind, alone) if len(storage.layers) == 1 else (kind, number)
            for name in storage.layers:
                looks[name].append(own)


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
