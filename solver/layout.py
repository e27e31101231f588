"""A plan that is given by names, as the arrays that are priced: stages, locations and the instance they belong to."""

from dataclasses import dataclass, replace

import numpy as np

from partita.models.answer import Candidate
from partita.models.document import validate
from partita.models.errors import Fault, InvalidInput, short_value
from partita.models.naming import listing, quoted
from partita.models.plan import GivenPlan
from partita.models.problem import Problem
from partita.models.schedule_rules import microbatches_fault, stages_fault
from partita.models.training import single
from partita.solver.arrays import IntArray
from partita.solver.costs import LayerPlan
from partita.solver.effort import unaffordable
from partita.solver.figures import make_figures
from partita.solver.instance import Instance, build_instance
from partita.solver.pipeline import Pipeline, arrange
from partita.solver.recompute import best_plan
from partita.solver.topology import Topology, similar

MOST_FINDINGS = 20
"""Findings of one kind that are listed."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A given plan under one schedule.

    Attributes
    ----------
    instance
        The problem with that schedule.
    plan
        The plan, layer by layer; where it says nothing of recompute, with the options that suit it best.
    devices
        The devices of every rank; None where the plan names none.
    """

    instance: Instance
    plan: LayerPlan
    devices: list[tuple[str, ...]] | None


def given_by(candidate: Candidate, members: tuple[str, ...]) -> GivenPlan:
    """Give some members of a candidate's stages as a plan; a candidate from a file may hold what no plan does.

    Raises
    ------
    InvalidInput
        With pointers from ``/plan`` on.
    """
    stages = [{member: getattr(stage, member) for member in members} for stage in candidate.stages]
    try:
        return validate(GivenPlan, {"stages": stages})
    except InvalidInput as error:
        raise InvalidInput(replace(fault, pointer=f"/plan{fault.pointer}") for fault in error.faults) from None


def lay_out(problem: Problem, given: GivenPlan) -> Layout:
    """Find the places of a given plan; without devices its stages are placed in order.

    Parameters
    ----------
    problem, given
        A supported problem in one configuration of training, and a plan for it.

    Raises
    ------
    InvalidInput
        When the plan names what does not exist, leaves out a layer, puts a layer before one that it reads, or cannot
        run under the schedule: pointers start at ``/plan``. When there are too many microbatches to simulate.
    """
    stage = _stages(problem, given)
    num_stages = int(stage.max()) + 1
    ranks = pipeline_of(problem, num_stages).rank_of
    devices = _devices(problem, given, ranks)
    only = None if devices is None else sorted({nodes_of(each) for each in devices})
    instance = build_instance(problem, only, num_stages)
    _refuse_wrong_order(instance, stage)
    too_much = unaffordable(instance, num_stages, problem.search.time_limit_s)
    if too_much is not None:
        value = short_value(instance.microbatches)
        raise InvalidInput.at("/training/num_microbatches", too_much, value, "too_large")
    location = locations_of(instance.topology, int(ranks.max()) + 1, devices)
    plan = best_plan(instance, make_figures(instance), stage, location)
    option = _options(instance, given)
    return Layout(instance, plan if option is None else replace(plan, option=option), devices)


def _options(instance: Instance, given: GivenPlan) -> IntArray | None:
    """Give the options of recompute that a plan names, by layer, shape (L,); None where it names none."""
    stages, ways = given.stages or (), instance.ways
    if not any(stage.options for stage in stages):
        return None
    index = instance.problem.model.layer_index()
    option = np.zeros(len(index), dtype=np.int64)
    known = {name: number for number, name in enumerate(ways.options) if name is not None}
    faults = []
    for number, stage in enumerate(stages):
        for layer, name in stage.options.items():
            place = f"/plan/stages/{number}/options"
            if layer not in stage.layers:
                detail = f"the stage has no layer {quoted(layer)}; name one of its layers"
                faults.append(Fault(place, detail, short_value(layer), "unknown_name"))
            elif name not in known or not ways.available[known[name], index[layer]]:
                detail = f"{quoted(layer)} has no option {quoted(name)} to choose{listing(known, '; there are ')}"
                faults.append(Fault(place, detail, short_value(name), "unknown_name"))
            else:
                option[index[layer]] = known[name]
    if faults:
        raise InvalidInput(faults[:MOST_FINDINGS])
    return option


