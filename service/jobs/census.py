"""The whole service in a few figures, for those who watch it."""

import time

import sqlalchemy as sa

from partita.service.jobs.leases import alive
from partita.service.jobs.records import OPEN
from partita.service.jobs.tables import jobs
from partita.service.metrics import Census


def census(engine: sa.Engine, lease_s: float) -> Census:
    """Count the jobs that have not ended, and the workers; the same whichever process asks."""
    chosen = sa.select(jobs.c.state, sa.func.count(), sa.func.min(jobs.c.created_at))
    with engine.connect() as connection:
        rows = connection.execute(chosen.where(jobs.c.state.in_(OPEN)).group_by(jobs.c.state)).all()
    counts = {state: count for state, count, _ in rows}
    oldest = next((since for state, _, since in rows if state == "queued"), None)
    return Census(
        queued=counts.get("queued", 0),
        running=counts.get("running", 0),
        oldest_queued_s=0.0 if oldest is None else max(0.0, time.time() - oldest),
        workers=alive(engine, lease_s),
    )
