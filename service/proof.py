"""How good a plan is proven to be, in words."""

from typing import TypeGuard

from partita.models.answer import Answer
from partita.models.answer_plan import Metrics
from partita.models.objective import Objective
from partita.service.wording import percent, seconds, significant, sized

TEXTS = {
    "iteration_time": "Iteration time",
    "tokens_per_second": "Tokens per second",
    "peak_memory": "Peak memory",
    "bottleneck_time": "Bottleneck time",
}
"""The named objectives in words."""


def is_weighted(objective: Objective) -> TypeGuard[dict[str, float]]:
    """Tell whether an objective is a sum of weighted metrics."""
    return not isinstance(objective, str)


def objective_text(objective: Objective) -> str:
    """Name the objective."""
    return "Weighted sum" if is_weighted(objective) else TEXTS.get(str(objective), str(objective))


def amount(objective: Objective, value: float) -> str:
    """Write a value of the objective with its unit."""
    if is_weighted(objective):
        return significant(value)
    if objective == "peak_memory":
        return sized(value)
    return f"{significant(value)} tokens/s" if objective == "tokens_per_second" else seconds(value)


def objective_value(objective: Objective, metrics: Metrics) -> str:
    """Write what a plan achieves; empty where it is not a number."""
    if is_weighted(objective):
        figures = metrics.model_dump()
        return significant(sum(weight * figures[name] for name, weight in objective.items()))
    figure = {
        "iteration_time": metrics.iteration_time_s,
        "tokens_per_second": metrics.tokens_per_second,
        "peak_memory": metrics.peak_memory_bytes,
        "bottleneck_time": metrics.bottleneck_time_s,
    }[str(objective)]
    return "" if figure is None else amount(objective, figure)


def proof_sentence(answer: Answer) -> str:
    """Say in one plain sentence what the bound proves of the best candidate."""
    name = objective_text(answer.objective).lower()
    value = objective_value(answer.objective, answer.candidates[0].metrics)
    if answer.status == "optimal" and not answer.relative_gap:
        return f"Proven optimal: no plan has a better {name} than {value}."
    if answer.best_bound is None:
        return f"Nothing is proven about other plans; this one's {name} is {value}."
    bound = amount(answer.objective, answer.best_bound)
    gap = answer.relative_gap
    rest = "" if gap is None else f", so this one is at most {percent(gap)} from the best"
    return f"No plan can have a better {name} than {bound}; this one has {value}{rest}."
