"""Opens the store: connects to the database and brings its tables to this version."""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from partita.service.jobs.database import address, connect, upgrade
from partita.service.jobs.queue import Queue
from partita.service.jobs.store import Store
from partita.service.settings import Settings


@contextmanager
def opened_database(settings: Settings) -> Iterator[sa.Engine]:
    """Give the connections to the database for a while.

    Raises
    ------
    DatabaseUnusable
        When it cannot be used.
    """
    engine = connect(address(settings.database, settings.data))
    try:
        upgrade(engine)
        yield engine
    finally:
        engine.dispose()


def open_store(settings: Settings) -> Store:
    """Open the store; whoever does so closes its queue and disposes of its engine.

    Raises
    ------
    DatabaseUnusable
        When the database cannot be used; nothing is left open then.
    """
    engine = connect(address(settings.database, settings.data))
    try:
        upgrade(engine)
        queue = Queue(engine)
        queue.upgrade()
    except BaseException:
        engine.dispose()
        raise
    return Store(engine, queue, settings.max_queued)


@contextmanager
def opened_store(settings: Settings) -> Iterator[Store]:
    """Give the store for a while; raises as ``open_store`` does."""
    store = open_store(settings)
    try:
        yield store
    finally:
        store.queue.close()
        store.engine.dispose()
