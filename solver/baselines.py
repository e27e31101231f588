"""What the user would have had: equal numbers of layers, or the chain partition that balances time."""

import numpy as np

from partita.models.answer import Baseline
from partita.solver.divisions import balanced_sizes, uniform_sizes
from partita.solver.evaluation import Evaluator
from partita.solver.local_search import stages_of
from partita.solver.recompute import best_plan

PARTS = 2.0**40
"""Whole numbers that the work of all layers is counted in to be balanced."""


def baselines(evaluator: Evaluator, num_stages: int) -> dict[str, Baseline]:
    """Evaluate both baselines on devices in order, for the number of stages and the configuration of the best plan.

    They cut the list of layers as it stands, whatever else the problem demands.

    Parameters
    ----------
    evaluator
        The referee of the best plan.
    num_stages
        Its stages.
    """
    instance, figures = evaluator.instance, evaluator.figures
    location = instance.topology.in_order(instance.num_ranks(num_stages))
    assert location is not None, "the best plan has as many stages"
    seconds = figures.forward + figures.backward
    work = np.rint(seconds * (PARTS / (seconds.sum() or 1.0))).astype(np.int64)
    found = {}
    for name, sizes in (
        ("uniform", uniform_sizes(instance.num_layers, num_stages)),
        ("balanced_time", balanced_sizes(work, num_stages)),
    ):
        stage = stages_of(np.concatenate([[0], np.cumsum(sizes)]))
        measures = evaluator.measures(best_plan(instance, figures, stage, location))
        fits = instance.fits(location, measures.needed)
        found[name] = Baseline(metrics=evaluator.metrics(measures, location), stage_sizes=tuple(sizes), fits=fits)
    return found
