"""What the figures of an answer rest on, and what looks like a mistake."""

from collections.abc import Sequence

from partita.models.problem import Problem
from partita.models.quantities import as_choices
from partita.models.schedule import Schedule
from partita.models.training import single
from partita.solver.instance import Instance
from partita.solver.ways import CHOSEN


def assumptions(instance: Instance, compared: Sequence[Schedule]) -> list[str]:
    """List what is taken to hold, as far as it matters for this problem.

    Parameters
    ----------
    instance
        The problem with the schedule of the best plan.
    compared
        All schedules of the problem, that one included.
    """
    training = instance.problem.training
    found = [*_of_transfers(instance, compared), *_of_split_passes(instance, compared)]
    if any(schedule.kind == "dualpipe_v" for schedule in compared):
        found.append("where dualpipe_v overlaps a forward and a backward pass, they run one after the other here")
    if not instance.trains:
        found.append("without a backward pass no activations are kept")
    elif training.optimizer is None or isinstance(training.optimizer, str):
        factors = instance.factors
        found.append(
            f"optimizer {training.optimizer or 'adam_mixed'}: {factors.gradient_bytes_per_weight_byte:g} bytes of "
            f"gradient and {factors.state_bytes_per_weight_byte:g} of state for every byte of weights"
        )
    if training.queueing:
        found.append(
            "transfers that share an uplink or an explicit link in one direction go one at a time, first come, first "
            "served, in queued_iteration_time_s only: plans are chosen and proven by iteration_time_s, without such "
            "queues; queueing_gap is the difference, as a share of the queued time"
        )
    found += _of_scenarios(instance)
    found += _of_places(instance)
    tensor = single(training.tensor_parallel)
    if tensor > 1:
        layers = instance.problem.model.layers
        count = sum(all(option.tensor_parallel != tensor for option in layer.options) for layer in layers)
        if count:
            found.append(
                f"the figures of {count} layers without an option for tensor_parallel {tensor} are those of one device "
                "of the group"
            )
    if all(case.problem.training.sequence_length == 1 for case in instance.cases):
        found.append("sequence_length is 1: tokens_per_second counts samples")
    if instance.replicas > 1:
        found.append(f"num_microbatches counts for each of the {instance.replicas} replicas")
    if instance.replicas > 1 and instance.trains:
        found.append(_of_reductions(instance))
    if instance.trains and any(len(layers) > 1 for layers in instance.weights.layers):
        found.append("tied weights are synchronized one after the other, after the pipeline")
    recompute = instance.problem.constraints.recompute
    if recompute in CHOSEN:
        each = "layer" if recompute == "choose" else "stage"
        names = ", ".join(name for name in instance.ways.options if name is not None)
        found.append(
            f"recompute is chosen for every {each}, the least time that fits into memory, from: {names or 'none'}"
        )
    elif recompute != "none":
        count = int(instance.layers.recomputed.sum())
        found.append(f"recompute {recompute}: {count} of {instance.num_layers} layers have such an option and use it")
    if any(buffer.mutated and len(buffer.layers) > 1 for buffer in instance.problem.model.buffers):
        found.append("layers that write to one buffer stay on one stage")
    return found


def _of_scenarios(instance: Instance) -> list[str]:
    """Say over what the figures are where there are several scenarios, and which of them cost what others cost."""
    if not instance.several:
        return []
    times = "those of the longest scenario" if instance.worst else "means over the scenarios, by their shares"
    found = [
        f"every iteration is of one of {len(instance.several)} scenarios: times are {times}; bytes are the largest of "
        "any; stages and boundaries are shown for the longest"
    ]
    if not instance.worst:
        found.append(
            "bottleneck_time_s is the busy time of a microbatch that is of each scenario by its share: microbatches of "
            "several scenarios may follow each other"
        )
    layers = instance.problem.model.layers
    for scenario in instance.problem.scenarios:
        if not any(option.scenario == scenario.name for layer in layers for option in layer.options):
            found.append(
                f"scenario {scenario.name!r}: no layer has an option for it; all cost what they cost elsewhere"
            )
    return found


