"""The examples are up to date, valid, and show what their README says."""

import re
from pathlib import Path

import pytest

from example_scripts import load
from partita.models.problem import Problem, read_problem
from partita.solver.frontier import frontier
from partita.solver.planner import plan_problem

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"

BEST = {
    "gpt-22b": ([7, 6, 6, 6, 6, 6, 6, 7], 9.189256887),
    "gpt-schedules": ([2, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 1], 1.252827126),
    "heavy-ends": ([7, 9, 8, 2], 7.811690886),
    "skip-and-tied-head": ([5, 4, 4, 1], 1.439461253),
    "two-nodes-slow-link": ([4, 3, 3, 3, 2, 3, 3, 3], 1.311632),
}
"""Stage sizes and iteration time of the best plan: all partitions (of up to 8 layers a stage for the GPT, up to 6 for
the two nodes) simulated by a script that shares no code with Partita; for the comparison of schedules by torch's orders
where torch has them. Seven ranks cannot win there: their work alone takes longer."""
UNIFORM = dict.fromkeys(BEST, 1.02) | {"gpt-schedules": 1.013}
"""How many times as long the split into equal layer counts takes at least."""
SCHEDULES = {"zb_v": 1.252827126, "zb_h1": 1.324486892, "interleaved_1f1b": 1.468184880, "1f1b": 1.469673048}
"""Iteration times of the best plans under each schedule of the comparison, found in the same way."""

MAKER = load("make_examples.py")


def read_example(name: str) -> Problem:
    """Read examples/NAME.json."""
    return read_problem((EXAMPLES / f"{name}.json").read_bytes())


