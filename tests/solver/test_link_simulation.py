"""Tests plans whose transfers queue for links: against times worked out by hand, the event graph and the rules."""

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

from oracle.random_schedules import EVERY_KIND
from oracle.small import edges, equal_layers, optimal, small_problem
from partita.models.answer_plan import Metrics
from partita.models.document import validate
from partita.models.errors import NotSupportedYet
from partita.models.plan import GivenPlan
from partita.models.problem import Problem
from partita.models.schedule import Schedule
from partita.solver.arrays import FloatArray
from partita.solver.costs import LayerPlan
from partita.solver.event_graph import FORWARD, EventGraph
from partita.solver.instance import Instance, build_instance
from partita.solver.link_simulation import Links, links_between, shared_links, simulate
from partita.solver.measure import graph_of
from partita.solver.pipeline import arrange
from partita.solver.planner import plan_problem
from partita.solver.review import evaluate_plan
from partita.solver.variants import make_variants
from strategies import read, seeded_problem

GB = 10**9
KINDS = sorted(set(EVERY_KIND))
CASES = [(kind, seed) for kind in KINDS for seed in range(6)]


def node(name: str, count: int = 1) -> dict[str, Any]:
    """Give a node whose links carry a gigabyte per second."""
    link = {"bandwidth_bytes_per_s": 1e9}
    return {"name": name, "device": "gpu", "count": count, "fabric": link, "uplink": link}


def pipeline(seconds: Sequence[int], nodes: Sequence[dict[str, Any]], **further: Any) -> Problem:
    """Make a chain of layers of 1 s in either pass; each transfer takes so many seconds."""
    names = "abcdefgh"[: len(seconds) + 1]
    layers = equal_layers(names, forward_s=1.0, backward_s=1.0)
    for name, each in zip(names, seconds, strict=False):
        layers[name]["output_bytes"] = each * GB
    return small_problem(layers, nodes=nodes, **({"queueing": True} | further))


def placed(problem: Problem, *devices: str) -> Metrics:
    """Price the plan of one layer per stage on these devices."""
    layers = problem.model.layers
    stages = [{"layers": [layer.name], "devices": [name]} for layer, name in zip(layers, devices, strict=True)]
    answer = evaluate_plan(problem, validate(GivenPlan, {"stages": stages}))
    return answer.candidates[0].metrics


def times_of(metrics: Metrics) -> tuple[float, float]:
    """Give the times without and with queues, after a check of the gap between them."""
    static, queued, gap = metrics.iteration_time_s, metrics.queued_iteration_time_s, metrics.queueing_gap
    assert queued is not None
    assert gap == (queued - static) / queued
    return static, queued


def test_two_boundaries_share_an_uplink() -> None:
    """Tests stages on nodes a, b, a, c: the first microbatch leaves a again at 9, after the second left at 5.

    Without a queue it would leave at 7 and be there at 11; the last stage runs at 13 and 17 rather than at 11 and 15.
    """
    nodes = [node("a", 2), node("b"), node("c")]
    problem = pipeline([4, 0, 4], nodes, num_microbatches=2)
    assert times_of(placed(problem, "a:0", "b:0", "a:1", "c:0")) == (16, 18)


def test_directions_do_not_disturb_each_other() -> None:
    """Tests 1F1B on two nodes, and a way there and back again."""
    training = {"schedule": "1f1b", "num_microbatches": 6}
    static, queued = times_of(placed(pipeline([3], [node("a"), node("b")], **training), "a:0", "b:0"))
    assert queued == static
    there_and_back = pipeline([3, 3], [node("a", 2), node("b")], num_microbatches=6)
    static, queued = times_of(placed(there_and_back, "a:0", "b:0", "a:1"))
    assert queued == static == 3 + 3 * 7


def test_a_chain_of_three_nodes() -> None:
    """Tests that forward and backward passes meet at both uplinks of the node between, each behind the other once.

    The first gradient comes to node b at 9, when the third microbatch has waited for the way in since 3: it goes at 13,
    not at 9. The third microbatch comes to the way out at 16, while the first gradient goes on from 15 to 19; the
    second gradient came at 17 and lets it go before.
    """
    problem = pipeline([4, 1], [node("a"), node("b"), node("c")], schedule="1f1b", num_microbatches=3)
    assert times_of(placed(problem, "a:0", "b:0", "c:0")) == (24, 29)


