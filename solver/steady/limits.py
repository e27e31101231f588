"""What a problem with degrees for each stage may ask for; all else is refused with what to write instead."""

from partita.models.objective import Limits
from partita.models.problem import Problem
from partita.solver.ways import CHOSEN

Refusal = tuple[str, str, str]
"""Pointer, what is not supported, remedy."""

NEEDS = "degrees chosen for each stage"
SINGLE = "with degrees chosen for each stage"


KEPT_LIMITS = ("bottleneck_time_s", "peak_memory_bytes")
"""The limits on metrics that plans with degrees for each stage keep."""


def refused_with_degrees(problem: Problem) -> list[Refusal]:
    """List what is not supported together with ``per_stage_degrees``."""
    training, cluster, constraints = problem.training, problem.cluster, problem.constraints
    found: list[Refusal] = []

    def refuse(pointer: str, what: str, remedy: str, refused: bool) -> None:
        if refused:
            found.append((pointer, f"{what} {SINGLE}", remedy))

    schedules = training.schedules
    one_f_one_b = len(schedules) == 1 and schedules[0].kind == "1f1b"
    refuse("/objective", "other objectives", "write 'bottleneck_time'", problem.objective != "bottleneck_time")
    refuse("/training/schedule", "other schedules", "write '1f1b'", not one_f_one_b)
    refuse("/training/num_stages", "a given number of stages", "leave it out", training.num_stages is not None)
    refuse("/training/routing", "routing by the host", "write 'direct' or 'relay'", training.routing == "host")
    refuse("/training/queueing", "queues", "leave it false", training.queueing)
    refuse("/training/num_microbatches", "several numbers", "give one", not isinstance(training.num_microbatches, int))
    refuse("/training/microbatch_size", "several sizes", "give one", not isinstance(training.microbatch_size, int))
    refuse("/training/global_batch_size", "a batch", "leave it out", training.global_batch_size is not None)
    refuse("/training/replicas_per_node", "a spread", "leave it out", training.replicas_per_node is not None)
    refuse("/training/gradient_overlap", "hidden all-reduces", "leave it out", training.gradient_overlap > 0)
    refuse("/training/shard_optimizer", "a divided optimizer", "leave it false", training.shard_optimizer)
    refuse("/scenarios", "several scenarios", "plan each one on its own", len(problem.scenarios) > 1)
    alone = len(cluster.expanded_nodes()) == 1
    refuse("/cluster/nodes", "several nodes", "give one node with all devices", not alone)
    refuse("/cluster/links", "explicit links", "leave them out; the fabric joins all devices", bool(cluster.links))
    for field in Limits.model_fields:
        limited = field not in KEPT_LIMITS and getattr(problem.limits, field) is not None
        refuse(f"/limits/{field}", "this limit", f"limit {' or '.join(KEPT_LIMITS)}", limited)
    refuse("/search/keep", "a plan to keep", "leave it out", problem.search.keep is not None)
    refuse("/constraints/pins", "pins", "write 'together' and 'cut_after' instead", bool(constraints.pins))
    refuse("/constraints/apart", "layers apart", "write 'cut_after' instead", bool(constraints.apart))
    return found + _refused_in_model(problem) + _refused_degrees(problem) + _refused_transfers(problem)


