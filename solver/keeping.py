"""Planning again: the plan in use stays in front unless the best plan is better by enough."""

from partita.models.answer import Answer, Candidate
from partita.models.choices import choice_of
from partita.models.errors import InvalidInput
from partita.solver.deadline import Deadline
from partita.solver.layout import locations_of
from partita.solver.review import Priced, review_plan
from partita.solver.session import Session
from partita.solver.yardstick import better, deciding, levels_of_another


def keep_in_front(answer: Answer, session: Session, deadline: Deadline) -> Answer:
    """Put the plan that ``search.keep`` names in front of those found, unless the best is better by enough.

    Parameters
    ----------
    answer
        What was found for the session's problem.
    session, deadline
        Of that search.

    Returns
    -------
    Answer
        With a warning that says what became of the plan: kept although a better one is known, given up for a better
        one, or no longer possible. Without one where no plan is better.
    """
    search = session.problem.search
    if search.keep is None:
        return answer
    try:
        priced = review_plan(session.problem, search.keep, deadline, session).best
    except InvalidInput as error:
        return _warned(answer, f"search.keep no longer fits: {error.faults[0].detail}; planned anew")
    if priced.findings:
        return _warned(answer, f"search.keep no longer fits: {priced.findings[0].message}; planned anew")
    best = answer.candidates[0] if answer.candidates else None
    kept = _in_front(answer, priced, session, deadline)
    if best is None or not better(session.sticks, best.metrics, priced.candidate.metrics):
        return kept if best is None else kept.model_copy(update={"status": answer.status})
    stick = deciding(session.sticks, best.metrics, priced.candidate.metrics)
    ours, theirs = stick.reported(priced.candidate.metrics), stick.reported(best.metrics)
    if ours is None or theirs is None:
        return kept
    part = stick.gain(ours, theirs) / abs(ours)
    name = stick.objective if isinstance(stick.objective, str) else "objective"
    numbers = f"its {name} is {stick.words(ours)}, the best plan found has {stick.words(theirs)}"
    numbers += f", {100 * part:.3g} % better"
    allowed = f"search.keep_if_within = {search.keep_if_within:g}"
    if part > search.keep_if_within:
        return _warned(answer, f"search.keep is replaced: {numbers}, more than {allowed}")
    return _warned(kept, f"search.keep stays in front: {numbers}, no more than {allowed}")


def _in_front(answer: Answer, priced: Priced, session: Session, deadline: Deadline) -> Answer:
    """Give the answer with a plan as its first candidate, and nowhere else; feasible, as far as this tells."""
    others = [each for each in answer.candidates if not _same(each, priced.candidate, session)]
    wanted = session.problem.search.candidates
    ranked = [
        each.model_copy(update={"rank": rank})
        for rank, each in enumerate([priced.candidate, *others][:wanted], start=1)
    ]
    anew = session.review(ranked, priced.evaluator, None, deadline, answer.best_bound)
    first = ranked[0].model_copy(update={"best_bound": anew.best_bound})
    return answer.model_copy(
        update={
            "status": anew.status,
            "candidates": (first, *ranked[1:]),
            "best_bound": anew.best_bound,
            "relative_gap": anew.relative_gap,
            "levels": levels_of_another(session.sticks, answer.levels, priced.candidate.metrics),
            "baselines": anew.baselines,
        }
    )


def _same(one: Candidate, other: Candidate, session: Session) -> bool:
    """Tell whether two candidates are one plan but for the names of equal devices."""

    def look(plan: Candidate, places: object) -> object:
        return [stage.layers for stage in plan.stages], places, choice_of(plan), plan.metrics

    here: object = _places(one, session)
    there: object = _places(other, session)
    if here is None or there is None:  # on a node in the place of which an equal one is searched
        here, there = _paths(one), _paths(other)
    return look(one, here) == look(other, there)


def _places(plan: Candidate, session: Session) -> list[int] | None:
    """Give the places of the ranks, equal ones named in order of use; None where the search knows not all of them."""
    topologies = [each.instance.topology for each in session.variants if each.choice == choice_of(plan)]
    if not topologies:
        return None
    topology = topologies[0]
    devices = {stage.rank: tuple(stage.devices) for stage in plan.stages}
    if not {name.partition(":")[0] for each in devices.values() for name in each} <= topology.nodes.keys():
        return None
    location = locations_of(topology, len(devices), [devices[rank] for rank in range(len(devices))])
    return [int(place) for place in topology.canonical(location)]


def _paths(plan: Candidate) -> object:
    return [(way.from_stage, way.to_stage, way.bandwidth_bytes_per_s, way.latency_s) for way in plan.boundaries]


def _warned(answer: Answer, text: str) -> Answer:
    """Give the answer with one more warning."""
    return answer.model_copy(update={"warnings": (*answer.warnings, text)})
