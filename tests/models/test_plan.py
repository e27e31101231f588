"""Tests of plans that the user brings."""

from typing import Any

import pytest

from partita.models.document import validate
from partita.models.errors import InvalidInput
from partita.models.plan import GivenPlan

LAYERS = ["a", "b", "c"]


def test_both_forms_give_the_layers_of_every_stage() -> None:
    """Tests stages by name, with and without devices, and by size."""
    by_name = validate(GivenPlan, {"stages": [{"layers": ["a"], "devices": ["node0:1"]}, {"layers": ["b", "c"]}]})
    by_size = validate(GivenPlan, {"stage_sizes": [1, 2]})
    assert by_name.stage_layers(LAYERS) == by_size.stage_layers(LAYERS) == (("a",), ("b", "c"))
    assert by_name.stages is not None
    assert [stage.devices for stage in by_name.stages] == [("node0:1",), ()]


@pytest.mark.parametrize("document", [{}, {"stages": [{"layers": ["a"]}], "stage_sizes": [1]}])
def test_exactly_one_form_is_given(refused: Any, document: object) -> None:
    """Tests none and both."""
    assert refused(document, GivenPlan)[""].code == "one_form"


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ({"stages": []}, "/stages"),
        ({"stages": [{"layers": []}]}, "/stages/0/layers"),
        ({"stage_sizes": [1, 0]}, "/stage_sizes/1"),
        ({"stages": [{"layers": ["a"], "devices": ["node0:0", "node0:0"]}]}, "/stages/0/devices/1"),
    ],
)
def test_no_stage_is_empty(refused: Any, document: object, pointer: str) -> None:
    """Tests the rules that need no model."""
    assert list(refused(document, GivenPlan)) == [pointer]


@pytest.mark.parametrize(
    ("document", "pointer", "detail"),
    [
        ({"stage_sizes": [1, 1]}, "/plan/stage_sizes", "add up to 2, but the model has 3"),
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
