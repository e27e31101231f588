"""What keeps the devices of every stage busy for one microbatch, and which one everything waits for."""

from dataclasses import dataclass
from math import fsum, isclose

from partita.models.answer import Candidate
from partita.models.problem import Problem
from partita.service.charts.names import Themes
from partita.service.charts.rows import Row, beside_layer, row_channel, row_step, rows_of, stacked, stacked_layer
from partita.service.charts.style import FONT_SIZE, INK, KINDS, THEMES, Spec, framed, written_where_room
from partita.service.reports.timeline_words import scenario_words
from partita.service.reports.wording import SAME, seconds, unit_of_seconds
from partita.solver.shares import StageShare, shares

ENOUGH = 1e3 * SAME
"""Sums of rounded figures that differ by less, relative to the larger, are the same."""


def times_chart(problem: Problem, candidate: Candidate, theme: Themes) -> Spec:
    """Draw what every stage takes of one microbatch: forward and backward pass, or its parts, recompute apart.

    Stages of one rank share its devices, so they are in one row, one after the other. With ``blocking`` the transfers
    of a stage are there too, else the longest one beside it as a mark.

    Raises
    ------
    NotSupportedYet, InvalidInput, InternalError
        As ``shares`` does.
    """
    limit = candidate.as_shown.metrics.bottleneck_time_s
    unit, size = unit_of_seconds(limit)
    load = _load(problem, candidate, limit, size)
    rows, parts, ends, marks = load.rows, load.parts, load.ends, load.marks
    sums = [end["busy"] for end in ends]
    what = _bottleneck(load)
    return framed(
        theme,
        title=f"Bottleneck {seconds(limit)} per microbatch{scenario_words(candidate)}: {what}",
        subtitle=_subtitle(marks),
        description=f"Busy time of every stage for one microbatch. The bottleneck is {what} with {seconds(limit)}; "
        f"all devices are busy for {seconds(min(sums))} to {seconds(max(sums))}.",
        body={
            "height": row_step(len(rows)) * len(rows),
            "encoding": {
                "y": row_channel([row.label for row in rows]),
                "x": {
                    "field": "start",
                    "type": "quantitative",
                    "title": f"Time for one microbatch ({unit})",
                    "scale": {"domain": [0, max(limit, *sums) / size or 1]},
                },
            },
            "layer": [
                *([_bar_layer(parts, theme)] if parts else []),
                *([_number_layer(parts)] if len(candidate.stages) > len(rows) else []),
                *([_mark_layer(marks, theme)] if marks else []),
                _limit_layer(limit / size, theme),
                beside_layer(ends, theme),
            ],
        },
    )


def bottleneck_words(problem: Problem, candidate: Candidate) -> str:
    """Name what a microbatch waits for in steady state; raises what ``times_chart`` raises."""
    return _bottleneck(_load(problem, candidate, candidate.as_shown.metrics.bottleneck_time_s, 1.0))


@dataclass(frozen=True, slots=True)
class _Load:
    """The ranks of a plan, and the data of what they do, of what is written beside each, and of the transfers."""

    rows: tuple[Row, ...]
    parts: list[Spec]
    ends: list[Spec]
    marks: list[Spec]


def _load(problem: Problem, candidate: Candidate, limit: float, unit_s: float) -> _Load:
    """Give what a plan does for one microbatch, whose bottleneck takes ``limit`` seconds."""
    rows = rows_of(candidate)
    of_stage = {each.stage: each for each in _shares(problem, candidate)}
    parts = [part for row in rows for part in _parts(row, of_stage, unit_s, split=candidate.schedule.splits)]
    sums = [fsum(part["seconds"] for part in parts if part["row"] == row.label) for row in rows]
    ends = [_end(row, busy, limit) for row, busy in zip(rows, sums, strict=True)]
    blocking = problem.training.communication == "blocking"
    return _Load(rows, parts, ends, [] if blocking else _transfers(candidate, rows, unit_s, limit))


def _shares(problem: Problem, candidate: Candidate) -> tuple[StageShare, ...]:
    """Give the shares of the stages; where degrees are chosen for each, those of one microbatch of the batch.

    Its replicas take turns then, and what is exchanged after every microbatch is not told apart.
    """
    if not problem.training.per_stage_degrees:
        return shares(problem, candidate).stages
    return tuple(
        StageShare(
            stage=stage.index,
            rank=stage.rank,
            forward_s=stage.forward_s / (stage.data_parallel or 1),
            backward_s=stage.backward_s / (stage.data_parallel or 1),
            weight_gradient_s=0.0,
            recompute_s=0.0,
            transfers_s=0.0,
        )
        for stage in candidate.stages
    )


