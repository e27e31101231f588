"""Tests that timelines add up: every action once, no overlap, the makespan, memory and the critical path."""

from itertools import groupby, islice, pairwise
from typing import Any

import pytest

from oracle.partitions import partitions, stage_counts
from oracle.small import FREE, Json, edges, small_problem
from partita.models.answer import Candidate
from partita.models.document import validate
from partita.models.errors import InvalidInput
from partita.models.plan import GivenPlan
from partita.models.problem import Problem
from partita.solver.checks import InternalError
from partita.solver.review import evaluate_plan
from partita.solver.timeline import Action, RankMemory, Timeline, Transfer, timeline
from strategies import read, seeded_problem

SLOW = {"bandwidth_bytes_per_s": 1e3}
"""A thousand bytes take a second."""


def priced(problem: Problem, *stages: str, devices: list[list[str]] | None = None) -> Candidate:
    """Price the plan whose stages have the layers named by letters."""
    listed: list[Json] = [{"layers": list(stage)} for stage in stages]
    if devices is not None:
        listed = [stage | {"devices": each} for stage, each in zip(listed, devices, strict=True)]
    return evaluate_plan(problem, validate(GivenPlan, {"stages": listed})).candidates[0]


def drawn(problem: Problem, *stages: str) -> Timeline:
    """Give the timeline of such a plan."""
    return timeline(problem, priced(problem, *stages))


def pipeline(num_microbatches: int = 3, output_bytes: int = 5000, **training: Any) -> Problem:
    """Give two layers of 2 s forward and 3 s backward, of which 1 s is the weight gradient, and a transfer of 5 s."""
    costs = {"forward_s": 2.0, "backward_s": 3.0, "weight_gradient_s": 1.0}
    sizes = {"activation_bytes": 10, "weight_gradient_bytes": 4, "weight_bytes": 100}
    layers = {"a": {"output_bytes": output_bytes} | costs | sizes, "b": costs | sizes}
    nodes = [{"name": "node0", "device": "gpu", "count": 2, "fabric": SLOW}]
    return small_problem(layers, nodes=nodes, num_microbatches=num_microbatches, **training)


def times(found: Timeline, rank: int) -> list[tuple[str, float, float]]:
    """Give the actions of a rank: kind and microbatch, start and end."""
    return [(f"{a.kind}{a.microbatch}", a.start_s, a.end_s) for a in found.actions if a.rank == rank]


def check(found: Timeline, candidate: Candidate, problem: Problem) -> None:
    """Check everything that holds of any timeline."""
    check_actions(found, candidate, problem)
    check_transfers(found, candidate)
    check_memory(found, candidate)
    check_critical_path(found)
    once = candidate.metrics.iteration_time_s - found.once_s
    assert found.makespan_s == pytest.approx(once, rel=1e-9, abs=1e-12)
    assert found.makespan_s == max(action.end_s for action in found.actions)


def check_actions(found: Timeline, candidate: Candidate, problem: Problem) -> None:
    """Check that every action is there once and for its time, one after the other on its rank, and what is idle."""
    stages = {stage.index: stage for stage in candidate.stages}
    passes = {(a.stage, a.microbatch, a.kind) for a in found.actions}
    assert len(passes) == len(found.actions)
    backward = problem.training.schedules[0].trains
    for stage in stages:
        for microbatch in range(problem.training.num_microbatches):
            kinds = "".join(kind for kind in "FBIW" if (stage, microbatch, kind) in passes)
            assert kinds in (("FB", "FIW") if backward else ("F",))
    for _, group in groupby(found.actions, key=lambda action: action.rank):
        own = list(group)
        assert own[0].start_s >= 0
        assert all(before.end_s <= after.start_s for before, after in pairwise(own))
    for action in found.actions:
        stage_ = stages[action.stage]
        assert (action.rank, action.devices) == (stage_.rank, stage_.devices)
        if not found.blocking:
            backward_s, weight_s = stage_.backward_s, stage_.weight_gradient_s
            parts = {"F": stage_.forward_s, "B": backward_s, "I": backward_s - weight_s, "W": weight_s}
            assert action.end_s - action.start_s == pytest.approx(parts[action.kind], abs=1e-9 * found.makespan_s)
    if candidate.metrics.bubble_fraction is not None:
        busy = sum(action.end_s - action.start_s for action in found.actions)
        idle = 1 - busy / (found.num_ranks * found.makespan_s)
        assert candidate.metrics.bubble_fraction == pytest.approx(idle, abs=1e-9)


