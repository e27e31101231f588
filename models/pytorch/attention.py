"""Lets attention on the meta device save what the kernels of a GPU save.

There torch takes the kernel that computes the matrix of weights, and saves it. On a GPU it takes FlashAttention for 16
bits without a mask, and the memory-efficient kernel otherwise: both save query, key, value, result and a number for
each row of the matrix.
"""

from typing import Any

import torch

_SDPA = torch.ops.aten.scaled_dot_product_attention.default
_FLASH = torch.ops.aten._scaled_dot_product_flash_attention.default
_EFFICIENT = torch.ops.aten._scaled_dot_product_efficient_attention.default


def use_fused_attention(graph: torch.fx.GraphModule) -> None:
    """Replace scaled dot-product attention in a graph by the kernel that a GPU takes."""
    for node in graph.graph.nodes:
        if node.target is _SDPA:
            node.target = fused_attention
    graph.recompile()


def draws(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Tell whether an operation would draw random numbers on a real device; attention does so with dropout only."""
    if target in (_SDPA, fused_attention):
        return bool((kwargs.get("dropout_p") or 0.0) if len(args) < 5 else args[4])
    return torch.Tag.nondeterministic_seeded in getattr(target, "tags", ())


def fused_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """Compute attention as a GPU does; the arguments are those of ``scaled_dot_product_attention``.

    Heads that share a key are computed as if each had its own, as are inputs with three dimensions as one head.
    """
    if query.dim() == 3:
        single = fused_attention(
            query[:, None],
            key[:, None],
            value[:, None],
            None if attn_mask is None else attn_mask[:, None] if attn_mask.dim() == 3 else attn_mask,
            dropout_p,
            is_causal,
            scale=scale,
        )
        return single.squeeze(1)
    if enable_gqa:
        times = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(times, 1), value.repeat_interleave(times, 1)
    if attn_mask is None and query.dtype in (torch.float16, torch.bfloat16):
        return _FLASH(query, key, value, dropout_p, is_causal, False, scale=scale)[0]
    bias = attn_mask
    if bias is not None:
        if bias.dtype == torch.bool:
            bias = torch.zeros_like(bias, dtype=query.dtype).masked_fill(bias.logical_not(), float("-inf"))
        bias = bias.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    return _EFFICIENT(query, key, value, bias, True, dropout_p, is_causal, scale=scale)[0]
