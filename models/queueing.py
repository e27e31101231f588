"""A queue as a fluid: work arrives and is done at constant rates.

The elementary fluid approximation of a queue: with arrival rate a and service rate s, a backlog q changes by a - s per
second, and stays at zero once it is there. Any unit of work will do, such as bytes; rates are in that unit per second.
"""

from math import isfinite


def backlog(start: float, arrival_per_s: float, service_per_s: float, after_s: float) -> float:
    """Give the work that waits after some time: max(0, start + (arrival - service) * time).

    Parameters
    ----------
    start
        Work that waits at the beginning.
    arrival_per_s, service_per_s
        Work that arrives, and that can be done, per second.
    after_s
        Seconds from the beginning.

    Raises
    ------
    ValueError
        When a value is negative or not finite.
    """
    _check(start=start, arrival_per_s=arrival_per_s, service_per_s=service_per_s, after_s=after_s)
    return max(0.0, start + (arrival_per_s - service_per_s) * after_s)


def drain_s(start: float, arrival_per_s: float, service_per_s: float) -> float | None:
    """Give the seconds until no work waits: start / (service - arrival).

    Parameters
    ----------
    start
        Work that waits at the beginning.
    arrival_per_s, service_per_s
        Work that arrives, and that can be done, per second.

    Returns
    -------
    float | None
        0 where none waits; None where the backlog never shrinks, as no more is done than arrives.

    Raises
    ------
    ValueError
        When a value is negative or not finite.
    """
    _check(start=start, arrival_per_s=arrival_per_s, service_per_s=service_per_s)
    if start == 0:
        return 0.0
    if arrival_per_s >= service_per_s:
        return None
    return start / (service_per_s - arrival_per_s)


def _check(**values: float) -> None:
    """Refuse values that are negative or not finite, by their names."""
    for name, value in values.items():
        if not (isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be a finite number, at least 0, not {value}")
