"""Compares an answer with all plans of all configurations of its problem."""

from collections.abc import Sequence

import pytest

from oracle.choices import Case, Setting, cases
from oracle.comparison import EXACT, TIMES, check_candidate, check_metrics, key_of, price_candidate
from oracle.facts import read_facts
from oracle.pricing import Price
from oracle.scenarios import Over, over
from oracle.search import places_of, plan_key
from oracle.ways import Level, Way, levels_of
from partita.models.answer import Answer, Candidate
from partita.models.problem import Problem


def check_ranking(problem: Problem, answer: Answer, plans: Sequence[Way], tolerance: float = EXACT) -> None:
    """Check an answer against all plans in order: values at every level, ties, figures, places, devices and bound."""
    assert answer.status == ("optimal" if plans else "infeasible"), f"{answer.status} with {len(plans)} plans"
    assert (answer.infeasibility is None) == bool(plans)
    assert len(answer.candidates) == min(problem.search.candidates, len(plans)), f"of {len(plans)} plans"
    assert [candidate.rank for candidate in answer.candidates] == list(range(1, len(answer.candidates) + 1))
    levels, alone = levels_of(problem.objective), {case.setting: case for case in cases(problem)}
    found = []
    for candidate, plan in zip(answer.candidates, plans, strict=False):
        check_spread(problem, candidate)
        setting, first = setting_of(candidate), on_first_nodes(candidate)
        price = check_figures(alone[setting], first)
        for level in levels:
            expected = pytest.approx(level(plan.price), rel=tolerance, abs=0)
            assert level(price) == expected, f"rank {candidate.rank}: {level(price)}, not {plan}"
        found.append((setting, *key_of(alone[setting].plain, first)))
    assert len(set(found)) == len(found), "no plan twice"
    keys = {
        (setting, *plan_key(places_of(alone[setting].plain), partition, placement))
        for setting, partition, placement in (plan.key for plan in plans)
    }
    assert set(found) <= keys
    if tolerance <= EXACT:
        peaks = [candidate.metrics.peak_memory_bytes for candidate in answer.candidates]
        assert peaks == least_peaks(plans, levels)[: len(peaks)], "plans of one value come in the order of peak memory"
    if plans:
        check_bound(problem, answer, plans[0], tolerance)


def check_figures(case: Case, candidate: Candidate) -> Price | Over:
    """Check all figures of a candidate, over all scenarios and in each; give its price."""
    cost = priced(case, candidate)
    if not isinstance(cost, Over):
        check_candidate(case.plain, candidate)
        return cost
    prices = cost.prices
    spans = sorted(price.timing.run.makespan_s for price in prices)
    tie = case.problem.over_scenarios == "worst" and spans[-1] - spans[-2] <= EXACT * spans[-1]
    check_metrics(candidate.metrics, cost, ("iteration_time_s",) if tie else TIMES)
    scenarios = case.problem.scenarios
    assert [(each.name, each.share) for each in candidate.scenarios] == [(each.name, each.share) for each in scenarios]
    for result, price in zip(candidate.scenarios, prices, strict=True):
        check_metrics(result.metrics, price)
    longest = max(candidate.scenarios, key=lambda each: each.metrics.iteration_time_s)
    (shown,) = [number for number, each in enumerate(scenarios) if each.name == candidate.scenario]
    assert candidate.scenarios[shown].metrics.iteration_time_s == longest.metrics.iteration_time_s
    check_candidate(case.each[shown], candidate.as_shown)
    return cost


def priced(case: Case, candidate: Candidate) -> Price | Over:
    """Price a candidate, over all scenarios where there are several."""
    prices = [price_candidate(one, candidate) for one in case.each]
    if len(prices) == 1:
        return prices[0]
    return over(case.problem, prices, [read_facts(one).tokens for one in case.each])


def check_bound(problem: Problem, answer: Answer, best: Way, tolerance: float) -> None:
    """Check the bound, which leaves as much room again for the solver's own tolerance, and those of all levels."""
    first, *others = levels_of(problem.objective)
    assert answer.best_bound == pytest.approx(abs(first(best.price)), rel=2 * tolerance, abs=0)
    assert answer.relative_gap == pytest.approx(0.0, abs=2 * tolerance)
    if others:
        assert [level.objective for level in answer.levels] == list(problem.objective)
        assert all(level.value == level.best_bound for level in answer.levels)


def least_peaks(plans: Sequence[Way], levels: Sequence[Level]) -> list[int]:
    """Give the peak memory of every plan, best first and, among plans of one value, the smallest first."""
    peaks: list[int] = []
    while len(peaks) < len(plans):
        values = [level(plans[len(peaks)].price) for level in levels]
        equal = []
        for plan in plans[len(peaks) :]:
            own = [level(plan.price) for level in levels]
            if any(abs(one - two) > EXACT * abs(one) for one, two in zip(values, own, strict=True)):
                break
            equal.append(plan.price.peak_memory_bytes)
        peaks += sorted(equal)
    return peaks


def setting_of(candidate: Candidate) -> Setting:
    """Give the configuration that a candidate says it has."""
    return (
        candidate.schedule.kind,
        candidate.schedule.chunks,
        candidate.tensor_parallel,
        candidate.data_parallel,
        candidate.replicas_per_node,
        candidate.num_microbatches,
        candidate.microbatch_size,
    )


def on_first_nodes(candidate: Candidate) -> Candidate:
    """Give the plan with the devices on the first node of each stage alone."""
    number = candidate.tensor_parallel * candidate.replicas_per_node
    stages = tuple(stage.model_copy(update={"devices": stage.devices[:number]}) for stage in candidate.stages)
    return candidate.model_copy(update={"stages": stages})


def check_spread(problem: Problem, candidate: Candidate) -> None:
    """Check that every stage has as many devices on each of its nodes, that these are alike, and no device twice."""
    looks = {node.name: (node.fabric, node.uplink, node.device) for node in problem.cluster.expanded_nodes()}
    of_rank = {stage.rank: stage.devices for stage in candidate.stages}
    used = [device for devices in of_rank.values() for device in devices]
    assert len(set(used)) == len(used)
    sets = {}
    for devices in of_rank.values():
        nodes = [device.partition(":")[0] for device in devices]
        each = candidate.tensor_parallel * candidate.replicas_per_node
        assert len(devices) == candidate.tensor_parallel * candidate.data_parallel
        assert all(nodes.count(node) == each for node in nodes)
        assert len({looks[node] for node in nodes}) == 1
        for node in nodes:
            assert sets.setdefault(node, set(nodes)) == set(nodes)
