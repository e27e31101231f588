"""Tests of plans that the user brings."""

from typing import Any

import pytest

from partita.models.document import validate
from partita.models.errors import InvalidInput
from partita.models.plan import GivenPlan

LAYERS = ["a", "b", "c"]


def test_every_form_gives_the_layers_of_every_stage() -> None:
    """Tests stages by name, with and without devices, by size, by boundaries and as other frameworks write them."""
    by_name = validate(GivenPlan, {"stages": [{"layers": ["a"], "devices": ["node0:1"]}, {"layers": ["b", "c"]}]})
    by_size = validate(GivenPlan, {"stage_sizes": [1, 2]})
    assert by_name.stage_layers(LAYERS) == by_size.stage_layers(LAYERS) == (("a",), ("b", "c"))
    for plan in ({"cut_after": ["a"]}, {"cut_after": [1]}, {"megatron_layout": "E|tL"}, {"vllm_partition": "1,2"}):
        assert validate(GivenPlan, plan).stage_layers(LAYERS) == (("a",), ("b", "c"))
    assert validate(GivenPlan, {"cut_after": []}).stage_layers(LAYERS) == (("a", "b", "c"),)
    assert by_name.stages is not None
    assert [stage.devices for stage in by_name.stages] == [("node0:1",), ()]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({}, "give one of stages, stage_sizes, cut_after, megatron_layout, megatron_arguments, vllm_partition, "),
        ({"vllm_partition": "1", "stage_sizes": [1]}, "keep one of stage_sizes, vllm_partition"),
    ],
)
def test_exactly_one_form_is_given(refused: Any, document: object, words: str) -> None:
    """Tests none and two."""
    fault = refused(document, GivenPlan)[""]
    assert fault.code == "one_form"
    assert words in fault.detail


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ({"stages": []}, "/stages"),
        ({"stages": [{"layers": []}]}, "/stages/0/layers"),
        ({"stage_sizes": [1, 0]}, "/stage_sizes/1"),
        ({"stages": [{"layers": ["a"], "devices": ["node0:0", "node0:0"]}]}, "/stages/0/devices/1"),
        ({"cut_after": [0]}, "/cut_after/0"),
        ({"cut_after": [1.5]}, "/cut_after/0"),
        ({"cut_after": ["a", "a"]}, "/cut_after/1"),
    ],
)
def test_no_stage_is_empty(refused: Any, document: object, pointer: str) -> None:
    """Tests the rules that need no model."""
    assert list(refused(document, GivenPlan)) == [pointer]


@pytest.mark.parametrize(
    ("document", "pointer", "detail"),
    [
        ({"stage_sizes": [1, 1]}, "/plan/stage_sizes", "add up to 2, but the model has 3"),
        ({"cut_after": ["q"]}, "/plan/cut_after/0", "no layer 'q'; there are 'a', 'b', 'c'"),
        ({"cut_after": [1, "c"]}, "/plan/cut_after/1", "no layer comes after the first 3 of 3"),
        ({"cut_after": ["b", 1]}, "/plan/cut_after/1", "after 1 layers, the one before it after 2; list them in order"),
        ({"stages": [{"layers": ["a", "b"]}]}, "/plan/stages", "1 of 3 layers are on no stage: 'c'"),
        ({"stages": [{"layers": ["a", "b"]}, {"layers": ["c", "a"]}]}, "/plan/stages/1/layers/1", "already on stage 0"),
        ({"stages": [{"layers": ["a", "b", "c", "q"]}]}, "/plan/stages/0/layers/3", "no layer 'q'"),
    ],
)
def test_every_layer_is_on_one_stage(document: object, pointer: str, detail: str) -> None:
    """Tests the rules that need the model."""
    with pytest.raises(InvalidInput) as caught:
        validate(GivenPlan, document).stage_layers(LAYERS, pointer="/plan")
    assert caught.value.faults[0].pointer == pointer
    assert detail in caught.value.faults[0].detail
