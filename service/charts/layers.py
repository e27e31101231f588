"""The layers as a strip: as wide as their times, colored by stage, with the bytes that cross every cut below."""

from itertools import pairwise, takewhile
from math import fsum

from partita.models.answer import Candidate
from partita.models.answer_plan import Boundary, Stage
from partita.models.problem import Problem
from partita.service.charts.names import Themes
from partita.service.charts.style import (
    FONT_SIZE,
    INK,
    LETTER,
    THEMES,
    ZOOM,
    Spec,
    framed,
    shortened,
    stage_color,
    width_of,
    written_where_room,
)
from partita.service.reports.timeline_words import scenario_words
from partita.service.reports.wording import counted, seconds, sized, unit_of_seconds
from partita.solver.shares import LayerShare, shares

HEAD, STRIP, BARS, LABELS = 22, 110, 46, 16
"""Heights of the stages' band, the layers, the largest bytes of a cut, and what is written below, in pixels."""
GAP = 3
"""Between band and layers, in pixels."""
HEIGHT = HEAD + GAP + STRIP + BARS + LABELS
NAME_LETTERS = int((STRIP - 8) / LETTER)
"""Letters of a layer's name that have room."""


def layers_chart(problem: Problem, candidate: Candidate, theme: Themes) -> Spec:
    """Draw the layers of a plan in their stages.

    A layer is as wide as its forward and backward pass take together, or as all others where no layer takes time or
    degrees are chosen for each stage.

    Raises
    ------
    NotSupportedYet, InvalidInput, InternalError
        As ``shares`` does.
    """
    found = () if problem.training.per_stage_degrees else shares(problem, candidate).layers
    total = fsum(_taken(each) for each in found)
    unit, size = unit_of_seconds(total)
    blocks = _timed(found, size) if total > 0 else _equal(candidate)
    short = _short_names([block["layer"] for block in blocks])
    blocks = [{**block, "short": short[block["layer"]]} for block in blocks]
    stages = _stages(candidate, blocks)
    cuts = _cuts(candidate.boundaries, stages)
    end = blocks[-1]["end"]
    subtitle = _subtitle(cuts, timed=total > 0)
    return framed(
        theme,
        title=f"{counted(len(blocks), 'layer')} on {counted(len(stages), 'stage')}{scenario_words(candidate)}",
        subtitle=subtitle,
        description=f"{counted(len(blocks), 'layer')} cut into {counted(len(stages), 'stage')} of "
        f"{', '.join(str(len(stage.layers)) for stage in candidate.stages)} layers. {subtitle}",
        body={
            "height": HEIGHT,
            "encoding": {
                "x": {
                    "field": "start",
                    "type": "quantitative",
                    "title": f"Forward and backward pass of one microbatch ({unit})" if total > 0 else "Layer",
                    "scale": {"domain": [0, end], "nice": False},
                },
                "y": {
                    "field": "top",
                    "type": "quantitative",
                    "axis": None,
                    "scale": {"domain": [0, HEIGHT], "reverse": True, "nice": False, "zero": False},
                },
            },
            "layer": [
                _block_layer(blocks, theme),
                _name_layer(blocks),
                _stage_layer(stages, theme),
                _stage_text_layer(stages),
                *_cut_layers(cuts, theme),
            ],
        },
    )


def _taken(layer: LayerShare) -> float:
    """Give the seconds of both passes of a layer."""
    return layer.forward_s + layer.backward_s


def _timed(layers: tuple[LayerShare, ...], unit_s: float) -> list[Spec]:
    """Give the layers one after the other, each as wide as it takes."""
    blocks: list[Spec] = []
    at = 0.0
    for layer in layers:
        end = at + _taken(layer) / unit_s
        blocks.append(_block(layer.name, layer.stage, at, end))
        blocks[-1] |= {
            "forward": seconds(layer.forward_s),
            "backward": seconds(layer.backward_s),
            "recompute": seconds(layer.recompute_s) if layer.recompute_s else "none",
            "weights": sized(layer.weight_bytes),
            "activations": sized(layer.activation_bytes),
        }
        at = end
    return blocks