def _refused_in_model(problem: Problem) -> list[Refusal]:
    """List what layers may not hold together, and recompute options that change more than they may."""
    found: list[Refusal] = []
    model = problem.model
    for field in ("weights", "buffers"):
        shared = [number for number, held in enumerate(getattr(model, field)) if len(held.layers) > 1]
        if shared:
            what = f"{field} of several layers {SINGLE}"
            found.append((f"/model/{field}/{shared[0]}", what, "give them to one layer, or plan with given degrees"))
    if model.shared_activations:
        remedy = "count them in activation_bytes"
        found.append(("/model/shared_activations", f"shared activations {SINGLE}", remedy))
    chosen = problem.constraints.recompute in CHOSEN
    for number, layer in enumerate(model.layers):
        for position, option in enumerate(layer.options):
            fixed = ("weight_bytes", "workspace_bytes") if chosen and option.recompute is not None else ()
            for field in ("output_bytes", *fixed):
                if getattr(option, field) is not None:
                    pointer = f"/model/layers/{number}/options/{position}/{field}"
                    what = f"{field} that depend on what is chosen, {SINGLE}"
                    remedy = "list tensors" if field == "output_bytes" else "give them in options without recompute"
                    return [*found, (pointer, what, remedy)]
    return found


def _refused_degrees(problem: Problem) -> list[Refusal]:
    """List replicas that cannot share the microbatches evenly."""
    training = problem.training
    given = training.data_parallel
    microbatches = training.num_microbatches
    if not isinstance(microbatches, int):
        return []
    uneven = [d for d in (given if isinstance(given, tuple) else (given,)) if microbatches % d]
    if not uneven or training.gradient_exchange_after == "round":
        return []
    what = f"{uneven[0]} replicas that share {microbatches} microbatches unevenly"
    return [("/training/data_parallel", f"{what} {SINGLE}", "list divisors of num_microbatches")]


def _refused_transfers(problem: Problem) -> list[Refusal]:
    """List transfers whose price depends on more than the stage that pays it."""
    training, tensors = problem.training, problem.model.tensors or ()
    fabric = problem.cluster.nodes[0].fabric
    found: list[Refusal] = []
    if any(tensor.direction == "backward" for tensor in tensors):
        found.append(("/model/tensors", f"tensors of the backward pass {SINGLE}", "give them as gradient_bytes"))
    if any(tensor.resharding for tensor in tensors) and (training.routing, training.communication) != (
        "direct",
        "blocking",
    ):
        remedy = "write routing 'direct' and communication 'blocking'"
        found.append(("/model/tensors", f"resharding of relayed or overlapped tensors {SINGLE}", remedy))
    if training.routing != "direct":
        return found
    if training.communication == "overlapped":
        remedy = "write routing 'relay' or communication 'blocking'"
        found.append(("/training/routing", f"direct routing of overlapped transfers {SINGLE}", remedy))
    if any(len(tensor.consumers) > 1 for tensor in tensors):
        remedy = "give each consumer a tensor of its own, or write routing 'relay'"
        found.append(("/model/tensors", f"direct routing of tensors with several consumers {SINGLE}", remedy))
    if fabric is not None and fabric.latency_s > 0:
        remedy = "write routing 'relay' or a latency of 0"
        found.append(("/cluster/nodes/0/fabric/latency_s", f"latencies of direct transfers {SINGLE}", remedy))
    return found


def refused_without_degrees(problem: Problem) -> list[Refusal]:
    """List the fields that mean something only where degrees are chosen for each stage."""
    training, model = problem.training, problem.model
    remedy = "write per_stage_degrees true, or leave it out"
    found: list[Refusal] = []
    if training.gradient_exchange != "full_duplex":
        found.append(("/training/gradient_exchange", f"half_duplex without {NEEDS}", remedy))
    if training.gradient_exchange_after != "batch":
        found.append(("/training/gradient_exchange_after", f"exchange after every round without {NEEDS}", remedy))
    if training.runtime == "none":
        found.append(("/training/runtime", f"no receive buffers without {NEEDS}", remedy))
    if any(tensor.resharding for tensor in model.tensors or ()):
        found.append(("/model/tensors", f"resharding without {NEEDS}", remedy))
    for number, layer in enumerate(model.layers):
        if layer.buffer_bytes or any(option.buffer_bytes for option in layer.options):
            where = f"/model/layers/{number}"
            found.append((where, f"buffer_bytes without {NEEDS}", "name them in model.buffers"))
            break
    return found