def test_an_explicit_link_is_shared_in_place_of_the_uplinks() -> None:
    """Tests two boundaries over one link between nodes, then one of them over a link of its own two devices."""
    nodes = [node("a", 2), node("b", 2)]
    between_nodes = {"between": ["a", "b"], "bandwidth_bytes_per_s": 1e9}
    between_devices = {"between": ["a:1", "b:1"], "bandwidth_bytes_per_s": 1e9}
    places = ("a:0", "b:0", "a:1", "b:1")
    one = pipeline([4, 0, 4], nodes, num_microbatches=2, links=[between_nodes])
    assert times_of(placed(one, *places)) == (16, 18)
    two = pipeline([4, 0, 4], nodes, num_microbatches=2, links=[between_nodes, between_devices])
    assert times_of(placed(two, *places)) == (16, 16)


def test_links_by_direction() -> None:
    """Tests uplinks, explicit links and the fabric, from and to every device of a."""
    ends = [("b", "c"), ("b:1", "c:0"), ("b:0", "b:1")]
    links = [{"between": list(pair), "bandwidth_bytes_per_s": 1e9} for pair in ends]
    instance = build_instance(pipeline([1], [node("a", 2), node("b", 2), node("c", 2)], links=links))
    topology = instance.topology
    place = {name: n for n, each in enumerate(topology.locations) for slot in each.slots for name in slot}

    def ways(first: str, second: str) -> list[tuple[str, ...]]:
        numbers = place[first], place[second]
        return [links_between(topology, *numbers), links_between(topology, *numbers[::-1])]

    assert ways("a:0", "b:0") == [("a uplink out", "b uplink in"), ("b uplink out", "a uplink in")]
    assert ways("b:0", "c:0") == [("link b - c",), ("link c - b",)]
    assert ways("b:1", "c:0") == [("link b:1 - c:0",), ("link c:0 - b:1",)]
    assert ways("b:0", "b:1") == [("link b:0 - b:1",), ("link b:1 - b:0",)]
    assert ways("a:0", "a:1") == ways("c:1", "c:1") == [(), ()]


def first_starts(links: Links, took: dict[int, float]) -> dict[int, float]:
    """Give when the transfers of a first stage of 1 s start, by pair: all of them come to their links together."""
    graph = EventGraph(arrange(Schedule(kind="forward_only"), 4, 1), skipping=True, blocking=False)
    row = np.zeros(graph.num_columns)
    row[0] = 1.0
    for pair, seconds in took.items():
        row[graph.transfer_column(FORWARD) + pair] = seconds
    start, _ = simulate(graph, row, links)
    sent = [number for number in range(graph.num_nodes) if graph.nodes.pair[number] in took]
    return {int(graph.nodes.pair[number]): float(start[number]) for number in sent}


def test_a_waiting_transfer_does_not_hold_the_free_one_of_its_links() -> None:
    """Tests pairs 0 (link p), 3 (p and q) and 4 (q): the last goes with the first, the second after both."""
    links: Links = {(0, FORWARD): ("p",), (3, FORWARD): ("p", "q"), (4, FORWARD): ("q",)}
    assert first_starts(links, {0: 2.0, 3: 2.0, 4: 5.0}) == {0: 1, 3: 6, 4: 1}


def test_who_comes_together_goes_in_the_order_of_pairs() -> None:
    """Tests three pairs on one link, and that one whose transfers take no time passes the others."""
    links: Links = {(pair, FORWARD): ("p",) for pair in (4, 0, 3)}
    assert first_starts(links, {0: 3.0, 3: 2.0, 4: 4.0}) == {0: 1, 3: 4, 4: 6}
    assert first_starts(links, {0: 3.0, 3: 0.0, 4: 4.0}) == {0: 1, 3: 1, 4: 4}