def check_transfers(found: Timeline, candidate: Candidate) -> None:
    """Check that transfers lie between the sender's end and the receiver's start, one at a time."""
    ended: dict[tuple[bool, int, int], Action] = {(a.kind == "F", a.stage, a.microbatch): a for a in found.actions}
    ended |= {(False, a.stage, a.microbatch): a for a in found.actions if a.kind == "I"}
    boundaries = {(each.from_stage, each.to_stage): each for each in candidate.boundaries}
    for transfer in found.transfers:
        forward = transfer.direction == "forward"
        assert forward == (transfer.from_stage < transfer.to_stage)
        assert transfer.start_s >= ended[forward, transfer.from_stage, transfer.microbatch].end_s
        assert transfer.end_s <= ended[forward, transfer.to_stage, transfer.microbatch].start_s
        low, high = sorted((transfer.from_stage, transfer.to_stage))
        boundary = boundaries[low, high]
        takes = boundary.transfer_s if forward else boundary.backward_transfer_s
        assert transfer.path == boundary.path
        assert 0 < transfer.end_s - transfer.start_s == pytest.approx(takes, abs=1e-9 * found.makespan_s)
    for _, group in groupby(found.transfers, key=lambda each: (each.from_stage, each.to_stage)):
        assert all(before.end_s <= after.start_s for before, after in pairwise(group))


def check_memory(found: Timeline, candidate: Candidate) -> None:
    """Check that the most that a device uses at any time is its total, and that it begins and ends alike."""
    for memory in found.memory:
        own = [stage for stage in candidate.stages if stage.rank == memory.rank]
        assert memory.peak_bytes == sum(stage.memory.total_bytes for stage in own)
        assert memory.capacity_bytes == own[0].memory.capacity_bytes
        assert [time for time, _ in memory.steps] == sorted(time for time, _ in memory.steps)
        constant = sum(stage.memory.total_bytes - stage.memory.activations_bytes for stage in own)
        assert memory.steps[-1][1] == constant
    assert max(memory.peak_bytes for memory in found.memory) == candidate.metrics.peak_memory_bytes


def check_critical_path(found: Timeline) -> None:
    """Check that the pieces follow each other from the beginning to the end, and are what is marked as critical."""
    path = found.critical_path
    assert path[0].start_s == 0
    assert path[-1].end_s == found.makespan_s
    assert all(before.end_s == after.start_s for before, after in pairwise(path))
    spent = sum(piece.end_s - piece.start_s for piece in path)
    assert spent == pytest.approx(found.makespan_s, rel=1e-9, abs=1e-15)
    marked = [each for each in (*found.actions, *found.transfers) if each.critical]
    assert len(marked) == len(path)
    assert all(piece.of in marked for piece in path)


def test_1f1b_over_a_slow_boundary() -> None:
    """Tests every start and end by hand: F2 of the first stage waits for B0, which waited for the way and back."""
    problem = pipeline(schedule="1f1b")
    found = drawn(problem, "a", "b")
    assert times(found, 0) == [
        ("F0", 0, 2),
        ("F1", 2, 4),
        ("B0", 17, 20),
        ("F2", 20, 22),
        ("B1", 22, 25),
        ("B2", 37, 40),
    ]
    assert times(found, 1) == [
        ("F0", 7, 9),
        ("B0", 9, 12),
        ("F1", 12, 14),
        ("B1", 14, 17),
        ("F2", 27, 29),
        ("B2", 29, 32),
    ]
    sent = [(t.from_stage, t.microbatch, t.start_s, t.end_s) for t in found.transfers]
    assert sent == [(0, 0, 2, 7), (0, 1, 7, 12), (0, 2, 22, 27), (1, 0, 12, 17), (1, 1, 17, 22), (1, 2, 32, 37)]
    assert {t.path for t in found.transfers} == {("node0 fabric",)}
    assert found.makespan_s == 40
    path = [(type(piece.of).__name__[0], piece.of.microbatch, piece.start_s) for piece in found.critical_path]
    assert path == [
        ("A", 0, 0), ("T", 0, 2), ("A", 0, 7), ("A", 0, 9), ("T", 0, 12), ("A", 0, 17), ("A", 2, 20), ("T", 2, 22),
        ("A", 2, 27), ("A", 2, 29), ("T", 2, 32), ("A", 2, 37),
    ]  # fmt: skip