def pipeline_of(problem: Problem, num_stages: int) -> Pipeline:
    """Arrange the stages of a plan on ranks.

    Parameters
    ----------
    problem, num_stages
        A problem in one configuration of training, and how many stages the plan has.

    Raises
    ------
    InvalidInput
        At ``/plan``, when the schedule cannot run so many stages.
    """
    training = problem.training
    schedule = training.schedules[0]
    microbatches, stages = training.microbatches, schedule.stages
    fault = stages_fault(schedule.kind, schedule.chunks, num_stages, microbatches, problem.most_stages())
    if stages is not None and num_stages != stages:
        fault = f"the orders run {stages} stages, the plan has {num_stages}"
    fault = fault or microbatches_fault(schedule.kind, num_stages // schedule.chunks, microbatches)
    if fault is not None:
        raise InvalidInput.at("/plan", fault, None, "stages")
    return arrange(schedule, num_stages, microbatches)


def _stages(problem: Problem, given: GivenPlan) -> IntArray:
    index = problem.model.layer_index()
    stage = np.zeros(len(index), dtype=np.int64)
    for number, layers in enumerate(given.stage_layers(list(index), "/plan")):
        stage[[index[name] for name in layers]] = number
    return stage


def _devices(problem: Problem, given: GivenPlan, ranks: IntArray) -> list[tuple[str, ...]] | None:
    """Give the devices of every rank, checked; None when no stage names any."""
    stages = given.stages or ()
    if not any(stage.devices for stage in stages):
        return None
    counts = {node.name: node.count for node in problem.cluster.expanded_nodes()}
    tensor, replicas = single(problem.training.tensor_parallel), single(problem.training.data_parallel)
    near = problem.training.replicas_together
    width, span = tensor * near, replicas // near
    owner: dict[str, tuple[str, ...]] = {}
    faults: list[Fault] = []
    taken: dict[str, int] = {}
    of_rank: dict[int, tuple[str, ...]] = {}
    for number, (stage, rank) in enumerate(zip(stages, ranks.tolist(), strict=True)):
        place = f"/plan/stages/{number}/devices"
        nodes = nodes_of(stage.devices)
        even = all(sum(name.partition(":")[0] == node for name in stage.devices) == width for node in nodes)
        if len(nodes) != span or not even:
            detail = f"a stage runs on {width} device{'s' if width > 1 else ''} of {_number_of_nodes(span)}"
            faults.append(Fault(place, detail, short_value(list(stage.devices)), "devices"))
        elif span > 1 and not similar(problem.cluster, nodes):
            detail = "the nodes of a stage have equal devices, fabrics and uplinks, and no links of their own"
            faults.append(Fault(place, detail, short_value(list(stage.devices)), "devices"))
        elif any(owner.setdefault(node, nodes) != nodes for node in nodes):
            detail = "stages that share a node share all their nodes, in the same order of replicas"
            faults.append(Fault(place, detail, short_value(list(stage.devices)), "devices"))
        for position, name in enumerate(stage.devices):
            node, _, device = name.partition(":")
            known = node in counts and device.isascii() and device.isdigit() and str(int(device)) == device
            if not known or int(device) >= counts[node]:
                faults.append(
                    Fault(f"{place}/{position}", "there is no such device", short_value(name), "unknown_name")
                )
            elif ranks[taken.setdefault(name, number)] != rank:
                detail = f"the device already runs stage {taken[name]}"
                faults.append(Fault(f"{place}/{position}", detail, short_value(name), "repeated"))
        if of_rank.setdefault(rank, stage.devices) != stage.devices:
            detail = f"stages of one rank share its devices; another stage of rank {rank} is on {of_rank[rank][:1]}"
            faults.append(Fault(place, detail, short_value(list(stage.devices)), "devices"))
    if faults:
        raise InvalidInput(faults[:MOST_FINDINGS])
    return [of_rank[rank] for rank in range(len(of_rank))]


def nodes_of(devices: tuple[str, ...]) -> tuple[str, ...]:
    """Give the nodes of some devices, each once, in order."""
    return tuple(dict.fromkeys(name.partition(":")[0] for name in devices))


def _number_of_nodes(span: int) -> str:
    return "one node" if span == 1 else f"each of {span} nodes"


def _refuse_wrong_order(instance: Instance, stage: IntArray) -> None:
    """Refuse a plan that puts a layer on an earlier stage than one that it reads."""
    names = [layer.name for layer in instance.problem.model.layers]
    edges = instance.edges
    for producer, consumers, ordered in zip(edges.producer, edges.consumers, edges.ordered, strict=True):
        early = consumers[stage[consumers] < stage[producer]]
        if ordered and len(early):
            detail = (
                f"{names[early[0]]!r} on stage {stage[early[0]]} reads from {names[producer]!r} on stage "
                f"{stage[producer]}; a layer cannot come before what it reads"
            )
            raise InvalidInput.at("/plan", detail, None, "order")


def locations_of(topology: Topology, num_ranks: int, devices: list[tuple[str, ...]] | None) -> IntArray:
    """Give the location of every rank, shape (R,), in a topology that has the nodes of its devices.

    Raises
    ------
    InvalidInput
        At ``/plan``, when no devices are given and there is no room for so many ranks.
    """
    if devices is None:
        location = topology.in_order(num_ranks)
        if location is None:
            detail = f"the plan runs on {num_ranks} ranks, but the devices allow {topology.num_slots}"
            raise InvalidInput.at("/plan", detail, None, "too_many_stages")
        return location
    of_device: dict[str, int] = {}
    of_node: dict[str, int] = {}
    for index, location_ in enumerate(topology.locations):
        of_node.setdefault(location_.node, index)
        for slot in location_.slots:
            of_device.update(dict.fromkeys(slot, index))
    return np.array([of_device.get(each[0], of_node[each[0].partition(":")[0]]) for each in devices], dtype=np.int64)
