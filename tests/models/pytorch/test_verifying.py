"""Stages of a plan against the unsplit model, each rank a process of its own; and faults that must be found."""

import faulthandler
import os
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")
modules = pytest.importorskip("torch_modules")
plans = pytest.importorskip("torch_plans")
policies = pytest.importorskip("partita.models.pytorch.policies")
pytorch = pytest.importorskip("partita.models.pytorch")
proof = pytest.importorskip("partita.models.pytorch.proof")
verifying = pytest.importorskip("partita.models.pytorch.proof.verifying")
runtime = pytest.importorskip("partita.models.pytorch.split.runtime")
split = pytest.importorskip("partita.models.pytorch.split")
torch_plan = pytest.importorskip("partita.models.writers.torch_plan")
launching = pytest.importorskip("partita.models.pytorch.proof.launching")

LIMIT_S = 60.0
SUMMED = {"gpt", "dropout", "evaluation", "reuse", "bfloat16", "complex", "filled"}
"""Modules with a weight that stages far apart read, or a value read in many places: gradients are added up in another
order."""
CUSTOM = [["0F0", "0F1", "2F0", "2F1", "0F2", "2B0", "2F2", "0B0", "2I2", "2W2", "2B1", "0I1", "0B2", "0W1"],
          ["1F0", "1F1", "1F2", "1B0", "1I2", "1B1", "1W2"]]  # fmt: skip
"""Three stages on two ranks, whole and split backward passes; gradients are added in another order."""


def captured_of(case: str, depth: Any = "operations") -> Any:
    """Capture a module, made the same every time."""
    torch.manual_seed(0)
    return pytorch.capture(*modules.TRAINED[case](), depth=depth)


def check(captured: Any, plan: Any, *, to_the_bit: bool) -> Any:
    """Verify a plan and expect it to hold."""
    found = proof.verify(captured, plan, time_limit_s=LIMIT_S)
    assert not found.wrong, found.wrong[0]
    kinds = {each.kind for each in found.differences}
    assert kinds >= {"loss", "gradient", "parameter"}
    losses = {(each.name, each.step) for each in found.differences if each.kind == "loss"}
    assert losses == {(str(number), step) for number in range(plan.num_microbatches) for step in range(2)}
    if to_the_bit:
        assert found.largest.absolute == 0
    return found


