"""Trace events: what the format demands by phase, and that they add up to the plan."""

import json
from collections import defaultdict
from itertools import pairwise

import pytest
from small_timelines import timeline_of, training_problem

from partita.service.reports.chrome_trace import DEVICES, LINKS, chrome_trace, chrome_trace_text

REQUIRED = {
    "M": {"name", "ph", "pid", "args"},
    "X": {"name", "cat", "ph", "ts", "dur", "pid", "tid"},
    "s": {"name", "cat", "ph", "ts", "pid", "tid", "id"},
    "t": {"name", "cat", "ph", "ts", "pid", "tid", "id"},
    "f": {"name", "cat", "ph", "ts", "pid", "tid", "id", "bp"},
    "C": {"name", "ph", "ts", "pid", "args"},
}
"""What an event of each phase must have."""
TYPES = {"name": str, "cat": str, "ph": str, "ts": float, "dur": float, "pid": int, "tid": int, "id": int, "args": dict}
RESERVED_COLORS = {"rail_response", "rail_load", "rail_idle", "terrible", "generic_work"}
"""Those of the reserved color names that are used."""

PROBLEMS = {
    "1f1b": training_problem(),
    "longer": training_problem(ranks=4, num_microbatches=8),
    "zb_v": training_problem(chunks=2, schedule="zb_v"),
    "dualpipe_v": training_problem(chunks=2, num_microbatches=5, schedule="dualpipe_v"),
    "interleaved": training_problem(ranks=4, chunks=2, num_microbatches=4, schedule="interleaved_1f1b"),
    "blocking": training_problem(communication="blocking"),
    "one rank": training_problem(ranks=1),
    "inference": training_problem(schedule="forward_only"),
    "free": training_problem(output_bytes=0),
    "tiny": training_problem(ranks=3, output_bytes=7),
}


@pytest.fixture(params=PROBLEMS, scope="module")
def plan(request):
    return timeline_of(PROBLEMS[request.param])


@pytest.fixture
def events(plan):
    return chrome_trace(*plan)["traceEvents"]


def of_phase(events, *phases):
    return [event for event in events if event["ph"] in phases]


def slices(events):
    """Give the complete events of every thread."""
    found = defaultdict(list)
    for event in of_phase(events, "X"):
        found[event["pid"], event["tid"]].append(event)
    return found


def test_the_format(plan, events):
    """Tests keys and types by phase, that nothing is negative, and that the text is the same object."""
    trace = chrome_trace(*plan)
    assert set(trace) == {"traceEvents", "displayTimeUnit", "otherData"}
    assert trace["displayTimeUnit"] in ("ms", "ns")
    assert set(REQUIRED) >= {event["ph"] for event in events}
    for event in events:
        assert set(event) >= REQUIRED[event["ph"]]
        assert set(event) <= {*REQUIRED[event["ph"]], "tid", "ts", "cname", "args"}
        assert all(type(event[name]) is TYPES[name] for name in event if name in TYPES)
        assert event["ts"] >= 0
        assert event.get("dur", 0) >= 0
        assert event.get("cname", "generic_work") in RESERVED_COLORS
    assert json.loads(chrome_trace_text(*plan)) == trace


def test_names_come_first_and_the_rest_is_sorted(events):
    """Tests that metadata comes first and times ascend."""
    phases = [event["ph"] for event in events]
    named = phases.count("M")
    assert set(phases[:named]) == {"M"}
    rest = [event["ts"] for event in events[named:]]
    assert rest == sorted(rest)


def test_every_thread_has_a_name_and_a_place(plan, events):
    """Tests that threads are named by device and by path, each once, and that only those are used."""
    timeline, _ = plan
    named = {}
    for event in of_phase(events, "M"):
        key = (event["name"], event["pid"], event["tid"])
        assert key not in named
        named[key] = event["args"]
    threads = {(pid, tid) for kind, pid, tid in named if kind == "thread_name"}
    assert threads == {(pid, tid) for kind, pid, tid in named if kind == "thread_sort_index"}
    assert {(event["pid"], event["tid"]) for event in of_phase(events, "X", "s", "t", "f", "C")} == threads
    assert len({tid for _, tid in threads}) == len(threads)  # some viewers know threads by their number alone
    names = [named["thread_name", pid, tid]["name"] for pid, tid in sorted(threads)]
    assert len(set(names)) == len(names)
    assert names[: timeline.num_ranks] == [memory.devices[0] for memory in timeline.memory]
    assert named["process_name", DEVICES, 0] == {"name": "devices"}
    assert (("process_name", LINKS, 0) in named) == bool(timeline.transfers)


