"""How good a plan is proven to be, in words."""

from typing import TypeGuard

from partita.models.answer import Answer
from partita.models.answer_plan import Metrics
from partita.models.objective import FIELDS, Objective
from partita.service.wording import percent, seconds, significant, sized

TEXTS = {
    "iteration_time": "Iteration time",
    "tokens_per_second": "Tokens per second",
    "peak_memory": "Peak memory",
    "bottleneck_time": "Bottleneck time",
    "num_devices": "Devices",
    "inter_node_bytes": "Between nodes",
}
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
    name = first_of(objective)
    if name in ("peak_memory", "inter_node_bytes"):
        return sized(value)
    if name == "num_devices":
        return str(round(value))
    return f"{significant(value)} tokens/s" if name == "tokens_per_second" else seconds(value)


def objective_value(objective: Objective, metrics: Metrics) -> str:
    """Write what a plan achieves; empty where it is not a number."""
    if is_weighted(objective):
        figures = metrics.model_dump()
        return significant(sum(weight * figures[name] for name, weight in objective.items()))
    figure = getattr(metrics, FIELDS[str(first_of(objective))])
    return "" if figure is None else amount(objective, figure)


def proof_sentence(answer: Answer) -> str:
    """Say in one plain sentence what the bound proves of the best candidate."""
    name = IN_A_SENTENCE.get(str(first_of(answer.objective)), objective_text(answer.objective).lower())
    value = objective_value(answer.objective, answer.candidates[0].metrics)
    if answer.status == "optimal" and not answer.relative_gap:
        return f"Proven optimal: no plan has a better {name} than {value}{_further(answer)}."
    if answer.best_bound is None:
        return f"Nothing is proven about other plans; this one's {name} is {value}."
    bound = amount(answer.objective, answer.best_bound)
    gap = answer.relative_gap
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
