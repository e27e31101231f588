"""What a capture sees: operations, what they keep, repeat and write, and what it refuses."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")
modules = pytest.importorskip("torch_modules")
pytorch = pytest.importorskip("partita.models.pytorch")
layers = pytest.importorskip("partita.models.pytorch.layers")
recording = pytest.importorskip("partita.models.pytorch.recording")

DEPTHS = ["blocks", 1, "points", "operations"]
"""All ways to join operations to layers."""


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    """Computes on one thread, with the same random numbers in every test."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("case", modules.CASES)
def test_saved_bytes_of_all_layers_are_those_of_the_module(case: str) -> None:
    """Tests that storages saved by layers add up, each once, to what the module itself saves, to the byte."""
    module, inputs = modules.CASES[case]()
    captured = pytorch.capture(module, inputs)
    held = [*module.parameters(), *module.buffers()]
    expected = recording.saved_by(captured.program, inputs, held)  # of the user's own module
    assert expected > 0
    for depth in DEPTHS:
        profile = replace(captured, layers=layers.coarsen(captured.graph, depth)).outline()
        alone = sum(layer.activation_bytes for layer in profile.layers)
        assert alone + sum(shared.bytes for shared in profile.shared_activations) == expected, depth


def test_layers_and_tensors_of_a_gpt() -> None:
    """Tests the layers of a GPT with a tied head: blocks and what is beside them, in a chain."""
    profile = pytorch.capture(modules.Gpt(), modules.tokens()).outline()
    assert [layer.name for layer in profile.layers] == ["wte", "wpe", "h.0", "h.1", "h.2", "norm", "head", "loss"]
    assert [(weight.name, weight.layers) for weight in profile.weights] == [("wte.weight", ("wte", "head"))]
    assert profile.tensors is not None
    sent = {(tensor.producer, *tensor.consumers): tensor for tensor in profile.tensors}
    assert len(sent) == len(profile.layers) - 1
    hidden = sent["h.0", "h.1"]
    assert (hidden.bytes, hidden.gradient_bytes) == (2 * 8 * 16 * 4, 2 * 8 * 16 * 4)
    assert (hidden.shape, hidden.stride, hidden.dtype) == ((2, 8, 16), (128, 16, 1), "float32")


def test_the_same_module_gives_the_same_profile() -> None:
    """Tests that a capture depends on nothing but the module."""
    for case in ("masked", "resnet"):
        module, inputs = modules.CASES[case]()
        first, second = (pytorch.capture(module, inputs, depth="operations").outline() for _ in range(2))
        assert first.model_dump_json() == second.model_dump_json()


