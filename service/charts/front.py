"""The points of a front by its two metrics, with the staircase that no plan is below."""

from partita.models.front import Front, FrontPoint, Region
from partita.models.problem import Problem
from partita.service.charts.differences import sizes_text
from partita.service.charts.names import Themes
from partita.service.charts.style import FONT_SIZE, KINDS, THEMES, Spec, framed
from partita.service.reports.front import ENDINGS
from partita.service.reports.proof import METRICS, metric_amount, metric_unit
from partita.service.reports.schedule_words import schedule_name
from partita.service.reports.wording import counted

HEIGHT = 360
"""Of the plot, in pixels."""
MOST_NUMBERS = 30
"""Points that are numbered; more would cover each other."""
BOTH = ("first", "second")
"""The fields of the values of the two metrics."""
MARGIN = 0.06
"""Of an axis at either end, as a part of what the points span."""
MORE_IS_BETTER = ("tokens_per_second", "microbatches_per_second")
"""The metrics that are rates."""


def front_chart(problem: Problem, front: Front, theme: Themes) -> Spec:
    """Draw a front that has points; each has its place in the front as ``point``."""
    units = [
        metric_unit(metric, max(abs(point.values[place]) for point in front.points))
        for place, metric in enumerate(front.metrics)
    ]
    points = [_point(problem, front, point, units) for point in front.points]
    windows = [_window(points, field) for field in BOTH]
    regions = [_region(front, region, units, windows) for region in front.unexplored]
    names = [METRICS[metric] for metric in front.metrics]
    title = f"{names[0]} against {names[1].lower()}: {counted(len(points), 'point')}, {front.status}"
    first, last = front.points[0], front.points[-1]
    ends = "; ".join(
        " and ".join(metric_amount(metric, value) for metric, value in zip(front.metrics, each.values, strict=True))
        for each in ((first, last) if len(points) > 1 else (first,))
    )
    return framed(
        theme,
        title=title,
        subtitle=f"{ENDINGS[front.status]}{' Shaded: not explored.' if front.unexplored else ''}",
        description=f"{title}. From {names[0].lower()} and {names[1].lower()} of {ends}. {ENDINGS[front.status]}",
        body={
            "height": HEIGHT,
            "encoding": {
                channel: {
                    "field": field,
                    "type": "quantitative",
                    "title": f"{name} ({unit})" if unit else name,
                    "scale": {"domain": list(window), "nice": False, "zero": False},
                    "axis": {"grid": True, **({"format": "d", "tickMinStep": 1} if metric == "num_devices" else {})},
                }
                for channel, field, name, metric, (unit, _), window in zip(
                    ("x", "y"), BOTH, names, front.metrics, units, windows, strict=True
                )
            },
            "layer": [
                *([_region_layer(regions, theme)] if regions else []),
                _stair_layer(front, points, theme),
                _point_layer(front, points),
                *([_number_layer(points, theme)] if len(points) <= MOST_NUMBERS else []),
            ],
        },
    )


def _point(problem: Problem, front: Front, point: FrontPoint, units: list[tuple[str, float]]) -> Spec:
    """Give the data of a point."""
    plan = point.plan
    values = dict(zip(BOTH, point.values, strict=True))
    return {
        "point": plan.rank,
        **{field: value / size for (field, value), (_, size) in zip(values.items(), units, strict=True)},
        **{
            f"{field}_text": metric_amount(metric, value)
            for (field, value), metric in zip(values.items(), front.metrics, strict=True)
        },
        "schedule": schedule_name(plan.schedule, problem.training.schedules),
        "stages": len(plan.stages),
        "devices": plan.metrics.num_devices,
        "sizes": sizes_text([len(stage.layers) for stage in plan.stages]),
    }


def _window(points: list[Spec], field: str) -> tuple[float, float]:
    """Give the values from which to which an axis goes."""
    values = [float(point[field]) for point in points]
    margin = MARGIN * (max(values) - min(values) or abs(values[0]) or 1.0)
    return min(values) - margin, max(values) + margin


def _region(front: Front, region: Region, units: list[tuple[str, float]], windows: list[tuple[float, float]]) -> Spec:
    """Give the data of a part where further points may lie; a side that is open ends with the plot."""
    place = front.metrics.index(region.metric)
    size, (low, high) = units[place][1], windows[place]
    ends = [low if region.least is None else region.least / size, high if region.most is None else region.most / size]
    windows = [*windows[:place], (max(low, ends[0]), min(high, ends[1])), *windows[place + 1 :]]
    return {
        **{f"{field}_least": low for field, (low, _) in zip(BOTH, windows, strict=True)},
        **{f"{field}_most": high for field, (_, high) in zip(BOTH, windows, strict=True)},
    }


def _region_layer(regions: list[Spec], theme: Themes) -> Spec:
    """Shade where further points may lie."""
    return {
        "data": {"values": regions},
        "mark": {"type": "rect", "color": THEMES[theme].quiet, "opacity": 0.2, "clip": True, "aria": False},
        "encoding": {
            **{
                channel: {"field": f"{field}_least", "type": "quantitative"}
                for channel, field in zip(("x", "y"), BOTH, strict=True)
            },
            **{f"{channel}2": {"field": f"{field}_most"} for channel, field in zip(("x", "y"), BOTH, strict=True)},
        },
    }


def _stair_layer(front: Front, points: list[Spec], theme: Themes) -> Spec:
    """Draw the edge of what plans can reach."""
    steps = "step-before" if front.metrics[0] in MORE_IS_BETTER else "step-after"
    return {
        "data": {"values": sorted(points, key=lambda point: float(point[BOTH[0]]))},
        "mark": {
            "type": "line",
            "interpolate": steps,
            "color": THEMES[theme].quiet,
            "strokeWidth": 1.5,
            "aria": False,
        },
        "encoding": {"order": {"field": BOTH[0], "type": "quantitative"}},
    }


def _point_layer(front: Front, points: list[Spec]) -> Spec:
    """Draw the points."""
    names = [METRICS[metric] for metric in front.metrics]
    shown = [("point", "Point"), *zip((f"{field}_text" for field in BOTH), names, strict=True)]
    shown += [("schedule", "Schedule"), ("devices", "Devices"), ("stages", "Stages"), ("sizes", "Layers per stage")]
    return {
        "data": {"values": points},
        "mark": {
            "type": "point",
            "size": 110,
            "filled": True,
            "opacity": 1,
            "color": KINDS["forward"],
            "stroke": "#2a5d94",
            "cursor": "pointer",
        },
        "encoding": {"tooltip": [{"field": field, "title": title} for field, title in shown]},
    }


def _number_layer(points: list[Spec], theme: Themes) -> Spec:
    """Write the place of every point in the front beside it."""
    return {
        "data": {"values": points},
        "mark": {
            "type": "text",
            "align": "left",
            "baseline": "bottom",
            "dx": 7,
            "dy": -5,
            "fontSize": FONT_SIZE + 1,
            "color": THEMES[theme].text,
            "aria": False,
        },
        "encoding": {"text": {"field": "point", "type": "nominal"}},
    }
