"""How much of the service one owner may use; whoever uses a server without keys has no quotas."""

import sqlalchemy as sa

from partita.service.access.keys import Quotas
from partita.service.jobs.records import LOCAL
from partita.service.jobs.tables import quotas


class QuotaReached(Exception):
    """An owner has as much of something as it may have; the text names the quota and its value."""


class OwnerGone(Exception):
    """The last key of an owner was revoked after its request was let through."""


def quotas_of(connection: sa.Connection, owner: str) -> Quotas | None:
    """Give the quotas of an owner, and let nobody else count its jobs until the transaction ends; None for none."""
    chosen = sa.select(quotas.c.max_queued, quotas.c.max_running, quotas.c.requests_per_minute)
    row = connection.execute(chosen.where(quotas.c.owner == owner).with_for_update()).one_or_none()
    return None if row is None else Quotas(*row)


def check_owner(connection: sa.Connection, owner: str) -> None:
    """Refuse to keep what an owner without keys asked for: what was just written in this transaction is undone.

    Raises
    ------
    OwnerGone
        When its last key was revoked, which ends and deletes only what is there by then.
    """
    if owner != LOCAL and quotas_of(connection, owner) is None:
        raise OwnerGone(owner)