class Residuals(torch.nn.Module):
    """Adds what its parts make to what they read, the part first."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, values: Any) -> Any:
        values = self.first(values) + values
        return self.second(values) + values


def test_what_is_between_modules_goes_with_the_one_before() -> None:
    """Tests that a sum belongs to the module that ran last, whichever comes first in it."""
    captured = pytorch.capture(Residuals(), (torch.ones(2, 8),))
    assert [(layer.name, len(layer.operations)) for layer in captured.layers[:2]] == [("first", 2), ("second", 2)]


def test_sources_are_repeated_and_never_sent() -> None:
    """Tests that a mask and a table are made by every layer that reads them, with what makes them."""
    captured = pytorch.capture(*modules.CASES["masked"]())
    profile = captured.outline()
    assert profile.tensors is not None
    assert [(each.producer, each.consumers) for each in profile.tensors] == [
        ("h.0", ("h.1",)),
        ("h.1", ("h.2",)),
        ("h.2", ("loss",)),
    ]
    for layer in captured.layers[:3]:
        made = {captured.graph.operations[name].target for name in layer.repeated}
        assert {"aten.full.default", "aten.triu_.default", "wrap_with_set_grad_enabled"} <= made


def test_a_value_for_several_layers_is_one_tensor() -> None:
    """Tests that what the encoder makes is one tensor with both parts of the decoder as consumers."""
    profile = pytorch.capture(*modules.CASES["encoder_decoder"]()).outline()
    assert profile.tensors is not None
    assert ("encoder.1", ("decoder.0", "decoder.1")) in [(each.producer, each.consumers) for each in profile.tensors]
    assert ("encoder.0", ("start",)) in [(each.producer, each.consumers) for each in profile.tensors]


def test_inputs_come_with_the_first_layer_that_reads_one() -> None:
    """Tests that a second input is sent from where the first arrives, without a gradient."""
    profile = pytorch.capture(*modules.CASES["encoder_decoder"]()).outline()
    assert profile.tensors is not None
    (arriving,) = (each for each in profile.tensors if each.consumers == ("start",))
    assert (arriving.bytes, arriving.gradient_bytes) == (64, 0)


def test_module_reuse() -> None:
    """Tests that two calls of a module are two layers with tied weights."""
    profile = pytorch.capture(*modules.CASES["reuse"]()).outline()
    assert [layer.name for layer in profile.layers] == ["rep", "mid", "rep@1", "loss"]
    assert [(weight.name, weight.layers) for weight in profile.weights] == [
        ("rep.weight", ("rep", "rep@1")),
        ("rep.bias", ("rep", "rep@1")),
    ]
    assert [layer.weight_bytes for layer in profile.layers] == [0, (64 + 8) * 4, 0, 0]


def test_buffers_of_batch_norm() -> None:
    """Tests that all that batch norm updates is known to be written, without a version counter for its statistics."""
    profile = pytorch.capture(*modules.CASES["resnet"]()).outline()
    assert all(buffer.mutated for buffer in profile.buffers)
    assert Counter(buffer.layers for buffer in profile.buffers) == {("layer1.0",): 3, ("layer1.1",): 3}
    module, inputs = modules.CASES["resnet"]()
    assert not any(buffer.mutated for buffer in pytorch.capture(module.eval(), inputs).outline().buffers)


def test_operations_in_place_stay_with_what_they_write_to() -> None:
    """Tests that no boundary lies between an operation and one that writes to its result."""
    captured = pytorch.capture(*modules.CASES["resnet"](), depth="operations")
    place = {name: layer.name for layer in captured.layers for name in layer.operations}
    writers = [each for each in captured.graph.operations.values() if each.target == "aten.relu_.default"]
    assert len(writers) == 4
    for writer in writers:
        assert place[writer.inputs[0]] == place[writer.name]


def test_a_frozen_part() -> None:
    """Tests that what is not trained has no gradient: neither its weights nor what passes through it."""
    profile = pytorch.capture(*modules.CASES["frozen"]()).outline()
    weights = {layer.name: layer.weight_bytes for layer in profile.layers}
    assert weights["h.0"] == 0 < weights["h.1"]
    assert profile.tensors is not None
    gradients = {tensor.producer: tensor.gradient_bytes for tensor in profile.tensors}
    assert gradients["h.0"] == 0 < (gradients["h.1"] or 0)
    kept = sum(buffer.bytes for buffer in profile.buffers if buffer.layers == ("h.0",))
    assert kept == weights["h.1"]


def test_random_operations() -> None:
    """Tests that dropout counts as random in training and not in evaluation."""
    for case, number in (("dropout", 3), ("evaluation", 0)):
        operations = pytorch.capture(*modules.CASES[case]()).graph.operations.values()
        assert sum(operation.random for operation in operations) == number


def test_the_module_is_left_as_it_was() -> None:
    """Tests that buffers, gradients, random state and the number of threads are as before."""
    module, inputs = modules.CASES["resnet"]()
    module(*inputs).sum().backward()
    gradients = [parameter.grad for parameter in module.parameters()]
    before = [each.clone() for each in (*module.buffers(), *gradients, *inputs)]
    torch.set_num_threads(2)
    state = torch.get_rng_state()
    pytorch.capture(module, inputs).profile(repetitions=1)
    assert torch.get_num_threads() == 2
    assert torch.equal(state, torch.get_rng_state())
    assert all(parameter.grad is before for parameter, before in zip(module.parameters(), gradients, strict=True))
    after = [*module.buffers(), *(parameter.grad for parameter in module.parameters()), *inputs]
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))


def test_the_loss_is_a_layer() -> None:
    """Tests that a loss with targets of its own is captured, and that its weights and constants are held there."""
    targets = torch.arange(16) % 5

    def loss(outputs: Any) -> Any:
        return torch.nn.functional.cross_entropy(outputs.flatten(0, 1), targets)

    profile = pytorch.capture(modules.Gpt(), modules.tokens(), loss, depth="operations").outline()
    assert profile.layers[-1].name == "loss"
    assert [(each.bytes, each.layers) for each in profile.buffers if each.layers == ("loss",)] == [(128, ("loss",))]


class Nested(torch.nn.Module):
    """Takes a dictionary and a number, has an LSTM, and a parameter that it does not read."""

    def __init__(self) -> None:
        super().__init__()
        self.recurrent, self.spare = torch.nn.LSTM(8, 8, batch_first=True), torch.nn.Linear(8, 8)

    def forward(self, given: dict[str, Any], factor: int) -> dict[str, Any]:
        return {"result": self.recurrent(given["values"])[0] * factor}


def test_structured_inputs_and_what_is_not_read() -> None:
    """Tests that inputs may be nested, that numbers are part of the graph, and that unread parameters are named."""
    captured = pytorch.capture(Nested(), ({"values": torch.ones(2, 3, 8)}, 3))
    profile = captured.profile(repetitions=1)
    assert profile.measurement is not None
    assert [each.shape for each in profile.measurement.inputs] == [(2, 3, 8)]
    assert captured.unread == ("spare.weight", "spare.bias")


class Branch(torch.nn.Module):
    """Does what its first element says."""

    def forward(self, values: Any) -> Any:
        if values.sum() > 0:
            return values.exp()
        return values


class Selection(torch.nn.Module):
    """Has as many results as there are positive elements."""

    def forward(self, values: Any) -> Any:
        return values[values > 0].exp()


@pytest.mark.parametrize(
    ("module", "line", "reason"),
    [
        (Branch(), "in forward (if values.sum() > 0:)", "control flow depends on the values of a tensor"),
        (Selection(), "in forward (return values[values > 0].exp())", "depends on data"),
    ],
)
def test_what_depends_on_data_is_refused(module: Any, line: str, reason: str) -> None:
    """Tests that the refusal names the line in the user's file, and the reason."""
    with pytest.raises(pytorch.CannotCapture) as refusal:
        pytorch.capture(module, (torch.randn(4),))
    assert "test_capturing.py:" in str(refusal.value)
    assert line in str(refusal.value)
    assert reason in str(refusal.value)


