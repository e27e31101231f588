"""Checks on names: given once, and known where they are used."""

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from itertools import islice

from partita.models.base import Faults

MAX_SEARCHED = 2000
"""Most known names among which a similar one is looked for."""
MAX_HINTS = 3
"""Faults of one check that come with a similar name; the search is slow."""
SHOWN_LENGTH = 60
"""Longest name that a message quotes in full."""
MAX_LISTED = 8
"""Most names that a message lists."""


def check_unique(faults: Faults, place: Sequence[str | int], what: str, names: Iterable[str]) -> None:
    """Refuse a name given twice in the list of named things at ``place``; the fault points at the second.

    Parameters
    ----------
    faults
        Where the faults go.
    place
        The path of the list.
    what
        The singular name of the things, such as "layer".
    names
        Their names, in order.
    """
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if name in first:
            detail = f"a second {what} named {quoted(name)} (the first is number {first[name]}); rename one"
            faults.add((*place, index, "name"), detail, name, "repeated_name")
        else:
            first[name] = index


def check_known(faults: Faults, place: Sequence[str | int], what: str, name: str, known: Collection[str]) -> bool:
    """Refuse a name that does not exist; say which do.

    Parameters
    ----------
    faults
        Where the fault goes.
    place
        The path of the name.
    what
        The singular name of what it should be, such as "layer".
    name
        The name used.
    known
        The names that exist.
    """
    if name in known:
        return True
    hint = _similar(name, known) if MAX_LISTED < len(known) <= MAX_SEARCHED and faults.count < MAX_HINTS else ""
    hint = hint or listing(known, "; there are ")
    faults.add(place, f"there is no {what} {quoted(name)}{hint}", name, "unknown_name")
    return False


def listing(names: Collection[str], start: str = "", limit: int = MAX_LISTED) -> str:
    """List names in one phrase after ``start``, the first few of many; empty where there are none."""
    if not names:
        return ""
    shown = [quoted(name) for name in islice(names, limit)]
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return f"{start}{', '.join(shown)}{more}"


def quoted(name: str) -> str:
    """Quote a name, cut where it is long."""
    return repr(name if len(name) <= SHOWN_LENGTH else name[: SHOWN_LENGTH - 1] + "…")


def _similar(name: str, known: Collection[str]) -> str:
    """Suggest the most similar known name; empty where none is similar."""
    found = get_close_matches(name[:64], [candidate for candidate in known if len(candidate) <= 64], n=1)
    return f"; did you mean {found[0]!r}?" if found else ""