def _parts(row: Row, of_stage: dict[int, StageShare], unit_s: float, *, split: bool) -> list[Spec]:
    """Give the data of what the stages of a rank do, one stage after the other."""
    found: list[Spec] = []
    at = 0.0
    for stage in row.stages:
        share = of_stage[stage.index]
        times = {
            "forward": share.forward_s,
            "input gradient" if split else "backward": share.backward_s,
            "weight gradient": share.weight_gradient_s,
            "recompute": share.recompute_s,
            "transfer": share.transfers_s,
        }
        for kind, start, end in stacked(times):
            found.append(
                {
                    "row": row.label,
                    "stage": stage.index,
                    "kind": kind,
                    "start": (at + start) / unit_s,
                    "end": (at + end) / unit_s,
                    "seconds": times[kind],
                    "took": seconds(times[kind]),
                    "layers": len(stage.layers),
                    "recomputed": len(stage.recompute),
                }
            )
        at += fsum(times.values())
    return found


def _end(row: Row, busy: float, limit: float) -> Spec:
    """Give the data of what is written beside a row."""
    decides = isclose(busy, limit, rel_tol=ENOUGH)
    text = f"{seconds(busy)}, the bottleneck" if decides else seconds(busy)
    return {"row": row.label, "busy": busy, "text": text, "decides": decides}


def _transfers(candidate: Candidate, rows: tuple[Row, ...], unit_s: float, limit: float) -> list[Spec]:
    """Give the data of the transfers that leave or reach a stage for the next ones: the longer direction of each."""
    label = {stage.index: row.label for row in rows for stage in row.stages}
    found: list[Spec] = []
    for each in candidate.boundaries:
        turns = candidate.stages[each.from_stage].data_parallel or 1
        longest = max(each.transfer_s, each.backward_transfer_s) / turns
        if longest > 0:
            found.append(
                {
                    "row": label[each.from_stage],
                    "name": f"stage {each.from_stage} to {each.to_stage}",
                    "start": longest / unit_s,
                    "took": seconds(longest),
                    "decides": isclose(longest, limit, rel_tol=ENOUGH),
                }
            )
    return found


def _bottleneck(load: _Load) -> str:
    """Name what takes longest; several where they take as long."""
    names = [str(end["row"]) for end in load.ends if end["decides"]]
    names += [f"the transfers from {mark['name']}" for mark in load.marks if mark["decides"]]
    if not names:
        return "exchanges between replicas included"
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _subtitle(marks: list[Spec]) -> str:
    """Say what the line and the marks are."""
    line = "The line is the bottleneck: in steady state one microbatch leaves the pipeline in that time"
    beside = "; a diamond is the longest transfer from a stage to the next, which goes on beside the computing"
    return f"{line}{beside if marks else ''}."


def _bar_layer(parts: list[Spec], theme: Themes) -> Spec:
    """Draw the parts one after the other."""
    shown = [("row", "Devices"), ("stage", "Stage"), ("kind", "Part"), ("took", "Takes"), ("layers", "Layers")]
    shown.append(("recomputed", "Layers recomputed"))
    return stacked_layer(parts, "kind", KINDS, shown, theme)


def _number_layer(parts: list[Spec]) -> Spec:
    """Write the numbers of the stages where several share a row and there is room."""
    texts = [{**part, "middle": (part["start"] + part["end"]) / 2} for part in parts if part["kind"] == "forward"]
    return {
        "data": {"values": texts},
        "mark": {"type": "text", "fontSize": FONT_SIZE, "color": INK, "aria": False},
        "encoding": {
            "x": {"field": "middle", "type": "quantitative"},
            "text": written_where_room("stage"),
        },
    }


def _mark_layer(marks: list[Spec], theme: Themes) -> Spec:
    """Mark the longest transfer to the next stage."""
    shown = [("name", "Transfer from"), ("took", "Takes, in the longer direction")]
    return {
        "data": {"values": marks},
        "mark": {"type": "point", "shape": "diamond", "size": 60, "filled": True, "opacity": 1, "stroke": "white"},
        "encoding": {
            "color": {"condition": {"test": "datum.decides", "value": THEMES[theme].decides}, "value": INK},
            "tooltip": [{"field": field, "title": title} for field, title in shown],
        },
    }


def _limit_layer(limit: float, theme: Themes) -> Spec:
    """Draw the bottleneck as a line."""
    return {
        "data": {"values": [{"limit": limit}]},
        "mark": {
            "type": "rule",
            "color": THEMES[theme].decides,
            "strokeWidth": 1.5,
            "strokeDash": [5, 3],
            "aria": False,
        },
        "encoding": {"x": {"field": "limit", "type": "quantitative"}, "y": None},
    }
