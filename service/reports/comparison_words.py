"""How a given plan compares with the best one and with its neighbors, in words."""

from collections.abc import Iterator

from partita.models.answer import Answer, Comparison, Move
from partita.models.objective import Objective
from partita.service.reports.proof import amount, objective_text
from partita.service.reports.wording import SAME, percent

ENDED = {
    "infeasible": "No plan keeps all limits of the problem.",
    "no_solution": "No other plan was found within the time limit.",
}
"""What a search without a plan has shown."""


def comparison_sentences(answer: Answer, comparison: Comparison) -> Iterator[str]:
    """Say how far a given plan is from the best, and which single move improves it most; nothing where it is best."""
    status, gap = comparison.best_status, comparison.gap
    if answer.status == "optimal":
        return
    if status in ENDED:
        yield ENDED[status]
    elif comparison.best_value is not None and gap is not None:
        best, value = f"The best plan{'' if status == 'optimal' else ' found'}", comparison.best_value
        if abs(gap) < SAME:
            yield "The search found no better plan."
        else:
            how = f"{percent(abs(gap))} {'better' if gap > 0 else 'worse'} than this one"
            yield f"{best} has {amount(answer.objective, value)}: {how}."
    rest = "" if comparison.all_moves else f" Only {comparison.moves_measured} moves were measured."
    yield f"{_move_sentence(answer, comparison.move)}{rest}"


def _move_sentence(answer: Answer, move: Move | None) -> str:
    """Name the best move with its numbers."""
    if move is None:
        what = "makes this plan keep its limits" if answer.status == "infeasible" else "improves this plan"
        return f"No single move {what}."
    aim = "A single move after which it breaks no limit" if answer.status == "infeasible" else "The best single move"
    return f"{aim}: {move.message}: {_change(answer.objective, move)}."


def _change(objective: Objective, move: Move) -> str:
    """Say what a move changes the objective to."""
    name, value = objective_text(objective).lower(), amount(objective, move.objective_value)
    if not move.gain:
        return f"{name} {value}, the same"
    part = "" if move.relative_gain is None else f" ({percent(abs(move.relative_gain))})"
    return f"{name} {value}, {amount(objective, abs(move.gain))}{part} {'better' if move.gain > 0 else 'worse'}"
