"""How a captured module is split: what crosses, what a stage holds, and what is refused."""

from collections import Counter
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")
modules = pytest.importorskip("torch_modules")
pytorch = pytest.importorskip("partita.models.pytorch")
draws = pytest.importorskip("partita.models.pytorch.split.draws")
parting = pytest.importorskip("partita.models.pytorch.split.partition")
building = pytest.importorskip("partita.models.pytorch.split.stage")
splitting = pytest.importorskip("partita.models.pytorch.split")
plans = pytest.importorskip("torch_plans")
records = pytest.importorskip("partita.models.pytorch.records")
wires = pytest.importorskip("partita.models.pytorch.split.wire")
matching = pytest.importorskip("partita.models.pytorch.matching")


def split(case: str, sizes: list[int], depth: str | int = "blocks") -> tuple[Any, Any]:
    """Capture a module and put so many layers on each stage, and the rest on one more."""
    captured = pytorch.capture(*modules.TRAINED[case](), depth=depth)
    names, stages = [layer.name for layer in captured.layers], []
    for size in (*sizes, len(captured.layers)):
        stages.append(names[:size])
        names = names[size:]
    return captured, parting.partition(captured.graph, captured.layers, stages)


def test_a_value_crosses_every_boundary_on_its_way() -> None:
    """Tests that what skips stages is passed on by those between, and what sources make is not."""
    captured, parts = split("encoder_decoder", [2, 1, 1, 1])
    assert [layer.name for layers in parts.layers for layer in layers][:3] == ["encoder.0", "encoder.1", "start"]
    readers = captured.graph.readers
    for boundary, names in enumerate(parts.crossing):
        for name in names:
            inside = [name for layers in parts.layers[boundary + 1 :] for layer in layers for name in layer.operations]
            assert set(readers[name]) & set(inside)
    assert captured.graph.inputs[1] in parts.crossing[0]  # the decoder's input enters at the first stage
    assert len(set(parts.crossing[1]) & set(parts.crossing[2])) == 1  # what the encoder made
    masked, parts = split("masked", [1, 1])
    repeated = {name for layer in masked.layers for name in layer.repeated}
    assert repeated
    assert [repeated & set(names) for names in parts.crossing] == [set(), set()]


@pytest.mark.parametrize("case", ["layouts", "encoder_decoder", "sorted", "gpt"])
def test_what_crosses_is_what_plans_count(case: str) -> None:
    """Tests that stages exchange the tensors of the profile that start before a boundary and are read after it."""
    captured, parts = split(case, [3, 3], "operations")
    stage_of = {layer.name: stage for stage, layers in enumerate(parts.layers) for layer in layers}
    for boundary, names in enumerate(parts.crossing):
        counted = {
            tensor.name
            for tensor in captured.outline().tensors
            if stage_of[tensor.producer] <= boundary < max(stage_of[each] for each in tensor.consumers)
        }
        assert set(names) == counted


def test_stages_hold_the_modules_own_weights() -> None:
    """Tests that parameters and buffers of stages are the module's, that tied ones have two owners, and no more."""
    module, inputs = modules.CASES["gpt"]()
    captured = pytorch.capture(module, inputs)
    names = [layer.name for layer in captured.layers]
    parts = parting.partition(captured.graph, captured.layers, [names[:3], names[3:5], names[5:]])
    options = building.StageOptions(draws.Moment())
    stages = [building.build_stage(captured.graph, parts, index, options) for index in range(3)]
    assert parts.tied == ("wte.weight",)
    assert parts.owners["wte.weight"] == (0, 2)
    held = [{id(each) for each in stage.module.parameters()} for stage in stages]
    assert held[0] & held[2] == {id(module.wte.weight)}
    assert not held[1] & (held[0] | held[2])
    assert set().union(*held) == {id(each) for each in module.parameters()}
    assert [len(list(stage.module.buffers())) for stage in stages] == [1, 0, 0]


def test_a_view_of_a_weight_is_sent_and_does_not_tie() -> None:
    """Tests that a stage which reads a part of a weight, taken on a stage before, holds no weight but a tensor."""
    captured, _ = split("packed", [1], "operations")
    at = next(n for n, layer in enumerate(captured.layers) if "split_with_sizes_1" in layer.operations) + 1
    captured, parts = split("packed", [at], "operations")
    bias = "multihead_attn.in_proj_bias"
    assert parts.owners[bias] == (0,)
    assert len({"getitem_2", "getitem_3"} & set(parts.crossing[0])) == 2
    outline = captured.outline()
    assert {tensor.name: tensor.producer for tensor in outline.tensors}["getitem_2"] == captured.layers[at - 1].name
    assert bias not in {weight.name for weight in outline.weights}


@pytest.mark.parametrize(
    ("case", "sizes", "depth", "expected"),
    [
        ("gpt", [3, 2], "blocks", [False, True, True]),  # a first stage gets nothing with a gradient
        ("frozen", [3, 2], "blocks", [True, False, True]),  # nor does one after frozen layers
        ("noisy", [2], "blocks", [False, False]),  # one norm twice
        ("packed", [1, 2], 1, [False, True, False]),  # a part of a weight meets what needs no gradient
    ],
)
def test_which_backward_passes_can_be_split(
    case: str, sizes: list[int], depth: str | int, expected: list[bool]
) -> None:
    """Tests that input and weight gradients are only separated where torch does not lose any."""
    captured, parts = split(case, sizes, depth)
    options = building.StageOptions(draws.Moment(), splits_backward=True)
    stages = [building.build_stage(captured.graph, parts, index, options) for index in range(parts.num_stages)]
    assert [stage.separable for stage in stages] == expected


