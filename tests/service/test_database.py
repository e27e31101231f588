"""The database of the service: where it is, and that its tables are those that the code expects."""

from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from partita.service.jobs.database import DatabaseUnusable, address, connect, upgrade
from partita.service.jobs.tables import metadata


@pytest.fixture
def engine(tmp_path):
    engine = connect(address(None, tmp_path / "new" / "folder"))
    yield engine
    engine.dispose()


def test_migrations_make_the_tables_of_the_code(engine):
    """Tests that a new database, and one that is there already, has exactly the tables that are described."""
    for _ in range(2):
        upgrade(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": "partita_version"})
        assert compare_metadata(context, metadata) == []


def test_sqlite_keeps_what_was_answered(engine):
    """Tests that commits are written through, by a log that does not block those who read."""
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL


@pytest.mark.parametrize("text", ["mysql://host/name", "no address", "sqlite:///file"])
def test_only_postgresql_has_an_address(text, tmp_path):
    """Tests that another database is refused, with what works."""
    with pytest.raises(DatabaseUnusable, match="postgresql://"):
        address(text, tmp_path)


def test_a_password_is_not_shown(tmp_path):
    """Tests that a database that cannot be reached is named without its password."""
    engine = connect(address("postgresql://someone:secret@127.0.0.1:1/name", tmp_path))
    with pytest.raises(DatabaseUnusable, match="someone") as caught:
        upgrade(engine)
    assert "secret" not in str(caught.value)
    engine.dispose()


def test_a_folder_that_cannot_be_made(tmp_path):
    """Tests that a folder in the place of a file is refused."""
    (tmp_path / "file").write_text("")
    with pytest.raises(DatabaseUnusable, match="--data"):
        address(None, Path(tmp_path / "file" / "folder"))


def test_tables_of_a_newer_version(engine):
    """Tests that a database that a newer version has changed is left alone."""
    upgrade(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE partita_version SET version_num = '9999'")
    with pytest.raises(DatabaseUnusable, match="newer version"):
        upgrade(engine)


def test_nobody_else_reads_the_file(engine, tmp_path):
    """Tests that the file is for its owner only, whatever the folder allows."""
    upgrade(engine)
    (file,) = tmp_path.rglob("*.sqlite")
    assert file.stat().st_mode & 0o077 == 0


def test_every_table_tells_whose_it_is():
    """Tests that what belongs to somebody says to whom, so that access can be decided by that."""
    for name in ("jobs", "batches"):
        assert isinstance(metadata.tables[name].c.owner.type, sa.String)
        assert not metadata.tables[name].c.owner.nullable
