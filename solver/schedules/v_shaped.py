"""Schedules that lay the stages there and back: rank r runs stages r and 2 R - 1 - r, its chunks 0 and 1."""

from partita.solver.schedules.actions import Order, Orders, Pass


class _Writer:
    """Writes the order of a rank from kinds and chunks; microbatches are counted here.

    Weight gradients are done in the order in which their input gradients were.
    """

    def __init__(self, num_ranks: int, rank: int) -> None:
        self._stages = (rank, 2 * num_ranks - 1 - rank)
        self._forward, self._backward = [0, 0], [0, 0]
        self._postponed: list[Pass] = []
        self.order: Order = []

    def run(self, steps: str, times: int = 1) -> None:
        """Append steps such as ``"F0 I1 W1"`` so many times; ``W`` is the oldest postponed one, if there is any."""
        for _ in range(times):
            for step in steps.split():
                if step == "W":
                    self._catch_up(self._postponed[:1])
                elif step[0] == "W":
                    self._catch_up(self._of_chunk(int(step[1]))[:1])
                else:
                    self._compute(step[0], int(step[1]))

    def finish(self, chunk: int) -> None:
        """Append all postponed weight gradients of a chunk."""
        self._catch_up(self._of_chunk(chunk))

    def _catch_up(self, passes: list[Pass]) -> None:
        """Append the weight gradients of these passes."""
        for each in passes:
            self._postponed.remove(each)
            self.order.append(("W", *each))

    def _of_chunk(self, chunk: int) -> list[Pass]:
        return [each for each in self._postponed if each[0] == self._stages[chunk]]

    def _compute(self, kind: str, chunk: int) -> None:
        counter = self._forward if kind == "F" else self._backward
        here = (self._stages[chunk], counter[chunk])
        counter[chunk] += 1
        self.order.append((kind, *here))
        if kind == "I":
            self._postponed.append(here)


def zb_v(num_ranks: int, chunks: int, num_microbatches: int) -> Orders:
    """Give the order of ZB-V.

    It is written for at least 2 R - 1 microbatches; of fewer, those that do not exist are left out.

    References
    ----------
    Qi et al., arXiv 2401.10241, section 6, as torch.distributed.pipelining has it in ScheduleZBVZeroBubble.
    """
    total = max(2 * num_ranks - 1, num_microbatches)
    orders = []
    for rank in range(num_ranks):
        writer, behind = _Writer(num_ranks, rank), num_ranks - rank
        writer.run("F0", 2 * behind - 1)
        writer.run("F1 F0", rank)
        writer.run("F1 I1 W1", behind)
        fresh = total - (2 * num_ranks - rank - 1)  # forward passes of chunk 0 that are left
        writer.run("F0 I0 W0 F1 I1 W1", fresh)
        writer.run("I0 W0 F1 I1 W1", total - num_ranks - fresh)
        writer.run("I0 I1", rank)
        writer.run("I0 W0", behind)
        writer.finish(1)
        writer.finish(0)
        orders.append([action for action in writer.order if action[2] < num_microbatches])
    return orders


def dualpipe_v(num_ranks: int, chunks: int, num_microbatches: int) -> Orders:
    """Give the order of DualPipeV; a forward and a backward pass that it overlaps run one after the other here.

    References
    ----------
    DeepSeek-AI, arXiv 2412.19437, cut in half as in torch.distributed.pipelining's ScheduleDualPipeV.
    """
    orders = []
    for rank in range(num_ranks):
        writer, behind = _Writer(num_ranks, rank), num_ranks - rank - 1
        writer.run("F0", 2 * behind)
        writer.run("F0 F1", rank + 1)
        writer.run("I1 W F1", behind)
        writer.run("F0 B1 F1 B0", num_microbatches - 2 * num_ranks + rank + 1)
        writer.run("B1 F1 B0", behind)
        # Of the 2 (r + 1) backward passes that alternate now, the second half are split.
        last = ["B1", "B0"] * (rank + 1)
        writer.run(" ".join(last[: rank + 1]))
        writer.run(" ".join(last[rank + 1 :]).replace("B", "I"))
        writer.run("W I0", behind)
        writer.run("W", rank + 1)
        orders.append(writer.order)
    return orders