def _equal(candidate: Candidate) -> list[Spec]:
    """Give the layers one after the other, all of one width."""
    named = [(name, stage.index) for stage in candidate.stages for name in stage.layers]
    return [_block(name, stage, float(place), place + 1.0) for place, (name, stage) in enumerate(named)]


def _short_names(names: list[str]) -> dict[str, str]:
    """Shorten long names: by what the long ones begin and end with alike, then by the middle of what is left."""
    long = [name for name in names if len(name) > NAME_LETTERS]
    head = _alike(long)
    tail = _alike([name[head:][::-1] for name in long])
    if len(long) < 2 or min(len(name) for name in long) <= head + tail:
        head = tail = 0  # nothing would be left of one of them
    short = {name: name for name in names}
    for name in long:
        rest = name[head : len(name) - tail]
        short[name] = shortened(f"{'…' * (head > 0)}{rest}{'…' * (tail > 0)}", NAME_LETTERS)
    return short


def _alike(names: list[str]) -> int:
    """Count the letters with which all names begin."""
    return sum(1 for _ in takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False)))


def _block(name: str, stage: int, start: float, end: float) -> Spec:
    """Give the data of a layer."""
    place = {"start": start, "end": end, "middle": (start + end) / 2, "top": HEAD + GAP, "bottom": HEAD + GAP + STRIP}
    return {"layer": name, "stage": stage, "color": stage_color(stage), **place}


def _stages(candidate: Candidate, blocks: list[Spec]) -> list[Spec]:
    """Give the data of the stages: where they lie, and texts of several lengths for them."""
    found: list[Spec] = []
    for stage in candidate.stages:
        own = [block for block in blocks if block["stage"] == stage.index]
        start, end = own[0]["start"], own[-1]["end"]
        takes = _stage_time(stage)
        found.append(
            {
                "stage": stage.index,
                "start": start,
                "end": end,
                "middle": (start + end) / 2,
                "top": 0,
                "bottom": HEAD,
                "color": stage_color(stage.index),
                "layers": len(own),
                "takes": takes,
                "recomputed": len(stage.recompute),
                "full": f"stage {stage.index}: {counted(len(own), 'layer')}, {takes}",
                "middling": f"stage {stage.index}",
            }
        )
    return found


def _stage_time(stage: Stage) -> str:
    """Write what a stage takes of one microbatch."""
    return seconds(stage.forward_s + stage.backward_s)


def _cuts(boundaries: tuple[Boundary, ...], stages: list[Spec]) -> list[Spec]:
    """Give the data of the cuts between neighboring stages: everything that crosses each of them, both ways."""
    crossing = [0] * len(stages)
    for each in boundaries:
        for cut in range(each.from_stage, each.to_stage):
            crossing[cut] += each.forward_bytes + each.backward_bytes
    most = max(crossing, default=0)
    top = HEAD + GAP + STRIP
    cuts: list[Spec] = []
    for cut, (before, after) in enumerate(pairwise(stages)):
        own = [each for each in boundaries if each.from_stage <= cut < each.to_stage]
        room = min(before["end"] - before["start"], after["end"] - after["start"])
        cuts.append(
            {
                "cut": f"{cut} and {cut + 1}",
                "start": before["end"],
                "left": before["end"] - room / 2,
                "right": before["end"] + room / 2,
                "bytes": crossing[cut],
                "forward": sized(sum(each.forward_bytes for each in own)),
                "backward": sized(sum(each.backward_bytes for each in own)),
                "text": sized(crossing[cut]),
                "top": top,
                "bottom": top + (BARS * crossing[cut] / most if most else 0),
            }
        )
    return cuts


def _subtitle(cuts: list[Spec], *, timed: bool) -> str:
    """Say what the widths and the bars are, and where most is sent."""
    widths = f"Every layer is {'as wide as it takes' if timed else 'of one width'}"
    if not cuts:
        return f"{widths}."
    most = max(cuts, key=lambda cut: int(cut["bytes"]))
    bars = "below each cut the bytes that cross it for one microbatch, both ways"
    return f"{widths}; {bars}: at most {most['text']}, between stages {most['cut']}."