def drawn(kind: str, seed: int) -> tuple[Instance, EventGraph, FloatArray, Links]:
    """Give a random plan on random places: its instance, graph, times and what its transfers share."""
    random = Random(seed)
    json = seeded_problem(seed, schedules=[kind])
    json["training"] |= {"communication": "overlapped", "queueing": True}
    json.pop("constraints", None)
    (variant,) = make_variants(read(json))
    instance, stages = variant.instance, random.choice(variant.stage_counts)
    slots = [number for number, each in enumerate(instance.topology.locations) for _ in each.slots]
    location = np.array(random.sample(slots, instance.num_ranks(stages)), dtype=np.int64)
    ends = [0, *sorted(random.sample(range(1, instance.num_layers), stages - 1)), instance.num_layers]
    stage = np.repeat(np.arange(stages), np.diff(ends))
    graph = graph_of(instance, stages)
    times = variant.evaluator.measures(LayerPlan(stage, location, np.zeros_like(stage))).row
    return instance, graph, times, shared_links(instance, graph, location, times)


def crowded(graph: EventGraph, seed: int) -> tuple[FloatArray, Links]:
    """Give random times of few values, many of them equal or none, and links that many lanes share."""
    random = Random(seed)
    lanes = [(pair, direction) for pair in range(len(graph.pairs)) for direction in (0, 1) if not graph.local[pair]]
    row = np.array([random.choice([0.0, 1.0, 1.0, 2.0, 0.3]) for _ in range(graph.num_columns)])
    return row, {lane: tuple(random.sample("pqr", random.randint(1, 2))) for lane in lanes}


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_without_shared_links_nothing_waits(kind: str, seed: int) -> None:
    """Tests that everything ends exactly as in the event graph, with no links and with one for every lane."""
    _, graph, times, _ = drawn(kind, seed)
    own: Links = {(pair, way): (f"{pair} {way} out", f"{pair} {way} in") for pair in range(9) for way in (0, 1)}
    for row in (times, crowded(graph, seed)[0]):
        ends = graph.ends(row).tolist()
        assert simulate(graph, row, {})[1].tolist() == ends
        assert simulate(graph, row, own)[1].tolist() == ends
        assert max(ends) == graph.makespans(row[None]).tolist()[0]


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_queues_keep_the_rules(kind: str, seed: int) -> None:
    """Tests that nothing is earlier than in the event graph, that every wait has its reason, and that it repeats."""
    _, graph, times, shared = drawn(kind, seed)
    for row, links in ((times, shared), crowded(graph, seed)):
        start, end = simulate(graph, row, links)
        assert (end >= graph.ends(row)).all()
        check_rules(graph, row, links, start.tolist(), end.tolist())
        renamed = {lane: tuple(f"other {name}" for name in links[lane]) for lane in reversed(links)}
        assert simulate(graph, row, renamed)[0].tolist() == start.tolist()


def check_rules(graph: EventGraph, row: FloatArray, links: Links, start: list[float], end: list[float]) -> None:
    """Check order, data, one transfer at a time on a link, first come first served, and that no link idles."""
    nodes, duration = graph.nodes, graph.durations(row).tolist()
    lanes = list(zip(nodes.pair.tolist(), nodes.direction.tolist(), strict=True))
    needs: list[list[int]] = [[] for _ in start]
    for source, target in zip(nodes.source.tolist(), nodes.target.tolist(), strict=True):
        needs[target].append(source)
    ready = [max((end[each] for each in needed), default=0.0) for needed in needs]
    taken = [
        frozenset(links.get(lane, ())) if took > 0 else frozenset() for lane, took in zip(lanes, duration, strict=True)
    ]
    users: dict[str, list[int]] = {}
    for number in sorted(range(len(start)), key=lambda number: start[number]):
        assert end[number] == start[number] + duration[number]
        for link in taken[number]:
            users.setdefault(link, []).append(number)
    for using in users.values():
        assert all(end[before] <= start[after] for before, after in pairwise(using))

    def turn(number: int) -> tuple[float, tuple[int, int]]:
        (action,) = (each for each in needs[number] if each < nodes.num_actions)
        return end[action], lanes[number]

    for number in range(len(start)):
        assert start[number] >= ready[number]
        others = {each for link in taken[number] for each in users[link]} - {number}
        now = ready[number]
        while now < start[number]:  # some other transfer goes, one that was before it or while a second one goes
            going = [each for each in others if start[each] <= now < end[each]]
            assert going
            now = min(end[each] for each in going)
        for each in others:
            if ready[number] <= start[each] < start[number] and turn(each) > turn(number):
                assert any(start[other] <= start[each] < end[other] for other in others - {each})


