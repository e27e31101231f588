"""What the writers of all frameworks look at: stages, ranks, recompute, and which device runs what."""

from collections.abc import Collection, Sequence

from partita.models.answer import Candidate
from partita.models.errors import InvalidInput
from partita.models.module_names import without_loss
from partita.models.naming import listing, quoted
from partita.models.problem import Problem

TORCH = "export torch writes any plan, with orders and groups of ranks"
"""What can be done with a plan that another format cannot express."""


FULL = "full"
"""The option of recompute in which a layer keeps its inputs alone."""


def stage_layers(problem: Problem, candidate: Candidate) -> tuple[tuple[str, ...], ...]:
    """Give the layers of every stage, in the order of the model."""
    place = problem.model.layer_index()
    return tuple(tuple(sorted(stage.layers, key=place.__getitem__)) for stage in candidate.stages)


def check_schedule(candidate: Candidate, program: str, known: Collection[str]) -> None:
    """Refuse a schedule that a framework does not have.

    Raises
    ------
    InvalidInput
        With the schedules that it has.
    """
    kind = candidate.schedule.kind
    if kind not in known:
        detail = f"{program} does not run {kind}; plan for {' or '.join(sorted(known))}, or use another export: {TORCH}"
        raise InvalidInput.at("/plan/schedule", detail, kind, "not_expressible")


def num_ranks(candidate: Candidate) -> int:
    """Count the ranks of a pipeline."""
    return len({stage.rank for stage in candidate.stages})


def recompute_options(problem: Problem, candidate: Candidate) -> list[dict[str, str]]:
    """Give for every stage the layers that are recomputed, with the option of each."""
    named = problem.constraints.recompute
    return [{name: stage.options.get(name, named) for name in stage.recompute} for stage in candidate.stages]


def recomputes(problem: Problem, candidate: Candidate, program: str, layers: Collection[str]) -> bool:
    """Tell whether all of these layers are recomputed in full and no others; False where none is at all.

    Parameters
    ----------
    problem, candidate, program
        The problem and its plan, and the name of the framework.
    layers
        Those that the framework recomputes where it recomputes any.

    Raises
    ------
    InvalidInput
        When some of them are recomputed, or others, or by another option.
    """
    options = recompute_options(problem, candidate)
    done = {name: option for each in options for name, option in each.items()}
    if not done:
        return False
    for index, stage in enumerate(candidate.stages):
        other = next((name for name in options[index] if done[name] != FULL), None)
        if other is not None:
            detail = (
                f"{quoted(other)} is recomputed by the option {quoted(done[other])}, which {program} cannot be told; "
                f"plan with constraints.recompute 'none' or '{FULL}', or use another export: {TORCH}"
            )
            raise InvalidInput.at(f"/plan/stages/{index}/recompute", detail, None, "not_expressible")
        odd = [name for name in stage.layers if (name in done) != (name in layers)]
        if odd:
            which = "is" if odd[0] in done else "is not"
            detail = (
                f"{program} recomputes all of its layers ({listing(list(layers), limit=2)}) or none, but "
                f"{quoted(odd[0])} {which} recomputed; plan with constraints.recompute 'none', or an option that these "
                "layers alone have"
            )
            raise InvalidInput.at(f"/plan/stages/{index}/recompute", detail, None, "not_expressible")
    return True


def launch_order(candidate: Candidate, *, replicas_inside: bool) -> list[str] | None:
    """Give the devices in the order of the global ranks of a framework that numbers them stage by stage.

    Launchers number the ranks of a node in a row, so that other orders are impossible.

    Parameters
    ----------
    candidate
        The plan.
    replicas_inside
        Whether the replicas of a stage have consecutive ranks; otherwise those of one pipeline do.

    Returns
    -------
    list of str or None
        The devices; None where the ranks of some node would not be in a row.
    """
    of_rank = {stage.rank: stage.devices for stage in candidate.stages}
    width = candidate.tensor_parallel
    parts = 1 if replicas_inside else candidate.data_parallel
    size = candidate.data_parallel * width // parts
    order = [
        device
        for part in range(parts)
        for rank in sorted(of_rank)
        for device in of_rank[rank][part * size : (part + 1) * size]
    ]
    nodes = [device.rpartition(":")[0] for device in order]
    runs = sum(before != after for before, after in zip(["", *nodes], nodes, strict=False))
    return order if runs == len(set(nodes)) else None


def placement_note(problem: Problem, candidate: Candidate, order: Sequence[str] | None, program: str) -> str:
    """Say as a comment which device runs which global rank, where it is not the obvious one.

    Raises
    ------
    InvalidInput
        Where there is no order.
    """
    if order is None:
        detail = f"{program} numbers the ranks of a node in a row, stage by stage; here a node runs others; {TORCH}"
        raise InvalidInput.at("/plan/stages", detail, None, "not_expressible")
    if list(order) == cluster_devices(problem)[: len(order)]:
        return ""
    return f"# devices by global rank: {', '.join(order)}\n"


def duties_note(problem: Problem, candidate: Candidate) -> str:
    """Say as comments what frameworks leave to the modules of the user.

    That is to pass on several tensors at a boundary, but for those that the loss alone reads, and to add up the
    gradients of tied weights.
    """
    stage_of = {name: stage.index for stage in candidate.stages for name in stage.layers}
    modules = set(without_loss(list(problem.model.layer_index())))
    readers = {tensor.name: modules.intersection(tensor.consumers) for tensor in problem.model.tensors or ()}
    lines = []
    for boundary in candidate.boundaries:
        crossing = dict.fromkeys(tensor.name for tensor in boundary.tensors)  # once, with a gradient or without
        names = [
            name for name in crossing if any(stage_of[layer] > boundary.from_stage for layer in readers.get(name, ()))
        ]
        if len(names) > 1:
            where = f"from stage {boundary.from_stage} to {boundary.to_stage}"
            lines.append(f"# {where} the modules have to pass on {len(names)} tensors: {listing(names)}\n")
    for weight in candidate.tied_weights:
        where = f"stages {', '.join(map(str, weight.stages))}"
        lines.append(f"# {quoted(weight.name)} is on {where}: its gradients have to be added up over them\n")
    return "".join(lines)


def cluster_devices(problem: Problem) -> list[str]:
    """Give all devices by name, in the order of the cluster."""
    return [f"{node.name}:{number}" for node in problem.cluster.expanded_nodes() for number in range(node.count)]


def check_read_back(stages: Sequence[Sequence[str]], found: Sequence[Sequence[str]], program: str, text: str) -> None:
    """Refuse a text that would be read as another plan.

    Parameters
    ----------
    stages, found
        The layers of every stage as planned, and as read from the text.
    program, text
        The name of the framework, and the text, for the message.

    Raises
    ------
    InvalidInput
        With the first stage that differs.
    """
    for index, layers in enumerate(stages):
        if index >= len(found) or set(found[index]) != set(layers):
            there = listing(found[index], limit=3) if index < len(found) else "nothing"
            detail = f"{program} would put {there} on stage {index}, the plan {listing(layers, limit=3)}; {TORCH}"
            raise InvalidInput.at(f"/plan/stages/{index}/layers", detail, text[:60], "not_expressible")
    if len(found) != len(stages):
        detail = f"{program} would make {len(found)} stages of it, the plan has {len(stages)}; {TORCH}"
        raise InvalidInput.at("/plan/stages", detail, text[:60], "not_expressible")
