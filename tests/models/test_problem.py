"""Tests of what must hold between the parts of a problem."""

import json
from typing import Any

import pytest

from partita.models.document import validate
from partita.models.problem import Problem, read_problem


def test_a_small_problem_is_complete(two_layers: Any) -> None:
    """Tests that a chain, a node, a schedule and a microbatch count are enough, and the defaults."""
    problem = read_problem(json.dumps(two_layers))
    assert problem.objective == "iteration_time"
    assert problem.search.candidates == 5
    assert problem.constraints.recompute == "none"
    assert problem.training.num_stages is None
    assert problem.most_stages() == 2


def test_a_problem_is_read_back_as_it_was_written(five_layers: Any) -> None:
    """Tests that the dump of a problem is a document of the same problem."""
    five_layers["model"]["tensors"] = [
        {"name": "t", "producer": "a", "consumers": ["b"], "bytes": 1, "shape": [1, 2], "pass": "forward"},
        {"name": "g", "producer": "b", "consumers": ["a"], "bytes": 1, "pass": "backward"},
    ]
    factors = {"gradient_bytes_per_weight_byte": 0, "state_bytes_per_weight_byte": 6}
    five_layers["training"].update(num_stages=[2, 3], optimizer=factors)
    five_layers["objective"] = {"iteration_time_s": 1, "peak_memory_bytes": 1e-11}
    five_layers["constraints"] = {"pins": {"a": 0}, "together": [["a", "b"]], "cut_after": ["c"]}
    five_layers["scenarios"] = [{"name": "s", "share": 0.8}, {"name": "l", "share": 0.2}]
    problem = validate(Problem, five_layers)
    assert read_problem(problem.model_dump_json()) == problem
    assert Problem.model_json_schema()


def test_problems_do_not_change(two_layers: Any) -> None:
    """Tests that a problem is frozen."""
    problem = validate(Problem, two_layers)
    with pytest.raises(ValueError, match="frozen"):
        problem.objective = "peak_memory"


@pytest.mark.parametrize(
    ("changes", "pointer", "detail"),
    [
        ({"num_stages": 6}, "/training/num_stages", "5 layers; the nearest number that works is 4"),
        ({"num_stages": 5}, "/training/num_stages", "the 4 ranks that the devices allow; the nearest"),
        ({"num_stages": [2, 4, 5]}, "/training/num_stages/2", "the nearest number that works is 4"),
        ({"num_stages": 3, "tensor_parallel": 2}, "/training/num_stages", "the nearest number that works is 2"),
        ({"num_stages": 3, "data_parallel": [4, 2]}, "/training/num_stages", "the nearest number that works is 2"),
        ({"num_stages": 6, "schedule": "interleaved_1f1b"}, "/training/num_stages", "works is 4"),
        ({"tensor_parallel": 2, "data_parallel": 4}, "/training", "2 x 4 devices for a stage, but there are 4; choose"),
        (
            {"tensor_parallel": 3, "data_parallel": 2},
            "/training",
            "3 x 2 devices for a stage, but there are 4, in which 1",
        ),
        (
            {"tensor_parallel": [8, 6], "num_stages": 3},
            "/training/tensor_parallel",
            "6 tensor-parallel devices stays inside a node, and the largest, 'node0', has 4; choose tensor_parallel of",
        ),
        (
            {"data_parallel": [3, 8], "global_batch_size": 16, "num_microbatches": None},
            "/training/global_batch_size",
            "global_batch_size (16) leaves data_parallel 8 alone; they need 8 groups of 1 devices for a stage, and the "
            "nodes have room for 4; choose another global_batch_size",
        ),
        (
            {"schedule": {"kind": "custom", "orders": [[f"{r}F0"] for r in range(5)]}, "num_microbatches": 1},
            "/training/schedule/orders",
            "5 ranks, but the devices allow 4",
        ),
    ],
)
def test_every_stage_gets_a_layer_and_a_device(
    five_layers: Any, refused: Any, changes: dict[str, object], pointer: str, detail: str
) -> None:
    """Tests numbers of stages with five layers on four devices; both numbers and the nearest are told."""
    five_layers["training"].update(changes)
    assert detail in refused(five_layers)[pointer].detail


def test_a_batch_that_leaves_degrees_without_room(five_layers: Any, refused: Any) -> None:
    """Tests that the batch is named where a number of replicas that would fit does not go with it."""
    node = five_layers["cluster"]["nodes"][0]
    node["uplink"] = node["fabric"]
    five_layers["cluster"]["nodes"].append({**node, "name": "other", "count": 1})
    five_layers["training"] = {"schedule": "1f1b", "data_parallel": [4, 5], "global_batch_size": 10}
    text = refused(five_layers)["/training"].detail
    assert text.startswith("global_batch_size (10) leaves data_parallel 5 alone; no choice of tensor_parallel")
    assert "choose smaller degrees, another global_batch_size, or leave replicas_per_node out" in text
    five_layers["training"]["global_batch_size"] = 8
    assert validate(Problem, five_layers).choices()