def test_memory_of_whole_backward_passes() -> None:
    """Tests that a microbatch counts from the start of its forward to the end of its backward."""
    problem = pipeline(schedule="1f1b", optimizer="none")
    (first, second) = drawn(problem, "a", "b").memory
    own = 100 + 5000  # the weight and the receive buffer
    steps = [(0.0, 10), (2.0, 20), (20.0, 20), (25.0, 10), (40.0, 0)]  # at 20 B0 ends and F2 starts
    steps = [step for step in steps if step[0] != 20.0]
    assert list(first.steps) == [(time, own + kept) for time, kept in steps]
    alone = [(0.0, 0), (7.0, 10), (12.0, 10), (17.0, 0), (27.0, 10), (32.0, 0)]
    alone = [step for step in alone if step[0] != 12.0]
    assert list(second.steps) == [(time, own + kept) for time, kept in alone]


def test_memory_of_split_backward_passes() -> None:
    """Tests one stage with the order F0 I0 F1 W0 I1 W1: what the weight gradient needs stays until it is done."""
    orders = [["0F0", "0I0", "0F1", "0W0", "0I1", "0W1"]]
    problem = pipeline(2, schedule={"kind": "custom", "orders": orders}, optimizer="none")
    (memory,) = drawn(problem, "ab").memory
    # F 4 s, I 4 s, W 2 s; a microbatch keeps 20 bytes, and 8 after I.
    assert list(memory.steps) == [(0.0, 220), (8.0, 228), (14.0, 220), (18.0, 208), (20.0, 200)]


def test_blocking_actions_contain_their_transfers() -> None:
    """Tests forward passes of 2 s with a transfer of 5 s that is part of both: 2 + 5, then 5 + 2 from 2 s on."""
    problem = pipeline(1, schedule="forward_only", communication="blocking")
    found = drawn(problem, "a", "b")
    assert times(found, 0) == [("F0", 0, 7)]
    assert times(found, 1) == [("F0", 2, 9)]
    assert found.transfers == ()
    assert found.blocking
    assert [(piece.start_s, piece.end_s) for piece in found.critical_path] == [(0, 2), (2, 9)]


def test_transfers_without_time_are_left_out() -> None:
    """Tests a free fabric: the critical path is contiguous without its transfers."""
    found = drawn(small_problem("ab", num_microbatches=2), "a", "b")
    assert found.transfers == ()
    assert [(piece.start_s, piece.end_s) for piece in found.critical_path] == [(0, 1), (1, 2), (2, 3)]


def test_a_tensor_that_skips_a_stage() -> None:
    """Tests that with direct routing the way past a stage is a transfer of its own, and free ways are none."""
    nodes = [{"name": "node0", "device": "gpu", "count": 3, "fabric": SLOW}]
    problem = small_problem("abc", nodes=nodes, model=edges("a>c", size=10_000), routing="direct")
    (transfer,) = drawn(problem, "a", "b", "c").transfers
    assert (transfer.from_stage, transfer.to_stage, transfer.start_s, transfer.end_s) == (0, 2, 1, 11)


def test_devices_as_the_candidate_names_them() -> None:
    """Tests stages of two devices that are not in order, and the path between them."""
    nodes = [{"name": name, "device": "gpu", "count": 2, "fabric": FREE, "uplink": SLOW} for name in "uv"]
    layers = {"a": {"forward_s": 1.0, "output_bytes": 1000}, "b": {"forward_s": 1.0}}
    problem = small_problem(layers, nodes=nodes, tensor_parallel=2)
    found = timeline(problem, priced(problem, "a", "b", devices=[["v:1", "v:0"], ["u:0", "u:1"]]))
    assert [memory.devices for memory in found.memory] == [("v:1", "v:0"), ("u:0", "u:1")]
    assert found.transfers[0].path == ("v uplink", "u uplink")