@pytest.mark.parametrize(
    ("shape", "stride", "order", "copied"),
    [
        ((2, 3, 4), (12, 4, 1), (0, 1, 2), False),  # contiguous
        ((2, 3, 4), (4, 8, 1), (1, 0, 2), False),  # two dimensions exchanged
        ((2, 3, 5, 5), (75, 1, 15, 3), (0, 2, 3, 1), False),  # channels last
        ((1, 3, 4), (7, 1, 3), (0, 2, 1), False),  # the stride of one element means nothing
        ((3, 4), (0, 1), (0, 1), True),  # expanded
        ((3, 4), (8, 1), (0, 1), True),  # every second row
        ((0, 4), (4, 1), (0, 1), False),  # empty
        ((), (), (), False),
    ],
)
def test_how_tensors_lie_while_they_are_sent(
    shape: tuple[int, ...], stride: tuple[int, ...], order: tuple[int, ...], copied: bool
) -> None:
    """Tests that dense tensors are sent as they lie in memory, and get their strides again."""
    value = records.Value("x", None, shape, stride, "float32", 0, True, 0)
    wire = wires.wire_of(value)
    assert (wire.order, wire.copied) == (order, copied)
    example = wire.example()
    assert example.is_contiguous()
    if not copied and 1 not in shape and 0 not in shape:
        assert example.permute(wire.back).stride() == stride


def test_random_numbers_depend_on_operation_iteration_and_microbatch() -> None:
    """Tests that a seeded operation draws the same again at the same moment, others at others, and leaves no trace."""
    moment = draws.Moment()
    first, second = (draws.Seeded(torch.rand, name, moment, torch.device("cpu")) for name in ("a", "b"))
    before = torch.get_rng_state()
    drawn = []
    for moment.iteration, moment.microbatch, moment.seed in [(0, 0, 0), (0, 1, 0), (1, 0, 0), (0, 0, 1), (0, 0, 0)]:
        drawn.append((*first(3).tolist(), *second(3).tolist()))
    assert torch.equal(before, torch.get_rng_state())
    assert drawn[0] == drawn[-1]
    assert len({value for each in drawn for value in each}) == 4 * 6


def test_stages_that_cannot_be() -> None:
    """Tests that layers that are missing, unknown, on two stages or in the wrong order are refused by name."""
    captured, _ = split("reuse", [1])
    names = [layer.name for layer in captured.layers]
    graph, layers = captured.graph, captured.layers
    for stages, words in [
        ([names[:1], ["x"]], "stage 1: the module has no layer 'x'"),
        ([names[:2], names[1:]], f"layer {names[1]!r} is on stages 0 and 1"),
        ([names[:1], names[2:]], f"layer {names[1]!r} is on no stage"),
        ([names[1:], names[:1]], f"{names[1]!r} on stage 0 reads what {names[0]!r} on stage 1 makes"),
    ]:
        with pytest.raises(parting.CannotSplit, match=words):
            parting.partition(graph, layers, stages)


class Counted(torch.utils._python_dispatch.TorchDispatchMode):
    """Counts the operations that run."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.counts[str(function)] += 1
        return function(*args, **kwargs or {})


@pytest.mark.parametrize(
    ("option", "policies", "products", "activations"),
    [
        (None, {}, 1, 1),
        ("full", {}, 2, 2),
        ("selective", {"selective": ["aten.addmm"]}, 1, 2),
        ("selective", {}, 2, 2),  # nobody says what it saves
    ],
)
def test_what_runs_again(option: str | None, policies: Any, products: int, activations: int) -> None:
    """Tests how often the operations of a layer run, forward and backward, under options of recompute."""
    module = torch.nn.Sequential(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Sigmoid()), torch.nn.Softmax(1))
    captured = pytorch.capture(module, (torch.randn(2, 4),), depth=1)
    layer = next(each.name for each in captured.layers)
    plan = plans.run_plan(captured.layers, [1], "1f1b", recomputed={layer: option} if option else {}, policies=policies)
    options = building.StageOptions(draws.Moment(), recomputed=splitting.pipeline.contexts_of(plan))
    parts = parting.partition(captured.graph, captured.layers, plan.stages)
    stage = building.build_stage(captured.graph, parts, 0, options)
    with Counted() as counted:
        (sent,) = stage.module(torch.randn(2, 4))
        sent.sum().backward()
    assert (counted.counts["aten.addmm.default"], counted.counts["aten.sigmoid.default"]) == (products, activations)


def test_a_policy_of_what_is_no_operation() -> None:
    """Tests that this is a mistake of the plan."""
    captured, _ = split("reuse", [1])
    plan = plans.run_plan(captured.layers, [1], "1f1b", policies={"selective": ["aten.admm"]})
    with pytest.raises(parting.CannotSplit, match="did you mean 'aten"):
        splitting.pipeline.contexts_of(plan)


def test_a_plan_that_does_not_train_is_refused() -> None:
    """Tests that this is said before any process looks for the others."""
    captured, _ = split("reuse", [1])
    with pytest.raises(parting.CannotSplit, match="plan is for forward_only"):
        splitting.materialize(captured, plans.run_plan(captured.layers, [1], "forward_only"))


def test_layers_are_found_again_whatever_their_depth() -> None:
    """Tests that a capture gets the layers of a profile of the same module, and no others."""
    module, inputs = modules.CASES["gpt"]()
    again = pytorch.capture(module, inputs)
    for depth in ("blocks", "points", "operations", 1):
        model = pytorch.capture(module, inputs, depth=depth).outline()
        assert [layer.name for layer in matching.matched(again, model).layers] == [each.name for each in model.layers]
    other = pytorch.capture(*modules.CASES["resnet"]()).outline()
    with pytest.raises(pytorch.CannotCapture, match="its layers are not those of the problem, which has 5, among them"):
        matching.matched(again, other)
