"""What one server accepts of a problem that is valid in itself."""

from collections.abc import Iterator
from typing import ClassVar

from partita.models.errors import Fault, InvalidInput
from partita.models.problem import Problem
from partita.service.settings import Settings


class OverLimit(InvalidInput):
    """A valid problem that asks for more than this server allows."""

    default_code: ClassVar[str] = "over_limit"


def check_limits(problem: Problem, settings: Settings, prefix: str = "") -> None:
    """Refuse a problem that is larger than this server allows.

    Parameters
    ----------
    problem
        The problem.
    settings
        The limits.
    prefix
        JSON pointer to the problem in the body.

    Raises
    ------
    OverLimit
        With the pointer, the value and the limit of everything that is too much.
    """
    faults = list(_faults(problem, settings, prefix))
    if faults:
        raise OverLimit(faults)


def _faults(problem: Problem, settings: Settings, prefix: str) -> Iterator[Fault]:
    """Compare every figure with its limit."""
    search = problem.search
    for pointer, given, limit, what in (
        ("/model/layers", len(problem.model.layers), settings.max_layers, "layers"),
        ("/cluster/nodes", problem.cluster.num_devices, settings.max_devices, "devices"),
        ("/search/candidates", search.candidates, settings.max_candidates, "candidates"),
        ("/search/time_limit_s", search.time_limit_s, settings.max_time_limit_s, "seconds"),
        ("/search/workers", search.workers, settings.max_workers, "workers"),
    ):
        if given > limit:
            detail = f"{given:g} {what}; this server allows at most {limit:g}"
            yield Fault(prefix + pointer, detail, f"{given:g}", OverLimit.default_code)
