"""``partita keys``: who may use the service."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from partita.service.commands.database import needing_database
from partita.service.commands.failures import BAD_INPUT, Debug, Stopped, guarded, say
from partita.service.commands.options import DEFAULTS, Data, Database
from partita.service.moments import moment
from partita.service.names import NAME_RULE, is_name
from partita.service.settings import Settings

if TYPE_CHECKING:
    from partita.service.access.key_store import KeyStore
    from partita.service.access.keys import Role

HOUR_S = 3600.0

_minute = partial(moment, to="minutes")

app = typer.Typer(
    help="Make, list, limit, rotate and revoke API keys; running servers know at once.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

MaxQueued = Annotated[int | None, typer.Option(min=1, help="Jobs that may wait; 10000 by default.")]
MaxRunning = Annotated[int | None, typer.Option(min=1, help="Jobs that may run at once; 8 by default.")]
RequestsPerMinute = Annotated[int | None, typer.Option(min=1, help="Requests in a minute; 600 by default.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the key: letters, digits, '.', '_' and '-'.")]


@app.command("create")
@guarded
def create(
    name: Name,
    role: Annotated[str, typer.Option(help="read, solve or admin; each may do what those before it may.")] = "solve",
    share_with: Annotated[
        str | None, typer.Option(metavar="KEY", help="Key whose jobs and documents it sees, in place of its own.")
    ] = None,
    max_queued: MaxQueued = None,
    max_running: MaxRunning = None,
    requests_per_minute: RequestsPerMinute = None,
    data: Data = DEFAULTS.data,
    database: Database = None,
    debug: Debug = False,
) -> None:
    """Make a key and print it; it is not stored and cannot be shown again."""
    from partita.service.access.keys import Quotas

    chosen, given = _role(role), _given(max_queued, max_running, requests_per_minute)
    if share_with is not None and given:
        detail = f"change them with partita keys limit {share_with}"
        raise Stopped(f"a key that shares with {share_with} has its quotas; {detail}", BAD_INPUT)
    if not is_name(name):
        raise Stopped(f"a key cannot be named {name!r}: take {NAME_RULE}", BAD_INPUT)
    with _keys(data, database) as keys:
        secret = keys.create(name, chosen, share_with, Quotas(**given))
    typer.echo(secret.text)
    say(f"key {name} is made, with the role {chosen}; this is the only time that it is shown")


@app.command("list")
@guarded
def list_keys(data: Data = DEFAULTS.data, database: Database = None, debug: Debug = False) -> None:
    """List the keys, without what they are."""
    with _keys(data, database) as keys:
        every = keys.listed()
    shares: dict[str, list[str]] = {}
    for key in every:
        shares.setdefault(key.owner, []).append(key.name)
    for key in every:
        others = [name for name in shares[key.owner] if name != key.name]
        parts = [f"{key.name}  {key.role}  made {_minute(key.created_at)}"]
        if key.rotated_at != key.created_at:
            parts.append(f"rotated {_minute(key.rotated_at)}")
        if key.until is not None:
            parts.append(f"replaced ones work until {_minute(key.until)}")
        if others:
            parts.append(f"shares jobs with {', '.join(others)}")
        typer.echo(", ".join(parts))
    if not every:
        say("there are no keys; partita keys create NAME makes one")


@app.command("rotate")
@guarded
def rotate(
    name: Name,
    grace: Annotated[float, typer.Option(min=0.0, help="Hours for which the replaced one still works.")] = 24.0,
    data: Data = DEFAULTS.data,
    database: Database = None,
    debug: Debug = False,
) -> None:
    """Replace a key by a new one and print that; both work for a while."""
    with _keys(data, database) as keys:
        secret = keys.rotate(name, grace * HOUR_S)
    typer.echo(secret.text)
    say(f"key {name} is replaced; the one before works for {grace:g} hours more")


@app.command("limit")
@guarded
def limit(
    name: Name,
    max_queued: MaxQueued = None,
    max_running: MaxRunning = None,
    requests_per_minute: RequestsPerMinute = None,
    data: Data = DEFAULTS.data,
    database: Database = None,
    debug: Debug = False,
) -> None:
    """Change quotas of a key, and of those that share with it; print all of them."""
    with _keys(data, database) as keys:
        most = keys.limit(name, **_given(max_queued, max_running, requests_per_minute))
    for quota, value in asdict(most).items():
        typer.echo(f"{quota}  {value}")


@app.command("revoke")
@guarded
def revoke(name: Name, data: Data = DEFAULTS.data, database: Database = None, debug: Debug = False) -> None:
    """End a key at once, cancel its jobs that have not ended and delete its stored documents."""
    from partita.service.access.key_store import KeyStore
    from partita.service.documents.document_store import DocumentStore, Limits
    from partita.service.jobs.opening import opened_store

    with _explaining(), opened_store(Settings(data=data, database=database)) as store:
        owner = KeyStore(store.engine).revoke(name)
        if owner is not None:
            store.cancel_owner(owner)
            DocumentStore(store.engine, Limits(0, 0)).delete_all(owner)
    say(f"key {name} is revoked{'' if owner is None else ', and its jobs are cancelled'}")


@contextmanager
def _keys(data: Data, database: Database) -> Iterator["KeyStore"]:
    """Give the keys of a database, and turn what can be wrong into a message."""
    from partita.service.access.key_store import KeyStore
    from partita.service.jobs.opening import opened_database

    with _explaining(), opened_database(Settings(data=data, database=database)) as engine:
        yield KeyStore(engine)


@contextmanager
def _explaining() -> Iterator[None]:
    """Turn what can be wrong with keys and their database into a message."""
    from partita.service.access.key_store import KeyExists, NoSuchKey

    try:
        with needing_database():
            yield
    except KeyExists as error:
        raise Stopped(f"there is a key {error} already; take another name, or rotate it", BAD_INPUT) from None
    except NoSuchKey as error:
        raise Stopped(f"there is no key {error}; partita keys list shows those that there are", BAD_INPUT) from None


def _given(max_queued: int | None, max_running: int | None, requests_per_minute: int | None) -> dict[str, int]:
    """Give the quotas that options name."""
    every = {"max_queued": max_queued, "max_running": max_running, "requests_per_minute": requests_per_minute}
    return {name: value for name, value in every.items() if value is not None}


def _role(text: str) -> "Role":
    """Read a role."""
    from partita.service.access.keys import ROLES

    for role in ROLES:
        if role == text:
            return role
    raise Stopped(f"there is no role {text!r}; choose {', '.join(ROLES[:-1])} or {ROLES[-1]}", BAD_INPUT)