@pytest.mark.parametrize(
    ("case", "num_stages", "schedule", "places"),
    [
        ("gpt", 3, "1f1b", [2, 0, 1]),  # cuts inside attention, a tied head, ranks in another order
        ("resnet", 4, "zb_v", [1, 0]),  # cuts inside residual blocks, buffers, a split backward pass
        ("noisy", 3, CUSTOM, [1, 0]),  # dropout, noise, what is written in place
        ("sorted", 4, "interleaved_1f1b", [0, 1]),  # whole numbers and truth values cross
        ("nested", 2, "gpipe", [0, 1]),  # inputs and outputs in dictionaries
        ("scaled", 3, "1f1b", [0, 1, 2]),  # buffers that gradients need
        ("complex", 4, "1f1b", [0, 1, 2, 3]),  # numbers that are still to be conjugated
        ("filled", 3, "zb_h1", [0, 1, 2]),  # a gradient only after something was written
    ],
)
def test_stages_compute_what_the_model_computes(case: str, num_stages: int, schedule: Any, places: list[int]) -> None:
    """Tests losses, gradients, buffers and parameters of stages against those of the unsplit model."""
    captured = captured_of(case)
    microbatches = 3 if schedule is CUSTOM else 4
    cuts = plans.even(captured.layers, num_stages)
    plan = plans.run_plan(captured.layers, cuts, schedule, microbatches=microbatches, places=places)
    found = check(captured, plan, to_the_bit=case not in SUMMED and schedule is not CUSTOM)
    assert found.seeded == (case == "noisy")


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "interleaved_1f1b", "interleaved_zb", "zb_h1", "zb_v", "custom"])
@pytest.mark.parametrize("case", modules.TRAINED)
def test_all_modules_under_all_schedules(case: str, schedule: str) -> None:
    """Tests every module under every kind of schedule, on two to four ranks in another order than that of stages."""
    captured = captured_of(case)
    several = schedule in ("interleaved_1f1b", "interleaved_zb", "zb_v")
    for ranks in (2, 3, 4):
        num_stages = min(3 if schedule == "custom" else ranks * (2 if several else 1), len(captured.layers))
        if schedule == "custom":
            orders, microbatches, ranks = CUSTOM, 3, 2
        elif several and num_stages < 2 * ranks:
            continue
        else:
            orders, microbatches = schedule, 2 * ranks
        plan = plans.run_plan(
            captured.layers,
            plans.even(captured.layers, num_stages),
            orders,
            microbatches=microbatches,
            places=[*range(1, ranks), 0],
        )
        check(captured, plan, to_the_bit=case not in SUMMED and schedule != "custom")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_random_partitions(seed: int) -> None:
    """Tests stages whose layers are not next to each other, under random schedules."""
    chosen = random.Random(seed)
    case, kind = chosen.choice([*modules.TRAINED]), chosen.choice(["1f1b", "gpipe", "zb_h2", "zb_v", "interleaved_zb"])
    captured = captured_of(case)
    layers, operations = captured.layers, captured.graph.operations
    num_stages = 3 if kind in ("1f1b", "gpipe", "zb_h2") else 4
    layer_of = {name: number for number, layer in enumerate(layers) for name in layer.operations}
    stage_of: list[int] = []
    while set(stage_of) != set(range(num_stages)):
        stage_of = []
        for number, layer in enumerate(layers):
            read = {layer_of[each] for name in layer.operations for each in operations[name].inputs if each in layer_of}
            low = max((stage_of[each] for each in read - {number}), default=0)
            stage_of.append(
                min(num_stages - 1, max(low, chosen.choice([low, low, number * num_stages // len(layers)])))
            )
    plan = replace(
        plans.run_plan(layers, plans.even(layers, num_stages), kind),
        stages=tuple(
            tuple(layer.name for layer, stage in zip(layers, stage_of, strict=True) if stage == wanted)
            for wanted in range(num_stages)
        ),
    )
    check(captured, plan, to_the_bit=False)


@pytest.mark.slow
@pytest.mark.parametrize("option", ["full", "selective"])
@pytest.mark.parametrize("case", ["gpt", "dropout", "layouts"])
def test_recomputed_layers_compute_the_same(case: str, option: str) -> None:
    """Tests layers that run again in the backward pass, also with random numbers, whole or but for their products."""
    captured = captured_of(case, "blocks")
    names = [layer.name for layer in captured.layers]
    recomputed, saving = dict.fromkeys(names[1:-1], option), {"selective": policies.PRODUCTS}
    plan = plans.run_plan(captured.layers, [2], "1f1b", recomputed=recomputed, policies=saving)
    check(captured, plan, to_the_bit=False)  # a layer that runs again adds up gradients in another order


def changed(change: Callable[[Any], None]) -> Callable[..., Any]:
    """Give a ``materialize`` after which something is changed."""
    original = verifying.materialize

    def materialize(*args: Any, **kwargs: Any) -> Any:
        pipeline = original(*args, **kwargs)
        change(pipeline)
        return pipeline

    return materialize


def swap_inputs(pipeline: Any) -> None:
    """Let the first two microbatches change places."""
    run = pipeline.runtime.run
    pipeline.runtime.run = lambda given: run([given[1], given[0], *given[2:]])


def keep_buffers_stale(pipeline: Any) -> None:
    """Undo what an iteration does to buffers."""
    run = pipeline.runtime.run

    def stale(given: Any) -> Any:
        before = {name: each.clone() for name, each in pipeline.buffers.items()}
        losses = run(given)
        for name, each in pipeline.buffers.items():
            each.copy_(before[name])
        return losses

    pipeline.runtime.run = stale


def drop_residual(pipeline: Any) -> None:
    """Leave the first summand of the first residual out."""
    for stage in pipeline.stages:
        for node in stage.submod.graph.nodes:
            if node.name == "add_1" and stage.stage_index == 1:
                node.replace_all_uses_with(node.args[1])
        stage.submod.recompile()


def change_frozen(pipeline: Any) -> None:
    """Write to parameters that are not trained, after an iteration."""
    run = pipeline.runtime.run

    def changing(given: Any) -> Any:
        losses = run(given)
        for each in pipeline.parameters.values():
            each.data += 0.0 if each.requires_grad else 1.0
        return losses

    pipeline.runtime.run = changing


def scale_twice(pipeline: Any) -> None:
    """Let torch divide by the number of microbatches too."""
    pipeline.runtime.scale_grads = True


@pytest.mark.parametrize(
    ("case", "fault", "kind", "name"),
    [
        ("gpt", lambda pipeline: setattr(pipeline.tied, "synchronize", lambda: None), "gradient", "wte.weight"),
        ("resnet", swap_inputs, "loss", "0"),
        ("resnet", keep_buffers_stale, "buffer", "layer1.0.norm.running_mean"),
        ("resnet", drop_residual, "loss", "0"),
        ("gpt", scale_twice, "gradient", "h.0.qkv.weight"),
        ("frozen", change_frozen, "parameter", "h.0.qkv.weight"),
    ],
    ids=[
        "unsynchronized tied weight",
        "swapped microbatches",
        "stale buffer",
        "dropped residual",
        "scaled twice",
        "changed frozen weight",
    ],
)
def test_faults_are_found(
    monkeypatch: pytest.MonkeyPatch, case: str, fault: Callable[[Any], None], kind: str, name: str
) -> None:
    """Tests that each fault shows, and where."""
    captured = captured_of(case)
    plan = plans.run_plan(captured.layers, plans.even(captured.layers, 2), "1f1b")
    monkeypatch.setattr(verifying, "materialize", changed(fault))
    found = proof.verify(captured, plan, time_limit_s=LIMIT_S)
    assert (kind, name) in {(each.kind, each.name) for each in found.wrong}


class Doubled(torch.autograd.Function):
    """Has a backward pass that its forward pass does not tell of."""

    @staticmethod
    def forward(ctx: Any, values: Any) -> Any:
        return values.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return 2 * gradient


class Straight(torch.nn.Sequential):
    """A function with a backward pass of its own after dropout."""

    def forward(self, values: Any) -> Any:
        return self[2](Doubled.apply(self[1](self[0](values))))


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_a_graph_that_is_not_the_module_is_found(dropout: float) -> None:
    """Tests that a gradient which gets lost in the capture shows, where the graph stands for the module too."""
    torch.manual_seed(0)
    module = Straight(torch.nn.Linear(4, 4), torch.nn.Dropout(dropout), torch.nn.Linear(4, 4))
    captured = pytorch.capture(module, (torch.randn(3, 4),), depth="operations")
    found = proof.verify(captured, plans.run_plan(captured.layers, [1], "1f1b"), time_limit_s=LIMIT_S)
    assert {each.place for each in found.wrong} >= {
        "gradient 0.weight of the captured graph, apart from the module itself"
        if dropout
        else "gradient 0.weight, iteration 0, rank 0"
    }


def test_losses_that_are_no_numbers_prove_nothing() -> None:
    """Tests that NaN on both sides is not taken for the same."""
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LogSigmoid())
    captured = pytorch.capture(module, (torch.full((2, 4), -torch.inf),))
    with pytest.raises(
        proof.RankFailed, match="the unsplit model: ValueError: the loss of microbatch 0 in iteration 0 is"
    ):
        proof.verify(captured, plans.run_plan(captured.layers, [1], "gpipe"), time_limit_s=LIMIT_S)


@pytest.mark.parametrize("direction", ["fwd", "bwd"])
def test_a_tensor_of_another_microbatch_is_an_error(monkeypatch: pytest.MonkeyPatch, direction: str) -> None:
    """Tests that a rank which puts tensors in each other's place stops, in either direction."""
    captured = captured_of("resnet")
    plan = plans.run_plan(captured.layers, [5], "gpipe")
    method = f"get_{direction}_recv_ops"
    original = getattr(runtime.PipelineStage, method)
    monkeypatch.setattr(runtime.PipelineStage, method, lambda self, number: original(self, number ^ 1))
    with pytest.raises(proof.RankFailed, match="got a tensor that was not sent") as caught:
        proof.verify(captured, plan, time_limit_s=LIMIT_S)
    assert caught.value.kind == "MixedUp"
    method = f"get_{direction}_send_ops"
    monkeypatch.undo()
    original_sends = getattr(verifying.LabeledStage, method)

    def mislabeled(self: Any, number: int) -> Any:
        self.moment.iteration += 1
        sends = original_sends(self, number)
        self.moment.iteration -= 1
        return sends

    monkeypatch.setattr(verifying.LabeledStage, method, mislabeled)
    words = "expected tensor 0 of microbatch 0 in iteration 0, got tensor 0 of microbatch 0 in iteration 1"
    with pytest.raises(proof.RankFailed, match=words):
        proof.verify(captured, plan, time_limit_s=LIMIT_S)


def raise_error() -> None:
    raise ValueError("no such word")


def abort() -> None:
    faulthandler.disable()  # pytest's, which would write to the terminal
    os.abort()


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (raise_error, "rank 1, 1F2: ValueError: no such word"),
        (abort, "rank 1, 1F2: was killed by SIGABRT"),
        (lambda: os._exit(3), "rank 1, 1F2: ended with exit code 3"),
        (lambda: time.sleep(99), "not ended in time, so that all were stopped: .*rank 1 began 1F2 last"),
    ],
    ids=["raises", "aborts", "exits", "hangs"],
)
def test_the_first_cause_is_told(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None], words: str) -> None:
    """Tests that a rank that fails, dies or hangs ends everything, with the cause and not its echo on the other."""
    captured = captured_of("resnet")
    plan = plans.run_plan(captured.layers, [5], "1f1b")
    original = runtime.Stage.forward_one_chunk

    def failing(self: Any, number: int, *args: Any, **kwargs: Any) -> Any:
        if self.stage_index == 1 and number == 2:
            act()
        return original(self, number, *args, **kwargs)

    monkeypatch.setattr(runtime.Stage, "forward_one_chunk", failing)
    began = time.monotonic()
    with pytest.raises(proof.RankFailed, match=words):
        proof.verify(captured, plan, time_limit_s=6.0 if "hang" in words or "time" in words else LIMIT_S)
    assert time.monotonic() - began < 30


