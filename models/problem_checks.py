"""What must hold between the parts of a problem."""

from collections.abc import Collection, Sequence

from partita.models.base import Faults
from partita.models.naming import check_known, listing
from partita.models.objective import Objective, metrics_of
from partita.models.profile import ModelProfile
from partita.models.schedule import Schedule
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


def check_sizes_of_scenarios(faults: Faults, model: ModelProfile, scenarios: Collection[str]) -> None:
    """Refuse sizes of tensors and shared activations for scenarios that do not exist, or twice for one."""
    tensors = [[option.scenario for option in each.options] for each in model.tensors or ()]
    storages = [[option.scenario for option in each.options] for each in model.shared_activations]
    places = [(("model", "tensors", index), names) for index, names in enumerate(tensors)]
    places += [(("model", "shared_activations", index), names) for index, names in enumerate(storages)]
    for place, names in places:
        for position, name in enumerate(names):
            here = (*place, "options", position, "scenario")
            check_known(faults, here, "scenario", name, scenarios)
            if name in names[:position]:
                faults.add(here, f"a second entry for scenario {name!r}; keep one", name, "repeated")


def check_shares(faults: Faults, shares: Sequence[float]) -> None:
    """Refuse shares of scenarios that do not add up to 1."""
    if shares and abs(sum(shares) - 1.0) > 1e-9:
        detail = f"the shares of the scenarios add up to {sum(shares):.10g}; they must add up to 1"
        faults.add(("scenarios",), detail, list(shares), "shares")


def check_recompute(faults: Faults, model: ModelProfile, recompute: str, words: Collection[str]) -> None:
    """Refuse a kind of recompute that no layer has an option for."""
    if recompute in words:
        return
    known = {option.recompute: None for layer in model.layers for option in layer.options if option.recompute}
    if recompute not in known:
        others = listing(known, "options exist for ") or "no option names a recompute"
        detail = f"no layer has an option for this recompute; {others}; or write 'none', 'choose' or 'stage'"
        faults.add(("constraints", "recompute"), detail, recompute, "unknown_name")


def check_whole_backward(faults: Faults, recompute: str, schedules: Sequence[Schedule]) -> None:
    """Refuse a choice of recompute where a schedule splits the backward pass: what is kept then has two ends."""
    splitting = [schedule.kind for schedule in schedules if schedule.splits]
    if recompute in ("choose", "stage") and splitting:
        detail = (
            f"recompute cannot be chosen where a schedule splits the backward pass ({listing(splitting)}); write "
            "'none' or name an option, or take a schedule such as 1f1b"
        )
        faults.add(("constraints", "recompute"), detail, recompute, "split_backward")


def check_batches(faults: Faults, training: Training, objective: Objective) -> None:
    """Refuse to compare iterations of different batches by anything but their throughput."""
    at_once = training.samples_at_once()
    if len(at_once) > 1 and "bottleneck_time" in metrics_of(objective):
        detail = (
            f"the choices of microbatch_size and data_parallel make microbatches of {at_once[0]} to {at_once[-1]} "
            "samples over all replicas, which cannot be compared by bottleneck_time; take iteration_time or "
            "tokens_per_second"
        )
        faults.add(("objective",), detail, None, "batch")
    samples = training.iteration_samples()
    if len(samples) > 1 and objective != "tokens_per_second":
        detail = (
            f"the choices of num_microbatches, microbatch_size and data_parallel make iterations of {samples[0]} to "
            f"{samples[-1]} samples, which cannot be compared; give global_batch_size, or the objective "
            "'tokens_per_second'"
        )
        fields = ("num_microbatches", "microbatch_size", "data_parallel")
        field = next(each for each in fields if isinstance(getattr(training, each), tuple))
        faults.add(("training", field), detail, getattr(training, field), "batch")
