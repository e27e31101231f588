"""How a tensor is laid out while it is sent: densely, its dimensions in the order of their strides.

The receiver gives it the strides that it had, so that it runs the same kernels on it as the whole module does.
"""

from dataclasses import dataclass

import torch

from partita.models.pytorch.records import Value


@dataclass(frozen=True, slots=True)
class Wire:
    """A tensor on its way.

    Attributes
    ----------
    name
        Of the value.
    order
        Its dimensions as sent, outermost first.
    shape
        As sent.
    dtype
        Without ``torch.``.
    requires_grad
        Whether its gradient is sent back.
    copied
        Whether it has to be copied to be sent, because elements of it overlap, others lie between them, or they are
        still to be conjugated.
    """

    name: str
    order: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: str
    requires_grad: bool
    copied: bool

    @property
    def permuted(self) -> bool:
        """Whether its dimensions change places."""
        return self.order != tuple(range(len(self.order)))

    @property
    def back(self) -> tuple[int, ...]:
        """The order that gives the dimensions their places again."""
        return tuple(self.order.index(dimension) for dimension in range(len(self.order)))

    def example(self) -> torch.Tensor:
        """Give an empty tensor of this form, on the meta device."""
        kind = getattr(torch, self.dtype)
        return torch.empty(self.shape, dtype=kind, device="meta", requires_grad=self.requires_grad)


def wire_of(value: Value) -> Wire:
    """Find how a value is sent: as it lies in memory, where it is dense, or as a contiguous copy."""
    order = _dense_order(value.shape, value.stride)
    kept = tuple(range(len(value.shape))) if order is None else order
    return Wire(
        name=value.name,
        order=kept,
        shape=tuple(value.shape[dimension] for dimension in kept),
        dtype=value.dtype,
        requires_grad=value.requires_grad,
        copied=order is None or value.lazy,
    )


def _dense_order(shape: tuple[int, ...], stride: tuple[int, ...]) -> tuple[int, ...] | None:
    """Give the order of dimensions in which elements lie one after the other; None where they do not."""
    if 0 in shape:
        return tuple(range(len(shape)))
    wide = [dimension for dimension, size in enumerate(shape) if size > 1]
    by_stride = sorted(wide, key=lambda dimension: -stride[dimension])
    step = 1
    for dimension in reversed(by_stride):
        if stride[dimension] != step:
            return None
        step *= shape[dimension]
    if by_stride == wide:
        return tuple(range(len(shape)))
    return (*(dimension for dimension, size in enumerate(shape) if size == 1), *by_stride)
