"""The report for people: several stages per rank, split backward passes, and schedules compared."""

import pytest
from small_answers import answer, candidate, metrics, report, stage
from small_problems import as_bytes, chain

from partita.models.answer import ScheduleResult
from partita.models.problem import read_problem
from partita.models.schedule import Schedule
from partita.service.reports.schedule_words import schedule_name

FOUR = read_problem(as_bytes(chain(model__layers=[{"name": name, "forward_s": 1.0} for name in "abcd"])))


def compared(*schedules):
    """Give a problem that compares schedules."""
    return read_problem(as_bytes(chain(training__schedule=list(schedules), training__num_stages=None)))


def result(kind, status, value=None, bound=None, **more):
    return ScheduleResult(schedule=Schedule(kind=kind, **more), status=status, objective_value=value, best_bound=bound)


def lines_from(text, start):
    """Give the lines from the one that starts so, up to the next empty one."""
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith(start))
    return [*lines[first:], ""][: [*lines[first:], ""].index("")]


def folded(total=6):
    """Give the parts of a plan of four stages that go down two ranks and up again."""
    return [stage(index, name, rank=rank, total=total) for index, (name, rank) in enumerate(zip("abcd", (0, 1, 1, 0)))]


def test_one_stage_per_rank_in_order():
    """Tests that a plan with a stage on every rank says nothing of ranks."""
    text = report(answer())
    assert text.splitlines()[1] == "Stage  Layers  Count  Forward  Backward  Memory    of  Used  Devices"
    for words in ("Rank ", "Kept", "share", "of it W", "Schedule"):
        assert words not in text


def test_stages_that_share_devices():
    """Tests that every stage has its rank, and every device the sum of its stages."""
    text = report(answer(candidates=(candidate(*folded(), schedule="looped_bfs"),)), FOUR)
    assert lines_from(text, "Stage") == [
        "Stage  Rank  Layers  Count  Forward  Backward  Memory",
        "    0     0  a           1  1.000 s       0 s     6 B",
        "    1     1  b           1  1.000 s       0 s     6 B",
        "    2     1  c           1  1.000 s       0 s     6 B",
        "    3     0  d           1  1.000 s       0 s     6 B",
        "Memory: a stage's share of its device.",
    ]
    assert lines_from(text, "Rank") == [
        "Rank  Stages  Forward  Backward  Memory    of  Used  Devices",
        "   0  0, 3    2.000 s       0 s    12 B  20 B   60%  node0:0",
        "   1  1-2     2.000 s       0 s    12 B  20 B   60%  node0:1",
    ]


def test_a_stage_on_another_rank():
    """Tests that custom orders may exchange ranks, one stage on each."""
    plan = candidate(stage(0, "a", "b", rank=1), stage(1, "c", rank=0), schedule="gpipe")
    text = report(answer(candidates=(plan,)))
    assert "    0     1  a … b       2" in text
    assert "    1     0  c           1" in text
    assert "share" not in text


def test_split_passes():
    """Tests that the time of the weight gradient is shown, and what waits for it."""
    waiting = stage(0, "a", "b", in_flight=3, awaiting_weight_gradient=2)
    text = report(answer(candidates=(candidate(waiting, stage(1, "c", in_flight=1), schedule="zb_h1"),)))
    assert lines_from(text, "Stage") == [
        "Stage  Layers  Count  Forward  Backward  of it W         Kept  Memory    of  Used  Devices",
        "    0  a … b       2  1.000 s       0 s      0 s  3 + 2 for W    10 B  20 B   50%  node0:0",
        "    1  c           1  1.000 s       0 s      0 s            1    10 B  20 B   50%  node0:1",
        "Kept: microbatches held when the device is fullest; for W: only what their weight gradient needs.",
    ]


def test_a_device_that_is_too_full():
    """Tests that the sum of the stages tells whether a device is too full."""
    text = report(answer(candidates=(candidate(*folded(total=11), schedule="looped_bfs"),)))
    assert "22 B  20 B  110%" in text


def test_a_comparison():
    """Tests the table of schedules: value, bound and how every search ended."""
    kinds = ("zb_v", "1f1b", "zb_h1", "gpipe", "looped_bfs", "zb_h2", "interleaved_1f1b")
    results = (
        result("zb_v", "optimal", 12.0, 12.0),
        result("1f1b", "feasible", 16.0, 12.0),
        result("zb_h1", "feasible", 16.0, 11.0),
        result("gpipe", "cut_off", 20.0, 13.0),
        result("looped_bfs", "cut_off", None, 14.0),
        result("zb_h2", "no_solution", None, 3.0),
        result("interleaved_1f1b", "infeasible"),
    )
    plans = (
        candidate(*folded(), schedule="zb_v"),
        candidate(stage(0, "a", "b"), stage(1, "c"), schedule="1f1b", rank=2),
    )
    text = report(answer(candidates=plans, schedules=results), compared(*kinds))
    assert text.splitlines()[0] == "three: 3 layers, 4 stages, zb_v of 7 schedules, 4 microbatches, 2 devices: optimal"
    assert lines_from(text, "Schedule") == [
        "Schedule          Iteration time    Bound  Status",
        "zb_v                     12.00 s  12.00 s  optimal",
        "1f1b                     16.00 s  12.00 s  feasible, at most 25.0 % from its best",
        "zb_h1                    16.00 s  11.00 s  feasible, at most 31.2 % from its best",
        "gpipe                    20.00 s  13.00 s  cut off: cannot beat zb_v",
        "looped_bfs                        14.00 s  cut off: cannot beat zb_v",
        "zb_h2                             3.000 s  no plan was found in time",
        "interleaved_1f1b                           infeasible",
    ]
    assert lines_from(text, "Plan  Schedule") == [
        "Plan  Schedule  Iteration time  Peak memory  Layers per stage",
        "   1  zb_v             12.00 s     1.00 GiB  1 1 1 1",
        "   2  1f1b             12.00 s     1.00 GiB  2 1",
    ]


