"""Demands on stages that cannot be kept together: pins, groups that are apart, order and the number of stages."""

from partita.models.answer import Finding, Infeasibility
from partita.solver.instance import Instance
from partita.solver.plans import Judge
from partita.solver.reasons import listed, report
from partita.solver.topology import node_sets
from partita.solver.variants import allowed_stage_counts

MOST_FINDINGS = 10


def torn(judge: Judge) -> Infeasibility | None:
    """Find layers that share a stage but are pinned to different ones or apart, and layers apart but pinned to one."""
    return (_torn_by_pins(judge) if judge.torn else None) or _torn_apart(judge) or _apart_on_one_stage(judge)


def _torn_by_pins(judge: Judge) -> Infeasibility:
    """Report layers that must share a stage but are pinned to different ones."""
    pins = judge.instance.problem.constraints.pins
    findings = []
    for first, second in judge.torn[:MOST_FINDINGS]:
        text = (
            f"{first!r} and {second!r} must share a stage (by together, cut_after or what they write to), but are "
            f"pinned to stages {pins[first]} and {pins[second]}"
        )
        findings.append(Finding(limit="constraints.pins", message=text, layer=second, stage=pins[second]))
    return report("layers that must share a stage are pinned to different ones", findings, "pin them to one stage")


def _torn_apart(judge: Judge) -> Infeasibility | None:
    """Find layers that are apart though no boundary may lie between them."""
    findings = []
    for groups, names in zip(judge.apart, judge.instance.problem.constraints.apart, strict=True):
        first: dict[int, str] = {}
        for group, name in zip(groups.tolist(), names, strict=True):
            other = first.setdefault(group, name)
            if other != name:
                text = (
                    f"{other!r} and {name!r} must share a stage (by cut_after, together or what they write to), but "
                    "are apart"
                )
                findings.append(Finding(limit="constraints.apart", message=text, layer=name))
    if not findings:
        return None
    change = "let a boundary lie between them (constraints.cut_after), or take one of them out of constraints.apart"
    return report("layers that must share a stage are apart", findings[:MOST_FINDINGS], change)


def _apart_on_one_stage(judge: Judge) -> Infeasibility | None:
    """Find layers that are apart though pins put them, or layers that share their stages, on one stage."""
    findings = []
    for groups, names in zip(judge.apart, judge.instance.problem.constraints.apart, strict=True):
        first: dict[int, str] = {}
        for group, name in zip(groups.tolist(), names, strict=True):
            stage = judge.pins.get(group)
            if stage is None:
                continue
            other = first.setdefault(stage, name)
            if other != name:
                pinned = judge.pinned_layer[group]
                by = "" if pinned == name else f" ({name!r} by {pinned!r}, which must share its stage)"
                text = f"{other!r} and {name!r} are apart, but pinned to one stage, {stage}{by}"
                findings.append(Finding(limit="constraints.pins", message=text, layer=pinned, stage=stage))
    if not findings:
        return None
    change = "pin one of them to another stage, or take it out of constraints.apart"
    return report("layers that are apart are pinned to one stage", findings[:MOST_FINDINGS], change)


def unmet(judge: Judge, usable: list[int]) -> Infeasibility | None:
    """Find pins and groups that are apart which no plan with one of the usable numbers of stages can keep."""
    return (
        _apart_on_too_few_stages(judge, usable)
        or _pins_against_order(judge)
        or _pins_out_of_reach(judge, usable)
        or _apart_in_order(judge, usable)
    )


def _apart_on_too_few_stages(judge: Judge, usable: list[int]) -> Infeasibility | None:
    """Find a group that is apart and has more layers than there are stages."""
    available = max(usable)
    needed, number = max(((len(groups), -number) for number, groups in enumerate(judge.apart)), default=(0, 0))
    if needed <= available:
        return None
    place = f"constraints.apart/{-number}"
    text = (
        f"the {needed} layers of {place} (the first is {judge.instance.problem.constraints.apart[-number][0]!r}) need "
        f"a stage each, but there can be {_stages(available)}: short by {needed - available}"
    )
    finding = Finding(limit="constraints.apart", message=text, needed=needed, available=available)
    change = _more_stages(judge, needed, available, f"at most {{}} layers in {place}")
    return report("layers that are apart need more stages than there can be", [finding], change)


