"""Measured costs of captured layers, and the problem that is made of them."""

import json
from typing import Any

import pytest

from partita.models.problem import Problem

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")
modules = pytest.importorskip("torch_modules")
pytorch = pytest.importorskip("partita.models.pytorch")
ready = pytest.importorskip("partita.models.pytorch.ready")
roofline = pytest.importorskip("partita.models.pytorch.roofline")
segments = pytest.importorskip("partita.models.pytorch.segments")
timing = pytest.importorskip("partita.models.pytorch.timing")
workspace = pytest.importorskip("partita.models.pytorch.workspace")


def by_name(profile: Any) -> dict[str, Any]:
    """Give the layers of a profile by their names."""
    return {layer.name: layer for layer in profile.layers}


def test_costs_of_layers() -> None:
    """Tests that every pass has its cost where there is one; on the meta device, where costs are always the same."""
    captured = pytorch.capture(*modules.moved_to_meta(*modules.CASES["frozen"]()))
    layers = by_name(captured.estimate(roofline.DEVICES["a100"]))
    assert layers["h.0"].backward_s == 0  # frozen
    assert layers["h.1"].backward_s == layers["h.1"].weight_gradient_s  # nothing before it needs a gradient
    assert 0 < layers["h.2"].weight_gradient_s < layers["h.2"].backward_s
    assert layers["loss"].weight_gradient_s == 0  # no weights


def test_recompute() -> None:
    """Tests that a recomputed layer keeps its input alone and takes longer; batch norm, which counts, has no option."""
    captured = pytorch.capture(*modules.moved_to_meta(modules.Gpt(width=32), modules.tokens()))
    block = by_name(captured.estimate(roofline.DEVICES["a100"]))["h.1"]
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
    assert layers["second"].activation_bytes == 0  # its result, which the loss keeps too, is a shared activation
    assert layers["second"].workspace_bytes == 2 * size


@pytest.mark.parametrize("case", ["gpt", "masked", "resnet", "encoder_decoder", "reuse", "frozen"])
@pytest.mark.parametrize("depth", ["blocks", "operations"])
def test_segments_compute_what_the_module_does(case: str, depth: Any) -> None:
    """Tests that layers, each run on what others gave, make the loss and the gradients of the module."""
    captured = pytorch.capture(*modules.CASES[case](), depth=depth)
    graph = captured.graph
    loss = captured.program(*(each.clone() for each in captured.inputs))
    loss.backward()
    expected = {name: each.grad for name, each in captured.program.named_parameters() if each.grad is not None}
    captured.program.zero_grad()
    captured = pytorch.capture(
        captured.program.module, captured.inputs, depth=depth
    )  # with the buffers as they are now
    values, passes = {name: graph.tensors[name] for name in graph.inputs}, []
    for layer in captured.layers:
        part = segments.cut_out(graph, layer.operations, layer.repeated)
        given = [values[name].detach().clone().requires_grad_(graph.values[name].requires_grad) for name in part.inputs]
        results = part.module(*given)
        values |= {name: each.detach() for name, each in zip(part.outputs, results, strict=True)}
        passes.append((part, given, results))
    result = segments.result_of(graph)
    assert torch.equal(values[result], loss.detach())
    gradients = {result: torch.ones(())}
    for part, given, results in reversed(passes):
        ends = [(each, gradients[name]) for name, each in zip(part.outputs, results, strict=True) if name in gradients]
        if ends:
            torch.autograd.backward(*zip(*ends, strict=True))
        for name, each in zip(part.inputs, given, strict=True):
            if each.grad is not None:
                gradients[name] = gradients[name] + each.grad if name in gradients else each.grad
    for name, gradient in expected.items():
        torch.testing.assert_close(graph.module.get_parameter(f"module.{name.removeprefix('module.')}").grad, gradient)


@pytest.mark.parametrize("case", ["gpt", "resnet"])
def test_saved_bytes_and_workspace_cover_the_peak(case: str) -> None:
    """Tests that what all layers keep and the largest workspace are what a microbatch needs, or a little more."""
    module, inputs = modules.CASES[case]()
    captured = pytorch.capture(module, inputs)
    profile = captured.profile(repetitions=1)
    program = captured.program
    for parameter in program.parameters():
        parameter.grad = torch.zeros_like(parameter)
    held = [*program.parameters(), *program.buffers(), *(each.grad for each in program.parameters()), *inputs]
    with workspace.watching_memory(torch.device("cpu"), held) as peak:
        program(*inputs).backward()
        real = peak.bytes
    predicted = captured.graph.saved_bytes + max(layer.workspace_bytes for layer in profile.layers)
    assert real <= predicted <= 1.25 * real


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
    assert found.saved_bytes == found.module_saved_bytes == captured.graph.saved_bytes
    assert all(layer.forward_s > 0 for layer in profile.layers)
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
