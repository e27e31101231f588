"""In which order every rank runs its actions: one function per schedule, written from the rule that its source gives.

Of a schedule with several stages per rank, rank r of R runs either the stages r, r + R, r + 2R and so on, or, in the V
schedules, the stages r and 2R - 1 - r.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest

Action = tuple[str, int, int]
"""Kind, stage, microbatch. F: forward, B: whole backward, I: input gradient, W: weight gradient."""
Order = tuple[Action, ...]


@dataclass(frozen=True)
class Seat:
    """A rank, and what the orders depend on besides."""

    rank: int
    ranks: int
    microbatches: int
    chunks: int

    def passes(self, kind: str) -> list[Action]:
        """Give the passes of all microbatches in turn, on the rank's only stage."""
        return [(kind, self.rank, microbatch) for microbatch in range(self.microbatches)]


@cache
def rank_orders(schedule: str, ranks: int, microbatches: int, chunks: int = 1) -> tuple[Order, ...]:
    """Give the order of every rank of a schedule known by name."""
    return tuple(tuple(ORDERS[schedule](Seat(rank, ranks, microbatches, chunks))) for rank in range(ranks))


def allows(schedule: str, ranks: int, microbatches: int) -> bool:
    """Tell whether a schedule runs this many microbatches on this many ranks."""
    if schedule in ("interleaved_1f1b", "interleaved_zb"):
        return microbatches % max(1, microbatches // ranks) == 0
    return schedule != "dualpipe_v" or microbatches >= 2 * ranks


def ranks_of_stages(orders: Iterable[Order]) -> list[int]:
    """Give the rank of every stage."""
    rank_of = {stage: rank for rank, order in enumerate(orders) for _, stage, _ in order}
    return [rank_of[stage] for stage in range(len(rank_of))]


def forward_only(seat: Seat) -> list[Action]:
    """Inference: no backward pass."""
    return seat.passes("F")


def gpipe(seat: Seat) -> list[Action]:
    """All forwards, then all backwards (Huang et al., arXiv 1811.06965)."""
    return seat.passes("F") + seat.passes("B")


def one_forward_one_backward(seat: Seat) -> list[Action]:
    """As many forwards as there are ranks behind, then one of each (Narayanan et al., arXiv 2104.04473, 2.2.1)."""
    return _warmed_up(seat.passes("F"), seat.passes("B"), seat.ranks - 1 - seat.rank)


def zb_h1(seat: Seat) -> list[Action]:
    """1F1B with a weight gradient whenever more than r wait (Qi et al., arXiv 2401.10241; reference/zero_bubble)."""
    order = _warmed_up(seat.passes("F"), seat.passes("I"), seat.ranks - 1 - seat.rank)
    return _with_weight_gradients(order, most_waiting=seat.rank)


def zb_h2(seat: Seat) -> list[Action]:
    """Warm-up of 2(R - r) - 1, then backward before forward; more than 2r wait for W (sources as of ZB-H1)."""
    forward = seat.passes("F")
    warm_up = 2 * (seat.ranks - seat.rank) - 1
    order = forward[:warm_up] + _in_turn(seat.passes("I"), forward[warm_up:])
    return _with_weight_gradients(order, most_waiting=2 * seat.rank)


def interleaved_1f1b(seat: Seat) -> list[Action]:
    """1F1B of chunks (Narayanan et al., 2.2.2), in rounds that need not be R long (torch's Interleaved1F1B)."""
    length, forward, backward = _rounds(seat, "B")
    return _warmed_up(forward, backward, 2 * (seat.ranks - 1 - seat.rank) + (seat.chunks - 1) * length)


def interleaved_zb(seat: Seat) -> list[Action]:
    """The same with a warm-up shorter by R - 1 - r, and W as in ZB-H1 (torch's InterleavedZeroBubble)."""
    length, forward, backward = _rounds(seat, "I")
    order = _warmed_up(forward, backward, seat.ranks - 1 - seat.rank + (seat.chunks - 1) * length)
    return _with_weight_gradients(order, most_waiting=seat.rank)


def looped_bfs(seat: Seat) -> list[Action]:
    """All forwards, chunk by chunk, then all backwards, everything reversed (torch's LoopedBFS)."""
    stages = [chunk * seat.ranks + seat.rank for chunk in range(seat.chunks)]
    forward = [("F", stage, microbatch) for stage in stages for microbatch in range(seat.microbatches)]
    return forward + [("B", stage, microbatch) for _, stage, microbatch in reversed(forward)]


def zb_v(seat: Seat) -> list[Action]:
    """ZB-V (Qi et al., section 6; torch's ZBVZeroBubble); what a full pipeline runs beyond m is left out."""
    behind, rank = seat.ranks - 1 - seat.rank, seat.rank
    microbatches = max(seat.microbatches, 2 * seat.ranks - 1)
    steps = "F0 " * (2 * behind + 1) + "F1 F0 " * rank + "F1 I1 W1 " * (behind + 1)
    steps += "F0 I0 W0 F1 I1 W1 " * (microbatches - 2 * behind - 1 - rank) + "I0 W0 F1 I1 W1 " * behind
    steps += "I0 I1 " * rank + "I0 W0 " * (behind + 1) + "W1 " * rank + "W0 " * rank
    return [action for action in _v_actions(seat, steps) if action[2] < seat.microbatches]


def dualpipe_v(seat: Seat) -> list[Action]:
    """DualPipeV (github.com/deepseek-ai/DualPipe; torch's DualPipeV), overlapped passes one after the other."""
    behind, rank = seat.ranks - 1 - seat.rank, seat.rank
    steps = "F0 " * (2 * behind) + "F0 F1 " * (rank + 1) + "I1 W F1 " * behind
    steps += "F0 B1 F1 B0 " * (seat.microbatches - 2 * behind - 1 - rank) + "B1 F1 B0 " * behind
    last = ["B1 ", "B0 "] * (rank + 1)
    steps += "".join(last[: rank + 1]) + "".join(last[rank + 1 :]).replace("B", "I")
    steps += "W I0 " * behind + "W " * (rank + 1)
    return _v_actions(seat, steps)


ORDERS: dict[str, Callable[[Seat], list[Action]]] = {
    "forward_only": forward_only,
    "gpipe": gpipe,
    "1f1b": one_forward_one_backward,
    "interleaved_1f1b": interleaved_1f1b,
    "interleaved_zb": interleaved_zb,
    "looped_bfs": looped_bfs,
    "zb_h1": zb_h1,
    "zb_h2": zb_h2,
    "zb_v": zb_v,
    "dualpipe_v": dualpipe_v,
}


def _in_turn(first: Sequence[Action], second: Sequence[Action]) -> list[Action]:
    """Take one of each in turn; where one runs out, the rest of the other."""
    return [action for pair in zip_longest(first, second) for action in pair if action is not None]


def _warmed_up(forward: list[Action], backward: list[Action], warm_up: int) -> list[Action]:
    """Run some forwards, then one forward and one backward in turn."""
    return forward[:warm_up] + _in_turn(forward[warm_up:], backward)


def _with_weight_gradients(order: list[Action], most_waiting: int) -> list[Action]:
    """Run the oldest weight gradient right after an input gradient that lets too many wait; the others at the end."""
    waiting: list[Action] = []
    result = []
    for action in order:
        result.append(action)
        if action[0] == "I":
            waiting.append(("W", *action[1:]))
            if len(waiting) > most_waiting:
                result.append(waiting.pop(0))
    return result + waiting


def _rounds(seat: Seat, backward: str) -> tuple[int, list[Action], list[Action]]:
    """Cut the microbatches into rounds: all of a round on one chunk, then on the next; give length and both passes."""
    rounds = max(1, seat.microbatches // seat.ranks)
    length = seat.microbatches // rounds

    def passes(kind: str, chunks: Sequence[int]) -> list[Action]:
        return [
            (kind, chunk * seat.ranks + seat.rank, start + microbatch)
            for start in range(0, seat.microbatches, length)
            for chunk in chunks
            for microbatch in range(length)
        ]

    return length, passes("F", range(seat.chunks)), passes(backward, range(seat.chunks)[::-1])


def _v_actions(seat: Seat, steps: str) -> list[Action]:
    """Spell out the steps of a V schedule, such as ``F0 I1 W1 W``: kind and chunk, microbatches in turn.

    A weight gradient is the oldest that waits on its chunk, or of all where it names no chunk.
    """
    stages = {"0": seat.rank, "1": 2 * seat.ranks - 1 - seat.rank}
    begun: Counter[tuple[bool, int]] = Counter()
    waiting: list[Action] = []
    order = []
    for step in steps.split():
        kind, stage = step[0], stages.get(step[1:])
        if kind == "W":
            action = next(each for each in waiting if stage in (None, each[1]))
            waiting.remove(action)
        else:
            assert stage is not None
            action = kind, stage, begun[kind == "F", stage]
            begun[kind == "F", stage] += 1
        if kind == "I":
            waiting.append(("W", *action[1:]))
        order.append(action)
    return order
