"""Tests that a plan in use is kept, replaced or given up as asked, and that the search starts from it."""

from itertools import pairwise

import pytest

from oracle.comparison import check_candidate, key_of, value_of
from oracle.search import every_plan
from oracle.small import Json, small_problem
from partita.models.answer import Answer
from partita.models.document import validate
from partita.models.errors import InvalidInput
from partita.models.plan import GivenPlan
from partita.models.problem import Problem
from partita.solver.planner import plan_problem
from partita.solver.review import evaluate_plan
from partita.solver.starts import start_of
from partita.solver.variants import make_variants
from strategies import first_drawn, read, seeded_problem

FREE = {"bandwidth_bytes_per_s": 1e18}


def replanned(keep: Json, within: float = 0.0, *, problem: Json | None = None, **search: object) -> Answer:
    """Plan six layers of 1 s on two devices with two microbatches; stages of 3 s and 3 s are best, with 9 s."""
    asked = {"keep": keep, "keep_if_within": within, "candidates": 3} | search
    return plan_problem(small_problem("abcdef", num_microbatches=2, search=asked, **(problem or {})))


def sizes(answer: Answer) -> list[list[int]]:
    """Give how many layers the stages of every candidate have."""
    return [[len(stage.layers) for stage in candidate.stages] for candidate in answer.candidates]


def test_a_plan_is_kept_within_the_fraction() -> None:
    """Tests 10 s against 9 s, 10 % better: the plan is first, the warning has both numbers, the bound stays."""
    answer = replanned({"stage_sizes": [4, 2]}, 0.1)
    assert sizes(answer)[:2] == [[4, 2], [3, 3]]
    assert len(answer.candidates) == 3
    assert [each.rank for each in answer.candidates] == [1, 2, 3]
    assert (answer.status, answer.best_bound, answer.relative_gap) == ("feasible", 9.0, pytest.approx(0.1))
    assert answer.candidates[0].best_bound == 9.0
    assert (
        "search.keep stays in front: its iteration_time is 10 s, the best plan found has 9 s, 10 % better, no"
        in (answer.warnings[-1])
    )
    assert answer.baselines["uniform"].stage_sizes == (3, 3)


def test_a_list_of_metrics_is_decided_by_the_first_that_differs() -> None:
    """Tests a plan with as many devices as the best and a longer iteration: its levels are its own, not optimal."""
    lexicographic: Json = {"objective": ["num_devices", "iteration_time"], "num_stages": 2}
    answer = replanned({"stage_sizes": [4, 2]}, 0.1, problem=lexicographic)
    assert sizes(answer)[:2] == [[4, 2], [3, 3]]
    assert answer.status == "feasible"
    assert [(level.value, level.best_bound) for level in answer.levels] == [(2.0, 2.0), (10.0, 9.0)]
    assert "iteration_time is 10 s, the best plan found has 9 s, 10 % better" in answer.warnings[-1]
    assert sizes(replanned({"stage_sizes": [4, 2]}, 0.09, problem=lexicographic))[0] == [3, 3]
    with pytest.raises(InvalidInput, match="/search/keep_if_within: there is no plan to keep"):
        small_problem("ab", search={"keep_if_within": 0.1})


def test_a_plan_is_replaced_beyond_the_fraction() -> None:
    """Tests the same plan where 9 % are allowed: the answer is the usual one, with a warning."""
    answer, usual = replanned({"stage_sizes": [4, 2]}, 0.09), replanned({"stage_sizes": [3, 3]})
    assert answer.candidates == usual.candidates
    assert answer.status == "optimal"
    assert "search.keep is replaced" in answer.warnings[-1]


def test_the_best_plan_is_kept_without_a_word() -> None:
    """Tests a plan that no other beats: it is optimal and stands once, first of those that are as good."""
    answer = replanned({"stages": [{"layers": ["a", "b", "c"], "devices": ["node0:1"]}, {"layers": ["d", "e", "f"]}]})
    assert "search.keep no longer fits: a stage runs on 1 device of one node" in answer.warnings[-1]
    devices = [["node0:1"], ["node0:0"]]
    stages = [{"layers": list(part), "devices": each} for part, each in zip(("abc", "def"), devices, strict=True)]
    answer = replanned({"stages": stages})
    assert (answer.status, answer.relative_gap, answer.warnings) == ("optimal", 0.0, ())
    assert sizes(answer)[0] == [3, 3]
    assert sizes(answer).count([3, 3]) == 1
    assert [list(stage.devices) for stage in answer.candidates[0].stages] == devices


