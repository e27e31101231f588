"""Tests of the search over positions in chains of equal groups, against all plans of intervals."""

from itertools import product
from random import Random
from threading import Event
from time import monotonic

import numpy as np
import pytest

from oracle.interval_plans import TWO_EACH, chain_on_a_node, configuration_of, drawn_layer, interval_plans
from oracle.small import session_of, small_problem
from partita.models.problem import Problem
from partita.solver import configuration as configurations
from partita.solver import position_search
from partita.solver.arrays import IntArray
from partita.solver.bounds import least_objective
from partita.solver.branching import Trials
from partita.solver.configuration import Configuration
from partita.solver.deadline import Deadline, TimeOver
from partita.solver.linear_bound import IMPOSSIBLE, Box, LinearBound, Relaxed
from partita.solver.path_prices import price
from partita.solver.planner import plan_problem
from partita.solver.plans import Judged, PlanPool
from partita.solver.position_program import MAKESPAN, MEMORY, PositionProgram
from partita.solver.position_search import PositionSearch
from partita.solver.rank_search import RankSearch
from partita.solver.repetition import Repetition
from partita.solver.unsuited import Unsuited
from strategies import first_drawn

SEEDS = [*range(40), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(40, 300))]


def repeated_chain(random: Random, objective: str) -> Problem:
    """Draw a chain of blocks between one layer or two at either end, with four or six stages."""
    ranks = random.choice([2, 2, 3])

    block = [drawn_layer(random) for _ in range(random.choice([1, 1, 2, 3]))]
    number = random.randint(max(5, -(-2 * ranks // len(block))), 12) // len(block)
    ends = [[drawn_layer(random) for _ in range(random.randint(0, 2))] for _ in range(2)]
    layers = [*ends[0], *block * max(number, 4), *ends[1]]
    limits = {"iteration_time_s": random.choice([400.0, 600.0, 1000.0])} if objective == "peak_memory" else {}
    return chain_on_a_node(random, ranks, layers, TWO_EACH, limits=limits, objective=objective)


Drawn = tuple[Random, PlanPool, Configuration, list[tuple[IntArray, Judged]]]


def drawn(seed: int, objective: str) -> Drawn | None:
    """Give the seed's search for a random chain with all plans of intervals, if any fits."""
    random, plans = Random(seed), PlanPool()
    configuration = configuration_of(session_of(repeated_chain(random, objective)), plans)
    every = interval_plans(configuration)
    return (random, plans, configuration, every) if every else None


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the search go on however far the bound is from the best plan."""
    monkeypatch.setattr(position_search, "PROMISING", {MAKESPAN: {}, MEMORY: {}})


def search_from(
    configuration: Configuration, cuts: IntArray, start: Judged, most_nodes: int | None = None
) -> PositionSearch:
    """Give the search that knows one plan."""
    tools, pool = configuration.tools, configuration._pool
    assert pool is not None
    trials = Trials(tools, pool, start, ())
    trials.measure([(cuts, start.plan.location)])
    column = MEMORY if tools.judge.metric == "peak_memory" else MAKESPAN
    return PositionSearch(tools.view, configuration._frame, pool, trials, configuration._cutoffs, column, most_nodes)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("objective", ["iteration_time", "peak_memory"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_bound_is_the_optimum(seed: int, objective: str) -> None:
    """Tests that the search proves the best plan of intervals, starting from any plan, and nothing more."""
    random, plans, configuration, every = first_drawn(seed, lambda each: drawn(each, objective))
    cuts, start = random.choice(every)
    search, tools = search_from(configuration, cuts, start), configuration.tools
    least = least_objective(tools.judge, configuration.num_stages)
    bounds = list(search.prove(start.objective, least, tools.backend.resolution, Deadline.after(60)))
    optimum = min(each.objective for _, each in every)
    found = plans.best(set())
    assert found is not None and found.objective == optimum
    assert bounds == sorted(bounds)
    assert bounds[-1] == optimum


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("kind", TWO_EACH)
def test_a_plan_comes_from_it(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that long chains of equal layers are proven without a search rank by rank, also for ties."""
    monkeypatch.setattr(configurations, "SMALL_PROGRAM", -1)
    monkeypatch.setattr(RankSearch, "prove", lambda *given: pytest.fail("the search over positions was enough"))
    layers = {"first": {"forward_s": 2.0}} | {f"block{number}": {"forward_s": 1.0} for number in range(12)}
    for each in layers.values():
        each |= {"backward_s": 2.0, "weight_gradient_s": 1.0, "weight_bytes": 10}
    problem = small_problem(layers, devices=2, schedule=kind, num_stages=4, num_microbatches=4)
    answer = plan_problem(problem)
    assert answer.status == "optimal"
    assert answer.solver.variables == 0


@pytest.mark.parametrize("kind", ["irregular", "nodes", "recompute"])
def test_what_it_does_not_suit(kind: str) -> None:
    """Tests that chains without repetitions, several placements and recompute are left to others at once."""
    costs = [2.0, 3.0, 1.5, 7.0, 2.5, 4.0, 1.0, 6.0] if kind == "irregular" else [1.0] * 8
    layers = {
        f"layer{number}": {
            "forward_s": cost,
            "backward_s": 2 * cost,
            "activation_bytes": 10,
            "options": [{"recompute": "full", "backward_s": 3 * cost, "activation_bytes": 0}],
        }
        for number, cost in enumerate(costs)
    }
    node = {
        "device": "gpu",
        "count": 1,
        "fabric": {"bandwidth_bytes_per_s": 1e9},
        "uplink": {"bandwidth_bytes_per_s": 1e3},
    }
    several = [{"name": "a", **node, "count": 2}, {"name": "b", **node}, {"name": "c", **node}]
    problem = small_problem(
        layers,
        devices=4,
        nodes=several if kind == "nodes" else None,
        constraints={"recompute": "choose"} if kind == "recompute" else {},
        schedule="interleaved_1f1b",
        num_stages=8,
        num_microbatches=8,
    )
    plans = PlanPool()
    configuration = configuration_of(session_of(problem), plans)
    configuration.warm_up(Deadline.after(60))
    best, pool, tools = plans.best(set()), configuration._pool, configuration.tools
    assert best is not None and pool is not None
    trials = Trials(tools, pool, best, ())
    search = PositionSearch(tools.view, configuration._frame, pool, trials, configuration._cutoffs)
    with pytest.raises(Unsuited):
        list(search.prove(best.objective, 0, tools.backend.resolution, Deadline.after(60)))


@pytest.mark.parametrize("most_nodes", [1, None])
def test_giving_up(most_nodes: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a search with few nodes, or with a bound that stays far away, leaves the rest to others."""
    _, _, configuration, every = first_drawn(7, lambda each: drawn(each, "iteration_time"))
    monkeypatch.setattr(position_search, "REPORTED", 1)
    monkeypatch.setattr(position_search, "PROMISING", {MAKESPAN: {1: -1.0} if most_nodes is None else {}})
    cuts, worst = max(every, key=lambda each: each[1].objective)
    search = search_from(configuration, cuts, worst, most_nodes)
    with pytest.raises(Unsuited):
        list(search.prove(worst.objective, 0, configuration.tools.backend.resolution, Deadline.after(60)))


@pytest.mark.parametrize("kind", TWO_EACH)
def test_others_go_on(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that what the search gives up is proven by others, and ties are broken as well; short chains at once."""
    layers = {f"block{number}": {"forward_s": 1.0, "backward_s": 2.0, "weight_bytes": 10} for number in range(12)}
    layers |= {"heavy": {"forward_s": 0.0, "backward_s": 0.0, "weight_bytes": 25}}
    problem = small_problem(
        layers, devices=2, schedule=kind, num_stages=4, num_microbatches=4, search={"candidates": 3}
    )
    monkeypatch.setattr(configurations, "SMALL_PROGRAM", -1)
    known = plan_problem(problem)
    monkeypatch.setattr(position_search, "REPORTED", 1)
    monkeypatch.setattr(position_search, "PROMISING", {MAKESPAN: {1: -1.0}, MEMORY: {1: -1.0}})
    given_up = plan_problem(problem)
    monkeypatch.setattr(configurations, "SMALL_PROGRAM", 150)
    monkeypatch.setattr(PositionSearch, "prove", lambda *given: pytest.fail("the chain is short"))
    short = plan_problem(problem)
    for answer in (given_up, short):
        assert answer.status == known.status == "optimal"
        assert [each.metrics for each in answer.candidates] == [each.metrics for each in known.candidates]


@pytest.mark.usefixtures("patient")
def test_ties_of_a_sum_in_which_time_counts_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that ties are broken where a weighted sum leaves more time than can be counted."""
    monkeypatch.setattr(configurations, "SMALL_PROGRAM", -1)
    layers = {f"block{number}": {"forward_s": 1.0, "backward_s": 2.0, "weight_bytes": 10} for number in range(12)}
    objective = {"iteration_time_s": 1e-12, "peak_memory_bytes": 1.0}
    training = {"schedule": "interleaved_1f1b", "num_stages": 4, "num_microbatches": 4}
    answer = plan_problem(small_problem(layers, devices=2, objective=objective, **training))
    assert answer.status == "optimal"
    assert answer.candidates[0].metrics.peak_memory_bytes == 60


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("seed", range(10))
def test_a_coarse_resolution(seed: int) -> None:
    """Tests that plans which differ by less than counts are not said to be impossible."""
    _, _, configuration, every = first_drawn(seed, lambda each: drawn(each, "iteration_time"))
    optimum = min(each.objective for _, each in every)
    cuts, start = min(
        (each for each in every if each[1].objective > optimum), key=lambda each: each[1].objective, default=every[0]
    )
    search = search_from(configuration, cuts, start)
    bounds = list(search.prove(start.objective, 0, lambda value: value - optimum + 1, Deadline.after(60)))
    assert bounds[-1] <= optimum


@pytest.mark.usefixtures("patient")
def test_it_stops_between_two_relaxations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a search that is asked to stop does not solve another relaxation."""
    _, _, configuration, every = first_drawn(7, lambda each: drawn(each, "iteration_time"))
    stop, solved, solve = Event(), [], LinearBound.solve

    def counted(program: LinearBound, box: Box, most: int) -> Relaxed:
        solved.append(most)
        if len(solved) == 3:
            stop.set()
        return solve(program, box, most)

    monkeypatch.setattr(LinearBound, "solve", counted)
    cuts, worst = max(every, key=lambda each: each[1].objective)
    search, now = search_from(configuration, cuts, worst), monotonic()
    with pytest.raises(TimeOver):
        list(search.prove(worst.objective, 0, configuration.tools.backend.resolution, Deadline(now, now + 60, stop)))
    assert len(solved) == 3


@pytest.mark.parametrize("seed", range(200))
def test_forms_of_a_position(seed: int) -> None:
    """Tests that every position has one form in whole numbers that keeps the rows, and that no other form does."""
    random = Random(seed)
    rises = [random.randint(0, 9) for _ in range(random.randint(1, 4))]
    ends = [[random.randint(0, 9) for _ in range(random.randint(0, 3))] for _ in range(2)]
    sums = np.cumsum([0, *ends[0], *rises * random.randint(6, 8), *ends[1]])
    low, high = random.randint(0, len(ends[0]) + 1), len(sums) - 1 - random.randint(0, len(ends[1]) + 1)
    arrays = [sums, np.stack([2 * sums, np.arange(len(sums))])]
    found = Repetition.find(low, high, arrays)
    assert found is not None
    rows, least, most = found.rows()
    places = found.columns - 1
    met = []
    for whole, place in product(range(found.most + 2), range(places)):
        form = np.zeros(found.columns, dtype=np.int64)
        form[0], form[1 + place] = whole, 1
        if (least <= rows @ form).all() and (rows @ form <= most).all():
            position = int(found.positions(form.astype(np.float64)))
            met.append(position)
            for each in arrays:
                value = found.constant(each) + found.rises(each) @ form
                assert (value == each[..., position]).all()
    assert sorted(met) == list(range(low, high + 1))


@pytest.mark.parametrize("seed", range(20))
def test_divisions_make_boxes_smaller(seed: int) -> None:
    """Tests that both parts of a box are smaller, wherever rounding puts the solution of its relaxation."""
    random, _, configuration, _ = first_drawn(seed, lambda each: drawn(each, "iteration_time"))
    view, frame, pool = configuration.tools.view, configuration._frame, configuration._pool
    assert pool is not None
    low, high = np.zeros(frame.num_stages + 1, dtype=np.int64), np.full(frame.num_stages + 1, view.size)
    low[-1], high[0] = view.size, 0
    prices = price(view, pool, low, high)[1]
    program = PositionProgram(view, frame, (low, high), prices, None, MAKESPAN, 10**9)
    box, numbers = program.root((0, 10**9), (0, 10**9)), np.random.default_rng(seed)
    while True:
        values = box.low + numbers.uniform(-0.3, 1.3, len(box.low)) * (box.high - box.low)
        divisions = list(program.divisions(Relaxed(0, values, box)))
        for division in divisions:
            assert min(division.moved) > 0
            sizes = [(part.high - part.low + 1).astype(object).prod() for part in division.parts]
            assert min(sizes) > 0 and max(sizes) < (box.high - box.low + 1).astype(object).prod()
        if not divisions:
            break
        box = random.choice(random.choice(divisions).parts)


def test_no_repetition() -> None:
    """Tests that a chain whose groups all differ has none."""
    assert Repetition.find(0, 40, [np.arange(41) ** 2]) is None


@pytest.mark.parametrize(
    "seed", [*range(300), *(pytest.param(each, marks=pytest.mark.slow) for each in range(300, 3000))]
)
def test_bounds_hold(seed: int) -> None:
    """Tests that no solution in whole numbers is below a bound, or lost by narrowing; with numbers of any size."""
    random = Random(seed)
    size = random.choice([1, 10**6, 10**12, 3**25])
    columns = random.randint(1, 3)
    program = LinearBound(0, np.array([max(1, 10 * size // 10_000), *[1] * columns]))
    high = np.array([40 * size, *(random.randint(1, 3) for _ in range(columns))])
    box = Box(np.zeros(columns + 1, dtype=np.int64), high)
    rows = [[1, *(-random.randint(-3, 9) * size for _ in range(columns))] for _ in range(random.randint(1, 3))]
    ends = [(random.randint(0, 6) * size + random.randint(0, 2), IMPOSSIBLE) for _ in rows]
    for _ in range(random.randint(0, 2)):
        rows.append([0, *(random.randint(-3, 3) for _ in range(columns))])
        least = random.randint(-4, 4)
        ends.append(random.choice([(least, IMPOSSIBLE), (-IMPOSSIBLE, least), (least, least + random.randint(0, 3))]))
    for row, (low, most) in zip(rows, ends, strict=True):
        program.add(np.array([row]), np.array([low]), np.array([most]))
    solutions = {}
    for values in product(*(range(int(each) + 1) for each in high[1:])):
        sums = [sum(a * b for a, b in zip(row[1:], values, strict=True)) for row in rows]
        if all(low <= s <= most for row, s, (low, most) in zip(rows, sums, ends, strict=True) if not row[0]):
            solutions[values] = max(0, *(low - s for row, s, (low, _) in zip(rows, sums, ends, strict=True) if row[0]))
    within = {values: least for values, least in solutions.items() if least <= high[0]}
    most = random.choice([0, *within.values()]) + random.choice([-1, 0, 1, size])
    found = program.solve(box, most)
    assert found.bound <= min(within.values(), default=IMPOSSIBLE)
    for values, least in within.items():
        if least <= most:
            assert (found.box.low[1:] <= values).all() and (values <= found.box.high[1:]).all()
    for column in range(1, columns + 1):  # both parts hold all
        value = int(high[column]) // 2
        parts = box.below(column, value), box.above(column, value + 1)
        kept = [program.solve(part, most).bound for part in parts if (part.low <= part.high).all()]
        assert min(kept) <= min(within.values(), default=IMPOSSIBLE)


def test_what_is_known_already() -> None:
    """Tests that a bound is kept that no row gives, though it is as close as can be to what it should exceed."""
    program = LinearBound(1, np.array([1, 100]))
    program.add(np.array([[1, 0], [-5, 1]]), np.array([0, 0]), np.array([1, IMPOSSIBLE]))
    assert program.solve(Box(np.array([0, 1000]), np.array([1, 10_000])), 1000).bound == 1000


def test_an_empty_box() -> None:
    """Tests that a column without any value leaves no solution."""
    program = LinearBound(0, np.array([100, 1]))
    program.add(np.array([[1, -5]]), np.array([0]), np.array([IMPOSSIBLE]))
    assert program.solve(Box(np.array([0, 2]), np.array([1000, 1])), 10).bound == IMPOSSIBLE


def test_a_tie_is_exact() -> None:
    """Tests that a bound in simple fractions loses nothing to rounding, though its terms are large."""
    ticks = 987_654_321_012_345
    program = LinearBound(0, np.array([ticks // 10_000, 1, 1]))
    program.add(np.array([[1, -3 * ticks, 0], [1, 0, -ticks]]), np.array([1, 1]), np.array([IMPOSSIBLE] * 2))
    program.add(np.array([[0, 1, 1]]), np.array([3]), np.array([3]))
    box = Box(np.zeros(3, dtype=np.int64), np.array([20 * ticks, 9, 9]))
    best = -(-9 * ticks // 4) + 1  # a third as many of the first as of the second: 3/4 and 9/4
    assert program.solve(box, best - 1).bound == best
