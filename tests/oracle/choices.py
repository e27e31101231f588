"""The configurations of degrees and batches that a problem spans, each as a problem of its own.

Where replicas are spread, the nodes of a set become one: all replicas are placed alike, so that one of them tells what
the others cost.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil
from typing import Any

from oracle.scenarios import apart
from partita.models.cluster import Cluster, Node
from partita.models.layer import Layer, LayerOption
from partita.models.problem import Problem
from partita.models.quantities import as_choices

GROWING = (
    "forward_s",
    "backward_s",
    "weight_gradient_s",
    "activation_bytes",
    "weight_gradient_bytes",
    "workspace_bytes",
    "output_bytes",
)
"""The costs that grow with the samples of a microbatch."""

Setting = tuple[str, int, int, int, int, int, int]
"""Schedule, its stages per rank, tensor-parallel degree, replicas, those on a node, microbatches, samples of each."""


@dataclass(frozen=True)
class Case:
    """One configuration, the problem that it leaves, and that of every scenario alone."""

    setting: Setting
    problem: Problem
    each: tuple[Problem, ...]

    @property
    def plain(self) -> Problem:
        """The problem of the first scenario alone, which has the stages and places of all of them."""
        return self.each[0]


def cases(problem: Problem) -> Iterator[Case]:
    """Give every configuration that keeps the batch, if one is given, and for which there are nodes."""
    training = problem.training
    counts: tuple[int | None, ...] = (None,)
    if training.num_microbatches is not None:
        counts = as_choices(training.num_microbatches)
    every = product(
        training.schedules,
        as_choices(training.tensor_parallel),
        as_choices(training.data_parallel),
        counts,
        as_choices(training.microbatch_size),
    )
    for schedule, tensor, data, asked, size in every:
        batch = training.global_batch_size
        count = Fraction(batch, data * size) if asked is None and batch is not None else Fraction(asked or 0)
        if count.denominator > 1 or batch not in (None, count * data * size):
            continue
        for near in (number for number in range(1, data + 1) if data % number == 0):
            cluster = merged(problem.cluster, tensor * near, data // near)
            if training.replicas_per_node is not None and near not in as_choices(training.replicas_per_node):
                continue
            if cluster is None:
                continue
            one = training.model_copy(
                update={
                    "schedule": schedule,
                    "tensor_parallel": tensor,
                    "data_parallel": data,
                    "replicas_per_node": near,
                    "num_microbatches": int(count),
                    "microbatch_size": size,
                }
            )
            model = grown(problem, size)
            setting = schedule.kind, schedule.chunks, tensor, data, near, int(count), size
            own = problem.model_copy(update={"training": one, "cluster": cluster, "model": model})
            yield Case(setting, own, apart(own))


def merged(cluster: Cluster, width: int, span: int) -> Cluster | None:
    """Make one node of every ``span`` nodes that are alike, most room first; None where there is none."""
    linked = {end.partition(":")[0] for link in cluster.links for end in link.between}
    kinds: dict[Any, list[Any]] = {}
    for node in cluster.expanded_nodes():
        if node.count >= width and (span == 1 or node.name not in linked):
            kinds.setdefault((node.device, node.fabric, node.uplink) if span > 1 else node.name, []).append(node)
    nodes = []
    for alike in kinds.values():
        alike.sort(key=lambda node: node.count // width, reverse=True)
        for start in range(0, len(alike) - span + 1, span):
            first, last = alike[start], alike[start + span - 1]
            nodes.append(
                Node(name=first.name, device=first.device, count=last.count, fabric=first.fabric, uplink=first.uplink)
            )
    return cluster.model_copy(update={"nodes": tuple(nodes)}) if nodes else None


def grown(problem: Problem, size: int) -> Any:
    """Give the model with costs for microbatches of another size: those measured, else in proportion."""
    factor = Fraction(size, as_choices(problem.training.microbatch_size)[0])

    def costs(given: Layer | LayerOption) -> dict[str, Any]:
        own = {name: getattr(given, name) for name in GROWING if getattr(given, name) is not None}
        return {
            name: float(cost * factor) if name.endswith("_s") else ceil(cost * factor) for name, cost in own.items()
        }

    model, layers = problem.model, []
    if factor == 1:
        return model
    for layer in model.layers:
        options = []
        for option in layer.options:
            if option.microbatch_size is None:
                options.append(option.model_copy(update=costs(option)))
            elif option.microbatch_size == size:
                options.append(option)
        layers.append(layer.model_copy(update=costs(layer) | {"options": tuple(options)}))
    moved: dict[str, Any] = {"layers": tuple(layers)}
    for field in ("tensors", "shared_activations"):
        things = getattr(model, field)
        moved[field] = things and tuple(each.model_copy(update=sizes(each, factor)) for each in things)
    return model.model_copy(update=moved)


def sizes(thing: Any, factor: Fraction) -> dict[str, Any]:
    """Give the bytes of something that grows with the samples of a microbatch, and those in its options."""
    own = {name: getattr(thing, name, None) for name in ("bytes", "gradient_bytes")}
    grown: dict[str, Any] = {name: ceil(size * factor) for name, size in own.items() if size is not None}
    if getattr(thing, "options", ()):
        grown["options"] = tuple(each.model_copy(update=sizes(each, factor)) for each in thing.options)
    return grown
