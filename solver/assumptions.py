"""What the figures of an answer rest on, and what looks like a mistake."""

from partita.models.problem import Problem
from partita.solver.instance import Instance, one


def assumptions(instance: Instance) -> list[str]:
    """List what is taken to hold, as far as it matters for this problem."""
    training = instance.problem.training
    found = [
        "a transfer takes latency + bytes / bandwidth of its path; nothing queues: a lower bound on the real transfer",
    ]
    if instance.blocking:
        found.append("a transfer occupies both stages; the receiver may start it when the sender does")
    else:
        found.append("a transfer delays the next stage and occupies neither device")
    if instance.trains and instance.routing != "host":
        found.append("communication_bytes holds one receive buffer per direction, for one microbatch")
    if not instance.trains:
        found.append("without a backward pass no activations are kept")
    elif training.optimizer is None or isinstance(training.optimizer, str):
        factors = instance.factors
        found.append(
            f"optimizer {training.optimizer or 'adam_mixed'}: {factors.gradient_bytes_per_weight_byte:g} bytes of "
            f"gradient and {factors.state_bytes_per_weight_byte:g} of state for every byte of weights"
        )
    width = one(training.tensor_parallel) * one(training.data_parallel)
    if width > 1:
        found.append(f"the {width} devices of a stage are on one node; what they send counts on one path")
    tensor = one(training.tensor_parallel)
    if tensor > 1:
        layers = instance.problem.model.layers
        count = sum(all(option.tensor_parallel != tensor for option in layer.options) for layer in layers)
        if count:
            found.append(
                f"the figures of {count} layers without an option for tensor_parallel {tensor} are those of one device "
                "of the group"
            )
    if training.sequence_length == 1:
        found.append("sequence_length is 1: tokens_per_second counts samples")
    if instance.replicas > 1:
        found.append(f"num_microbatches counts for each of the {instance.replicas} replicas")
    if instance.replicas > 1 and instance.trains:
        found.append("the gradients of replicas are reduced after the pipeline, without overlap")
    if instance.trains and any(len(layers) > 1 for layers in instance.weights.layers):
        found.append("tied weights are synchronized one after the other, after the pipeline")
    recompute = instance.problem.constraints.recompute
    if recompute != "none":
        count = int(instance.layers.recomputed.sum())
        found.append(f"recompute {recompute}: {count} of {instance.num_layers} layers have such an option and use it")
    if any(buffer.mutated and len(buffer.layers) > 1 for buffer in instance.problem.model.buffers):
        found.append("layers that write to one buffer stay on one stage")
    return found


def warnings(problem: Problem, instance: Instance) -> list[str]:
    """List what is valid but looks like a mistake."""
    found = problem.warnings()
    if not instance.trains and problem.training.optimizer not in (None, "none"):
        found.append("forward_only trains nothing, but gradients and optimizer state are counted as asked")
    return found
