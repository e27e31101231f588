"""Tests that the solver agrees with trying every plan, on random small problems that mix all that decides a plan."""

import pytest

from oracle.mixed import mixed_problem
from oracle.ranking import check_ranking
from oracle.ways import every_way, ranked
from partita.solver.planner import plan_problem

SEEDS = [*range(40), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(40, 500))]


@pytest.mark.parametrize("seed", SEEDS)
def test_all_ways_together(seed: int) -> None:
    """Tests the whole ranked list, its figures, order, ties and bounds, or that there is no plan."""
    problem = mixed_problem(seed)
    tolerance = 1e-6 if problem.search.solver == "highs" else 1e-9
    check_ranking(problem, plan_problem(problem), ranked(problem, every_way(problem)), tolerance)
