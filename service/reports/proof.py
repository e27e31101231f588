"""How good a plan is proven to be, in words."""

from typing import TypeGuard

from partita.models.answer import Answer
from partita.models.answer_plan import Metrics
from partita.models.objective import FIELDS, Objective
from partita.service.reports.wording import percent, seconds, significant, sized, unit_of_bytes, unit_of_seconds

METRICS = {
    "iteration_time_s": "Iteration time",
    "tokens_per_second": "Tokens per second",
    "peak_memory_bytes": "Peak memory",
    "bottleneck_time_s": "Bottleneck time",
    "microbatches_per_second": "Microbatches per second",
    "num_devices": "Devices",
    "inter_node_bytes": "Between nodes",
}
"""The metrics in words, by their fields."""

RESOLVED = 1e-4
"""The largest gap that a solver which works in floating point cannot tell from none."""

TEXTS = {name: METRICS[field] for name, field in FIELDS.items()}
"""The named objectives in words."""

IN_A_SENTENCE = {"num_devices": "number of devices", "inter_node_bytes": "number of bytes between nodes"}
"""Those that are called otherwise in a sentence."""


def is_weighted(objective: Objective) -> TypeGuard[dict[str, float]]:
    """Tell whether an objective is a sum of weighted metrics."""
    return isinstance(objective, dict)


def first_of(objective: Objective) -> Objective:
    """Give the metric that decides first, where an objective is a list."""
    return objective[0] if isinstance(objective, tuple) else objective


def objective_text(objective: Objective) -> str:
    """Name the objective; of a list, its first metric."""
    return "Weighted sum" if is_weighted(objective) else TEXTS[str(first_of(objective))]


def amount(objective: Objective, value: float) -> str:
    """Write a value of the objective with its unit; of a list, of its first metric."""
    if is_weighted(objective):
        return significant(value)
    return metric_amount(FIELDS[str(first_of(objective))], value)


def metric_amount(field: str, value: float) -> str:
    """Write a value of a metric, given by its field, with its unit."""
    if field.endswith("_s"):
        return seconds(value)
    if field.endswith("_bytes"):
        return sized(value)
    if field == "num_devices":
        return str(round(value))
    return f"{significant(value)} {field.partition('_')[0]}/s"


def metric_unit(field: str, most: float) -> tuple[str, float]:
    """Give the unit in which values of a metric up to ``most`` are drawn, empty for counts, and its size."""
    if field.endswith("_s"):
        return unit_of_seconds(most)
    if field.endswith("_bytes"):
        return unit_of_bytes(most)
    return (f"{field.partition('_')[0]}/s" if field.endswith("_per_second") else ""), 1.0


def objective_figure(objective: Objective, metrics: Metrics) -> float | None:
    """Give what a plan achieves, of a list of metrics by the first; None where it is not a number."""
    if is_weighted(objective):
        figures = metrics.model_dump()
        return float(sum(weight * figures[name] for name, weight in objective.items()))
    figure = getattr(metrics, FIELDS[str(first_of(objective))])
    return None if figure is None else float(figure)


def objective_value(objective: Objective, metrics: Metrics) -> str:
    """Write what a plan achieves; empty where it is not a number."""
    figure = objective_figure(objective, metrics)
    return "" if figure is None else amount(objective, figure)


def proof_sentence(answer: Answer) -> str:
    """Say in one plain sentence what the bound proves of the best candidate."""
    name = IN_A_SENTENCE.get(str(first_of(answer.objective)), objective_text(answer.objective).lower())
    value = objective_value(answer.objective, answer.candidates[0].metrics)
    gap = answer.relative_gap
    if answer.status == "optimal" and (gap or 0.0) < RESOLVED:
        within = f", to within {gap:.1g} of it" if gap else ""
        return f"Proven optimal: no plan has a better {name} than {value}{within}{_further(answer)}."
    if answer.best_bound is None:
        return f"Nothing is proven about other plans; this one's {name} is {value}."
    bound = amount(answer.objective, answer.best_bound)
    rest = "" if gap is None else f", so this one is at most {percent(gap)} from the best"
    return f"No plan can have a better {name} than {bound}; this one has {value}{rest}."


def _further(answer: Answer) -> str:
    """Say what is proven at the levels of a list of metrics after the first."""
    known = [(level.objective, level.value) for level in answer.levels[1:]]
    texts = [
        f"the best {IN_A_SENTENCE.get(name, TEXTS[name].lower())} is {amount(name, value)}"
        for name, value in known
        if value is not None
    ]
    return f"; among its equals {', and then '.join(texts)}" if texts else ""
