"""Which option of recompute every layer of a plan takes: the least time with which every rank fits into its memory."""

from dataclasses import dataclass, replace

import numpy as np

from partita.solver.arrays import IntArray, Times
from partita.solver.costs import LayerPlan, stage_memory, transfers
from partita.solver.event_graph import EventGraph
from partita.solver.figures import Figures
from partita.solver.instance import Instance
from partita.solver.measure import graph_of
from partita.solver.targets import aims_at_memory

MOST_EXACT, MOST_STATES = 64, 2_000
"""Layers of a rank whose options are chosen exactly, and undominated choices that are kept; beyond it, a guess."""

MOST_TRIES = 4
"""Times that more is saved where what is not counted by layers, such as workspace, grew meanwhile."""


def choose_options(
    instance: Instance, figures: Figures, plan: LayerPlan, graph: EventGraph, capacities: IntArray, smallest: bool
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
    """
    chooser = _Chooser(instance, figures, plan, graph)
    if smallest:
        return chooser.smallest()
    option = chooser.fastest()
    limits = capacities[instance.topology.kind_of[plan.location]]
    cases = [
        (case, transfers(case, own, plan.stage, plan.location, graph))
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
            chooser.save(option, rank, int(extra[rank]))
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

    def save(self, option: IntArray, rank: int, needed: int) -> None:
        """Change the fastest options of a rank's layers so that they need so many bytes less, at the least time."""
        layers = np.flatnonzero(self._rank == rank)
        if self._ways.by_stage:
            layers = np.intersect1d(layers, np.unique(self._stage, return_index=True)[1])
        items = []
        for layer in layers.tolist():
            base = int(option[layer])
            found = [
                Item(
                    int(self.bytes[base, layer] - self.bytes[each, layer]),
                    (self.time[each, layer] - self.time[base, layer]).item(),
                    each,
                )
                for each in range(len(self.bytes))
                if self._ways.available[each, layer] and self.bytes[each, layer] < self.bytes[base, layer]
            ]
            items.append([Item(0, 0, base), *found])
        chosen = cheapest_cover(items, needed)
        for layer, each in zip(layers.tolist(), chosen, strict=True):
            option[self._stage == self._stage[layer] if self._ways.by_stage else layer] = each


@dataclass(frozen=True, slots=True)
class Item:
    """One option of a layer: the bytes that it saves, the time that it costs, its number."""

    saved: int
    cost: float | int
    option: int


def cheapest_cover(items: list[list[Item]], needed: int) -> list[int]:
    """Choose an option for every layer so that enough is saved at the least cost; the most savings where none do.

    A multiple-choice knapsack, solved over the undominated pairs of cost and savings; for many layers by taking what
    costs least for what it saves.
    """
    if len(items) > MOST_EXACT:
        return _greedy_cover(items, needed)
    costs, saved = np.zeros(1), np.zeros(1, dtype=np.int64)
    came: list[tuple[IntArray, IntArray]] = []
    for options in items:
        all_costs = np.concatenate([costs + each.cost for each in options])
        all_saved = np.concatenate([np.minimum(saved + each.saved, needed) for each in options])
        before = np.tile(np.arange(len(costs)), len(options))
        which = np.repeat(np.arange(len(options)), len(costs))
        order = np.lexsort((-all_saved, all_costs))
        best = np.maximum.accumulate(all_saved[order])
        order = order[np.concatenate([[True], best[1:] > best[:-1]])]
        if len(order) > MOST_STATES:  # keep the ends of the front, and states spread evenly between
            order = order[np.unique(np.linspace(0, len(order) - 1, MOST_STATES).astype(np.int64))]
        costs, saved = all_costs[order], all_saved[order]
        came.append((before[order], which[order]))
    state = int(np.argmax(saved))
    chosen = []
    for options, (before, which) in zip(reversed(items), reversed(came), strict=True):
        chosen.append(options[int(which[state])].option)
        state = int(before[state])
    return chosen[::-1]


def _greedy_cover(items: list[list[Item]], needed: int) -> list[int]:
    """Change the layers to the option that costs least for what it saves, the cheapest first, until enough is saved."""
    chosen = [options[0].option for options in items]
    changes = []
    for layer, options in enumerate(items):
        if len(options) > 1:
            best = min(options[1:], key=lambda each: (each.cost / each.saved, -each.saved))
            changes.append((best.cost / best.saved, layer, best))
    for _, layer, best in sorted(changes, key=lambda each: each[:2]):
        if needed <= 0:
            break
        chosen[layer], needed = best.option, needed - best.saved
    for layer, options in enumerate(items):  # what saves most where that was not enough
        if needed > 0 and len(options) > 1:
            most = max(options, key=lambda each: each.saved)
            now = next(each for each in options if each.option == chosen[layer])
            chosen[layer], needed = most.option, needed - (most.saved - now.saved)
    return chosen