def test_every_example_is_made_and_described() -> None:
    """Tests that script, files, README and this test speak of the same examples."""
    files = {path.name for path in EXAMPLES.glob("*.json")}
    described = set(re.findall(r"^## (\S+\.json)", (EXAMPLES / "README.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert files == set(MAKER.EXAMPLES) == described == {f"{name}.json" for name in BEST}


@pytest.mark.parametrize("file", MAKER.EXAMPLES)
def test_an_example_is_up_to_date(file: str) -> None:
    """Tests that the file is what the script writes; run examples/make_examples.py if not."""
    assert (EXAMPLES / file).read_text(encoding="utf-8") == MAKER.render(MAKER.EXAMPLES[file]()) + "\n"


@pytest.mark.parametrize("name", BEST)
def test_an_example_is_a_problem_without_warnings(name: str) -> None:
    """Tests that an example is valid and that none of its figures looks like a mistake."""
    assert read_example(name).warnings() == []


def test_the_gpt_has_the_times_that_were_measured() -> None:
    """Tests the layer times against table 4 of arXiv 2205.05198, and the weights against 22 billion parameters."""
    model = read_example("gpt-22b").model
    blocks = [layer for layer in model.layers if layer.name.startswith("block.")]
    assert len(blocks) == 48
    for block in blocks:
        assert (block.forward_s, block.backward_s) == (0.0077, 0.0119)
        backward_s = {option.recompute: option.backward_s for option in block.options}
        assert backward_s == {"full": 0.0195, "selective": 0.0132}
    weight_bytes = sum(layer.weight_bytes for layer in model.layers) + sum(weight.bytes for weight in model.weights)
    assert weight_bytes * 8 / 2 == pytest.approx(22e9, rel=0.02)


def test_the_gpt_keeps_the_bytes_of_the_paper() -> None:
    """Tests the activations of all layers against figure 1: 59.25 GiB for a device, with tensor parallelism only."""
    blocks = [layer for layer in read_example("gpt-22b").model.layers if layer.name.startswith("block.")]
    assert sum(block.activation_bytes for block in blocks) == 59.25 * 2**30


@pytest.mark.parametrize("name", BEST)
def test_an_example_has_the_plan_that_its_readme_promises(name: str) -> None:
    """Tests the best plan of an example, and that equal layer counts would have been worse."""
    sizes, iteration_time_s = BEST[name]
    answer = plan_problem(read_example(name))
    assert answer.status == "optimal"
    best = answer.candidates[0]
    assert [len(stage.layers) for stage in best.stages] == sizes
    assert best.metrics.iteration_time_s == pytest.approx(iteration_time_s, rel=1e-8)
    uniform_s = answer.baselines["uniform"].metrics.iteration_time_s
    assert uniform_s > UNIFORM[name] * iteration_time_s
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    described = text.partition(f"\n## {name}.json\n")[2].partition("\n## ")[0]
    for told in (iteration_time_s, uniform_s):
        assert re.search(rf"\b{told:.2f}\d* s\b", described), told


def test_the_uniform_split_of_the_gpt_does_not_fit() -> None:
    """Tests that memory matters in the first example: its equal layer counts need more than a device has."""
    assert not plan_problem(read_example("gpt-22b")).baselines["uniform"].fits


@pytest.mark.slow
def test_the_front_of_the_gpt() -> None:
    """Tests that time against memory is known in full: each point is proven, and less memory always takes longer."""
    problem = read_example("gpt-22b")
    search = problem.search.model_copy(update={"time_limit_s": 60.0})
    front = frontier(problem.model_copy(update={"search": search}), points=30)
    assert front.status == "complete"
    assert len(front.points) == 19
    times, bytes_ = zip(*(point.values for point in front.points), strict=True)
    assert list(times) == sorted(times) and list(bytes_) == sorted(bytes_, reverse=True)
    assert (times[0], bytes_[-1]) == (pytest.approx(9.189257, rel=1e-6), 43_911_630_848)


def test_the_comparison_tells_the_schedules_apart() -> None:
    """Tests that every schedule has its place, with what was found under it and a bound that keeps it there."""
    answer = plan_problem(read_example("gpt-schedules"))
    assert {candidate.schedule.kind for candidate in answer.candidates} == {"zb_v"}
    assert {result.schedule.kind for result in answer.schedules} == set(SCHEDULES)
    first, *others = answer.schedules
    assert (first.schedule.kind, first.status) == ("zb_v", "optimal")
    for result in others:
        least = SCHEDULES[result.schedule.kind]
        assert result.best_bound is not None
        assert SCHEDULES["zb_v"] * (1 - 1e-8) <= result.best_bound <= least * (1 + 1e-8)
        assert result.objective_value is None or result.objective_value >= least * (1 - 1e-8)


@pytest.mark.parametrize("kind", ["zb_h1", "1f1b", pytest.param("interleaved_1f1b", marks=pytest.mark.slow)])
def test_a_schedule_of_the_comparison_on_its_own(kind: str) -> None:
    """Tests the best plan under a schedule that loses."""
    problem = read_example("gpt-schedules")
    (choice,) = (each for each in problem.choices() if each.schedule.kind == kind)
    answer = plan_problem(problem.with_choice(choice))
    assert answer.status == "optimal"
    assert answer.candidates[0].metrics.iteration_time_s == pytest.approx(SCHEDULES[kind], rel=1e-8)


def test_the_gpt_of_the_comparison_has_the_times_that_were_measured() -> None:
    """Tests three blocks against table 6 of arXiv 2401.10241, and the weights against 1.5 billion parameters."""
    model = read_example("gpt-schedules").model
    blocks = [layer for layer in model.layers if layer.name.startswith("block.")]
    assert len(blocks) == 22
    for block in blocks:
        parts = (block.forward_s, block.backward_s - block.weight_gradient_s, block.weight_gradient_s)
        assert [3 * part for part in parts] == pytest.approx([18.522e-3, 18.086e-3, 9.337e-3], abs=3e-6)
    weight_bytes = sum(layer.weight_bytes for layer in model.layers) + sum(weight.bytes for weight in model.weights)
    assert weight_bytes / 2 == pytest.approx(1.5e9, rel=0.05)


@pytest.mark.parametrize("readme", ["README.md", "examples/README.md"])
def test_problems_in_the_readme_are_valid(readme: str) -> None:
    """Tests that every problem printed in full can be read."""
    text = (ROOT / readme).read_text(encoding="utf-8")
    problems = re.findall(r"<<'END'\n(\{.*?\n\})\nEND\n", text, re.DOTALL)
    assert problems or readme != "README.md"
    for problem in problems:
        assert read_problem(problem).warnings() == []
