"""API keys in the database: made, listed, rotated, revoked and recognized; every server sees a change at once."""

import time
import uuid
from dataclasses import asdict, dataclass

import sqlalchemy as sa

from partita.service.access.keys import Caller, Quotas, Role, Secret, fits, parts_of
from partita.service.access.quotas import quotas_of
from partita.service.jobs.tables import api_keys, key_secrets, quotas


class NoSuchKey(Exception):
    """There is no key of that name that is not revoked."""


class KeyExists(Exception):
    """There is a key of that name already."""


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A key as it is listed; times in seconds since 1970.

    Attributes
    ----------
    name, role
        Its name, and what its holder may do.
    owner
        Whose jobs and documents it sees; keys that share them have the same.
    created_at
        When it was made.
    rotated_at
        When its present secret was made.
    until
        When the last of the secrets before it ends; None where there is none.
    """

    name: str
    role: Role
    owner: str
    created_at: float
    rotated_at: float
    until: float | None


class KeyStore:
    """The keys in a database."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def create(self, name: str, role: Role, share_with: str | None = None, most: Quotas | None = None) -> Secret:
        """Make a key.

        Parameters
        ----------
        name
            What people call it.
        role
            What its holder may do.
        share_with
            The key whose jobs and documents it sees, and whose quotas it has; None for a new owner.
        most
            The quotas of a new owner.

        Raises
        ------
        KeyExists
            When there is one of that name.
        NoSuchKey
            When there is none to share with.
        """
        secret, now = Secret(), time.time()
        try:
            with self._engine.begin() as connection:
                owner = str(uuid.uuid4()) if share_with is None else _owner(connection, share_with)
                connection.execute(api_keys.delete().where(api_keys.c.name == name, api_keys.c.revoked_at.is_not(None)))
                connection.execute(api_keys.insert().values(name=name, owner=owner, role=role, created_at=now))
                _add(connection, name, secret, now)
                if share_with is None:
                    connection.execute(quotas.insert().values(owner=owner, **asdict(most or Quotas())))
        except sa.exc.IntegrityError:
            raise KeyExists(name) from None
        return secret

    def rotate(self, name: str, grace_s: float) -> Secret:
        """Give a key a new secret; those that it has work for some seconds more, and no longer than they would have.

        Raises
        ------
        NoSuchKey
            When there is none of that name.
        """
        secret, now = Secret(), time.time()
        until = now + grace_s
        with self._engine.begin() as connection:
            _owner(connection, name)
            longer = sa.or_(key_secrets.c.expires_at.is_(None), key_secrets.c.expires_at > until)
            connection.execute(key_secrets.delete().where(key_secrets.c.key == name, key_secrets.c.expires_at < now))
            connection.execute(key_secrets.update().where(key_secrets.c.key == name, longer).values(expires_at=until))
            _add(connection, name, secret, now)
        return secret

    def limit(self, name: str, **changes: int) -> Quotas:
        """Change some quotas of a key, and of those that share with it; give all that hold from now on.

        Raises
        ------
        NoSuchKey
            When there is none of that name.
        """
        with self._engine.begin() as connection:
            owner = _owner(connection, name)
            if changes:
                connection.execute(quotas.update().where(quotas.c.owner == owner).values(**changes))
            found = quotas_of(connection, owner)
        assert found is not None
        return found

    def revoke(self, name: str) -> str | None:
        """End a key at once; give its owner where no other key is left that sees what it saw.

        The name stays in the table, so that a server whose last key is revoked does not turn to asking for none.

        Raises
        ------
        NoSuchKey
            When there is none of that name.
        """
        with self._engine.begin() as connection:
            owner = _owner(connection, name)
            connection.execute(key_secrets.delete().where(key_secrets.c.key == name))
            connection.execute(api_keys.update().where(api_keys.c.name == name).values(revoked_at=time.time()))
            left = sa.select(api_keys.c.name).where(api_keys.c.owner == owner, api_keys.c.revoked_at.is_(None))
            if connection.execute(left).first() is not None:
                return None
            connection.execute(quotas.delete().where(quotas.c.owner == owner))
            return owner

    def listed(self) -> list[KeyRecord]:
        """Give the keys that are not revoked, by name."""
        present = sa.func.max(key_secrets.c.created_at).label("rotated_at")
        until = sa.func.max(key_secrets.c.expires_at).label("until")
        chosen = (
            sa.select(api_keys.c.name, api_keys.c.role, api_keys.c.owner, api_keys.c.created_at, present, until)
            .join(key_secrets, key_secrets.c.key == api_keys.c.name)
            .where(api_keys.c.revoked_at.is_(None))
            .group_by(api_keys.c.name, api_keys.c.role, api_keys.c.owner, api_keys.c.created_at)
            .order_by(api_keys.c.name)
        )
        now = time.time()
        with self._engine.connect() as connection:
            rows = connection.execute(chosen).all()
        return [KeyRecord(*row[:-1], row.until if row.until is not None and row.until > now else None) for row in rows]

    def caller(self, text: str) -> Caller | None:
        """Give who holds a key; None where it is none, or none any more."""
        parts = parts_of(text)
        if parts is None:
            return None
        identity, secret = parts
        limits = (quotas.c.max_queued, quotas.c.max_running, quotas.c.requests_per_minute)
        chosen = (
            sa.select(key_secrets.c.hash, api_keys.c.owner, api_keys.c.role, api_keys.c.name, *limits)
            .join(api_keys, api_keys.c.name == key_secrets.c.key)
            .join(quotas, quotas.c.owner == api_keys.c.owner)
            .where(*_valid(identity))
        )
        with self._engine.connect() as connection:
            row = connection.execute(chosen).one_or_none()
        if not fits(secret, None if row is None else row.hash):
            return None
        assert row is not None
        return Caller(row.owner, row.role, row.name, Quotas(*row[4:]), identity)

    def still_valid(self, caller: Caller) -> bool:
        """Tell whether who was recognized before would be now; without a key, as long as none was made."""
        if caller.secret is None:
            return not self.any_ever()
        chosen = sa.select(key_secrets.c.id).join(api_keys, api_keys.c.name == key_secrets.c.key)
        with self._engine.connect() as connection:
            return connection.execute(chosen.where(*_valid(caller.secret))).first() is not None

    def any_ever(self) -> bool:
        """Tell whether a key was ever made, revoked or not: from then on keys are asked for."""
        with self._engine.connect() as connection:
            return connection.execute(sa.select(api_keys.c.name).limit(1)).first() is not None


def _valid(identity: str) -> tuple[sa.ColumnElement[bool], ...]:
    """Say which secret is meant, while it and its key are valid."""
    lasts = sa.or_(key_secrets.c.expires_at.is_(None), key_secrets.c.expires_at > time.time())
    return key_secrets.c.id == identity, lasts, api_keys.c.revoked_at.is_(None)


def _owner(connection: sa.Connection, name: str) -> str:
    """Give the owner of a key that is not revoked."""
    chosen = sa.select(api_keys.c.owner).where(api_keys.c.name == name, api_keys.c.revoked_at.is_(None))
    owner = connection.execute(chosen).scalar_one_or_none()
    if owner is None:
        raise NoSuchKey(name)
    return str(owner)


def _add(connection: sa.Connection, name: str, secret: Secret, now: float) -> None:
    """Give a key a secret."""
    connection.execute(key_secrets.insert().values(id=secret.id, key=name, hash=secret.hash, created_at=now))
