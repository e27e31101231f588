"""The report for people: figures, units and sentences."""

import io

import pytest
from small_answers import answer, candidate, metrics, report, stage
from small_problems import as_bytes, chain, too_large

from partita.models.answer import Baseline, Finding, Infeasibility, LevelResult
from partita.models.infeasibility import Change, NamedLimit
from partita.models.problem import read_problem
from partita.service.reports.proof import objective_text, objective_value, proof_sentence
from partita.service.reports.report import print_report
from partita.service.reports.wording import (
    counted,
    device_ranges,
    first_few,
    percent,
    seconds,
    significant,
    sized,
    spans,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1234.56, "1 235"),
        (0.00123456, "0.001235"),
        (9.99999, "10.00"),
        (123456789.0, "123 456 789"),
        (1e-9, "1.000e-09"),
        (-1.5, "-1.500"),
        (1e300, "1.000e+300"),
    ],
)
def test_significant(value, text):
    """Tests that numbers have four digits and no exponent where none is needed."""
    assert significant(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0 s"),
        (3600.0, "3 600 s"),
        (1.5, "1.500 s"),
        (0.0036, "3.600 ms"),
        (2e-6, "2.000 µs"),
        (3e-9, "3.000 ns"),
        (1e-12, "1.000e-12 s"),
    ],
)
def test_seconds(value, text):
    """Tests that times have the unit that suits them."""
    assert seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (80 * 2**30, "80.0 GiB"), (3 * 2**40, "3.00 TiB")],
)
def test_sized(value, text):
    """Tests that bytes have the unit that suits them."""
    assert sized(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0.00 %"), (0.05, "5.00 %"), (0.5, "50.0 %"), (0.00001, "under 0.01 %")]
)
def test_percent(value, text):
    """Tests that a small fraction does not look like none."""
    assert percent(value) == text


def test_lists():
    """Tests that lists are cut short and neighbors joined."""
    assert spans([3, 1, 2, 7]) == [(1, 3), (7, 7)]
    assert first_few(["a", "b", "c"], 2) == "a, b and 1 more"
    assert device_ranges(["node0:0", "node0:1", "node1:7"]) == ["node0:0-1", "node1:7"]
    assert (counted(1, "stage"), counted(2, "stage"), counted(0, "match", "matches")) == (
        "1 stage",
        "2 stages",
        "0 matches",
    )


def test_layers_that_are_not_neighbors():
    """Tests that a stage of a graph shows its layers as ranges."""
    lines = report(answer()).splitlines()
    assert lines[0] == "three: 3 layers, 2 stages, forward_only, 4 microbatches, 2 devices: optimal"
    assert " a, c " in lines[2]
    assert "50%" in lines[2]


def test_recompute_and_unknown_figures():
    """Tests that recomputed layers are counted and that what is unknown is left out."""
    one = candidate(stage(0, "a", "b", "c", recompute=("a", "b")), metrics=metrics(tokens=None, bubble=None))
    text = report(answer(candidates=(one,)))
    assert "Recomputed" in text
    assert "Throughput" not in text
    assert "Bubble" not in text


@pytest.mark.parametrize(
    ("time", "fits", "words"),
    [
        (12.0, True, "12.00 s, the same"),
        (18.0, True, "18.00 s, 50.0 % longer"),
        (9.0, True, "9.000 s, 25.0 % shorter"),
        (18.0, False, "18.00 s, 50.0 % longer, but it does not fit: it needs 1.00 GiB"),
    ],
)
def test_baselines(time, fits, words):
    """Tests that the plan is compared with the simple rules, and that one that does not fit is marked."""
    baselines = {"uniform": Baseline(metrics=metrics(time), stage_sizes=(2, 1), fits=fits)}
    assert words in report(answer(baselines=baselines))


def test_baselines_by_what_was_asked_for():
    """Tests that another objective than the iteration time is compared too."""
    baselines = {"uniform": Baseline(metrics=metrics(18.0), stage_sizes=(2, 1), fits=True)}
    text = report(answer(objective="bottleneck_time", baselines=baselines))
    assert "18.00 s, 50.0 % longer; bottleneck time 3.000 s" in text


def test_baseline_of_a_plan_that_takes_no_time():
    """Tests that nothing is divided by zero."""
    instant = candidate(stage(0, "a", "b", "c"), metrics=metrics(0.0))
    baselines = {"uniform": Baseline(metrics=metrics(1.0), stage_sizes=(3,), fits=True)}
    assert "with equal numbers of layers  1.000 s" in report(answer(candidates=(instant,), baselines=baselines))


