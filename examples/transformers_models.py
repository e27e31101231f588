"""Models of the package ``transformers``, built from small configurations without weights, to be profiled.

``pip install transformers``, then ``partita profile examples/transformers_models.py:gpt2``.
"""

from collections.abc import Callable
from typing import Any

import torch
import transformers

Model = tuple[torch.nn.Module, tuple[Any, ...], Callable[[Any], torch.Tensor]]
"""A module, example inputs of one microbatch, and its loss."""

WORDS, WIDTH, LAYERS = 128, 64, 4


def tokens(length: int = 16) -> torch.Tensor:
    """Give two texts."""
    return torch.arange(2 * length).reshape(2, length) % WORDS


def next_token(outputs: Any) -> torch.Tensor:
    """Give the cross entropy of every token but the last against the one after it, here always the same."""
    logits = outputs.logits[:, :-1].flatten(0, 1)
    return torch.nn.functional.cross_entropy(logits, torch.ones_like(logits[:, 0], dtype=torch.long))


def first_class(outputs: Any) -> torch.Tensor:
    """Give the cross entropy against the first class."""
    return torch.nn.functional.cross_entropy(outputs.logits, torch.zeros_like(outputs.logits[:, 0], dtype=torch.long))


def gpt2() -> Model:
    """Give a GPT-2, whose head is tied to its embedding, in training mode."""
    config = transformers.GPT2Config(
        n_layer=LAYERS, n_embd=WIDTH, n_head=4, vocab_size=WORDS, n_positions=64, bos_token_id=0, eos_token_id=0
    )
    return transformers.GPT2LMHeadModel(config), (tokens(),), next_token


def llama() -> Model:
    """Give a Llama with rotary positions and fewer keys than queries."""
    config = transformers.LlamaConfig(
        num_hidden_layers=LAYERS,
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=WORDS,
    )
    return transformers.LlamaForCausalLM(config), (tokens(),), next_token


def t5() -> Model:
    """Give a T5: an encoder that every block of the decoder reads, positions shared by all blocks, tied embeddings."""
    config = transformers.T5Config(
        num_layers=2, d_model=WIDTH, d_ff=2 * WIDTH, d_kv=16, num_heads=4, vocab_size=WORDS, decoder_start_token_id=0
    )
    return transformers.T5ForConditionalGeneration(config), (tokens(), None, tokens(8)), next_token


def vit() -> Model:
    """Give a vision transformer."""
    config = transformers.ViTConfig(
        num_hidden_layers=LAYERS,
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_attention_heads=4,
        image_size=32,
        patch_size=8,
    )
    return transformers.ViTForImageClassification(config), (torch.ones(2, 3, 32, 32),), first_class


MODELS: dict[str, Callable[[], Model]] = {"gpt2": gpt2, "llama": llama, "t5": t5, "vit": vit}
"""All of them by name."""
