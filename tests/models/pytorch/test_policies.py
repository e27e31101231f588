"""Selective recompute: what layers keep under a policy, in theory and in the memory of a real run."""

import gc
import weakref
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")
modules = pytest.importorskip("torch_modules")
pytorch = pytest.importorskip("partita.models.pytorch")
passes = pytest.importorskip("partita.models.pytorch.passes")
policies = pytest.importorskip("partita.models.pytorch.policies")
roofline = pytest.importorskip("partita.models.pytorch.roofline")
segments = pytest.importorskip("partita.models.pytorch.segments")
dispatch = pytest.importorskip("torch.utils._python_dispatch")
pytree = pytest.importorskip("torch.utils._pytree")

CHECKPOINT = torch.utils.checkpoint.CheckpointPolicy


class Watched(dispatch.TorchDispatchMode):  # type: ignore[misc,name-defined]
    """Knows the storages that operations make for as long as they are there."""

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[int, weakref.ref[Any]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {id(each.untyped_storage()) for each in tensors((args, kwargs))}
        result = func(*args, **(kwargs or {}))
        for each in tensors(result):
            storage = each.untyped_storage()
            if id(storage) not in given:
                self.made[id(storage)] = weakref.ref(storage)
        return result

    @property
    def bytes(self) -> int:
        """Bytes of those that are there."""
        gc.collect()
        return sum(storage.nbytes() for ref in self.made.values() if (storage := ref()) is not None)


def tensors(tree: Any) -> list[Any]:
    """Give the tensors in a tree."""
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def predicted(profile: Any, option: str | None) -> int:
    """Give the bytes that all layers keep together, each by the option where it has it."""
    total = sum(shared.bytes for shared in profile.shared_activations)
    for layer in profile.layers:
        chosen = [each.activation_bytes for each in layer.options if each.recompute == option]
        total += chosen[0] if chosen else layer.activation_bytes
    return int(total)


def kept(captured: Any, profile: Any, option: str | None) -> int:
    """Run the layers one after the other, each by the option, and count the bytes that are there in the end."""
    graph, policy = captured.graph, policies.Policy(policies.PRODUCTS)
    values = {name: graph.tensors[name].clone() for name in graph.inputs}
    given = sum(each.untyped_storage().nbytes() for each in values.values())
    with Watched() as watched:
        for layer, planned in zip(captured.layers, profile.layers, strict=True):
            part = segments.cut_out(graph, layer.operations, layer.repeated)
            run = part.module
            if option in {each.recompute for each in planned.options}:
                selective = policy if option == "selective" else None
                run = passes.recomputing(part, random=False, policy=selective)
            results = run(*(values[name] for name in part.inputs))
            values |= dict(zip(part.outputs, results, strict=True))
            policy.take_kept()
        result = segments.result_of(graph)
        loss = values[result]
        del values, results
        return watched.bytes + given - loss.untyped_storage().nbytes()


@pytest.mark.parametrize("case", ["gpt", "encoder_decoder", "reuse"])
@pytest.mark.parametrize("option", [None, "full", "selective"])
def test_what_layers_keep_adds_up(case: str, option: str | None) -> None:
    """Tests the sum over layers against what a run of all of them leaves in memory, to the byte."""
    captured = pytorch.capture(*modules.CASES[case]())
    profile = captured.profile(repetitions=1, policies={"selective": policies.PRODUCTS})
    assert any(layer.options for layer in profile.layers)
    assert kept(captured, profile, option) == predicted(profile, option)


@pytest.mark.parametrize("option", ["full", "selective"])
def test_a_table_that_several_layers_save_counts_as_kept(option: str) -> None:
    """Tests that what layers share is never counted too little, though recompute makes it anew."""
    captured = pytorch.capture(*modules.CASES["masked"]())
    profile = captured.profile(repetitions=1, policies={"selective": policies.PRODUCTS})
    assert kept(captured, profile, option) <= predicted(profile, option)


def options_of(profile: Any, name: str) -> dict[str, Any]:
    """Give the options of a layer by their names."""
    (layer,) = (each for each in profile.layers if each.name == name)
    return {each.recompute: each for each in layer.options}


def test_what_a_block_keeps_by_hand() -> None:
    """Tests the bytes of a block that keeps its input and the results of its linear layers, and those alone."""
    captured = pytorch.capture(modules.Gpt(width=32, blocks=2), modules.tokens())
    value = 2 * 8 * 32 * 4
    found = options_of(captured.profile(repetitions=1, policies={"linear": ["aten.addmm"]}), "h.0")
    assert list(found) == ["full", "linear"]
    assert found["full"].activation_bytes == value
    assert found["linear"].activation_bytes == value * (1 + 3 + 1 + 4 + 1)
    assert found["linear"].forward_s > 0
    assert found["linear"].weight_gradient_s == 0


def test_an_estimate_with_a_policy_is_between_both() -> None:
    """Tests that saving products takes the time of full recompute without the products; on the meta device."""
    captured = pytorch.capture(*modules.moved_to_meta(modules.Gpt(width=256), (torch.zeros(8, 16, dtype=torch.long),)))
    profile = captured.estimate(roofline.DEVICES["a100"], policies={"selective": policies.PRODUCTS})
    (block,) = (each for each in profile.layers if each.name == "h.1")
    found = options_of(profile, "h.1")
    assert block.backward_s < found["selective"].backward_s < found["full"].backward_s
    assert found["full"].activation_bytes < found["selective"].activation_bytes < block.activation_bytes
    assert found["selective"].forward_s == pytest.approx(block.forward_s)


def test_a_policy_function() -> None:
    """Tests that a function of the user's own decides, and that it is told when it is the second run."""
    runs = set()

    def decide(context: Any, operation: Any, *args: Any, **kwargs: Any) -> Any:
        runs.add(context.is_recompute)
        return CHECKPOINT.MUST_SAVE if operation is torch.ops.aten.gelu.default else CHECKPOINT.PREFER_RECOMPUTE

    captured = pytorch.capture(modules.Gpt(blocks=2), modules.tokens())
    found = options_of(captured.profile(repetitions=1, policies={"gelu": decide}), "h.1")
    assert found["gelu"].activation_bytes - found["full"].activation_bytes == 2 * 8 * 64 * 4
    assert False in runs


class InPlace(torch.nn.Module):
    """Writes to the result of a convolution, and to nothing that a linear layer makes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.linear = torch.nn.Conv1d(2, 2, 1), torch.nn.Linear(3, 3)

    def forward(self, values: Any) -> Any:
        return self.linear(torch.relu_(self.conv(values))).sin()


def test_what_is_written_to_cannot_be_saved() -> None:
    """Tests that a policy is no option of a layer that changes what it would save; torch refuses that."""
    module = torch.nn.ModuleList([InPlace(), InPlace()])
    whole = torch.nn.Sequential(*module)
    captured = pytorch.capture(whole, (torch.ones(1, 2, 3),))
    profile = captured.profile(repetitions=1, policies={"c": ["aten.convolution"], "l": ["aten.addmm"]})
    assert list(options_of(profile, "0")) == ["full", "l"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"none": ["aten.mm"]}, "cannot be called 'none'; choose, full, none, stage have a meaning"),
        ({"full": ["aten.mm"]}, "cannot be called 'full'"),
        ({"s": ["aten.adm"]}, "torch has no operation 'aten.adm'; did you mean"),
        ({"s": ["aten"]}, "'aten' is no operation"),
        ({"s": ["aten.linear"]}, "the policy of 's' saves no operation of the layers that can be"),
    ],
)
def test_policies_that_are_none(given: Any, words: str) -> None:
    """Tests names with another meaning, operations that do not exist, and those that never run."""
    captured = pytorch.capture(*modules.CASES["gpt"]())
    with pytest.raises(ValueError, match=words):
        captured.profile(repetitions=1, policies=given)