@pytest.mark.parametrize(
    ("loss", "words"),
    [(lambda outputs: outputs, r"the loss gives \(2, 8\)"), (lambda outputs: 1.0, "the loss gives float")],
)
def test_a_loss_is_one_element(loss: Any, words: str) -> None:
    """Tests that anything else is refused, with what it gives."""
    module, inputs = modules.CASES["reuse"]()
    with pytest.raises(pytorch.CannotCapture, match=words):
        pytorch.capture(module, inputs, loss)


class Keyword(torch.nn.Module):
    """Needs an argument by its name."""

    def forward(self, values: Any, *, scale: float) -> Any:
        return values * scale


class Constant(torch.nn.Module):
    """Reads nothing."""

    def forward(self, values: Any) -> Any:
        return torch.ones(3)


class Sparse(torch.nn.Module):
    """Multiplies a sparse tensor."""

    def forward(self, values: Any) -> Any:
        return torch.sparse.mm(values.to_sparse(), values.T)


PAIR = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
ONES = (torch.ones(2, 4),)


@pytest.mark.parametrize(
    ("module", "inputs", "words"),
    [
        (Keyword(), ONES, "inputs are positional: wrap the module in one whose forward takes them in order"),
        (Constant(), ONES, "no operation depends on an input or a parameter"),
        (
            torch.nn.Sequential(torch.nn.Linear(4, 4).half()),
            ONES,
            "0: aten.linear.default fails on the inputs given: mat1 and mat2",
        ),
        (torch.nn.Embedding(4, 4, sparse=True), (torch.arange(2),), "the module has sparse gradients"),
        (torch.compile(PAIR, backend="eager"), ONES, "the module is compiled"),
        (torch.jit.ScriptModule(), ONES, "the module is a script"),
        (torch.nn.Sequential(torch.nn.LazyLinear(4)), ONES, "0.weight is lazy and has no shape yet; run the module"),
        (PAIR, (torch.ones(0, 4),), r"input 0 has no elements \(shape \(0, 4\)\)"),
        (PAIR, (torch.ones(2, 5),), "torch.export refuses it: RuntimeError"),
        (Sparse(), ONES, r"to_sparse\(\), .*: aten.to_sparse.default makes a tensor with the layout sparse_coo"),
    ],
)
def test_what_cannot_be_captured_is_refused(module: Any, inputs: Any, words: str) -> None:
    """Tests that the reason and what to give instead are told."""
    with pytest.raises(pytorch.CannotCapture, match=words):
        pytorch.capture(module, inputs)


def test_torch_does_not_print_graphs(capfd: Any) -> None:
    """Tests that a refusal is all that is said, and that what a module says itself is kept."""
    with pytest.raises(pytorch.CannotCapture):
        pytorch.capture(torch.nn.Sequential(PAIR, Branch()), ONES)
    assert capfd.readouterr() == ("", "")


class Outermost(torch.nn.Module):
    """Computes by itself, with parameters of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(4))

    def forward(self, values: Any) -> Any:
        return (values * self.scale).exp()


def test_a_module_without_modules_is_a_layer() -> None:
    """Tests that its operations are not those of the loss, whatever the loss is."""
    captured = pytorch.capture(Outermost(), ONES)
    assert len(captured.layers[0].operations) == 2
    assert [layer.name for layer in captured.layers] == ["mul", "loss"]
    assert [layer.weight_bytes for layer in captured.outline().layers] == [16, 0]


def test_complex_outputs_have_a_loss() -> None:
    """Tests the mean of the squares of real and imaginary parts."""
    module = torch.nn.Linear(4, 4, dtype=torch.complex64)
    captured = pytorch.capture(module, (torch.ones(2, 4, dtype=torch.complex64),))
    result = module(torch.ones(2, 4, dtype=torch.complex64))
    expected = (result.real.square() + result.imag.square()).mean() / 2
    torch.testing.assert_close(captured.program(*captured.inputs), expected)
