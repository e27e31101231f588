"""Runs the migrations over the connection that ``database.upgrade`` gives."""

from alembic import context

from partita.service.jobs.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table="partita_version",
    render_as_batch=True,
)
context.run_migrations()
