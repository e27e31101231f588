"""Tests of problems with several scenarios, by hand; random ones are among the mixed problems."""

from typing import Any

import pytest

from oracle.small import edges, small_problem
from partita.models.errors import InvalidInput, NotSupportedYet
from partita.models.plan import GivenPlan
from partita.models.problem import Problem
from partita.solver.frontier import frontier
from partita.solver.planner import plan_problem
from partita.solver.review import evaluate_plan
from partita.solver.timeline import timeline
from strategies import Json, read


def two_kinds(over: str = "expected", **changes: Any) -> Problem:
    """Give four layers of which images need the first two and texts the last two, most batches being of texts."""
    images = [{"scenario": "images", "forward_s": seconds, "activation_bytes": 10} for seconds in (6.0, 6.0, 1.0, 1.0)]
    texts = [{"scenario": "texts", "forward_s": seconds, "activation_bytes": 1} for seconds in (0.0, 0.0, 2.0, 4.0)]
    layers = {
        name: {"forward_s": 0.0, "options": [image, text]}
        for name, image, text in zip("abcd", images, texts, strict=True)
    }
    scenarios = [{"name": "images", "share": 0.25}, {"name": "texts", "share": 0.75, "sequence_length": 8}]
    return small_problem(layers, num_stages=2, num_microbatches=10, scenarios=scenarios, over_scenarios=over, **changes)


def plain(problem: Problem) -> Json:
    """Give a problem as JSON values, to be changed."""
    values: Json = problem.model_dump(mode="json", by_alias=True)
    return values


def test_the_mean_and_the_worst_want_different_plans() -> None:
    """By hand: T of a pipeline of forward passes is the way through once and nine times the longest stage."""

    def cut(problem: Problem) -> tuple[tuple[str, ...], float, list[float]]:
        candidate = plan_problem(problem).candidates[0]
        each = [one.metrics.iteration_time_s for one in candidate.scenarios]
        return candidate.stages[0].layers, candidate.metrics.iteration_time_s, each

    # abc | d: images 14 + 9 * 13 = 131, texts 6 + 9 * 4 = 42. ab | cd: 14 + 9 * 12 = 122 and 6 + 9 * 6 = 60.
    # a | bcd: 14 + 9 * 8 = 86 and 60.
    assert cut(two_kinds()) == (("a", "b", "c"), pytest.approx(0.25 * 131 + 0.75 * 42), [131.0, 42.0])
    assert cut(two_kinds("worst")) == (("a",), 86.0, [86.0, 60.0])


def test_sizes_are_the_largest_of_any_scenario() -> None:
    """A layer that keeps most for images and one that keeps most for texts each count where they are largest."""
    layers = {
        name: {"forward_s": 1.0, "backward_s": 1.0, "options": [{"scenario": scenario, "activation_bytes": 100}]}
        for name, scenario in (("a", "images"), ("b", "texts"))
    }
    scenarios = [{"name": "images", "share": 0.5}, {"name": "texts", "share": 0.5}]
    problem = small_problem(layers, num_stages=1, schedule="gpipe", num_microbatches=3, scenarios=scenarios)
    assert plan_problem(problem).candidates[0].metrics.peak_memory_bytes == 300


def test_tensors_and_storages_have_bytes_of_their_own() -> None:
    """The bytes of a scenario replace those of a tensor, its gradient and a shared activation; others stay."""
    model = edges("a>b", size=7000) | {"shared_activations": [{"bytes": 5, "layers": ["a", "b"]}]}
    model["tensors"][0] |= {"gradient_bytes": 3000, "options": [{"scenario": "long", "bytes": 70_000}]}
    model["shared_activations"][0]["options"] = [{"scenario": "long", "bytes": 50}]
    layers = {name: {"forward_s": 1.0, "backward_s": 1.0} for name in "ab"}
    scenarios = [{"name": "long", "share": 0.4}, {"name": "short", "share": 0.6}]
    nodes = [{"name": "n", "device": "gpu", "count": 2, "fabric": {"bandwidth_bytes_per_s": 1e3}}]
    problem = small_problem(layers, num_stages=2, schedule="gpipe", model=model, scenarios=scenarios, nodes=nodes)
    candidate = plan_problem(problem).candidates[0]
    assert candidate.scenario == "long"
    assert [(each.forward_bytes, each.backward_bytes) for each in candidate.boundaries] == [(70_000, 70_000)]
    assert [each.metrics.iteration_time_s for each in candidate.scenarios] == [4 + 140, 4 + 10]
    assert [each.metrics.peak_memory_bytes for each in candidate.scenarios] == [70_050, 7_005]