def test_it_adds_up(plan, events):
    """Tests that all is there, that nothing overlaps on a thread, and that the last end is the makespan."""
    timeline, _ = plan
    found = slices(events)
    for own in found.values():
        assert all(before["ts"] + before["dur"] <= after["ts"] + 1e-6 for before, after in pairwise(own))
    devices = [event for (pid, _), own in found.items() for event in own if pid == DEVICES]
    links = [event for (pid, _), own in found.items() for event in own if pid == LINKS]
    assert (len(devices), len(links)) == (len(timeline.actions), len(timeline.transfers))
    assert max(event["ts"] + event["dur"] for event in devices) == pytest.approx(1e6 * timeline.makespan_s, rel=1e-9)
    busy = sum(event["dur"] for event in devices)
    assert busy == pytest.approx(1e6 * sum(each.end_s - each.start_s for each in timeline.actions), rel=1e-9)


def test_what_an_action_says(plan, events):
    """Tests that an action carries its microbatch, stage, kind and number of layers."""
    timeline, candidate = plan
    layers = {stage.index: len(stage.layers) for stage in candidate.stages}
    for event in of_phase(events, "X"):
        args = event["args"]
        assert (args["critical"], "critical" in event["cat"].split(",")) in ((True, True), (False, False))
        assert (event["cname"] == "terrible") == args["critical"]
        if event["pid"] == DEVICES:
            assert set(args) == {"microbatch", "stage", "kind", "layers", "critical"}
            assert args["layers"] == layers[args["stage"]]
            assert event["name"][1:].split(" ")[0] == str(args["microbatch"])
    critical = sum(event["args"]["critical"] for event in of_phase(events, "X"))
    assert critical == len(timeline.critical_path)


def test_flows(plan, events):
    """Tests that every transfer has a flow whose ends lie within events of the right threads."""
    timeline, _ = plan
    found = defaultdict(list)
    for event in of_phase(events, "s", "t", "f"):
        found[event["id"]].append(event)
    assert len(found) == len(timeline.transfers)
    running = slices(events)
    for flow in found.values():
        assert [event["ph"] for event in flow] == ["s", "t", "f"]
        assert [event["pid"] for event in flow] == [DEVICES, LINKS, DEVICES]
        assert len({(event["name"], event["cat"]) for event in flow}) == 1
        for event in flow:
            own = running[event["pid"], event["tid"]]
            assert any(each["ts"] <= event["ts"] < each["ts"] + each["dur"] for each in own)


def test_flows_of_actions_without_time_are_left_out():
    """Tests that no flow hangs in the air."""
    problem = training_problem()
    layers = [layer.model_copy(update={"forward_s": 0.0}) for layer in problem.model.layers]
    problem = problem.model_copy(update={"model": problem.model.model_copy(update={"layers": tuple(layers)})})
    timeline, candidate = timeline_of(problem)
    events = chrome_trace(timeline, candidate)["traceEvents"]
    assert len(timeline.transfers) == 6
    assert {event["name"] for event in of_phase(events, "s", "t", "f")} == {"backward"}


def test_memory(plan, events):
    """Tests that every rank has a counter, whose largest value is what the device needs."""
    timeline, candidate = plan
    for memory in timeline.memory:
        sizes = [event["args"]["bytes"] for event in of_phase(events, "C") if event["tid"] == memory.rank + 1]
        own = [stage.memory.total_bytes for stage in candidate.stages if stage.rank == memory.rank]
        assert max(sizes) == sum(own)
    assert len({event["name"] for event in of_phase(events, "C")}) == timeline.num_ranks


def test_the_same_timeline_gives_the_same_text(plan):
    """Tests that nothing depends on the run."""
    assert chrome_trace_text(*plan) == chrome_trace_text(*plan)
    (again,) = (timeline_of(problem) for problem in PROBLEMS.values() if timeline_of(problem) == plan)
    assert chrome_trace_text(*again) == chrome_trace_text(*plan)
