"""How much of the service one owner may use; whoever uses a server without keys has no quotas."""

import sqlalchemy as sa

from partita.service.access.keys import Quotas
from partita.service.jobs.tables import quotas


class QuotaReached(Exception):
    """An owner has as much of something as it may have; the text names the quota and its value."""


def quotas_of(connection: sa.Connection, owner: str) -> Quotas | None:
    """Give the quotas of an owner, and let nobody else count its jobs until the transaction ends; None for none."""
    chosen = sa.select(quotas.c.max_queued, quotas.c.max_running, quotas.c.requests_per_minute)
    row = connection.execute(chosen.where(quotas.c.owner == owner).with_for_update()).one_or_none()
    return None if row is None else Quotas(*row)
