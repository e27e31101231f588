"""Modules that are refused before anything is planned, because stages would compute something else."""

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")
pytorch = pytest.importorskip("partita.models.pytorch")

ONES = (torch.ones(2, 4),)


class Named(torch.nn.Module):
    """Has a part that is called as the loss is."""

    def __init__(self) -> None:
        super().__init__()
        self.loss = torch.nn.Linear(4, 4)

    def forward(self, values: Any) -> Any:
        return self.loss(values)


class Averaged(torch.nn.Module):
    """Keeps a running mean by putting a new tensor in the place of a buffer, or by writing to it; makes a mask anew."""

    def __init__(self, *, writes: bool) -> None:
        super().__init__()
        self.writes = writes
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("mask", torch.ones(1, 1))

    def forward(self, values: Any) -> Any:
        self.mask = torch.ones(len(values), 1)
        mean = 0.9 * self.mean + 0.1 * values.mean(0)
        if self.writes:
            self.mean.copy_(mean)
        else:
            self.mean = mean
        return (values - self.mean) * self.mask


def overlapping() -> Any:
    """Give two layers whose weights are two parameters in one memory."""
    pair = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    pair[1].weight.data = pair[0].weight.data
    return pair


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (torch.nn.Sequential(Averaged(writes=False)), r"the place of the buffer 0\.mean, .* in self\.mean\.copy_\("),
        (overlapping(), r"0\.weight and 1\.weight share memory but are not one parameter; assign one to the other"),
    ],
)
def test_what_stages_would_lose_is_refused(module: Any, words: str) -> None:
    """Tests that the parameter or buffer is named, and what would do."""
    with pytest.raises(pytorch.CannotCapture, match=words):
        pytorch.capture(module, ONES)


def test_a_loss_with_names_of_the_module_is_refused() -> None:
    """Tests that two parameters of one name are told apart before anything mixes them up."""
    loss = torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Flatten(0), torch.nn.Linear(2, 1))
    assert pytorch.capture(Named(), ONES, loss).layers[-1].name == "loss"
    loss = torch.nn.Linear(4, 1)
    with pytest.raises(pytorch.CannotCapture, match=r"the module and its loss both have 'loss\.weight'"):
        pytorch.capture(Named(), (torch.ones(1, 4),), loss)


def test_weights_that_lie_in_one_memory_side_by_side() -> None:
    """Tests that parameters which torch, or a flat vector, puts into one memory stay parameters of their own."""
    pair = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    vector = torch.nn.utils.parameters_to_vector(pair.parameters())
    torch.nn.utils.vector_to_parameters(vector, pair.parameters())
    captured = pytorch.capture(pair, ONES)
    assert set(captured.graph.parameters) == {"0.weight", "0.bias", "1.weight", "1.bias"}
    assert captured.unread == ()
    assert [layer.weight_bytes for layer in captured.outline().layers[:2]] == [80, 80]


def test_buffers_that_are_written_to_or_made_anew() -> None:
    """Tests that a running mean in place is captured beside a mask for the shape of the inputs."""
    captured = pytorch.capture(Averaged(writes=True), ONES)
    assert {name: state.changed for name, state in captured.graph.buffers.items()} == {"mean": True}
    assert captured.program.module.mask.shape == (1, 1)
