"""The database of the service: a file of SQLite, or PostgreSQL."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.util import CommandError

FILE = "partita.sqlite"
"""The name of the database in the folder of the service."""

BUSY_MS = 30_000
"""How long SQLite waits for its turn to write."""

MIGRATION_LOCK = 7_205_114
"""Number of PostgreSQL's advisory lock under which one process at a time changes the tables."""


DatabaseAway = sa.exc.OperationalError
"""Raised by whatever asks the database while that cannot be reached."""


class DatabaseUnusable(Exception):
    """The database cannot be used; the text says why and what would help."""


def address(database: str | None, folder: Path) -> sa.URL:
    """Give the address of the database: PostgreSQL's as given, or that of the file in the folder.

    Raises
    ------
    DatabaseUnusable
        When the address is none of PostgreSQL's, or the folder cannot be made.
    """
    if database is None:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            (folder / FILE).touch(mode=0o600)  # the problems of whoever asks are for nobody else on this machine
        except OSError as error:
            raise DatabaseUnusable(f"cannot use the folder {folder}: {error.strerror}; choose another --data") from None
        return sa.URL.create("sqlite", database=str(folder / FILE))
    try:
        url = sa.make_url(database)
    except sa.exc.ArgumentError:
        raise DatabaseUnusable("--database is no address; write postgresql://user@host/name") from None
    if url.get_backend_name() not in ("postgresql", "postgres"):
        raise DatabaseUnusable(
            f"--database begins with {url.drivername}; only postgresql:// works, or --data for SQLite"
        )
    return url.set(drivername="postgresql+psycopg")


def connect(url: sa.URL) -> sa.Engine:
    """Make the connections to a database; nothing is sent before the first use."""
    if url.get_backend_name() != "sqlite":
        return sa.create_engine(url, pool_size=20, max_overflow=10, pool_pre_ping=True)
    engine = sa.create_engine(url, pool_size=20, max_overflow=10, connect_args={"check_same_thread": False})

    @sa.event.listens_for(engine, "connect")
    def set_up(connection: Any, _: Any) -> None:
        connection.isolation_level = "IMMEDIATE"  # writers queue up instead of failing when they turn from reading
        connection.execute(f"PRAGMA busy_timeout={BUSY_MS}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")  # what was answered survives a loss of power
        connection.execute("PRAGMA foreign_keys=ON")

    return engine


def upgrade(engine: sa.Engine) -> None:
    """Bring our tables to this version, one process at a time.

    Raises
    ------
    DatabaseUnusable
        When the database cannot be reached or its tables are of a newer version.
    """
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    try:
        with _alone(engine) as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    except CommandError:
        name = engine.url.render_as_string()
        raise DatabaseUnusable(f"the tables of {name} are of a newer version of Partita; use that version") from None
    except DatabaseAway as error:
        reason = str(error.orig).strip().splitlines()[0]
        raise DatabaseUnusable(f"cannot use the database {engine.url.render_as_string()}: {reason}") from None


@contextmanager
def _alone(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Give a connection in a transaction that no other process has at the same time."""
    with engine.connect() as connection, connection.begin():
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MIGRATION_LOCK)))
        yield connection