def _block_layer(blocks: list[Spec], theme: Themes) -> Spec:
    """Draw the layers; this layer carries the zoom of the whole picture."""
    shown = [("layer", "Layer"), ("stage", "Stage"), ("forward", "Forward"), ("backward", "Backward")]
    shown += [("recompute", "of it recompute"), ("weights", "Weights"), ("activations", "Kept per microbatch")]
    return {
        "data": {"values": blocks},
        "params": [ZOOM],
        "mark": {"type": "rect", "stroke": THEMES[theme].background, "strokeWidth": 0.5, "clip": True, "opacity": 0.8},
        "encoding": {
            "x2": {"field": "end"},
            "y2": {"field": "bottom"},
            "color": {"field": "color", "type": "nominal", "scale": None, "legend": None},
            "tooltip": [{"field": field, "title": title} for field, title in shown if field in blocks[0]],
        },
    }


def _name_layer(blocks: list[Spec]) -> Spec:
    """Write the names of the layers upright where there is room for a line."""
    room = f"{width_of()} >= {FONT_SIZE + 2} ? datum.short : ''"
    return {
        "data": {"values": blocks},
        "mark": {"type": "text", "angle": 270, "fontSize": FONT_SIZE, "color": INK, "clip": True, "aria": False},
        "encoding": {
            "x": {"field": "middle"},
            "y": {"value": HEAD + GAP + STRIP / 2},
            "text": {"value": {"expr": room}},
        },
    }


def _stage_layer(stages: list[Spec], theme: Themes) -> Spec:
    """Draw the band of the stages."""
    shown = [("stage", "Stage"), ("layers", "Layers"), ("takes", "Takes"), ("recomputed", "Layers recomputed")]
    return {
        "data": {"values": stages},
        "mark": {"type": "rect", "stroke": THEMES[theme].background, "strokeWidth": 1, "clip": True},
        "encoding": {
            "x2": {"field": "end"},
            "y2": {"field": "bottom"},
            "color": {"field": "color", "type": "nominal", "scale": None, "legend": None},
            "tooltip": [{"field": field, "title": title} for field, title in shown],
        },
    }


def _stage_text_layer(stages: list[Spec]) -> Spec:
    """Write as much of every stage as there is room for."""
    return {
        "data": {"values": stages},
        "mark": {"type": "text", "fontSize": FONT_SIZE + 1, "color": INK, "clip": True, "aria": False},
        "encoding": {
            "x": {"field": "middle"},
            "y": {"value": HEAD / 2},
            "text": written_where_room("full", "middling", "stage"),
        },
    }


def _cut_layers(cuts: list[Spec], theme: Themes) -> list[Spec]:
    """Draw the cuts through the strip, and the bytes of each below."""
    if not cuts:
        return []
    colors = THEMES[theme]
    shown = [("cut", "Between stages"), ("text", "Bytes"), ("forward", "Forward"), ("backward", "Backward")]
    text = {"type": "text", "baseline": "top", "dy": 3, "fontSize": FONT_SIZE, "clip": True, "aria": False}
    return [
        {
            "data": {"values": cuts},
            "mark": {"type": "rule", "color": colors.text, "strokeWidth": 1.5, "clip": True, "aria": False},
            "encoding": {"y": {"datum": 0}, "y2": {"field": "bottom"}},
        },
        {
            "data": {"values": cuts},
            "mark": {"type": "bar", "width": 7, "color": colors.quiet, "clip": True},
            "encoding": {
                "y2": {"field": "bottom"},
                "tooltip": [{"field": field, "title": title} for field, title in shown],
            },
        },
        {
            "data": {"values": cuts},
            "mark": {**text, "color": colors.text},
            "encoding": {
                "y": {"field": "bottom"},
                "text": written_where_room("text", start="left", end="right"),
            },
        },
    ]
