"""Equal layers side by side: exchanging them changes nothing, so the search looks at one order of their stages only.

Layers that ``equal_layers`` finds are *twins*. Of all plans that exchanges of twins turn into each other, the search
finds the one in which twins are on ascending stages; the others are its *images*. They cost the same to the byte, and
are plans of their own in a ranking.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from partita.solver.arrays import IntArray
from partita.solver.grouping import Groups
from partita.solver.plans import Judge, Judged, Plan


def ascending(groups: Groups, plan: Plan) -> Plan:
    """Give the image of a plan in which twins are on ascending stages."""
    stage, option = plan.stage.copy(), None if plan.option is None else plan.option.copy()
    for twins in groups.twins:
        _arrange(groups, plan, twins, sorted(plan.stage[list(twins)].tolist()), stage, option)
    return Plan(stage, plan.location, option)


def images(judge: Judge, judged: Judged, most: int) -> list[Judged]:
    """Judge up to so many further plans that are images of a plan, in a fixed order."""
    plans = list(islice(_exchanged(judge.groups, judged.plan), 1, most + 1)) if judge.groups.twins and most > 0 else []
    found = judge.judge(plans) if plans else []
    return [each for each in found if each is not None]


def _exchanged(groups: Groups, plan: Plan) -> Iterator[Plan]:
    """Give all images of a plan whose twins are on ascending stages, itself first."""

    def extend(number: int, stage: IntArray, option: IntArray | None) -> Iterator[Plan]:
        if number == len(groups.twins):
            yield Plan(stage, plan.location, option)
            return
        twins = groups.twins[number]
        for order in _orders(plan.stage[list(twins)].tolist()):
            changed, chosen = stage.copy(), None if option is None else option.copy()
            _arrange(groups, plan, twins, order, changed, chosen)
            yield from extend(number + 1, changed, chosen)

    return extend(0, plan.stage, plan.option)


def _orders(values: Sequence[int]) -> Iterator[list[int]]:
    """Give every different order of some values, the ascending one first."""
    if not values:
        yield []
    for first in sorted(set(values)):
        rest = sorted(values)
        rest.remove(first)
        for order in _orders(rest):
            yield [first, *order]


def _arrange(
    groups: Groups, plan: Plan, twins: Sequence[int], order: Sequence[int], stage: IntArray, option: IntArray | None
) -> None:
    """Put twins on stages in an order, each with the option of one that the plan has there."""
    stage[list(twins)] = order
    if option is None or plan.option is None:
        return
    layers = [int(groups.members[group][0]) for group in twins]
    left = [(int(plan.stage[group]), int(plan.option[layer])) for group, layer in zip(twins, layers, strict=True)]
    for layer, where in zip(layers, order, strict=True):
        chosen = next(each for each in left if each[0] == where)
        left.remove(chosen)
        option[layer] = chosen[1]
