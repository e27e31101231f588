"""A timeline in the trace-event format, for Perfetto (ui.perfetto.dev) and chrome://tracing.

Two processes: the devices, with a thread for every rank and a counter of its memory, and the links, with a thread for
every pair of stages and direction. Times are microseconds. What is on the critical path has the category ``critical``
besides its own, the color ``terrible`` (only chrome://tracing shows it) and ``"critical": true`` in its ``args``. Flows
lead from a sender through its transfer to the receiver.

References
----------
"Trace Event Format", docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
"""

import json
from collections.abc import Iterator
from math import floor, log10
from typing import Any

from partita.models.answer import Candidate
from partita.service.reports.timeline_words import KINDS, link_name, rank_name
from partita.solver.timeline import Action, Timeline, Transfer

Event = dict[str, Any]

DEVICES, LINKS = 1, 2
"""The two processes."""
COLORS = {"F": "rail_response", "B": "rail_load", "I": "rail_load", "W": "rail_idle"}
"""Reserved color names by kind of action."""
CRITICAL_COLOR, TRANSFER_COLOR = "terrible", "generic_work"
DIGITS = 12
"""Significant digits of the makespan; all times are rounded to its last one, so that neighbors still meet."""


def chrome_trace(timeline: Timeline, candidate: Candidate) -> dict[str, Any]:
    """Write a timeline as an object of the trace-event format; the same timeline gives the same object."""
    writer = _Writer(timeline, candidate)
    timed = [*writer.actions(), *writer.transfers(), *writer.flows(), *writer.counters()]
    timed.sort(key=lambda event: (event["ts"], "XstfC".index(event["ph"])))
    return {
        "displayTimeUnit": "ms",
        "otherData": {
            "schedule": candidate.schedule.kind,
            "makespan_s": timeline.makespan_s,
            "iteration_time_s": candidate.as_shown.metrics.iteration_time_s,
            **({} if candidate.scenario is None else {"scenario": candidate.scenario}),
        },
        "traceEvents": [*writer.names(), *timed],
    }


def chrome_trace_text(timeline: Timeline, candidate: Candidate) -> str:
    """Write a timeline as the text of a trace file, one event on a line."""
    trace = chrome_trace(timeline, candidate)
    events = trace.pop("traceEvents")
    head = "".join(f'"{name}":{_compact(value)},\n' for name, value in trace.items())
    return f'{{{head}"traceEvents":[\n' + ",\n".join(map(_compact, events)) + "\n]}\n"


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