def test_the_users_module_stays_as_it_is() -> None:
    """Tests that neither parameters nor buffers, gradients, random state or threads change."""
    captured = captured_of("noisy")
    module = captured.program.module
    state = {name: each.clone() for name, each in module.state_dict().items()}
    before = torch.get_rng_state(), torch.get_num_threads()
    check(captured, plans.run_plan(captured.layers, [4], "1f1b"), to_the_bit=True)
    assert all(torch.equal(each, state[name]) for name, each in module.state_dict().items())
    assert all(each.grad is None for each in module.parameters())
    assert torch.equal(before[0], torch.get_rng_state())
    assert torch.get_num_threads() == before[1]


def test_a_training_program_runs_an_exported_plan() -> None:
    """Tests the way from ``export torch`` to losses and gradients of two iterations in the user's own processes."""
    captured = captured_of("reuse", "blocks")
    names = [layer.name for layer in captured.layers]
    exported = {
        "schedule": "1f1b",
        "num_microbatches": 2,
        "devices": ["node0:1", "node0:3"],
        "groups": [[1, 0]],
        "stage_to_rank": [0, 1],
        "stages": [names[:2], names[2:]],
        "recompute": [{names[1]: "full"}, {}],
        "orders": ["0F0,0F1,0B0,0B1", "1F0,1B0,1F1,1B1"],
    }
    plan = split.RunPlan.of(torch_plan.read_torch(exported))
    assert (plan.places, plan.num_microbatches, plan.recomputed) == ((1, 0), 2, {names[1]: "full"})
    data = [(torch.randn(2, 8),), (torch.randn(2, 8),)]
    with tempfile.TemporaryDirectory() as folder:

        def train(process: int) -> Any:
            store = f"file://{folder}/store"
            torch.distributed.init_process_group("gloo", init_method=store, rank=process, world_size=2)
            pipeline = split.materialize(captured, plan)
            losses = pipeline.run(data)
            pipeline.run(data)
            return pipeline.rank, [each.item() for each in losses], pipeline.parameters["rep.weight"].grad.tolist()

        functions = [partial(train, process) for process in range(2)]
        (last, losses, gradient), (first, nothing, same) = launching.run_processes(
            functions, deadline=time.monotonic() + LIMIT_S
        )
    assert (first, last, nothing) == (0, 1, [])
    expected = [captured.program(*each) for each in data]
    sum(expected).backward()  # two iterations of two microbatches
    assert losses == [each.item() for each in expected]
    assert gradient == same
    wanted = captured.program.module.rep.weight.grad
    assert torch.allclose(torch.tensor(gradient), wanted, rtol=1e-6, atol=1e-7 * wanted.abs().max().item())
