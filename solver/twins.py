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
    for orders in _together([plan.stage[list(twins)].tolist() for twins in groups.twins]):
        stage, option = plan.stage.copy(), None if plan.option is None else plan.option.copy()
        for twins, order in zip(groups.twins, orders, strict=True):
            _arrange(groups, plan, twins, order, stage, option)
        yield Plan(stage, plan.location, option)


def _together(sets: Sequence[Sequence[int]]) -> Iterator[list[list[int]]]:
    """Give every choice of an order for each of several sets of values; that of the last changes first."""
    left = [_orders(each) for each in sets]
    chosen = [next(each) for each in left]
    while True:
        yield chosen
        for number in range(len(sets) - 1, -1, -1):
            following = next(left[number], None)
            if following is not None:
                chosen = [*chosen[:number], following, *chosen[number + 1 :]]
                break
            left[number] = _orders(sets[number])
            chosen = [*chosen[:number], next(left[number]), *chosen[number + 1 :]]
        else:
            return


def _orders(values: Sequence[int]) -> Iterator[list[int]]:
    """Give every different order of some values, the ascending one first, each the next larger one."""
    order = sorted(values)
    while True:
        yield list(order)
        falling = len(order) - 1  # where the falling end begins, which cannot grow by itself
        while falling > 0 and order[falling - 1] >= order[falling]:
            falling -= 1
        if falling <= 0:
            return
        larger = max(at for at in range(falling, len(order)) if order[at] > order[falling - 1])
        order[falling - 1], order[larger] = order[larger], order[falling - 1]
        order[falling:] = order[falling:][::-1]


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
