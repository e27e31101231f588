"""All plans of an answer, and what simple rules would have given, by the objective and against the proven bound."""

from partita.models.answer import Answer, Candidate
from partita.models.answer_plan import Metrics
from partita.models.objective import FIELDS, Objective
from partita.models.problem import Problem
from partita.service.charts.differences import differences, sizes_text
from partita.service.charts.names import Themes
from partita.service.charts.rows import beside_layer, row_channel, row_step
from partita.service.charts.style import KINDS, THEMES, Spec, framed
from partita.service.reports.proof import (
    amount,
    first_of,
    is_weighted,
    metric_unit,
    objective_figure,
    objective_text,
    proof_sentence,
)
from partita.service.reports.report import BASELINES
from partita.service.reports.tables import fits_into_memory
from partita.service.reports.wording import SAME, counted, percent, seconds, sized

MOST_PLANS = 60
"""Plans that are drawn, the best."""
PLAN, RULE = "plan", "simple rule"
"""What the rows are."""
COLORS = {PLAN: KINDS["forward"], RULE: KINDS["backward"]}
"""Of the rows."""


def comparison_chart(problem: Problem, answer: Answer, theme: Themes) -> Spec:
    """Draw every plan and baseline that has a value of the objective; there is at least one plan."""
    best = answer.candidates[0]
    shown = answer.candidates[:MOST_PLANS]
    rows = [_plan_row(problem, answer, plan) for plan in shown]
    rows += [
        _row(answer.objective, BASELINES.get(name, name).removeprefix("with "), RULE, baseline.metrics)
        | {"differs": sizes_text(baseline.stage_sizes), "decides": not baseline.fits}
        for name, baseline in answer.baselines.items()
    ]
    rows = [row for row in rows if row["figure"] is not None]
    unit, size = _unit(answer.objective, [row["figure"] for row in rows])
    rows = [row | {"value": row["figure"] / size} for row in rows]
    reference = objective_figure(answer.objective, best.metrics)
    rows = [row | {"text": _beside(answer.objective, row, reference)} for row in rows]
    bound = None if answer.best_bound is None else answer.best_bound / size
    name = objective_text(answer.objective)
    rules = " and of simple rules" if answer.baselines else ""
    sentence = proof_sentence(answer) if answer.infeasibility is None else _sentence(answer.infeasibility.message)
    return framed(
        theme,
        title=f"{name} of {counted(len(answer.candidates), 'plan')}",
        subtitle=f"{sentence}{_what_is_drawn(answer, rows, bound)}",
        description=f"{name} of {counted(len(answer.candidates), 'plan')}{rules}. {sentence}",
        body={
            "height": row_step(len(rows)) * len(rows),
            "encoding": {
                "y": row_channel([row["row"] for row in rows]),
                "x": {
                    "field": "value",
                    "type": "quantitative",
                    "title": f"{name} ({unit})" if unit else name,
                    "scale": {"zero": False, "nice": True, "padding": 12},
                },
            },
            "layer": [
                *([] if bound is None else [_bound_layer(bound, theme)]),
                *_point_layers(rows),
                beside_layer(rows, theme),
            ],
        },
    )


def _sentence(text: str) -> str:
    """Make a sentence of a text without capital and full stop."""
    return f"{text[:1].upper()}{text[1:]}."


def _plan_row(problem: Problem, answer: Answer, plan: Candidate) -> Spec:
    """Give the data of a plan."""
    best = answer.candidates[0]
    among = answer.schedules or answer.candidates
    found = list(differences(plan, best, among, problem.training.schedules))
    sizes = [len(stage.layers) for stage in plan.stages]
    differs = sizes_text(sizes) if plan is best else ", ".join(found) or "the same stages"
    row = _row(answer.objective, f"plan {plan.rank}", PLAN, plan.metrics)
    return row | {"differs": differs, "decides": not fits_into_memory(plan), "point": plan.rank}


def _row(objective: Objective, name: str, kind: str, metrics: Metrics) -> Spec:
    """Give the data that all rows have."""
    return {
        "row": name,
        "kind": kind,
        "color": COLORS[kind],
        "figure": objective_figure(objective, metrics),
        "iteration": seconds(metrics.iteration_time_s),
        "memory": sized(metrics.peak_memory_bytes),
        "nodes": sized(metrics.inter_node_bytes),
        "devices": metrics.num_devices,
    }


def _unit(objective: Objective, figures: list[float]) -> tuple[str, float]:
    """Give the unit in which all figures are drawn, and its size; a weighted sum has none."""
    most = max((abs(figure) for figure in figures), default=0.0)
    field = "" if is_weighted(objective) else FIELDS[str(first_of(objective))]
    return metric_unit(field, most)


def _beside(objective: Objective, row: Spec, best: float | None) -> str:
    """Write a row's value, how far it is from the best plan's, and what differs."""
    figure, far = row["figure"], ""
    if best and abs(figure - best) > SAME * abs(best):
        far = f" ({'+' if figure > best else '−'}{percent(abs(figure - best) / abs(best))})"
    fits = ", does not fit" if row["decides"] else ""
    return f"{amount(objective, figure)}{far}{fits}: {row['differs']}"


def _what_is_drawn(answer: Answer, rows: list[Spec], bound: float | None) -> str:
    """Say what the line is, and how many plans are left out."""
    line = "" if bound is None else " The line is the bound."
    hollow = " Hollow: does not fit into memory." if any(row["decides"] for row in rows) else ""
    more = len(answer.candidates) - MOST_PLANS
    return f"{line}{hollow}{f' The {MOST_PLANS} best are drawn.' if more > 0 else ''}"


def _bound_layer(bound: float, theme: Themes) -> Spec:
    """Draw the bound as a line."""
    return {
        "data": {"values": [{"bound": bound}]},
        "mark": {"type": "rule", "color": THEMES[theme].quiet, "strokeDash": [5, 3]},
        "encoding": {"x": {"field": "bound", "type": "quantitative"}, "y": None},
    }


def _point_layers(rows: list[Spec]) -> list[Spec]:
    """Draw the plans and the rules; those that do not fit are hollow."""
    shown = [("row", "Plan"), ("iteration", "Iteration time"), ("memory", "Peak memory"), ("nodes", "Between nodes")]
    shown += [("devices", "Devices"), ("differs", "What it is")]
    tooltip = [{"field": field, "title": title} for field, title in shown]
    kinds = [kind for kind in COLORS if any(row["kind"] == kind for row in rows)]
    scale = {"domain": kinds, "range": [COLORS[kind] for kind in kinds]}
    channels: dict[bool, Spec] = {
        False: {"color": {"field": "kind", "type": "nominal", "scale": scale, "legend": {"title": None}}},
        # A channel of its own: legends of one channel in two layers are merged, and one of none contradicts the other.
        True: {"stroke": {"field": "color", "type": "nominal", "scale": None, "legend": None}},
    }
    return [
        {
            "data": {"values": [row for row in rows if row["decides"] is hollow]},
            "mark": {"type": "point", "size": 90, "filled": not hollow, "opacity": 1, "strokeWidth": 2},
            "encoding": {**channels[hollow], "tooltip": tooltip},
        }
        for hollow in (False, True)
        if any(row["decides"] is hollow for row in rows)
    ]
