"""How commands use the database: one that cannot be used ends them with a line."""

from collections.abc import Iterator
from contextlib import contextmanager

from partita.service.commands.failures import FAILED, Stopped


@contextmanager
def needing_database() -> Iterator[None]:
    """Say what is wrong with a database that cannot be used.

    Raises
    ------
    Stopped
        With the reason.
    """
    from partita.service.jobs.database import DatabaseUnusable

    try:
        yield
    except DatabaseUnusable as error:
        raise Stopped(str(error), FAILED) from None