def _of_places(instance: Instance) -> list[str]:
    """List what is taken to hold of the devices of a stage, and of microbatches whose size was not measured."""
    width, span, found = instance.width, instance.nodes_per_stage, []
    if width > 1 and span == 1:
        found.append(f"the {width} devices of a stage are on one node; what they send counts on one path")
    elif width > 1:
        found.append(
            f"the {width} devices of a stage are {width // span} each on {span} similar nodes; all replicas are placed "
            "alike, and what the devices of one send counts on one path"
        )
    return found


def _of_reductions(instance: Instance) -> str:
    """Say how the gradients of replicas are reduced."""
    overlap, span = instance.problem.training.gradient_overlap, instance.nodes_per_stage
    hidden = f"{overlap:.4g} of it hidden behind computing" if overlap else "without overlap"
    if span == 1:
        return f"the gradients of replicas are reduced after the pipeline, {hidden}"
    return (
        f"the gradients of replicas are reduced after the pipeline, inside nodes and then over the uplinks of {span} "
        f"nodes, {hidden}; every device has the whole bandwidth of its path: a lower bound"
    )


def of_batches(problem: Problem, instance: Instance) -> list[str]:
    """Say which costs for the microbatches of a plan were not measured; ``problem`` is as the user wrote it."""
    first, size = as_choices(problem.training.microbatch_size)[0], single(instance.problem.training.microbatch_size)
    if first == size:
        return []
    layers = problem.model.layers
    count = sum(all(option.microbatch_size != size for option in layer.options) for layer in layers)
    return [
        f"microbatches of {size} samples: {count} of {len(layers)} layers have no option for them, and their times and "
        f"bytes are {size / first:.4g} times those for {first}; tensors between layers likewise"
    ]


def _of_transfers(instance: Instance, compared: Sequence[Schedule]) -> list[str]:
    """List what is taken to hold of what passes between stages."""
    price = "a transfer takes latency + bytes / bandwidth of its path"
    host = instance.routing == "host"
    if instance.blocking:
        found = [
            f"{price}; nothing queues: a lower bound on the real transfer",
            "a transfer occupies both stages; the receiver may start it when the sender does",
        ]
    else:
        found = [
            f"{price}; those of one boundary and direction go one at a time, in order; nothing else queues: a lower "
            "bound on the real transfer",
            "a transfer delays the next stage and occupies neither device",
        ]
    if any(schedule.chunks > 1 for schedule in compared):
        through_host = host and instance.blocking
        found.append(
            "stages of one rank exchange their tensors through the host too"
            if through_host
            else "between stages of one rank nothing is sent"
        )
    if host:
        return found
    if instance.problem.training.runtime == "torch":
        found.append(
            "communication_bytes holds one receive buffer per direction for every microbatch, as "
            "torch.distributed.pipelining allocates them"
        )
    elif instance.trains:
        found.append("communication_bytes holds one receive buffer per direction, for one microbatch")
    return found


def _of_split_passes(instance: Instance, compared: Sequence[Schedule]) -> list[str]:
    """List what is taken to hold of backward passes that are split."""
    if not any(schedule.splits for schedule in compared):
        return []
    found = ["a split backward pass takes backward_s - weight_gradient_s for the input gradient, then the rest"]
    layers = instance.layers
    whole = int((layers.for_weight_gradient == layers.activation)[layers.activation > 0].sum())
    if whole:
        found.append(
            f"{whole} of {instance.num_layers} layers keep all activation_bytes until the weight gradient is done: no "
            "smaller weight_gradient_bytes are given"
        )
    if len(instance.shared.layers):
        found.append("shared activations are kept whole until the weight gradient is done")
    return found


def warnings(problem: Problem, instance: Instance) -> list[str]:
    """List what is valid but looks like a mistake."""
    found = problem.warnings()
    if not instance.trains and problem.training.optimizer not in (None, "none"):
        found.append("forward_only trains nothing, but gradients and optimizer state are counted as asked")
    splitting = [schedule.kind for schedule in problem.training.schedules if schedule.splits]
    if splitting and not instance.layers.weight_gradient.any():
        names = ", ".join(dict.fromkeys(splitting))
        found.append(
            f"{names} can postpone weight gradients, but no layer has any weight_gradient_s, so nothing is postponed; "
            "give weight_gradient_s, the part of backward_s that computes the gradients of the weights"
        )
    return found
