"""What must never happen: the solver and the evaluator disagree."""


class InternalError(Exception):
    """A fault in Partita itself: the answer is withheld. Please report it with the problem."""