@pytest.mark.parametrize("kind", ["1f1b", "interleaved_zb", "zb_v"])
def test_many_microbatches(kind: str) -> None:
    """Tests 64 microbatches on 16 ranks of 4 nodes, in less than a second: the busiest uplink bounds the time."""
    ranks, nodes = 16, 4
    schedule = Schedule.model_validate({"kind": kind})
    graph = EventGraph(arrange(schedule, 16 if kind == "1f1b" else 32, 64), False, False)
    row, _ = crowded(graph, 0)
    of_rank = np.arange(ranks) % nodes
    links: Links = {}
    load: dict[str, float] = {}
    for pair, ends in enumerate(of_rank[graph.pipeline.rank_of[graph.pairs]].tolist()):
        for direction, (sender, receiver) in ((0, ends), (1, ends[::-1])):
            if not graph.local[pair]:
                links[pair, direction] = f"{sender} out", f"{receiver} in"
                for link in links[pair, direction]:
                    load[link] = load.get(link, 0.0) + 64 * row[graph.transfer_column(direction) + pair]
    _, end = simulate(graph, row, links)
    assert end.max() >= max(load.values())
    assert end.max() >= graph.ends(row).max()


def test_answers_have_the_queued_time() -> None:
    """Tests candidates and baselines with queues and one assumption more; plans and proof are as without queues."""
    nodes = [node("a", 2), node("b", 2)]
    asked = pipeline([4, 1, 4, 1], nodes, schedule="1f1b", num_microbatches=4, num_stages=4)
    answer, plain = optimal(asked), optimal(asked.model_copy(update={"training": without_queueing(asked)}))
    priced = [each.metrics for each in answer.candidates] + [each.metrics for each in answer.baselines.values()]
    for metrics in priced:
        static, queued = times_of(metrics)
        assert static <= queued
    assert answer.best_bound == plain.best_bound
    assert [each.stages for each in answer.candidates] == [each.stages for each in plain.candidates]
    assert [each.metrics.queued_iteration_time_s for each in plain.candidates] == [None] * len(plain.candidates)
    (added,) = set(answer.assumptions) - set(plain.assumptions)
    assert "first come, first served" in added


def without_queueing(problem: Problem) -> Any:
    """Give the training without queues."""
    return problem.training.model_copy(update={"queueing": False})


def test_no_gap() -> None:
    """Tests a gap of 0 where an iteration takes no time, and where tensors go through the host."""
    idle = small_problem(equal_layers("ab", forward_s=0.0), nodes=[node("a"), node("b")], queueing=True)
    host = small_problem("abc", model=edges("a>b", "b>c", size=GB), devices=3, routing="host", queueing=True)
    for problem, devices in ((idle, ("a:0", "b:0")), (host, ("node0:0", "node0:1", "node0:2"))):
        metrics = placed(problem, *devices)
        assert metrics.queued_iteration_time_s == metrics.iteration_time_s
        assert metrics.queueing_gap == 0


def test_queues_of_blocking_transfers_are_refused() -> None:
    """Tests that a gap of 0 is not pretended where a wait would keep both stages busy."""
    problem = pipeline([1], [node("a"), node("b")], communication="blocking")
    with pytest.raises(NotSupportedYet, match=r"/training/queueing: not supported yet: .*blocking.*'overlapped'"):
        plan_problem(problem)
    with pytest.raises(NotSupportedYet, match="/training/queueing"):
        placed(problem, "a:0", "b:0")