def test_the_one_plan_asked_for_is_the_kept_one() -> None:
    """Tests a single candidate."""
    assert sizes(replanned({"stage_sizes": [4, 2]}, 0.5, candidates=1)) == [[4, 2]]


@pytest.mark.parametrize(
    ("keep", "problem", "words"),
    [
        ({"stages": [{"layers": ["a", "x"]}]}, {}, "there is no layer 'x'"),
        ({"stage_sizes": [3, 4]}, {}, "add up to 7"),
        ({"stage_sizes": [2, 2, 2]}, {}, "the plan runs on 3 ranks, but the devices allow 2"),
        ({"stage_sizes": [4, 2]}, {"limits": {"iteration_time_s": 9.5}}, "iteration_time_s is 10, the limit is 9.5"),
        ({"stage_sizes": [4, 2]}, {"constraints": {"pins": {"d": 1}}}, "'d' is on stage 0, pinned to 1"),
    ],
)
def test_a_plan_that_no_longer_fits(keep: Json, problem: Json, words: str) -> None:
    """Tests other layers, fewer devices and new limits: the reason is named, and the plan is the best one."""
    answer = replanned(keep, 0.5, problem=problem)
    assert answer.status == "optimal"
    assert sizes(answer)[0] == [3, 3]
    assert answer.warnings[-1].startswith("search.keep no longer fits: ")
    assert words in answer.warnings[-1]


def test_a_higher_value_can_be_the_better_one() -> None:
    """Tests tokens per second: 0.2 against 2/9, 11 % better."""
    objective = {"objective": "tokens_per_second"}
    kept = replanned({"stage_sizes": [4, 2]}, 0.12, problem=objective)
    assert sizes(kept)[0] == [4, 2]
    assert kept.relative_gap == pytest.approx(1 / 9)
    assert sizes(replanned({"stage_sizes": [4, 2]}, 0.11, problem=objective))[0] == [3, 3]


def test_a_plan_is_the_start_of_the_search() -> None:
    """Tests that a plan in use is judged as the search judges it, and that one it cannot find is none."""

    def started(keep: Json, **more: object) -> bool:
        problem = small_problem("abcdef", num_microbatches=2, search={"keep": keep}, **more)
        (variant,) = make_variants(problem)
        start = start_of(variant, variant.stage_counts)
        return start is not None and variant.judge.figures.seconds(start.objective) == 10.0

    assert started({"stage_sizes": [4, 2]})
    assert not started({"stage_sizes": [4, 3]})
    assert not started({"stage_sizes": [4, 2]}, constraints={"together": [["d", "e"]]})
    assert not started({"stage_sizes": [4, 2]}, limits={"iteration_time_s": 9.5})
    assert not started({"stage_sizes": [4, 2]}, num_stages=1)


def test_a_plan_without_time_to_search() -> None:
    """Tests that the plan in use is the answer where there is no time to find another."""
    keep = {"stage_sizes": [4, 2]}
    answer = replanned(keep, time_limit_s=2e-3, candidates=1)
    assert answer.status in ("feasible", "optimal")
    assert answer.candidates[0].metrics.iteration_time_s <= 10.0


def test_nodes_that_the_search_takes_equal_ones_for() -> None:
    """Tests a plan on the last of many equal nodes: it is kept there."""
    node = {"name": "n", "replicas": 5, "device": "gpu", "count": 1, "uplink": FREE}
    stages = [{"layers": list("abcd"), "devices": ["n4:0"]}, {"layers": list("ef"), "devices": ["n3:0"]}]
    answer = replanned({"stages": stages}, 0.2, problem={"nodes": [node], "num_stages": 2})
    assert [stage.devices for stage in answer.candidates[0].stages] == [("n4:0",), ("n3:0",)]
    assert sizes(answer).count([4, 2]) == 1


