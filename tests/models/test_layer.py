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
        ([{"device": "d", "backward_s": 0.1}], "/options/0/backward_s", "give it in this option too"),
        ([{"device": "d", "forward_s": -1}], "/options/0/forward_s", "at least 0"),
        (
            [{"device": "d", "weight_gradient_bytes": 101}],
            "/options/0/weight_gradient_bytes",
            "what the weight gradient needs is a part of activation_bytes (100 bytes) and cannot be more",
        ),
        (
            [{"device": "d", "weight_gradient_bytes": 8, "activation_bytes": 7}],
            "/options/0/weight_gradient_bytes",
            "part of activation_bytes (7 bytes)",
        ),
        (
            [{"recompute": "full", "activation_bytes": 39}],
            "/options/0/activation_bytes",
            "less than the layer's weight_gradient_bytes (40 bytes); give it in this option too",
        ),
    ],
)
def test_options_that_make_no_sense_are_refused(refused: Any, options: object, pointer: str, detail: str) -> None:
    """Tests every rule on options; the layer's weight gradient takes half a second and keeps 40 of 100 bytes."""
    costs = {"weight_gradient_s": 0.5, "activation_bytes": 100, "weight_gradient_bytes": 40}
    faults = refused(layer(**costs, options=options), Layer)
    assert detail in faults[pointer].detail


def test_the_weight_gradient_is_part_of_the_backward_pass(refused: Any) -> None:
    """Tests that it cannot take longer, but just as long."""
    assert "/weight_gradient_s" in refused(layer(weight_gradient_s=1.1), Layer)
    assert validate(Layer, layer(weight_gradient_s=1.0)).weight_gradient_s == 1.0


def test_options_that_differ_in_one_selector_are_two() -> None:
    """Tests that device alone and device with a scenario are different cases."""
    options = [{"device": "d", "forward_s": 1}, {"device": "d", "scenario": "long", "forward_s": 2}]
    assert len(validate(Layer, layer(options=options)).options) == 2


def test_the_weight_gradient_keeps_a_part_of_the_activations(refused: Any) -> None:
    """Tests that it cannot keep more, but all; and that nothing said means all, whatever an option replaces."""
    faults = refused(layer(activation_bytes="2kB", weight_gradient_bytes=2001), Layer)
    assert "part of activation_bytes (2000 bytes) and cannot be more" in faults["/weight_gradient_bytes"].detail
    read = validate(Layer, layer(activation_bytes="2kB", weight_gradient_bytes="2kB"))
    assert read.weight_gradient_bytes == 2000
    silent = validate(Layer, layer(activation_bytes=5, options=[{"device": "d", "activation_bytes": 3}]))
    assert silent.weight_gradient_bytes is None


def test_an_option_may_replace_what_the_weight_gradient_keeps_alone() -> None:
    """Tests that these bytes are a cost of their own."""
    options = [{"recompute": "full", "weight_gradient_bytes": 0}]
    assert validate(Layer, layer(activation_bytes=5, options=options)).options[0].weight_gradient_bytes == 0