def test_infeasible():
    """Tests that the reason, the findings and what would help are told."""
    why = Infeasibility(
        message="layer c fits nowhere",
        findings=(Finding(limit="memory", message="c needs 3 GB"),),
        limits_in_force=("memory", "pins"),
        smallest_change="a device of 3 GB",
    )
    problem = read_problem(as_bytes(too_large()))
    text = report(answer(status="infeasible", candidates=(), best_bound=None, infeasibility=why), problem)
    for words in ("No plan", "fits nowhere", "- c needs 3 GB", "memory, pins", "a device of 3 GB"):
        assert words in text


def explained(**fields):
    """Give a report of two limits that cannot hold together, and of changes."""
    limits = [
        NamedLimit(name=f"limits.{name}", pointer=f"/limits/{name}", value=value, words=words)
        for name, value, words in (
            ("peak_memory_bytes", 100, "no device holds more than 100 bytes"),
            ("iteration_time_s", 2.0, "an iteration takes at most 2 s"),
        )
    ]
    reason = {"message": "no plan keeps them", "limits_in_force": ("a", "b"), "core": limits, "minimal": True}
    why = Infeasibility(**reason | {"all_tried": True} | fields)
    return report(answer(status="infeasible", candidates=(), best_bound=None, infeasibility=why))


def change(words, size, objective_value=None, to_value=120):
    """Make a change of a limit."""
    figures = {"from_value": 100, "to_value": to_value, "size": size, "smallest": True}
    return Change(pointer="/limits/x", words=words, objective_value=objective_value, **figures)


def test_a_core_and_the_changes_that_would_do():
    """Tests that limits, changes, their sizes and what is reached are told, the smallest change first."""
    text = explained(changes=[change("raise x to 120", 0.2, 3.0), change("leave out y", 1.0, to_value=None)])
    lines = text.splitlines()
    start = lines.index("These cannot hold together, whatever else is given up; each of them is needed for that:")
    assert lines[start + 1 : start + 6] == [
        "- limits.peak_memory_bytes: no device holds more than 100 bytes",
        "- limits.iteration_time_s: an iteration takes at most 2 s",
        "Smallest change that would do: raise x to 120 (20.0 %); iteration time then 3.000 s",
        "Others that would do:",
        "- leave out y",
    ]


def test_many_changes():
    """Tests that the first ten of twelve changes are listed."""
    text = explained(changes=[change(f"change {number}", 1.0) for number in range(12)])
    assert "- change 9" in text
    assert "change 10" not in text
    assert "- and 2 more" in text


def test_what_is_not_known_of_the_reason():
    """Tests a core that may be too large, changes not tried, and neither where all is known."""
    unknown = explained(minimal=False, all_tried=False)
    assert "perhaps fewer cannot either: time ran out" in unknown
    assert "Not every change could be tried; allow more time" in unknown
    assert "No single change is enough." in explained()
    assert "Even without all of these limits there is no plan." in explained(core=())


def test_several_candidates():
    """Tests that the ranked plans are listed with the objective, once."""
    first = answer().candidates[0]
    text = report(answer(candidates=(first, first.model_copy(update={"rank": 2}))))
    assert "Plan  Iteration time  Peak memory  Layers per stage" in text
    weighted = answer(objective={"iteration_time_s": 1.0}, candidates=(first, first))
    assert "Weighted sum" in report(weighted)


