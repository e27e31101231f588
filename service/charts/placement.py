"""Where the stages of a plan run: nodes from the top down, stages from left to right, and the links between them."""

from collections.abc import Iterator

from partita.models.answer import Candidate
from partita.models.answer_plan import Boundary
from partita.models.problem import Problem
from partita.service.charts.names import Themes
from partita.service.charts.style import (
    FONT_SIZE,
    INK,
    THEMES,
    ZOOM,
    Spec,
    framed,
    short_labels,
    stage_color,
    written_where_room,
)
from partita.service.reports.timeline_words import scenario_words
from partita.service.reports.wording import counted, device_ranges, seconds, sized

HALF = 0.3
"""Half the width of a stage, of the distance between two."""
BOX, NARROW_BOX = 30, 14
"""Height of a stage in a wide lane and in a narrow one, in pixels."""
WIDE_LANE, NARROW_LANE, FEW = 74, 20, 8
"""Height of the lane of a node, in pixels: of up to so many nodes, which leaves room to write on links, and of more."""
LINKS = ("inside a node", "between nodes", "on the same devices")
"""What a boundary may cross."""


def placement_chart(problem: Problem, candidate: Candidate, theme: Themes) -> Spec:
    """Draw where every stage runs and what the boundaries between them take."""
    nodes = _nodes(candidate)
    order = [name for name in problem.cluster.node_names() if name in nodes]
    boxes = [box for name in order for box in _boxes(candidate, name, nodes[name])]
    links = [end for each in candidate.boundaries for end in _ends(candidate, each)]
    neighbors = [each for each in candidate.boundaries if each.to_stage == each.from_stage + 1]
    texts = [_text(candidate, each, order) for each in neighbors]
    wide = len(order) <= FEW
    kinds = [kind for kind in LINKS if any(link["kind"] == kind for link in links)]
    used, every = candidate.metrics.num_devices, problem.cluster.num_devices
    where = f"{counted(len(candidate.stages), 'stage')} on {counted(len(order), 'node')}"
    subtitle = _subtitle(problem, candidate, len(order), wide=wide)
    return framed(
        theme,
        title=f"{where}: {used} of {counted(every, 'device')}{scenario_words(candidate)}",
        subtitle=subtitle,
        description=f"{where}, {used} of {counted(every, 'device')}. {subtitle}",
        body={
            "height": (WIDE_LANE if wide else NARROW_LANE) * len(order),
            "encoding": {
                "x": {
                    "field": "start",
                    "type": "quantitative",
                    "title": "Stage",
                    "scale": {"domain": [-0.5, len(candidate.stages) - 0.5], "nice": False},
                    "axis": {"format": "d", "tickMinStep": 1},
                },
                "y": {
                    "field": "node",
                    "type": "nominal",
                    "sort": order,
                    "title": None,
                    "scale": {"type": "band", "paddingInner": 0, "paddingOuter": 0},
                    "axis": {**short_labels(36, 14), "ticks": False, "grid": True},
                },
            },
            "layer": [
                *([_link_layer(links, kinds, theme)] if links else []),
                _box_layer(boxes, BOX if wide else NARROW_BOX, theme),
                _box_text_layer(boxes),
                *(_text_layers(texts, theme) if wide and texts else []),
            ],
        },
    )


def _nodes(candidate: Candidate) -> dict[str, list[int]]:
    """Give the stages of every node in use."""
    found: dict[str, list[int]] = {}
    for stage in candidate.stages:
        for name in _nodes_of(stage.devices):
            found.setdefault(name, []).append(stage.index)
    return found


def _nodes_of(devices: tuple[str, ...]) -> list[str]:
    """Give the nodes of devices, each once, in their order."""
    return list(dict.fromkeys(device.rpartition(":")[0] for device in devices))


def _boxes(candidate: Candidate, node: str, stages: list[int]) -> Iterator[Spec]:
    """Give the data of the stages on a node."""
    for number in stages:
        stage = candidate.stages[number]
        own = tuple(device for device in stage.devices if device.rpartition(":")[0] == node)
        numbers = ", ".join(each.rpartition(":")[2] for each in device_ranges(own))
        several = "device" if len(own) == 1 else "devices"
        yield {
            "node": node,
            "stage": number,
            "rank": stage.rank,
            "start": number - HALF,
            "end": number + HALF,
            "middle": number,
            "devices": numbers,
            "full": f"{several} {numbers}",
            "kind": stage.device,
            "layers": len(stage.layers),
            "color": stage_color(number),
        }


def _kind(candidate: Candidate, boundary: Boundary) -> str:
    """Say what a boundary crosses."""
    ends = [candidate.stages[number].devices for number in (boundary.from_stage, boundary.to_stage)]
    if ends[0] == ends[1]:
        return LINKS[2]
    return LINKS[0] if _nodes_of(ends[0]) == _nodes_of(ends[1]) else LINKS[1]


