"""Tests how much longer intervals take that recompute to save memory, against trying every choice of options."""

from itertools import product
from random import Random

import numpy as np
import pytest

from oracle.small import Json, optimal, session_of, small_problem
from partita.models.problem import Problem
from partita.models.search import Search
from partita.solver import saving_times
from partita.solver.intervals import IntervalView
from partita.solver.saving_times import NEVER, SavingTimes


def choosing(random: Random, size: int, recompute: str) -> Problem:
    """Draw a chain whose layers have up to two options."""
    layers: dict[str, Json] = {}
    for number in range(size):
        names = random.sample(["full", "selective"], random.randint(0, 2))
        layers[f"layer{number}"] = {
            "forward_s": 1.0,
            "backward_s": float(random.randint(1, 9)),
            "activation_bytes": random.randint(1, 9),
            "options": [
                {
                    "recompute": name,
                    "backward_s": float(random.randint(1, 12)),
                    "activation_bytes": random.randint(0, 9),
                }
                for name in names
            ],
        }
    layers["layer0"]["options"] = [{"recompute": "full", "backward_s": 10.0, "activation_bytes": 0}]
    return small_problem(layers, num_stages=2, schedule="1f1b", constraints={"recompute": recompute})


def least_of(view: IntervalView, first: int, last: int, room: int, by_stage: bool) -> int | None:
    """Give the least ticks of an interval beyond its layers' least; None where nothing fits."""
    ways, found = view.instance.ways, []
    backward = view.figures.by_way[1, 0]
    times = backward - backward.min(axis=0)
    kept = ways.costs.activation[0] - ways.costs.activation[0].min(axis=0)
    options = range(len(ways.options))
    every = [(each,) * (last - first) for each in options] if by_stage else product(options, repeat=last - first)
    for choice in every:
        chosen = list(choice), list(range(first, last))
        if kept[chosen].sum() <= room:
            found.append(int(times[chosen].sum()))
    return min(found, default=None)


@pytest.mark.parametrize("recompute", ["choose", "stage"])
@pytest.mark.parametrize("seed", range(12))
def test_saving_times_of_all_intervals(recompute: str, seed: int) -> None:
    """Tests that the bound never exceeds the least time, and that it is exact where it is said to be."""
    random = Random(seed)
    judge = session_of(choosing(random, 6, recompute)).variants[0].judge
    view = IntervalView(judge.instance, judge.figures, judge.groups)
    saving = view.saving
    assert saving is not None
    met = 0
    for first in range(6):
        ends = np.arange(first + 1, 7)
        rooms = np.array([random.randint(0, 8) for _ in ends])
        bounds = saving.at_least(np.array([first]), ends, rooms[None])[0]
        exact = saving.exactly(first, ends, rooms)
        for last, room, bound, found in zip(ends.tolist(), rooms.tolist(), bounds, exact, strict=True):
            least = least_of(view, first, last, room, recompute == "stage")
            assert found == (NEVER if least is None else least)
            assert bound <= found
            met += bound > 0
    assert met


@pytest.mark.parametrize("seed", range(6))
def test_thinned_out_sums_still_bound(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that where sums are put together the result is never longer than the least time."""
    random = Random(seed)
    judge = session_of(choosing(random, 7, "choose")).variants[0].judge
    view = IntervalView(judge.instance, judge.figures, judge.groups)
    monkeypatch.setattr(saving_times, "MOST_SUMS", 4)
    for room in range(0, 30, 3):
        (found,) = SavingTimes(judge.instance, judge.figures, judge.groups).exactly(0, np.array([7]), np.array([room]))
        least = least_of(view, 0, 7, room, by_stage=False)
        assert found <= (NEVER if least is None else least)


def test_nothing_to_save_where_nothing_is_chosen() -> None:
    """Tests that a problem without a choice has no saving times."""
    judge = (
        session_of(small_problem({"a": {"forward_s": 1.0}, "b": {"forward_s": 1.0}}, num_stages=2)).variants[0].judge
    )
    assert IntervalView(judge.instance, judge.figures, judge.groups).saving is None


@pytest.mark.parametrize("recompute", ["choose", "stage"])
def test_no_limit_where_nothing_is_kept(recompute: str) -> None:
    """Tests that bytes of activations rule nothing out where nothing is trained, so that none are kept."""
    layers: dict[str, Json] = {
        name: {
            "forward_s": 1.0,
            "weight_bytes": 10,
            "activation_bytes": kept,
            "options": [{"recompute": "full", "activation_bytes": 100 - kept}],
        }
        for name, kept in (("a", 100), ("b", 0), ("c", 100), ("d", 0))
    }
    problem = small_problem(
        layers,
        memory=30,
        num_stages=2,
        num_microbatches=4,
        schedule="forward_only",
        constraints={"recompute": recompute},
    )
    judge = session_of(problem).variants[0].judge
    assert IntervalView(judge.instance, judge.figures, judge.groups).saving is not None
    problem = problem.model_copy(update={"search": Search(candidates=4)})
    assert len(optimal(problem).candidates) == 3
