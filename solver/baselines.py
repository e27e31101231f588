"""What the user would have had: equal numbers of layers, or the chain partition that balances time."""

from itertools import pairwise

import numpy as np

from partita.models.answer import Baseline
from partita.solver.evaluation import Evaluator
from partita.solver.local_search import stages_of
from partita.solver.plans import Judge
from partita.solver.topology import IntArray


def uniform_sizes(num_layers: int, num_stages: int) -> list[int]:
    """Give stage sizes that differ by one at most, the larger ones first."""
    size, larger = divmod(num_layers, num_stages)
    return [size + (stage < larger) for stage in range(num_stages)]


def balanced_sizes(work: IntArray, num_stages: int) -> list[int]:
    """Give the sizes of non-empty stages that make the largest work of a stage as small as possible.

    Bisection over the largest work; stages are filled from the front.
    """
    total = np.concatenate([[0], np.cumsum(work)])
    low, high = int(work.max()), int(total[-1])
    while low < high:
        middle = (low + high) // 2
        if _stages_needed(total, middle) <= num_stages:
            high = middle
        else:
            low = middle + 1
    cuts, size = [0], len(work)
    for stage in range(num_stages - 1):
        end = int(np.searchsorted(total, total[cuts[-1]] + low, side="right")) - 1
        cuts.append(min(end, size - (num_stages - 1 - stage)))
    return [end - start for start, end in pairwise([*cuts, size])]


def _stages_needed(total: IntArray, most: int) -> int:
    stages = start = 0
    while start < len(total) - 1:
        start = int(np.searchsorted(total, total[start] + most, side="right")) - 1
        stages += 1
    return stages


def baselines(evaluator: Evaluator, judge: Judge, num_stages: int) -> dict[str, Baseline]:
    """Evaluate both baselines on devices in order, for the number of stages of the best plan.

    They cut the list of layers as it stands, whatever else the problem demands.
    """
    instance = evaluator.instance
    location = instance.topology.in_order(num_stages)
    assert location is not None, "the best plan has as many stages"
    work = (judge.figures.forward + judge.figures.backward).astype(np.int64)
    found = {}
    for name, sizes in (
        ("uniform", uniform_sizes(instance.num_layers, num_stages)),
        ("balanced_time", balanced_sizes(work, num_stages)),
    ):
        stage = stages_of(np.concatenate([[0], np.cumsum(sizes)]))
        measures = evaluator.measures(stage, location)
        fits = measures.peak_memory <= instance.capacity
        found[name] = Baseline(metrics=evaluator.metrics(measures), stage_sizes=tuple(sizes), fits=fits)
    return found