def _ends(candidate: Candidate, boundary: Boundary) -> Iterator[Spec]:
    """Give the data of both ends of a boundary, for every replica on nodes of its own."""
    first, second = boundary.from_stage, boundary.to_stage
    senders, receivers = (_nodes_of(candidate.stages[number].devices) for number in (first, second))
    count = max(len(senders), len(receivers))
    for replica in range(count):
        pair = (senders[replica * len(senders) // count], receivers[replica * len(receivers) // count])
        for stage, node in zip((first, second), pair, strict=True):
            yield {
                "link": f"{first}-{second}-{replica}",
                "node": node,
                "start": stage,
                "kind": _kind(candidate, boundary),
                **_figures(boundary),
            }


def _figures(boundary: Boundary) -> Spec:
    """Write what a boundary takes."""
    return {
        "name": f"stage {boundary.from_stage} to {boundary.to_stage}",
        "path": ", ".join(boundary.path) or "none",
        "forward": f"{sized(boundary.forward_bytes)}, {seconds(boundary.transfer_s)}",
        "backward": f"{sized(boundary.backward_bytes)}, {seconds(boundary.backward_transfer_s)}",
    }


def _text(candidate: Candidate, boundary: Boundary, order: list[str]) -> Spec:
    """Give the data of what is written on the link between two neighbors: beside it, above unless it goes upward."""
    first = boundary.from_stage
    sender, receiver = (_nodes_of(candidate.stages[number].devices)[0] for number in (first, first + 1))
    return {
        "node": sender,
        "above": order.index(receiver) >= order.index(sender),
        "start": float(first),
        "middle": first + 0.5,
        "end": first + 1.0,
        "bytes": sized(boundary.forward_bytes + boundary.backward_bytes),
        "time": seconds(boundary.transfer_s + boundary.backward_transfer_s),
    }


def _subtitle(problem: Problem, candidate: Candidate, used: int, *, wide: bool) -> str:
    """Say what is written on links, what crosses nodes, and how many of these are idle."""
    written = "On every link the bytes and the time of one microbatch, both ways. " if wide else ""
    slowest = max(candidate.boundaries, key=lambda each: each.transfer_s + each.backward_transfer_s, default=None)
    if slowest is not None:
        took = seconds(slowest.transfer_s + slowest.backward_transfer_s)
        written += f"Longest: stage {slowest.from_stage} to {slowest.to_stage} with {took}. "
    sent = candidate.as_shown.metrics.inter_node_bytes
    crossing = f"{sized(sent)} cross between nodes in one iteration" if sent else "Nothing crosses between nodes"
    idle = len(problem.cluster.node_names()) - used
    idle_nodes = f"; {counted(idle, 'node is', 'nodes are')} idle" if idle else ""
    return f"{written}{crossing}{idle_nodes}."


def _link_layer(links: list[Spec], kinds: list[str], theme: Themes) -> Spec:
    """Draw the links; this layer carries the zoom."""
    colors = THEMES[theme]
    drawn = dict(zip(LINKS, (colors.quiet, colors.decides, colors.line), strict=True))
    shown = [("name", "From"), ("kind", "Link"), ("path", "Path"), ("forward", "Forward"), ("backward", "Backward")]
    return {
        "data": {"values": links},
        "mark": {"type": "line", "strokeWidth": 2.5, "clip": True},
        "encoding": {
            "detail": {"field": "link", "type": "nominal"},
            "color": {
                "field": "kind",
                "type": "nominal",
                "scale": {"domain": kinds, "range": [drawn[kind] for kind in kinds]},
                "legend": {"title": None, "symbolType": "stroke"},
            },
            "tooltip": [{"field": field, "title": title} for field, title in shown],
        },
    }


def _box_layer(boxes: list[Spec], height: int, theme: Themes) -> Spec:
    """Draw the stages."""
    shown = [("stage", "Stage"), ("rank", "Rank"), ("node", "Node"), ("devices", "Devices"), ("kind", "Kind")]
    shown.append(("layers", "Layers"))
    return {
        "data": {"values": boxes},
        "params": [ZOOM],
        "mark": {
            "type": "bar",
            "height": height,
            "cornerRadius": 3,
            "stroke": THEMES[theme].background,
            "strokeWidth": 1,
            "clip": True,
        },
        "encoding": {
            "x2": {"field": "end"},
            "fill": {"field": "color", "type": "nominal", "scale": None, "legend": None},
            "tooltip": [{"field": field, "title": title} for field, title in shown],
        },
    }


def _box_text_layer(boxes: list[Spec]) -> Spec:
    """Write the devices into the stages where there is room."""
    return {
        "data": {"values": boxes},
        "mark": {"type": "text", "fontSize": FONT_SIZE, "color": INK, "clip": True, "aria": False},
        "encoding": {"x": {"field": "middle", "type": "quantitative"}, "text": written_where_room("full", "devices")},
    }


def _text_layers(texts: list[Spec], theme: Themes) -> list[Spec]:
    """Write bytes and times beside the links where there is room."""
    colors = THEMES[theme]
    places = ((True, "bytes", -30), (True, "time", -19), (False, "bytes", 22), (False, "time", 33))
    written = {"bytes": colors.text, "time": colors.quiet}
    return [
        {
            "data": {"values": [text for text in texts if text["above"] is above]},
            "mark": {
                "type": "text",
                "fontSize": FONT_SIZE,
                "dy": dy,
                "color": written[field],
                "clip": True,
                "aria": False,
            },
            "encoding": {"x": {"field": "middle", "type": "quantitative"}, "text": written_where_room(field)},
        }
        for above, field, dy in places
    ]
