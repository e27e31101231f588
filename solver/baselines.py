"""What the user would have had: equal numbers of layers, or the chain partition that balances time."""

import numpy as np

from partita.models.answer import Baseline
from partita.solver.divisions import balanced_sizes, uniform_sizes
from partita.solver.evaluation import Evaluator
from partita.solver.figures import Figures
from partita.solver.local_search import stages_of
from partita.solver.recompute import best_plan


def baselines(evaluator: Evaluator, figures: Figures, num_stages: int) -> dict[str, Baseline]:
    """Evaluate both baselines on devices in order, for the number of stages of the best plan.

    They cut the list of layers as it stands, whatever else the problem demands.
    """
    instance = evaluator.instance
    location = instance.topology.in_order(instance.num_ranks(num_stages))
    assert location is not None, "the best plan has as many stages"
    work = (figures.forward + figures.backward).astype(np.int64)
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
