"""Models of the package transformers: captured, measured, planned."""

import pytest

from example_scripts import load

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")
pytest.importorskip("transformers", reason="transformers is not installed: pip install transformers")
pytorch = pytest.importorskip("partita.models.pytorch")
ready = pytest.importorskip("partita.models.pytorch.ready")

PLANNER = pytest.importorskip("partita.solver.planner")

LAYERS = {
    "gpt2": ["transformer.wte", "transformer.wpe", "transformer.drop", *(f"transformer.h.{n}" for n in range(4))],
    "llama": ["model.embed_tokens", *(f"model.layers.{n}" for n in range(4)), "model.norm"],
    "t5": ["encoder.embed_tokens", "encoder.dropout", "encoder.block.0", "encoder.block.1"],
    "vit": ["vit.embeddings", *(f"vit.layers.{n}" for n in range(4)), "vit.layernorm"],
}
"""The first layers of each."""
TIED = {
    "gpt2": {"transformer.wte.weight": ("transformer.wte", "lm_head")},
    "t5": {"shared.weight": ("encoder.embed_tokens", "decoder.embed_tokens", "lm_head")},
}
ITSELF = {"gpt2": 1.0, "llama": 1.1, "t5": 1.001, "vit": 1.03}
"""How many times what the module keeps by itself is kept as captured, at most: where it is exported, transformers makes
masks that it leaves out otherwise, and repeats keys that several queries share."""


@pytest.mark.parametrize("name", LAYERS)
def test_a_model_is_captured_and_planned(name: str) -> None:
    """Tests layers, tied weights and saved bytes, and that two stages are planned for it."""
    torch.manual_seed(0)
    captured = pytorch.capture(*load("transformers_models.py").MODELS[name]())
    profile = captured.profile(name=name, repetitions=1)
    assert [layer.name for layer in profile.layers][: len(LAYERS[name])] == LAYERS[name]
    assert {weight.name: weight.layers for weight in profile.weights} == TIED.get(name, {})
    found = profile.measurement
    assert found is not None
    assert found.saved_bytes == pytest.approx(found.module_saved_bytes, rel=ITSELF[name] - 1)
    answer = PLANNER.plan_problem(ready.ready_problem(captured, profile, devices=2))
    assert answer.status == "optimal"
    assert len(answer.candidates[0].stages) == 2


def test_what_skips_stages() -> None:
    """Tests that the encoder's result and the positions of a T5 reach all that read them, and the loss no more."""
    profile = pytorch.capture(*load("transformers_models.py").t5()).outline()
    assert profile.tensors is not None
    sent = {(tensor.producer, *tensor.consumers) for tensor in profile.tensors}
    assert ("encoder.dropout@1", "decoder.block.0", "decoder.block.1") in sent
    assert [reader for *_, reader in sent if reader == "loss"] == ["loss"]


@pytest.mark.parametrize("name", ["llama", "vit"])
def test_eager_attention_is_captured_as_it_runs(name: str) -> None:
    """Tests that a model whose attention is no kernel keeps as captured what it keeps by itself, to the byte."""
    module, inputs, loss = load("transformers_models.py").MODELS[name]()
    module.set_attn_implementation("eager")
    captured = pytorch.capture(module, inputs, loss)
    measured = captured.profile(repetitions=1).measurement
    assert measured is not None
    assert measured.saved_bytes == measured.module_saved_bytes