class _Writer:
    """Writes the events of one timeline."""

    def __init__(self, timeline: Timeline, candidate: Candidate) -> None:
        self._timeline, self._candidate = timeline, candidate
        self._layers = {stage.index: len(stage.layers) for stage in candidate.stages}
        self._several = len(candidate.stages) > timeline.num_ranks
        span = timeline.makespan_s * 1e6
        self._decimals = max(0, DIGITS - 1 - floor(log10(span))) if span > 0 else 0
        self._links: dict[tuple[int, int], int] = {}
        for transfer in timeline.transfers:
            ends = (transfer.from_stage, transfer.to_stage)
            self._links.setdefault(ends, timeline.num_ranks + 1 + len(self._links))

    def names(self) -> Iterator[Event]:
        """Name processes and threads, and say in which order they are shown."""
        yield from _named("process", DEVICES, 0, "devices", 0)
        for memory in self._timeline.memory:
            yield from _named("thread", DEVICES, memory.rank + 1, rank_name(memory.devices), memory.rank)
        if self._links:
            yield from _named("process", LINKS, 0, "links", 1)
        named: set[int] = set()
        for transfer in self._timeline.transfers:
            thread = self._links[transfer.from_stage, transfer.to_stage]
            if thread not in named:
                named.add(thread)
                yield from _named("thread", LINKS, thread, link_name(transfer), thread)

    def actions(self) -> Iterator[Event]:
        """Write what the devices do."""
        for action in self._timeline.actions:
            stage = f" stage {action.stage}" if self._several else ""
            yield {
                "name": f"{action.kind}{action.microbatch}{stage}",
                "cat": KINDS[action.kind].replace(" ", "_") + ",critical" * action.critical,
                "ph": "X",
                **self._span(action),
                "pid": DEVICES,
                "tid": action.rank + 1,
                "cname": CRITICAL_COLOR if action.critical else COLORS[action.kind],
                "args": {
                    "microbatch": action.microbatch,
                    "stage": action.stage,
                    "kind": KINDS[action.kind],
                    "layers": self._layers[action.stage],
                    "critical": action.critical,
                },
            }

    def transfers(self) -> Iterator[Event]:
        """Write what the links carry."""
        for transfer in self._timeline.transfers:
            yield {
                "name": f"{transfer.direction} {transfer.microbatch}",
                "cat": "transfer" + ",critical" * transfer.critical,
                "ph": "X",
                **self._span(transfer),
                "pid": LINKS,
                "tid": self._links[transfer.from_stage, transfer.to_stage],
                "cname": CRITICAL_COLOR if transfer.critical else TRANSFER_COLOR,
                "args": {
                    "microbatch": transfer.microbatch,
                    "from_stage": transfer.from_stage,
                    "to_stage": transfer.to_stage,
                    "kind": f"{transfer.direction} transfer",
                    "path": list(transfer.path),
                    "critical": transfer.critical,
                },
            }

    def flows(self) -> Iterator[Event]:
        """Lead from every sender to its receiver; a flow that would begin or end at an action of no time is left out.

        A flow is bound to the action that runs at its time, so it begins at the start of the sender.
        """
        passes = {(each.kind, each.stage, each.microbatch): each for each in self._timeline.actions}
        passes |= {("B", stage, microbatch): each for (kind, stage, microbatch), each in passes.items() if kind == "I"}
        number = 0
        for transfer in self._timeline.transfers:
            kind = "F" if transfer.direction == "forward" else "B"
            sender = passes[kind, transfer.from_stage, transfer.microbatch]
            receiver = passes[kind, transfer.to_stage, transfer.microbatch]
            if not self._span(sender)["dur"] or not self._span(receiver)["dur"] or not self._span(transfer)["dur"]:
                continue
            number += 1
            common = {"name": transfer.direction, "cat": "flow", "id": number}
            link = self._links[transfer.from_stage, transfer.to_stage]
            yield common | {"ph": "s", "ts": self._time(sender.start_s), "pid": DEVICES, "tid": sender.rank + 1}
            yield common | {"ph": "t", "ts": self._time(transfer.start_s), "pid": LINKS, "tid": link}
            yield common | {
                "ph": "f",
                "bp": "e",
                "ts": self._time(receiver.start_s),
                "pid": DEVICES,
                "tid": receiver.rank + 1,
            }

    def counters(self) -> Iterator[Event]:
        """Write the memory of the devices."""
        for memory in self._timeline.memory:
            for time, size in memory.steps:
                yield {
                    "name": f"memory of {rank_name(memory.devices)}",
                    "ph": "C",
                    "ts": self._time(time),
                    "pid": DEVICES,
                    "tid": memory.rank + 1,
                    "args": {"bytes": size},
                }

    def _span(self, event: Action | Transfer) -> Event:
        start = self._time(event.start_s)
        return {"ts": start, "dur": round(self._time(event.end_s) - start, self._decimals)}

    def _time(self, seconds: float) -> float:
        """Give a time in microseconds, as a float."""
        return float(round(seconds * 1e6, self._decimals))


def _named(what: str, process: int, thread: int, name: str, place: int) -> Iterator[Event]:
    """Name a process or a thread, and give its place among the others."""
    for kind, args in (("name", {"name": name}), ("sort_index", {"sort_index": place})):
        yield {"name": f"{what}_{kind}", "ph": "M", "ts": 0.0, "pid": process, "tid": thread, "args": args}
