"""Which option of recompute every layer of a plan takes: the least time with which every rank fits into its memory."""

from dataclasses import replace

import numpy as np

from partita.solver.arrays import BoolArray, IntArray, Times
from partita.solver.costs import LayerPlan, routes, stage_memory, transfers
from partita.solver.event_graph import EventGraph
from partita.solver.figures import Figures
from partita.solver.instance import Instance
from partita.solver.measure import graph_of
from partita.solver.targets import aims_at_memory

MOST_EXACT, MOST_KINDS, MOST_STATES = 64, 16, 2_000
"""Layers of a rank, or kinds of them, whose options are chosen exactly, and undominated choices that are kept.

Beyond it, a guess.
"""

MOST_TRIES = 4
"""Times that more is saved where what is not counted by layers, such as workspace, grew meanwhile."""


def choose_options(
    instance: Instance,
    figures: Figures,
    plan: LayerPlan,
    graph: EventGraph,
    capacities: IntArray,
    smallest: bool,
    exact: bool = True,
) -> IntArray:
    """Choose an option for every layer, shape (L,).

    Parameters
    ----------
    plan
        The stages and locations; its options do not count.
    capacities
        Bytes that a rank may use on every kind of device, shape (Q,).
    smallest
        Whether to need as little memory as possible instead, whatever it takes.
    exact
        Whether to take time for what is best, also for many layers.
    """
    chooser = _Chooser(instance, figures, plan, graph)
    if smallest:
        return chooser.smallest()
    option = chooser.fastest()
    limits = capacities[instance.topology.kind_of[plan.location]]
    taken = routes(instance, plan.stage, graph.pairs)
    cases = [
        (case, transfers(case, own, plan.stage, plan.location, graph, taken))
        for case, own in zip(instance.cases, figures.cases, strict=True)
    ]
    extra: IntArray = np.zeros(len(limits), dtype=np.int64)
    for _ in range(MOST_TRIES):
        chosen = replace(plan, option=option)
        needed = np.max([stage_memory(case, chosen, moved, graph).by_rank for case, moved in cases], axis=0)
        if (needed <= limits).all():
            return option
        extra += np.maximum(needed - limits, 0)
        option = chooser.fastest()
        for rank in np.flatnonzero(extra).tolist():
            chooser.save(option, rank, int(extra[rank]), exact)
    return option


def best_plan(instance: Instance, figures: Figures, stage: IntArray, location: IntArray) -> LayerPlan:
    """Give a plan of these stages (by layer) and locations (by rank) with the options that suit it best."""
    plan = LayerPlan(stage, location, np.zeros_like(stage))
    if not instance.ways.choosable:
        return plan
    graph, smallest = graph_of(instance, plan.num_stages), aims_at_memory(instance.problem.objective)
    return replace(plan, option=choose_options(instance, figures, plan, graph, instance.capacities, smallest))


class _Chooser:
    """Times and bytes of the layers of a plan by every option."""

    def __init__(self, instance: Instance, figures: Figures, plan: LayerPlan, graph: EventGraph) -> None:
        self._ways, self._stage = instance.ways, plan.stage
        pipeline = graph.pipeline
        self._rank = pipeline.rank_of[plan.stage]
        kind, layer = plan.kind(instance, pipeline.rank_of), np.arange(len(plan.stage))
        options = np.arange(len(self._ways.options))[:, None]
        costs = self._ways.costs.map(lambda table: table[kind[None, :], options, layer[None, :]])
        whole, postponed = (each.max(axis=0)[plan.stage] for each in pipeline.moments.alone(pipeline.num_stages))
        self.bytes: IntArray = costs.state + whole * costs.activation + postponed * costs.for_weight_gradient
        self.time: Times = figures.by_way[:2, kind[None, :], options, layer[None, :]].sum(axis=0)
        if self._ways.by_stage:
            self._add_up_stages()

    def _add_up_stages(self) -> None:
        """Let the first layer of every stage stand for all of it."""
        stages = int(self._stage.max()) + 1
        first = np.unique(self._stage, return_index=True)[1]
        for values in (self.bytes, self.time):
            total = np.zeros((stages, len(values)), dtype=values.dtype)
            np.add.at(total, self._stage, values.T)
            values[:] = 0
            values[:, first] = total.T

    def _spread(self, option: IntArray) -> IntArray:
        if self._ways.by_stage:
            first = np.unique(self._stage, return_index=True)[1]
            return option[first][self._stage]
        return option

    def _least(self, first: Times, second: Times) -> IntArray:
        """Give the available option of every layer with the least of one cost, then of another one."""
        best = np.zeros(self.bytes.shape[1], dtype=np.int64)
        layer = np.arange(len(best))
        for option in range(1, len(self.bytes)):
            a, b = first[option], first[best, layer]
            better = (a < b) | ((a == b) & (second[option] < second[best, layer]))
            best[better & self._ways.available[option]] = option
        return best

    def fastest(self) -> IntArray:
        """Give the fastest option of every layer."""
        return self._spread(self._least(self.time, self.bytes))

    def smallest(self) -> IntArray:
        """Give the option of every layer that needs the fewest bytes."""
        return self._spread(self._least(self.bytes, self.time))

    def save(self, option: IntArray, rank: int, needed: int, exact: bool) -> None:
        """Change the fastest options of a rank's layers so that they need so many bytes less, at the least time.

        Ranks of many layers take their time for that only where it is to be ``exact``.
        """
        layers = np.flatnonzero(self._rank == rank)
        if self._ways.by_stage:
            layers = np.intersect1d(layers, np.unique(self._stage, return_index=True)[1])
        base = option[layers]
        saved: IntArray = self.bytes[base, layers] - self.bytes[:, layers]
        cost = self.time[:, layers] - self.time[base, layers]
        possible = self._ways.available[:, layers] & (saved > 0)
        if len(layers) <= MOST_EXACT or (exact and _kinds(saved, cost, possible) <= MOST_KINDS):
            chosen = cheapest_cover(saved, cost, possible, needed)
        else:
            chosen = greedy_cover(saved, cost, possible, needed)
        for layer, each in zip(layers[chosen >= 0].tolist(), chosen[chosen >= 0].tolist(), strict=True):
            option[self._stage == self._stage[layer] if self._ways.by_stage else layer] = each


