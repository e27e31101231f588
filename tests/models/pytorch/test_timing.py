"""Measured costs of captured layers, and the problem that is made of them."""

import json
from typing import Any

import pytest

from partita.models.problem import Problem

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")
modules = pytest.importorskip("torch_modules")
pytorch = pytest.importorskip("partita.models.pytorch")
ready = pytest.importorskip("partita.models.pytorch.ready")
segments = pytest.importorskip("partita.models.pytorch.segments")
timing = pytest.importorskip("partita.models.pytorch.timing")


def by_name(profile: Any) -> dict[str, Any]:
    """Give the layers of a profile by their names."""
    return {layer.name: layer for layer in profile.layers}


def test_costs_of_layers() -> None:
    """Tests that every pass is measured where there is one, and that the parts add up."""
    profile = pytorch.capture(*modules.CASES["frozen"]()).profile(repetitions=2)
    layers = by_name(profile)
    assert all(layer.forward_s > 0 for layer in profile.layers)
    assert layers["h.0"].backward_s == 0  # frozen
    assert layers["h.1"].backward_s == layers["h.1"].weight_gradient_s  # nothing before it needs a gradient
    assert 0 < layers["h.2"].weight_gradient_s < layers["h.2"].backward_s
    assert layers["loss"].weight_gradient_s == 0  # no weights


def test_recompute_is_measured() -> None:
    """Tests that a recomputed layer keeps its input alone and takes longer; batch norm, which counts, has no option."""
    profile = pytorch.capture(modules.Gpt(width=32), modules.tokens()).profile(repetitions=2)
    block = by_name(profile)["h.1"]
    (option,) = block.options
    assert option.recompute == "full"
    assert option.activation_bytes == 2 * 8 * 32 * 4 < block.activation_bytes
    assert option.backward_s > block.backward_s
    assert option.workspace_bytes > block.workspace_bytes
    residual = by_name(pytorch.capture(*modules.CASES["resnet"]()).profile(repetitions=1))
    assert residual["layer1.0"].options == ()


class Exponential(torch.nn.Module):
    """Keeps its result, and needs nothing else while it runs forward."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 8), torch.nn.Sigmoid()

    def forward(self, values: Any) -> Any:
        return self.second(self.first(values))


def test_workspace() -> None:
    """Tests the peak against one by hand: backward, the gradient that arrives and the one that is made."""
    layers = by_name(pytorch.capture(Exponential(), (torch.ones(4, 8),)).profile(repetitions=1))
    size = 4 * 8 * 4
    shared = 0  # the result, which the loss keeps too, is a shared activation
    assert layers["second"].activation_bytes == shared
    assert layers["second"].workspace_bytes == 2 * size


def test_segments_compute_what_the_module_does() -> None:
    """Tests that layers, each run on what those before it gave, make the recorded loss to the bit."""
    for case in ("gpt", "masked", "resnet", "encoder_decoder"):
        captured = pytorch.capture(*modules.CASES[case](), depth="operations")
        values = {name: captured.graph.tensors[name] for name in captured.graph.inputs}
        with torch.no_grad():
            for layer in captured.layers:
                part = segments.cut_out(captured.graph, layer.operations, layer.repeated)
                results = part.module(*(values[name].clone() for name in part.inputs))
                values |= dict(zip(part.outputs, results, strict=True))
        result = segments.result_of(captured.graph)
        assert torch.equal(values[result], captured.graph.tensors[result])


class Overwriting(torch.nn.Module):
    """Writes to its input."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, values: Any) -> Any:
        values.mul_(2)
        return self.layer(values) + values


def test_a_segment_does_not_write_to_what_it_is_given() -> None:
    """Tests that inputs that the module overwrites are copied first."""
    values = torch.ones(2, 4)
    captured = pytorch.capture(Overwriting(), (values,), depth="operations")
    first = captured.layers[0]
    part = segments.cut_out(captured.graph, first.operations, first.repeated)
    given = torch.ones(2, 4)
    part.module(given)
    assert torch.equal(given, torch.ones(2, 4))
    assert torch.equal(values, torch.ones(2, 4))


def test_median_and_spread() -> None:
    """Tests that one outlier of five changes neither."""
    summed = timing.Timing.of([1.0, 1.1, 1.2, 1.3, 50.0])
    assert (summed.seconds, summed.spread) == (1.2, pytest.approx(0.2 / 1.2))
    assert timing.Timing.of([]).seconds == 0


def test_what_was_measured_is_written_down() -> None:
    """Tests device, version, mode, type, inputs and spread, and that progress is told to the end."""
    told = []
    captured = pytorch.capture(*modules.CASES["reuse"]())
    profile = captured.profile(name="two calls", repetitions=2, on_round=lambda done, total: told.append((done, total)))
    found = profile.measurement
    assert found is not None
    assert (found.kind, found.mode, found.dtype, found.repetitions) == ("measured", "training", "float32", 2)
    assert found.device.startswith("cpu")
    assert found.torch_version == torch.__version__
    assert [(each.shape, each.dtype) for each in found.inputs] == [((2, 8), "float32")]
    assert list(found.spreads) == [layer.name for layer in profile.layers]
    assert found.saved_bytes == captured.graph.saved_bytes
    assert told[-1][0] == told[-1][1]
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_a_problem_that_is_ready() -> None:
    """Tests the node, the batch and the optimizer of the problem, and that it survives JSON."""
    captured = pytorch.capture(modules.Gpt(), modules.tokens())
    problem = ready.ready_problem(captured, captured.outline(), devices=2, microbatches=6, schedule="gpipe")
    assert (problem.cluster.num_devices, problem.training.microbatches) == (2, 6)
    assert (problem.training.microbatch_size, problem.training.sequence_length) == (2, 8)
    assert problem.training.optimizer == "adam"
    assert problem.training.runtime == "torch"
    text = json.dumps(problem.model_dump(mode="json", exclude_defaults=True))
    assert Problem.model_validate_json(text) == problem
    halved = pytorch.capture(modules.Reuse().bfloat16(), (torch.ones(2, 8, dtype=torch.bfloat16),))
    assert ready.ready_problem(halved, halved.outline()).training.optimizer == "adam_mixed"