def test_tokens_are_those_of_the_sequences_of_each_scenario() -> None:
    """A batch of longer sequences has more tokens; over all there are the mean tokens in the mean time."""
    candidate = plan_problem(two_kinds()).candidates[0]
    images, texts = (each.metrics.tokens_per_second for each in candidate.scenarios)
    assert (images, texts) == (pytest.approx(10 / 131), pytest.approx(80 / 42))
    assert candidate.metrics.tokens_per_second == pytest.approx((2.5 + 60) / (0.25 * 131 + 0.75 * 42))


def test_one_scenario_is_the_problem_itself() -> None:
    """With a single scenario nothing is said of scenarios, but for its tokens."""
    problem = two_kinds()
    problem = problem.in_scenario(problem.scenarios[1])
    candidate = plan_problem(problem).candidates[0]
    assert (candidate.scenario, candidate.scenarios) == (None, ())
    assert candidate.metrics.tokens_per_second == pytest.approx(80 / 42)


def test_a_plan_over_scenarios_is_evaluated_and_drawn_like_any_other() -> None:
    """A given plan has the figures that it has in an answer; its timeline is that of the scenario shown."""
    problem = two_kinds()
    best = plan_problem(problem).candidates[0]
    given = GivenPlan(stage_sizes=(3, 1))
    assert evaluate_plan(problem, given).candidates[0].metrics == best.metrics
    drawn = timeline(problem, best)
    assert max(action.end_s for action in drawn.actions) == 131.0
    with pytest.raises(InvalidInput, match="plan it again"):
        timeline(problem, best.model_copy(update={"scenario": "video"}))


@pytest.mark.parametrize(
    ("place", "changes"),
    [
        ("/training/routing", {"training": {"routing": "host"}}),
        ("/training/queueing", {"training": {"queueing": True}}),
        ("/limits/bubble_fraction", {"limits": {"bubble_fraction": 0.5}}),
        ("/objective", {"objective": "bottleneck_time", "over_scenarios": "worst"}),
        ("/objective", {"objective": ["num_devices", "tokens_per_second"], "over_scenarios": "worst"}),
        ("/limits/tokens_per_second", {"limits": {"tokens_per_second": 1.0}, "over_scenarios": "worst"}),
        ("/limits/microbatches_per_second", {"limits": {"microbatches_per_second": 1.0}, "over_scenarios": "worst"}),
    ],
)
def test_what_is_not_possible_with_several_scenarios_is_refused(place: str, changes: Json) -> None:
    """Nothing is left out in silence."""
    values = plain(two_kinds())
    changed = {name: values[name] | value if isinstance(value, dict) else value for name, value in changes.items()}
    with pytest.raises(NotSupportedYet) as raised:
        plan_problem(read(values | changed))
    assert [fault.pointer for fault in raised.value.faults] == [place]


def test_weights_do_not_depend_on_the_scenario() -> None:
    """A device holds one copy, whatever the batch."""
    values = plain(two_kinds())
    values["model"]["layers"][1]["options"][0]["weight_bytes"] = 17
    with pytest.raises(InvalidInput, match="the weights of 'b' have other bytes in scenario 'texts'"):
        plan_problem(read(values))


@pytest.mark.parametrize(
    ("options", "place", "text"),
    [
        ([{"scenario": "video", "bytes": 1}], "/model/tensors/0/options/0/scenario", "there is no scenario 'video'"),
        ([{"scenario": "texts", "bytes": 1}] * 2, "/model/tensors/0/options/1/scenario", "a second entry"),
    ],
)
def test_sizes_for_unknown_scenarios_are_refused(options: list[Json], place: str, text: str) -> None:
    """The place and the remedy are named."""
    values = plain(two_kinds())
    values["model"]["tensors"] = [{"name": "t", "producer": "a", "consumers": ["b"], "bytes": 3, "options": options}]
    with pytest.raises(InvalidInput, match=text) as raised:
        read(values)
    assert [fault.pointer for fault in raised.value.faults] == [place]


def test_the_answer_says_what_its_figures_are_over() -> None:
    """Assumptions name the mean, and scenarios that no layer has an option for."""
    values = plain(two_kinds())
    values["scenarios"] = [{"name": n, "share": s} for n, s in (("images", 0.25), ("texts", 0.5), ("video", 0.25))]
    text = " ".join(plan_problem(read(values)).assumptions)
    assert "means over the scenarios, by their shares" in text
    assert "scenario 'video': no layer has an option for it" in text


def test_fronts_over_scenarios() -> None:
    """The metrics of a front count, not the objective: rates and bottlenecks of the worst scenario are refused."""
    with pytest.raises(NotSupportedYet) as raised:
        frontier(two_kinds("worst"), ("bottleneck_time_s", "peak_memory_bytes"))
    assert [fault.pointer for fault in raised.value.faults] == ["/metrics"]
    problem = two_kinds("worst", objective="tokens_per_second")
    front = frontier(problem, ("iteration_time_s", "num_devices"))
    assert front.status == "complete"
    assert front.points[0].values[0] == 86.0
