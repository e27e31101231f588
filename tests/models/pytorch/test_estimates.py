"""Costs of models on the meta device, estimated for a device that is not here."""

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")
modules = pytest.importorskip("torch_modules")
pytorch = pytest.importorskip("partita.models.pytorch")
ready = pytest.importorskip("partita.models.pytorch.ready")
roofline = pytest.importorskip("partita.models.pytorch.roofline")

A100 = roofline.DEVICES["a100"]


def on_meta(module: Any, inputs: tuple[Any, ...]) -> Any:
    """Capture a module after it has been moved to the meta device."""
    return pytorch.capture(*modules.moved_to_meta(module, inputs))


class Attention(torch.nn.Module):
    """Attention between two linear layers."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = torch.nn.Linear(width, 3 * width, bias=False), torch.nn.Linear(width, width, bias=False)

    def forward(self, values: Any) -> Any:
        size, length, width = values.shape
        parts = self.qkv(values).view(size, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = torch.nn.functional.scaled_dot_product_attention(*parts.unbind(0), is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(size, length, width))


@pytest.mark.parametrize("case", ["resnet", "encoder_decoder", "reuse", "masked"])
def test_what_is_saved_is_what_a_real_device_saves(case: str) -> None:
    """Tests that a model without attention saves on the meta device what it saves on the CPU."""
    module, inputs = modules.CASES[case]()
    here = pytorch.capture(module, inputs)
    there = on_meta(module, inputs)
    assert there.graph.saved_bytes == here.graph.saved_bytes
    assert [layer.name for layer in there.layers] == [layer.name for layer in here.layers]


def test_matrix_products_take_what_the_data_sheet_says() -> None:
    """Tests the times of a linear layer against its operations: 2 n^3, and twice as many backward."""
    size = 8192
    module = torch.nn.Sequential(*(torch.nn.Linear(size, size, bias=False) for _ in range(2))).bfloat16()
    inputs = (torch.empty(size, size, device="meta", dtype=torch.bfloat16),)
    second = pytorch.capture(module.to("meta"), inputs).estimate(A100).layers[1]
    product = 2 * size**3 / (312e12 * roofline.COMPUTE_EFFICIENCY)
    assert second.forward_s == pytest.approx(product)
    assert second.weight_gradient_s == pytest.approx(product, rel=0.05)  # and the sum with the other gradients
    assert second.backward_s == pytest.approx(2 * product, rel=0.05)


def test_small_operations_take_what_the_memory_needs() -> None:
    """Tests the time of an elementwise operation against the bytes that it reads and writes."""
    size = 2**24
    module = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.GELU())
    inputs = (torch.empty(size, 1, device="meta"),)
    second = pytorch.capture(module.to("meta"), inputs).estimate(A100).layers[1]
    assert second.forward_s == pytest.approx(2 * 4 * size / (2.039e12 * roofline.MEMORY_EFFICIENCY))


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_attention_saves_no_matrix(dtype: str) -> None:
    """Tests that attention keeps query, key, value, result and a number per row, as the kernels of a GPU do."""
    size, length, width, heads = 2, 256, 64, 4
    module = Attention(width, heads).to(getattr(torch, dtype))
    inputs = (torch.empty(size, length, width, dtype=getattr(torch, dtype)),)
    captured = on_meta(module, inputs)
    (attention,) = (each for each in captured.graph.operations.values() if "attention" in each.name)
    values = size * length * width * (2 if dtype == "bfloat16" else 4)
    rows = size * heads * length * 4
    kept = sum(captured.graph.storage_bytes[number] for number in attention.saved)
    assert 3 * values + values + rows <= kept < 3 * values + values + rows + 100  # and the state of the random numbers
    assert not attention.random


def test_an_estimate_says_so() -> None:
    """Tests that the profile is marked, that it is for the device, and that the problem has its memory and link."""
    captured = on_meta(modules.Gpt(dropout=0.1), modules.tokens())
    profile = captured.estimate(A100)
    assert profile.measurement is not None
    assert (profile.measurement.kind, profile.measurement.device) == ("analytic", "a100")
    assert profile.measurement.module_saved_bytes is None
    assert all(layer.forward_s > 0 for layer in profile.layers)
    problem = ready.ready_problem(captured, profile, devices=2, roofline=A100)
    assert problem.cluster.devices["a100"].memory_bytes == 80 * 10**9
    fabric = problem.cluster.nodes[0].fabric
    assert fabric is not None
    assert fabric.bandwidth_bytes_per_s == 300e9


def test_what_is_here_is_measured_and_what_is_not_is_estimated() -> None:
    """Tests that neither is mistaken for the other."""
    module, inputs = modules.CASES["reuse"]()
    with pytest.raises(ValueError, match="only one on the meta device is estimated"):
        pytorch.capture(module, inputs).estimate(A100)
    with pytest.raises(ValueError, match="nothing can be measured on the meta device"):
        on_meta(module, inputs).profile()


def test_one_device() -> None:
    """Tests that a module and inputs on two devices are refused, with both."""
    module, inputs = modules.CASES["reuse"]()
    with pytest.raises(pytorch.CannotCapture, match=r"several devices \(cpu, meta\)"):
        pytorch.capture(module.to("meta"), inputs)
