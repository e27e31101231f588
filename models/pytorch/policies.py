"""Policies of selective recompute: which operations a layer saves; everything else runs again in the backward pass."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

from partita.models.layer import RECOMPUTE_WORDS

FULL = "full"
"""The option that keeps the inputs of a layer alone, which is always measured."""

PRODUCTS = (
    "aten.mm",
    "aten.addmm",
    "aten.bmm",
    "aten.baddbmm",
    "aten.convolution",
    "aten._scaled_dot_product_flash_attention",
    "aten._scaled_dot_product_flash_attention_for_cpu",
    "aten._scaled_dot_product_efficient_attention",
    "aten._scaled_dot_product_cudnn_attention",
)
"""Matrix products, convolutions and attention: what takes longest to compute again for every byte that is saved."""

Decision = Callable[..., Any]
"""A policy of torch.utils.checkpoint: takes context, operation and its arguments; gives a CheckpointPolicy or bool."""

_SAVING = (True, CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)


Saving = Sequence[str] | Decision
"""What a policy saves: names of operations as torch has them below autograd, or a policy function."""


def decision_of(save: Saving) -> Decision:
    """Give the policy function that saves what is named.

    Raises
    ------
    ValueError
        When there is no operation of a name.
    """
    return save if callable(save) else partial(_by_name, _known(save))


class UnusedPolicy(ValueError):
    """A policy that saves no operation of a model: full recompute under another name."""


class Policy:
    """A policy that notes which operations run and which of them are saved.

    Parameters
    ----------
    save
        Names of operations as torch has them below autograd (``aten.mm``, or one overload, ``aten.mm.default``), or a
        policy function of torch.utils.checkpoint.

    Attributes
    ----------
    seen, saved
        The names of the operations that ran, and of those that were saved.

    Raises
    ------
    ValueError
        When there is no operation of a name.
    """

    def __init__(self, save: Saving) -> None:
        self._decide = decision_of(save)
        self.seen: set[str] = set()
        self.saved: set[str] = set()
        self._kept: list[torch.UntypedStorage] = []

    def __call__(self, context: Any, operation: Any, *args: Any, **kwargs: Any) -> Any:
        """Decide about one call of an operation."""
        decision = self._decide(context, operation, *args, **kwargs)
        if not context.is_recompute:
            self.seen.add(str(operation))
            if decision in _SAVING:
                self.saved.add(str(operation))
                results = (each for each in pytree.tree_leaves(context.op_output) if isinstance(each, torch.Tensor))
                self._kept += [each.untyped_storage() for each in results]
        return decision

    def contexts(self) -> Any:
        """Give what ``checkpoint`` takes as its ``context_fn``."""
        self._kept = []
        return create_selective_checkpoint_contexts(self)

    def take_kept(self) -> dict[int, torch.UntypedStorage]:
        """Give the storages that were saved since the last forward pass began, by their identities, and forget them."""
        kept, self._kept = {storage._cdata: storage for storage in self._kept}, []
        return kept


def _by_name(names: frozenset[str], context: Any, operation: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
    """Save the operations of these names, of an overload or of all."""
    name = str(operation)
    found = name in names or name.rpartition(".")[0] in names
    return CheckpointPolicy.MUST_SAVE if found else CheckpointPolicy.PREFER_RECOMPUTE


def _known(names: Iterable[str]) -> frozenset[str]:
    """Check that there are operations of these names."""
    found = frozenset(name.strip().removeprefix("torch.ops.") for name in names)
    for name in sorted(found):
        here: Any = torch.ops
        for step in name.split("."):
            parent, here = here, getattr(here, step, None)
            if here is None:
                near = get_close_matches(step, dir(parent), n=1)
                hint = f"; did you mean {name.replace(step, near[0])!r}?" if near else ""
                raise ValueError(
                    f"torch has no operation {name!r}{hint} They are named as in torch.ops, such as aten.mm"
                )
        if not isinstance(here, torch._ops.OpOverloadPacket | torch._ops.OpOverload | torch._ops.HigherOrderOperator):
            raise ValueError(f"{name!r} is no operation; they are named as in torch.ops, such as aten.mm")
    return found


def make_policies(given: Mapping[str, Saving]) -> dict[str, Policy]:
    """Make policies by the names of their options.

    Raises
    ------
    ValueError
        When a name has a meaning of its own, or an operation does not exist.
    """
    for name in given:
        if name in RECOMPUTE_WORDS or name == FULL or not name:
            taken = ", ".join(sorted({*RECOMPUTE_WORDS, FULL}))
            raise ValueError(f"an option of recompute cannot be called {name!r}; {taken} have a meaning of their own")
    return {name: Policy(save) for name, save in given.items()}


def check_used(policies: Mapping[str, Policy]) -> None:
    """Refuse a policy that saves nothing of any layer.

    Raises
    ------
    UnusedPolicy
        With the operations that ran.
    """
    for name, policy in policies.items():
        if policy.seen and not policy.saved:
            seen = ", ".join(sorted(policy.seen)[:20])
            detail = f"saves no operation of the layers that can be recomputed; those that run in them are {seen}"
            raise UnusedPolicy(f"the policy of {name!r} {detail}")
