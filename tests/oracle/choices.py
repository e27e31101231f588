"""The configurations of degrees and batches that a problem spans, each as a problem of its own, and all their plans.

Where replicas are spread, the nodes of a set become one: all replicas are placed alike, so that one of them tells what
the others cost.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil
from typing import Any

import pytest

from oracle.comparison import EXACT, check_candidate, key_of, value_of
from oracle.search import Plan, every_plan, places_of, plan_key
from partita.models.answer import Answer, Candidate
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

Setting = tuple[str, int, int, int, int, int]
"""Schedule, tensor-parallel degree, replicas, replicas on a node, microbatches, samples of a microbatch."""


@dataclass(frozen=True)
class Case:
    """One configuration, and the problem that it leaves."""

    setting: Setting
    problem: Problem


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
            setting = schedule.kind, tensor, data, near, int(count), size
            yield Case(setting, problem.model_copy(update={"training": one, "cluster": cluster, "model": model}))


def merged(cluster: Cluster, width: int, span: int) -> Cluster | None:
    """Make one node of every ``span`` nodes that are alike, most room first; None where there is none."""
    linked = {end.partition(":")[0] for link in cluster.links for end in link.between}
    kinds: dict[Any, list[Any]] = {}
    for node in cluster.expanded_nodes():
        if node.count >= width and (span == 1 or node.name not in linked):
            kinds.setdefault((node.fabric, node.uplink) if span > 1 else node.name, []).append(node)
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
    for layer in model.layers if factor != 1 else ():
        options = []
        for option in layer.options:
            if option.microbatch_size is None:
                options.append(option.model_copy(update=costs(option)))
            elif option.microbatch_size == size:
                options.append(option)
        layers.append(layer.model_copy(update=costs(layer) | {"options": tuple(options)}))
    return model.model_copy(update={"layers": tuple(layers)}) if layers else model


def all_plans(problem: Problem) -> list[tuple[Case, Plan]]:
    """Give the plans of all configurations, best first."""
    found = [(case, plan) for case in cases(problem) for plan in every_plan(case.problem)]
    sign = -1 if problem.objective == "tokens_per_second" else 1
    return sorted(found, key=lambda each: sign * each[1].value)


def setting_of(candidate: Candidate) -> Setting:
    """Give the configuration that a candidate says it has."""
    return (
        candidate.schedule.kind,
        candidate.tensor_parallel,
        candidate.data_parallel,
        candidate.replicas_per_node,
        candidate.num_microbatches,
        candidate.microbatch_size,
    )


def check_choices(problem: Problem, answer: Answer) -> None:
    """Check an answer against all plans of all configurations: values, figures, devices and bound."""
    plans, by_setting = all_plans(problem), {case.setting: case.problem for case in cases(problem)}
    assert answer.status == ("optimal" if plans else "infeasible")
    assert len(answer.candidates) == min(problem.search.candidates, len(plans))
    known = {(case.setting, plan_key(places_of(case.problem), plan.partition, plan.placement)) for case, plan in plans}
    found = []
    for candidate, (_, plan) in zip(answer.candidates, plans, strict=False):
        check_spread(problem, candidate)
        alone, first = by_setting[setting_of(candidate)], on_first_nodes(candidate)
        check_candidate(alone, first)
        found.append((setting_of(candidate), key_of(alone, first)))
        assert value_of(alone, candidate) == pytest.approx(plan.value, rel=EXACT, abs=0)
    assert set(found) <= known
    assert len(set(found)) == len(found)
    if plans:
        assert answer.best_bound == pytest.approx(plans[0][1].value, rel=2 * EXACT, abs=0)


def on_first_nodes(candidate: Candidate) -> Candidate:
    """Give the plan with the devices on the first node of each stage alone."""
    number = candidate.tensor_parallel * candidate.replicas_per_node
    stages = tuple(stage.model_copy(update={"devices": stage.devices[:number]}) for stage in candidate.stages)
    return candidate.model_copy(update={"stages": stages})


def check_spread(problem: Problem, candidate: Candidate) -> None:
    """Check that every stage has as many devices on each of its nodes, that these are alike, and no device twice."""
    looks = {node.name: (node.fabric, node.uplink, node.device) for node in problem.cluster.expanded_nodes()}
    of_rank = {stage.rank: stage.devices for stage in candidate.stages}
    used = [device for devices in of_rank.values() for device in devices]
    assert len(set(used)) == len(used)
    sets = {}
    for devices in of_rank.values():
        nodes = [device.partition(":")[0] for device in devices]
        each = candidate.tensor_parallel * candidate.replicas_per_node
        assert len(devices) == candidate.tensor_parallel * candidate.data_parallel
        assert all(nodes.count(node) == each for node in nodes)
        assert len({looks[node] for node in nodes}) == 1
        for node in nodes:
            assert sets.setdefault(node, set(nodes)) == set(nodes)