def test_warnings_are_told():
    """Tests that warnings and assumptions are listed."""
    text = report(answer(warnings=("halve it",), assumptions=("nothing queues",)))
    assert "Warnings\n- halve it" in text
    assert "Assumptions\n- nothing queues" in text


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "Proven optimal: no plan has a better iteration time than 12.00 s."),
        (
            {"status": "feasible", "best_bound": 9.0, "relative_gap": 0.25},
            "No plan can have a better iteration time than 9.000 s; this one has 12.00 s, "
            "so this one is at most 25.0 % from the best.",
        ),
        (
            {"status": "optimal", "best_bound": 11.0, "relative_gap": 1 / 12},
            "No plan can have a better iteration time than 11.00 s; this one has 12.00 s, "
            "so this one is at most 8.33 % from the best.",
        ),
        (
            {"status": "feasible", "best_bound": None, "relative_gap": None},
            "Nothing is proven about other plans; this one's iteration time is 12.00 s.",
        ),
        (
            {"status": "feasible", "best_bound": 9.0, "relative_gap": None},
            "No plan can have a better iteration time than 9.000 s; this one has 12.00 s.",
        ),
        (
            {"objective": "tokens_per_second", "best_bound": 100.0},
            "Proven optimal: no plan has a better tokens per second than 100.0 tokens/s.",
        ),
        (
            {"objective": "peak_memory"},
            "Proven optimal: no plan has a better peak memory than 1.00 GiB.",
        ),
        (
            {"objective": "bottleneck_time"},
            "Proven optimal: no plan has a better bottleneck time than 3.000 s.",
        ),
        (
            {"objective": {"iteration_time_s": 2.0, "bottleneck_time_s": 1.0}},
            "Proven optimal: no plan has a better weighted sum than 27.00.",
        ),
        (
            {
                "objective": ("num_devices", "iteration_time"),
                "levels": (
                    LevelResult(objective="num_devices", value=1.0, best_bound=1.0),
                    LevelResult(objective="iteration_time", value=12.0, best_bound=12.0),
                ),
            },
            "Proven optimal: no plan has a better number of devices than 1; among its equals the best iteration time "
            "is 12.00 s.",
        ),
        (
            {"objective": "inter_node_bytes"},
            "Proven optimal: no plan has a better number of bytes between nodes than 0 B.",
        ),
    ],
)
def test_proof(changes, sentence):
    """Tests that bound and gap are one plain sentence, for every objective."""
    assert proof_sentence(answer(**changes)) == sentence


def test_objective_without_a_value():
    """Tests that an unknown figure is left empty."""
    assert objective_value("tokens_per_second", metrics(tokens=None)) == ""
    assert objective_text("tokens_per_second") == "Tokens per second"


@pytest.mark.parametrize("difference", [1e-12, -1e-12])
def test_times_that_differ_by_rounding_are_the_same(difference):
    """Tests that what is left of rounding is no difference."""
    baselines = {"uniform": Baseline(metrics=metrics(12.0 * (1 + difference)), stage_sizes=(2, 1), fits=True)}
    assert "12.00 s, the same" in report(answer(baselines=baselines))


def test_name_of_an_unnamed_model():
    """Tests that the file's name stands where the model has none, and only there."""
    unnamed = chain()
    del unnamed["model"]["name"]
    for problem, name in ((unnamed, "mine"), (chain(), "three")):
        file = io.StringIO()
        print_report(answer(), read_problem(as_bytes(problem)), file, title="mine")
        assert file.getvalue().startswith(f"{name}: 3 layers")


def placed(rank, *devices):
    stages = (stage(0, "a", "b"), stage(1, "c"))
    stages = tuple(one.model_copy(update={"devices": (at,)}) for one, at in zip(stages, devices, strict=True))
    return candidate(*stages, rank=rank)


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (("node1:0", "node0:0"), ("2 1               node0 x2", "2 1               node1 x1, node0 x1")),
        (("node0:1", "node0:0"), ("2 1               node0:0 node0:1", "2 1               node0:1 node0:0")),
    ],
)
def test_plans_of_equal_sizes(second, words):
    """Tests that plans that differ in their placement only can be told apart."""
    text = report(answer(candidates=(placed(1, "node0:0", "node0:1"), placed(2, *second))))
    assert "Placement" in text
    for part in words:
        assert part in text
    other = candidate(stage(0, "a"), stage(1, "b", "c"), rank=2)
    assert "Placement" not in report(answer(candidates=(placed(1, "node0:0", "node0:1"), other)))


def test_reserve():
    """Tests that the table says that a reserve is part of the memory, where there is one."""
    one = stage(0, "a", "b", "c")
    kept = one.model_copy(update={"memory": one.memory.model_copy(update={"reserve_bytes": 2**30})})
    plans = [(candidate(part),) for part in (one, kept)]
    assert "reserve" not in report(answer(candidates=plans[0]))
    assert "Memory includes the reserve of 1.00 GiB." in report(answer(candidates=plans[1]))


def test_lines_end_where_their_text_ends():
    """Tests that no line ends in blanks."""
    assert all(line == line.rstrip() for line in report(answer()).splitlines())


def test_units_stay_with_their_numbers(monkeypatch):
    """Tests that no line of a narrow report ends between a number and its unit."""
    baselines = {"uniform": Baseline(metrics=metrics(18.0), stage_sizes=(2, 1), fits=False)}
    for width in range(50, 90):
        monkeypatch.setattr("partita.service.reports.printing.PIPED_WIDTH", width)
        text = report(answer(objective="bottleneck_time", baselines=baselines))
        figures = text[text.index("\nIteration time") : text.index("\nThroughput")].splitlines()
        assert not any(line and line[-1].isdigit() for line in figures), figures