@pytest.mark.parametrize(
    ("changes", "most"),
    [
        ({"num_stages": 4}, 4),
        ({"num_stages": [1, 2, 3]}, 3),
        ({"num_stages": None}, 4),  # as many as there are devices
        ({"num_stages": None, "schedule": "interleaved_1f1b"}, 4),  # two chunks per rank: four of five layers
    ],
)
def test_the_largest_number_of_stages_is_allowed(five_layers: Any, changes: dict[str, object], most: int) -> None:
    """Tests the bounds themselves with five layers on four devices."""
    five_layers["training"].update(changes)
    assert validate(Problem, five_layers).most_stages() == most


@pytest.mark.parametrize(
    ("options", "pointer", "detail"),
    [
        ([{"device": "v100", "forward_s": 1}], "/model/layers/0/options/0/device", "there are 'a100'"),
        ([{"scenario": "long", "forward_s": 1}], "/model/layers/0/options/0/scenario", "no scenario 'long'"),
    ],
)
def test_options_name_what_exists(two_layers: Any, refused: Any, options: object, pointer: str, detail: str) -> None:
    """Tests that kinds of device and scenarios are known."""
    two_layers["model"]["layers"][0]["options"] = options
    assert detail in refused(two_layers)[pointer].detail


@pytest.mark.parametrize(
    ("scenarios", "pointer"),
    [
        ([{"name": "a", "share": 0.5}, {"name": "b", "share": 0.4}], "/scenarios"),
        ([{"name": "a", "share": 0.5}, {"name": "a", "share": 0.5}], "/scenarios/1/name"),
        ([{"name": "a", "share": 0}], "/scenarios/0/share"),
    ],
)
def test_shares_of_scenarios_add_up(two_layers: Any, refused: Any, scenarios: object, pointer: str) -> None:
    """Tests names and shares of scenarios."""
    two_layers["scenarios"] = scenarios
    assert pointer in refused(two_layers)


def test_shares_may_be_rounded(two_layers: Any) -> None:
    """Tests that three thirds in floating point are a whole."""
    two_layers["scenarios"] = [{"name": name, "share": 1 / 3} for name in "abc"]
    assert len(validate(Problem, two_layers).scenarios) == 3


def test_recompute_names_an_option(two_layers: Any, refused: Any) -> None:
    """Tests that a kind of recompute exists on some layer, and that the words need none."""
    two_layers["constraints"] = {"recompute": "full"}
    assert "no option names a recompute" in refused(two_layers)["/constraints/recompute"].detail
    two_layers["model"]["layers"][0]["options"] = [{"recompute": "selective", "backward_s": 1}]
    assert "options exist for 'selective'" in refused(two_layers)["/constraints/recompute"].detail
    for word in ("selective", "none", "choose", "stage"):
        two_layers["constraints"] = {"recompute": word}
        assert validate(Problem, two_layers).constraints.recompute == word


@pytest.mark.parametrize(
    ("objective", "pointer"),
    [
        ({}, "/objective"),
        ({"time": 1}, "/objective/time"),
        ({"iteration_time_s": 0}, "/objective/iteration_time_s"),
        ({"iteration_time_s": "1"}, "/objective/iteration_time_s"),
    ],
)
def test_weights_are_positive_and_of_known_metrics(
    two_layers: Any, refused: Any, objective: object, pointer: str
) -> None:
    """Tests weighted objectives; the pointer has no trace of the branch of the union."""
    two_layers["objective"] = objective
    assert list(refused(two_layers)) == [pointer]


@pytest.mark.parametrize(
    ("objective", "pointer", "words"),
    [
        ([], "/objective", "at least 1"),
        (["speed"], "/objective/0", "expected 'iteration_time'"),
        (["peak_memory", "peak_memory"], "/objective/1", "listed twice"),
        (["iteration_time", "peak_memory", "tokens_per_second"], "/objective/2", "as 'iteration_time' before it"),
        (3, "/objective", "a list of names"),
    ],
)
def test_lists_of_different_metrics(two_layers: Any, refused: Any, objective: object, pointer: str, words: str) -> None:
    """Tests that a level which could never decide is refused, as is what is no metric."""
    two_layers["objective"] = objective
    ((found, fault),) = refused(two_layers).items()
    assert found == pointer
    assert words in str(fault)