SEEDS = [*range(15), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(15, 100))]


def planned(seed: int) -> tuple[Problem, Answer] | None:
    """Give the seed's problem with its answer, if it has a plan."""
    problem = read(seeded_problem(seed) | {"search": {"candidates": 4, "time_limit_s": 60.0}})
    answer = plan_problem(problem)
    return (problem, answer) if answer.candidates else None


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("within", [0.0, 0.2])
def test_random_plans_are_kept_or_replaced(seed: int, within: float) -> None:
    """Tests the rule on random problems, that figures are right, and that no plan is named twice."""
    problem, usual = first_drawn(seed, planned)
    kept, best = usual.candidates[-1], usual.candidates[0]
    stages = [{"layers": stage.layers, "devices": stage.devices} for stage in kept.stages]
    keep = {"keep": validate(GivenPlan, {"stages": stages}), "keep_if_within": within}
    again = problem.model_copy(update={"search": problem.search.model_copy(update=keep)})
    answer = plan_problem(again)
    ours, theirs = value_of(problem, kept), value_of(problem, best)
    keys = [key_of(problem, candidate) for candidate in answer.candidates]
    assert len(set(keys)) == len(keys)
    assert answer.best_bound == pytest.approx(usual.best_bound, rel=1e-9, abs=0)
    for candidate in answer.candidates:
        check_candidate(problem, candidate)
    stays = abs(ours - theirs) <= max(within, 1e-9) * abs(ours)
    first = answer.candidates[0]
    assert value_of(problem, first) == pytest.approx(ours if stays else theirs, rel=1e-9, abs=0)
    if stays:
        assert keys[0] == key_of(problem, kept)
    sign = -1.0 if problem.objective == "tokens_per_second" else 1.0
    others = [sign * value_of(problem, candidate) for candidate in answer.candidates[1:]]
    assert all(one <= two + 1e-9 * abs(two) for one, two in pairwise(others))
    assert plan_problem(again).model_copy(update={"solver": None}) == answer.model_copy(update={"solver": None})


def test_bounds_of_candidates_hold_beside_a_kept_plan() -> None:
    """Tests that no candidate's bound is better than the best plan not before it."""
    problem = small_problem("abcdef", num_microbatches=2)
    values = [plan.value for plan in every_plan(problem)]
    answer = replanned({"stage_sizes": [4, 2]}, 0.2)
    assert answer.candidates[0].best_bound == values[0]
    for candidate in answer.candidates[1:]:
        assert candidate.best_bound is not None
        assert candidate.best_bound <= candidate.metrics.iteration_time_s


def test_evaluation_does_not_keep() -> None:
    """Tests that a plan in use has no part in pricing another one."""
    problem = small_problem("abcdef", num_microbatches=2, search={"keep": {"stage_sizes": [4, 2]}})
    keep = problem.search.keep
    assert keep is not None
    assert evaluate_plan(problem, keep).warnings == ()


def test_a_plan_stays_in_its_configuration() -> None:
    """Of two schedules that take as long one is found; a plan in use runs either, and still does."""
    layers = {name: {"forward_s": 1.0, "backward_s": 1.0} for name in "abcdef"}
    asked: Json = {"schedule": ["gpipe", "1f1b"], "num_microbatches": 2, "num_stages": 2}
    found = plan_problem(small_problem(layers, **asked)).candidates[0]
    assert found.schedule.kind == "1f1b"
    for kind, expected in (("1f1b", ["1f1b"]), ("gpipe", ["gpipe"]), ("zb_h1", ["1f1b", "gpipe"])):
        keep = {"stage_sizes": [3, 3], "configuration": {"schedule": {"kind": kind}}}
        problem = small_problem(layers, search={"keep": keep, "keep_if_within": 0.2, "candidates": 1}, **asked)
        (kept,) = plan_problem(problem).candidates
        assert kept.schedule.kind in expected
        priced = evaluate_plan(problem, validate(GivenPlan, keep)).candidates
        assert sorted(each.schedule.kind for each in priced) == expected
