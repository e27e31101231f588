"""What must hold between the parts of a problem."""

from collections.abc import Collection, Sequence

from partita.models.base import Faults
from partita.models.cluster import Cluster
from partita.models.naming import check_known, listing
from partita.models.profile import ModelProfile
from partita.models.quantities import as_choices
from partita.models.training import Training


def check_options(faults: Faults, model: ModelProfile, devices: Collection[str], scenarios: Collection[str]) -> None:
    """Refuse options of layers for kinds of device and scenarios that do not exist."""
    for index, layer in enumerate(model.layers):
        for position, option in enumerate(layer.options):
            place = ("model", "layers", index, "options", position)
            if option.device is not None:
                check_known(faults, (*place, "device"), "kind of device", option.device, devices)
            if option.scenario is not None:
                check_known(faults, (*place, "scenario"), "scenario", option.scenario, scenarios)


def check_shares(faults: Faults, shares: Sequence[float]) -> None:
    """Refuse shares of scenarios that do not add up to 1."""
    if shares and abs(sum(shares) - 1.0) > 1e-9:
        detail = f"the shares of the scenarios add up to {sum(shares):.10g}; they must add up to 1"
        faults.add(("scenarios",), detail, list(shares), "shares")


def available_ranks(cluster: Cluster, training: Training) -> int:
    """Give the most ranks that the cluster can hold, at the smallest degrees allowed."""
    return cluster.num_devices // (min(as_choices(training.tensor_parallel)) * min(as_choices(training.data_parallel)))


def most_stages(model: ModelProfile, cluster: Cluster, training: Training) -> int:
    """Give the largest number of stages that the layers can fill and the devices can hold."""
    return min(len(model.layers), available_ranks(cluster, training) * training.schedule.chunks)


def check_stages(faults: Faults, model: ModelProfile, cluster: Cluster, training: Training) -> None:
    """Refuse numbers of stages that cannot all get a layer and a device."""
    ranks = available_ranks(cluster, training)
    if ranks == 0:
        degrees = f"{min(as_choices(training.tensor_parallel))} x {min(as_choices(training.data_parallel))}"
        detail = f"tensor_parallel x data_parallel = {degrees} devices for a stage, but there are {cluster.num_devices}"
        faults.add(("training",), f"{detail}; choose smaller degrees", code="too_few_devices")
        return
    if training.schedule.orders is not None and len(training.schedule.orders) > ranks:
        detail = f"orders for {len(training.schedule.orders)} ranks, but the devices allow {ranks}"
        faults.add(("training", "schedule", "orders"), detail, training.schedule.orders, "too_few_devices")
    if training.num_stages is None:
        return
    most = most_stages(model, cluster, training)
    listed = isinstance(training.num_stages, tuple)
    for index, stages in enumerate(as_choices(training.num_stages)):
        if stages > most:
            place = ("training", "num_stages", index) if listed else ("training", "num_stages")
            faults.add(place, _why_too_many(stages, len(model.layers), ranks, training), stages, "too_many_stages")


def _why_too_many(stages: int, layers: int, ranks: int, training: Training) -> str:
    """Say what a number of stages lacks, and the nearest number that has it."""
    chunks = training.schedule.chunks
    most = min(layers, ranks * chunks)
    if stages > layers:
        reason = f"{stages} stages need a layer each, but there are {layers} layers"
    else:
        each = f" with {chunks} stages each" if chunks > 1 else ""
        reason = f"{stages} stages do not fit on the {ranks} ranks{each} that the devices allow"
    return f"{reason}; the nearest number that works is {most}"


def check_recompute(faults: Faults, model: ModelProfile, recompute: str, words: Collection[str]) -> None:
    """Refuse a kind of recompute that no layer has an option for."""
    if recompute in words:
        return
    known = {option.recompute: None for layer in model.layers for option in layer.options if option.recompute}
    if recompute not in known:
        others = listing(known, "options exist for ") or "no option names a recompute"
        detail = f"no layer has an option for this recompute; {others}; or write 'none', 'choose' or 'stage'"
        faults.add(("constraints", "recompute"), detail, recompute, "unknown_name")
