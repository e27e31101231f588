"""Makes the pictures of ``CHARTS``."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from partita.models.answer import Answer, Candidate
from partita.models.errors import InvalidInput
from partita.models.front import Front
from partita.models.problem import Problem
from partita.service.charts.comparison import comparison_chart
from partita.service.charts.front import front_chart
from partita.service.charts.layers import layers_chart
from partita.service.charts.memory import memory_chart
from partita.service.charts.names import Themes
from partita.service.charts.placement import placement_chart
from partita.service.charts.style import Spec, writable
from partita.service.charts.timeline import pipeline_chart
from partita.service.charts.times import times_chart
from partita.solver.timeline import in_scenario, timeline

DEVICE = re.compile(r".+:[0-9]{1,7}", re.DOTALL)
"""The name of a device."""

PLAN_CHARTS: dict[str, Callable[[Problem, Candidate, Themes], Spec]] = {
    "layers": layers_chart,
    "times": times_chart,
    "memory": memory_chart,
    "placement": placement_chart,
}
"""The pictures of one plan besides the timeline; ``comparison`` is one of an answer, ``front`` of a front."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which picture.

    Attributes
    ----------
    name
        Its name.
    candidate, scenario
        Of which plan or point, in which of several scenarios; None for the one that it shows.
    theme
        Its colors.
    links
        Whether a timeline shows what the links carry.
    """

    name: str
    candidate: int = 1
    scenario: str | None = None
    theme: Themes = "light"
    links: bool = False


def draw(wanted: Wanted, answer: Answer | Front) -> Spec:
    """Make a picture of an answer or front that holds its problem, and that there is such a picture of.

    Raises
    ------
    InvalidInput
        At ``/candidates`` or ``/points`` when there is no such plan; with pointers into the problem or, from ``/plan``
        on, the plan when it cannot be drawn.
    """
    problem = answer.problem
    assert problem is not None, "the caller asks for the problem"
    plans = [point.plan for point in answer.points] if isinstance(answer, Front) else answer.candidates
    if wanted.candidate > len(plans):
        what = "points" if isinstance(answer, Front) else "candidates"
        detail = f"there are {len(plans)} {what}, and no number {wanted.candidate}"
        raise InvalidInput.at(f"/{what}", detail, str(wanted.candidate), "missing")
    spec: Spec = writable(_drawn(wanted, problem, answer, plans))
    return spec


def _drawn(wanted: Wanted, problem: Problem, answer: Answer | Front, plans: Sequence[Candidate]) -> Spec:
    """Make the picture of what was found to be there."""
    if isinstance(answer, Front) and wanted.name == "front":
        return front_chart(problem, answer, wanted.theme)
    if isinstance(answer, Answer) and wanted.name == "comparison":
        return comparison_chart(problem, answer, wanted.theme)
    plan = plans[wanted.candidate - 1]
    _check(plan)
    if wanted.scenario is not None:
        plan = in_scenario(problem, plan, wanted.scenario)
    if wanted.name == "timeline":
        return pipeline_chart(timeline(problem, plan), plan, wanted.theme, links=wanted.links)
    return PLAN_CHARTS[wanted.name](problem, plan, wanted.theme)


def _check(plan: Candidate) -> None:
    """Refuse a plan whose parts do not belong together, which a file may hold."""
    for place, stage in enumerate(plan.stages):
        if stage.index != place:
            detail = f"the stages are numbered in their order, so this is stage {place}"
            raise InvalidInput.at(f"/plan/stages/{place}/index", detail, str(stage.index), "stages")
        if not stage.layers or not stage.devices or not all(map(DEVICE.fullmatch, stage.devices)):
            detail = "a stage has layers, and devices such as 'node0:5'"
            raise InvalidInput.at(f"/plan/stages/{place}", detail, None, "stages")
    for place, boundary in enumerate(plan.boundaries):
        if not 0 <= boundary.from_stage < boundary.to_stage < len(plan.stages):
            detail = f"a boundary leads from one of the {len(plan.stages)} stages to a later one"
            raise InvalidInput.at(f"/plan/boundaries/{place}", detail, str(boundary.to_stage), "stages")