def _kinds(saved: IntArray, cost: Times, possible: BoolArray) -> int:
    """Give how many kinds of layers there are."""
    return len(np.unique(np.concatenate([saved, cost, possible]), axis=1).T)


def cheapest_cover(saved: IntArray, cost: Times, possible: BoolArray, needed: int) -> IntArray:
    """Choose an option for every layer so that enough is saved at the least cost; the most savings where none do.

    A multiple-choice knapsack, solved over the undominated pairs of cost and savings.

    Parameters
    ----------
    saved, cost
        The bytes that an option saves and the time that it costs, shape (O, n).
    possible
        Which options there are, of the same shape; every layer may stay as it is, too.
    needed
        Bytes to save.

    Returns
    -------
    array of shape (n,)
        The options; -1 for a layer that stays as it is.
    """
    costs, total = np.zeros(1, dtype=cost.dtype), np.zeros(1, dtype=np.int64)
    came: list[tuple[IntArray, IntArray]] = []
    for layer in range(saved.shape[1]):
        options = np.flatnonzero(possible[:, layer])
        all_costs = np.concatenate([[0], cost[options, layer]])[:, None] + costs
        all_saved = np.minimum(np.concatenate([[0], saved[options, layer]])[:, None] + total, needed)
        order = np.lexsort((-all_saved.ravel(), all_costs.ravel()))
        best = np.maximum.accumulate(all_saved.ravel()[order])
        order = order[np.concatenate([[True], best[1:] > best[:-1]])]
        if len(order) > MOST_STATES:  # keep the ends of the front, and states spread evenly between
            order = order[np.unique(np.linspace(0, len(order) - 1, MOST_STATES).astype(np.int64))]
        which, before = np.divmod(order, len(costs))
        costs, total = all_costs.ravel()[order], all_saved.ravel()[order]
        came.append((before, np.concatenate([[-1], options])[which]))
    state = int(np.argmax(total))
    chosen = []
    for before, which in reversed(came):
        chosen.append(int(which[state]))
        state = int(before[state])
    return np.array(chosen[::-1], dtype=np.int64)


def greedy_cover(saved: IntArray, cost: Times, possible: BoolArray, needed: int) -> IntArray:
    """Choose as ``cheapest_cover``, but change the layers that cost least for what they save until that is enough."""
    layer = np.arange(saved.shape[1])
    ratio = np.where(possible, cost / np.maximum(saved, 1), np.inf)
    best = np.lexsort((-saved, ratio), axis=0)[0]
    changes = np.isfinite(ratio[best, layer])
    order = np.argsort(ratio[best, layer], kind="stable")[: int(changes.sum())]
    gained = np.cumsum(saved[best, layer][order])
    chosen: IntArray = np.full(len(layer), -1, dtype=np.int64)
    taken = order[: int(np.searchsorted(gained, needed)) + 1]
    chosen[taken] = best[taken]
    left = needed - int(saved[best, layer][taken].sum())
    most = np.where(possible, saved, 0).argmax(axis=0)
    for each in np.flatnonzero(changes).tolist():  # what saves most where that was not enough
        if left <= 0:
            break
        left -= int(saved[most[each], each] - saved[best[each], each])
        chosen[each] = most[each]
    return chosen