def test_what_follows_the_makespan() -> None:
    """Tests that the optimizer's step is not on the timeline."""
    optimizer = {"gradient_bytes_per_weight_byte": 0.0, "state_bytes_per_weight_byte": 0.0, "step_s": 7.0}
    problem = pipeline(schedule="1f1b", optimizer=optimizer)
    candidate = priced(problem, "a", "b")
    assert candidate.metrics.iteration_time_s == 47
    found = timeline(problem, candidate)
    assert (found.makespan_s, found.once_s) == (40, 7)


@pytest.mark.parametrize("block", range(12))
def test_random_plans(block: int) -> None:
    """Tests plans of random problems under every schedule."""
    for seed in range(10 * block, 10 * block + 10):
        problem = read(seeded_problem(seed))
        names = [layer.name for layer in problem.model.layers]
        for stages in stage_counts(problem):
            for partition in islice(partitions(problem, stages), 0, 60, 20):
                listed = [[n for n, at in zip(names, partition, strict=True) if at == k] for k in range(stages)]
                plan = validate(GivenPlan, {"stages": [{"layers": layers} for layers in listed]})
                (candidate,) = evaluate_plan(problem, plan).candidates
                check(timeline(problem, candidate), candidate, problem)


def test_one_of_several_schedules() -> None:
    """Tests that a candidate's timeline is that of its own schedule."""
    problem = pipeline(schedule=["gpipe", "1f1b"])
    answer = evaluate_plan(problem, validate(GivenPlan, {"stage_sizes": [1, 1]}))
    found = {each.schedule.kind: times(timeline(problem, each), 0) for each in answer.candidates}
    assert [name for name, _, _ in found["1f1b"]] == ["F0", "F1", "B0", "F2", "B1", "B2"]
    assert [name for name, _, _ in found["gpipe"]] == ["F0", "F1", "F2", "B0", "B1", "B2"]


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ({"metrics": {"iteration_time_s": 39.0}}, "iteration time is 39.0 s, its stages have 40.0 s"),
        ({"metrics": {"peak_memory_bytes": 1}}, "peak memory is 1 bytes"),
        ({"stages": {"memory": {"total_bytes": 1}}}, "stage 0 of the candidate has 1 bytes"),
    ],
)
def test_figures_of_another_plan(place: Json, words: str) -> None:
    """Tests that figures that the stages do not have are an error, never a timeline."""
    problem = pipeline(schedule="1f1b")
    candidate = priced(problem, "a", "b")
    if "metrics" in place:
        changed = candidate.model_copy(update={"metrics": candidate.metrics.model_copy(update=place["metrics"])})
    else:
        first, second = candidate.stages
        memory = first.memory.model_copy(update=place["stages"]["memory"])
        changed = candidate.model_copy(update={"stages": (first.model_copy(update={"memory": memory}), second)})
    with pytest.raises(InternalError, match=words):
        timeline(problem, changed)


def test_stages_that_are_no_plan() -> None:
    """Tests that a candidate of another problem is refused with pointers into it."""
    candidate = priced(pipeline(schedule="1f1b"), "a", "b")
    other = small_problem("abc", schedule="1f1b", devices=3)
    with pytest.raises(InvalidInput) as caught:
        timeline(other, candidate)
    assert [(fault.pointer, fault.code) for fault in caught.value.faults] == [("/plan/stages", "missing_layers")]


def test_too_many_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a timeline that would never end is refused with its length."""
    problem = pipeline(schedule="1f1b")
    candidate = priced(problem, "a", "b")
    monkeypatch.setattr("partita.solver.timeline.MOST_ACTIONS", 11)
    with pytest.raises(InvalidInput, match="12 actions is too long, at most 11"):
        timeline(problem, candidate)


def test_frozen() -> None:
    """Tests that parts of a timeline compare by their values."""
    problem = pipeline(schedule="1f1b")
    one, same = drawn(problem, "a", "b"), drawn(problem, "a", "b")
    assert one == same
    assert {type(each) for each in (*one.actions, *one.transfers, *one.memory)} == {Action, Transfer, RankMemory}
