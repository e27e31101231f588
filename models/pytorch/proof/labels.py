"""A stage whose tensors carry the microbatch that they belong to, so that a mix-up is an error."""

from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist

from partita.models.pytorch.split.runtime import Stage

Watch = Any
"""An array in shared memory: the stage, the kind of action and the microbatch that a rank has begun last, and how many
actions it has begun."""

KINDS = "FBIW"
ANY = -1
"""The place of a tensor that is handed over on one rank, where two gradients may be one tensor."""


class MixedUp(RuntimeError):
    """A tensor that belongs to another microbatch than the one that runs."""


class LabeledStage(Stage):
    """Sends a label before every tensor: iteration, microbatch and place among the tensors of the boundary.

    Between two stages of one rank, where nothing is sent, the label is kept beside the tensor.

    Parameters
    ----------
    watch
        Is told what runs.
    """

    def __init__(self, *args: Any, watch: Watch, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._watch = watch
        self._labels: dict[int, torch.Tensor] = {}  # of received tensors, by their identity

    def forward_one_chunk(self, fwd_chunk_id: int, *args: Any, **kwargs: Any) -> Any:
        """Run a microbatch forward, after a look at what it was sent."""
        self._begin("F", fwd_chunk_id)
        if not self.is_first:
            self._check(self.args_recv_info[fwd_chunk_id], fwd_chunk_id, "forward")
        output = super().forward_one_chunk(fwd_chunk_id, *args, **kwargs)
        self._mark(output if isinstance(output, tuple) else (output,), fwd_chunk_id)
        return output

    def backward_one_chunk(
        self, bwd_chunk_id: int, loss: Any = None, full_backward: bool = True, last_backward: bool = False
    ) -> None:
        """Run a microbatch backward, after a look at what it was sent."""
        self._begin("B" if full_backward else "I", bwd_chunk_id)
        if not self.is_last:
            self._check(self.grad_recv_info[bwd_chunk_id], bwd_chunk_id, "backward")
        super().backward_one_chunk(bwd_chunk_id, loss, full_backward, last_backward)
        self._mark(self.bwd_cache[bwd_chunk_id], bwd_chunk_id)

    def backward_weight_one_chunk(self, bwd_chunk_id: int, last_backward: bool = False) -> None:
        """Compute weight gradients."""
        self._begin("W", bwd_chunk_id)
        super().backward_weight_one_chunk(bwd_chunk_id, last_backward)

    def get_fwd_send_ops(self, fwd_chunk_id: int) -> list[Any]:
        """Send labels with what goes forward."""
        return self._sending(super().get_fwd_send_ops(fwd_chunk_id), range(len(self.built.sent)), fwd_chunk_id)

    def get_bwd_send_ops(self, bwd_chunk_id: int) -> list[Any]:
        """Send labels with gradients."""
        places = (place for place, wire in enumerate(self.built.received) if wire.requires_grad)
        return self._sending(super().get_bwd_send_ops(bwd_chunk_id), places, bwd_chunk_id)

    def get_fwd_recv_ops(self, fwd_chunk_id: int) -> list[Any]:
        """Receive labels with what comes forward."""
        return self._receiving(super().get_fwd_recv_ops(fwd_chunk_id))

    def get_bwd_recv_ops(self, bwd_chunk_id: int) -> list[Any]:
        """Receive labels with gradients."""
        return self._receiving(super().get_bwd_recv_ops(bwd_chunk_id))

    def set_local_fwd_input(self, prev_stage_outputs: Any, mb_index: int) -> None:
        """Take the results of a stage of the same rank with their labels."""
        super().set_local_fwd_input(prev_stage_outputs, mb_index)
        for info, output in zip(self.args_recv_info[mb_index], prev_stage_outputs, strict=True):
            self._labels[id(info.buffer)] = self._label(output.came_from, ANY)

    def set_local_bwd_input(self, next_stage_bwd_outputs: Any, mb_index: int) -> None:
        """Take the gradients of a stage of the same rank with their labels; where there is none it is zero."""
        super().set_local_bwd_input(next_stage_bwd_outputs, mb_index)
        now = (self.moment.iteration, mb_index)
        for info, gradient in zip(self.grad_recv_info[mb_index], next_stage_bwd_outputs, strict=True):
            if info.buffer is not None:
                self._labels[id(info.buffer)] = self._label(now if gradient is None else gradient.came_from, ANY)

    def clear_runtime_states(self) -> None:
        """Forget the labels of the iteration before."""
        super().clear_runtime_states()
        self._labels.clear()

    def _begin(self, kind: str, microbatch: int) -> None:
        self._watch[:] = (self.stage_index, KINDS.index(kind), microbatch, self._watch[3] + 1)

    def _label(self, came_from: tuple[int, int], place: int) -> torch.Tensor:
        return torch.tensor([*came_from, place])

    def _mark(self, tensors: Iterable[Any], microbatch: int) -> None:
        """Note on each tensor where it comes from."""
        for each in tensors:
            if isinstance(each, torch.Tensor):
                each.came_from = (self.moment.iteration, microbatch)

    def _sending(self, sends: list[Any], places: Iterable[int], microbatch: int) -> list[Any]:
        """Put a label before every tensor."""
        found = []
        for place, each in zip(places, sends, strict=True):
            label = self._label((self.moment.iteration, microbatch), place)
            found += [dist.P2POp(dist.isend, label, each.peer, each.group), each]
        return found

    def _receiving(self, receives: list[Any]) -> list[Any]:
        """Take a label before every tensor."""
        found = []
        for each in receives:
            label = torch.full((3,), -1)
            self._labels[id(each.tensor)] = label
            found += [dist.P2POp(dist.irecv, label, each.peer, each.group), each]
        return found

    def _check(self, infos: Iterable[Any], microbatch: int, direction: str) -> None:
        """Compare labels with what runs."""
        for place, info in enumerate(infos):
            if info.buffer is None:
                continue
            label = self._labels.get(id(info.buffer))
            expected = [self.moment.iteration, microbatch, place]
            got = None if label is None else label.tolist()
            if got is None or got[:2] != expected[:2] or got[2] not in (place, ANY):
                raise MixedUp(
                    f"stage {self.stage_index}, {direction}: expected {_words(expected)}, got "
                    f"{'a tensor that was not sent' if got is None else _words(got)}"
                )


def _words(label: list[int]) -> str:
    return f"tensor {label[2]} of microbatch {label[1]} in iteration {label[0]}"
