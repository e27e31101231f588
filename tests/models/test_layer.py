"""Tests of layers and their options."""

from typing import Any

import pytest

from partita.models.document import validate
from partita.models.layer import Layer


def layer(**fields: object) -> dict[str, object]:
    """Give a layer of one second each way."""
    return {"name": "a", "forward_s": 1.0, "backward_s": 1.0, **fields}


def test_defaults_are_nothing() -> None:
    """Tests that a layer with a time alone costs nothing else."""
    read = validate(Layer, {"name": "a", "forward_s": 1})
    assert (read.backward_s, read.weight_gradient_s, read.activation_bytes, read.options) == (0.0, 0.0, 0, ())


@pytest.mark.parametrize(
    ("options", "pointer", "detail"),
    [
        ([{"forward_s": 1}], "/options/0", "give one of device, recompute, tensor_parallel, scenario"),
        ([{"device": "v100"}], "/options/0", "give one of forward_s"),
        ([{"device": "d", "forward_s": 1}, {"device": "d", "backward_s": 1}], "/options/1", "option 0"),
        ([{"recompute": "choose", "forward_s": 1}], "/options/0/recompute", "name the option otherwise"),
        ([{"device": "d", "weight_gradient_s": 1.5}], "/options/0/weight_gradient_s", "part of backward_s (1 s)"),
        ([{"device": "d", "backward_s": 0.1}], "/options/0/backward_s", "give weight_gradient_s in this option too"),
        ([{"device": "d", "forward_s": -1}], "/options/0/forward_s", "at least 0"),
    ],
)
def test_options_that_make_no_sense_are_refused(refused: Any, options: object, pointer: str, detail: str) -> None:
    """Tests every rule on options; the layer's weight gradient takes half a second."""
    faults = refused(layer(weight_gradient_s=0.5, options=options), Layer)
    assert detail in faults[pointer].detail


def test_the_weight_gradient_is_part_of_the_backward_pass(refused: Any) -> None:
    """Tests that it cannot take longer, but just as long."""
    assert "/weight_gradient_s" in refused(layer(weight_gradient_s=1.1), Layer)
    assert validate(Layer, layer(weight_gradient_s=1.0)).weight_gradient_s == 1.0


def test_options_that_differ_in_one_selector_are_two() -> None:
    """Tests that device alone and device with a scenario are different cases."""
    options = [{"device": "d", "forward_s": 1}, {"device": "d", "scenario": "long", "forward_s": 2}]
    assert len(validate(Layer, layer(options=options)).options) == 2