def test_a_comparison_without_a_plan():
    """Tests that the headline says how many schedules were tried where none has a plan."""
    results = (result("gpipe", "infeasible"), result("1f1b", "infeasible"))
    text = report(
        answer(status="infeasible", candidates=(), best_bound=None, schedules=results), compared("gpipe", "1f1b")
    )
    assert "three: 3 layers, 2 schedules, 4 microbatches" in text
    assert "gpipe                            infeasible" in text


def test_equal_sizes_under_two_schedules():
    """Tests that plans that their schedules tell apart show no placement."""
    parts = (stage(0, "a", "b"), stage(1, "c"))
    plans = (candidate(*parts, schedule="gpipe"), candidate(*parts, schedule="1f1b", rank=2))
    assert "Placement" not in report(answer(candidates=plans), compared("gpipe", "1f1b"))


def test_the_placement_of_folded_stages():
    """Tests that a rank's devices are named once."""
    plans = tuple(candidate(*folded(), schedule="looped_bfs", rank=rank) for rank in (1, 2))
    assert "1 1 1 1           node0:0 node0:1\n" in report(answer(candidates=plans))


@pytest.mark.parametrize(
    ("number", "among", "name"),
    [
        (0, ["1f1b", "zb_v"], "1f1b"),
        (0, [{"kind": "looped_bfs", "chunks_per_rank": 3}], "looped_bfs"),
        (1, [{"kind": "looped_bfs", "chunks_per_rank": 3}, "looped_bfs"], "looped_bfs (2 per rank)"),
        (1, [{"kind": "custom", "orders": "0F0"}, {"kind": "custom", "orders": "0F0\n1F0"}], "custom 2"),
    ],
)
def test_names_of_schedules(number, among, name):
    """Tests that schedules of one kind are told apart, and others are called by their kind."""
    schedules = [Schedule.model_validate({"kind": each} if isinstance(each, str) else each) for each in among]
    assert schedule_name(schedules[number], schedules) == name


def test_rates_and_queues():
    """Tests that the rate of the steady state is shown, and the time with queues where it was simulated."""
    text = report(answer())
    assert "Bottleneck      3.000 s per microbatch: 0.3333 microbatches/s in steady state" in text
    assert "queues" not in text
    for time, gap, words in ((16.0, 0.25, "16.00 s, 25.0 % of it by waiting"), (12.0, 0.0, "12.00 s, the same")):
        queued = metrics(queued_iteration_time_s=time, queueing_gap=gap)
        text = report(answer(candidates=(candidate(stage(0, "a", "b", "c"), metrics=queued),)))
        assert f"with queues for links  {words}\n" in text
    instant = metrics(bottleneck_time_s=0.0, microbatches_per_second=None)
    assert "microbatches/s" not in report(answer(candidates=(candidate(stage(0, "a", "b", "c"), metrics=instant),)))


def test_a_comparison_of_degrees():
    """Tests the columns of degrees that differ, in both tables, and the best configuration by its degrees."""

    def of_degrees(status, tensor, value, bound):
        found = result("1f1b", status, value, bound)
        return found.model_copy(update={"tensor_parallel": tensor, "num_microbatches": 8, "data_parallel": 2})

    problem = read_problem(as_bytes(chain(training__tensor_parallel=[1, 2], training__num_microbatches=8)))
    plans = tuple(
        candidate(stage(0, "a"), rank=rank).model_copy(update={"tensor_parallel": tensor, "num_microbatches": 8})
        for rank, tensor in ((1, 2), (2, 1))
    )
    listed = (of_degrees("optimal", 2, 4.0, 4.0), of_degrees("cut_off", 1, None, 5.0))
    text = report(answer(candidates=plans, schedules=listed), problem)
    assert "8 microbatches, tensor 2, the best of 2 configurations" in text.splitlines()[0]
    assert lines_from(text, "Tensor") == [
        "Tensor  Iteration time    Bound  Status",
        "     2         4.000 s  4.000 s  optimal",
        "     1                  5.000 s  cut off",
    ]
    assert lines_from(text, "Plan")[0].startswith("Plan  Tensor  Iteration time")
    assert "Placement" not in text  # the degrees tell the plans apart


def test_the_devices_of_ranks_with_several():
    """Tests that the devices of each rank are named as a range where only they tell plans apart."""

    def on(rank, *places):
        parts = (stage(0, "a"), stage(1, "b", "c"))
        placed = [
            part.model_copy(update={"rank": part.index, "devices": tuple(f"node0:{number}" for number in numbers)})
            for part, numbers in zip(parts, places, strict=True)
        ]
        return candidate(*placed, rank=rank)

    text = report(answer(candidates=(on(1, (0, 1), (2, 3)), on(2, (2, 3), (0, 1)))))
    assert [line.split()[-2:] for line in lines_from(text, "Plan")[1:]] == [
        ["node0:0-1", "node0:2-3"],
        ["node0:2-3", "node0:0-1"],
    ]