def _more_stages(judge: Judge, needed: int, available: int, less: str) -> str:
    """Say how to get so many stages: by asking for them, or with more devices; or what to demand ``less``."""
    problem, instance = judge.instance.problem, judge.instance
    free = problem.model_copy(update={"training": problem.training.model_copy(update={"num_stages": None})})
    room = _ranks(instance)
    possible = [
        count
        for count in allowed_stage_counts(free)
        if count <= len(judge.groups) and instance.num_ranks(count) <= room
    ]
    enough = [count for count in possible if count >= needed]
    if enough:
        return f"num_stages of at least {enough[0]}"
    return less.format(max([available, *possible]))


def _ranks(instance: Instance) -> int:
    """Give how many ranks the nodes have room for."""
    width = instance.width // instance.nodes_per_stage
    sets = node_sets(instance.problem.cluster, width, instance.nodes_per_stage)
    return sum(members[-1].count // width for members in sets)


def _stages(count: int) -> str:
    return f"{count} stage{'' if count == 1 else 's'}"


def _pins_against_order(judge: Judge) -> Infeasibility | None:
    """Find a layer that is pinned behind one that must not come before it."""
    reached = dict(judge.pins)  # the latest stage that a group can have been pushed to by those before it
    origin = {group: group for group in judge.pins}
    for group, followers in enumerate(judge.groups.successors):
        if group not in reached:
            continue
        for other in followers:
            if other in judge.pins and judge.pins[other] < reached[group]:
                first, second = judge.pinned_layer[origin[group]], judge.pinned_layer[other]
                text = (
                    f"{first!r} is pinned to stage {reached[group]} but comes before {second!r}, "
                    f"which is pinned to stage {judge.pins[other]}"
                )
                finding = Finding(limit="constraints.pins", message=text, layer=second, stage=judge.pins[other])
                return report(
                    "pins contradict the order of the layers", [finding], "exchange or remove one of the pins"
                )
            if reached[group] > reached.get(other, -1):
                reached[other], origin[other] = reached[group], origin[group]
    return None


def _pins_out_of_reach(judge: Judge, usable: list[int]) -> Infeasibility | None:
    """Find a layer of a chain that is pinned where too few layers are left before or behind it."""
    if not judge.groups.total_order:
        return None
    size = len(judge.groups)
    for group, stage in judge.pins.items():
        ranges = [range(max(0, count - size + group), min(group, count - 1) + 1) for count in usable]
        allowed = sorted({each for stages in ranges for each in stages})
        if stage not in allowed:
            where = f"on stage {allowed[0]}" if len(allowed) == 1 else f"on one of the stages {listed(allowed)}"
            name = judge.pinned_layer[group]
            text = f"{name!r} is pinned to stage {stage}, but as every stage holds a layer it must be {where}"
            finding = Finding(limit="constraints.pins", message=text, layer=name, stage=stage)
            return report(text, [finding], f"pin {name!r} {where}")
    return None


def _apart_in_order(judge: Judge, usable: list[int]) -> Infeasibility | None:
    """Find where the layers of a chain that are apart push a layer past its pin, or past the last stage."""
    if not judge.groups.total_order:
        return None
    sets_of: dict[int, list[int]] = {}
    for number, groups in enumerate(judge.apart):
        for group in groups.tolist():
            sets_of.setdefault(group, []).append(number)
    latest: dict[int, int] = {}  # by the number of a set: the earliest stage of the last of its layers so far
    earliest = 0
    for group in range(len(judge.groups)):
        mine = sets_of.get(group, [])
        earliest = max([earliest, *(latest[number] + 1 for number in mine if number in latest)])
        pin = judge.pins.get(group, earliest)
        if pin < earliest:
            name = judge.pinned_layer[group]
            text = (
                f"{name!r} is pinned to stage {pin}, but by the layers that are apart before it, and their pins, it "
                f"must be on stage {earliest} or later"
            )
            finding = Finding(limit="constraints.pins", message=text, layer=name, stage=pin)
            return report(
                "pins contradict groups that are apart", [finding], f"pin {name!r} to stage {earliest} or later"
            )
        earliest = pin
        latest.update(dict.fromkeys(mine, earliest))
    needed, available = earliest + 1, max(usable)
    if needed <= available:
        return None
    text = (
        f"the layers that are apart{' and the pins' if judge.pins else ''} need {_stages(needed)} in the order of the "
        f"layers, but there can be {_stages(available)}: short by {needed - available}"
    )
    finding = Finding(limit="constraints.apart", message=text, needed=needed, available=available)
    change = _more_stages(judge, needed, available, "fewer layers in constraints.apart")
    return report("layers that are apart need more stages than there can be", [finding], change)
