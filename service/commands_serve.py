"""``partita serve``."""

import copy
import ipaddress
import socket
from pathlib import Path
from typing import Annotated, Any

import typer

from partita.service.failures import BAD_INPUT, FAILED, Debug, Stopped, guarded
from partita.service.settings import DAY_S, GIB, MIB, Settings

DEFAULTS = Settings()


def _size(text: str | int) -> int:
    """Read a size such as 32MiB."""
    from pydantic_core import PydanticCustomError

    from partita.models.quantities import parse_size

    if isinstance(text, int) or (text.isascii() and text.isdigit()):
        return int(text)
    try:
        return parse_size(text)
    except PydanticCustomError as error:
        raise typer.BadParameter(error.message()) from None


def _option(variable: str, text: str, least: float | None = None, most: float | None = None) -> Any:
    """Make an option that is an environment variable too."""
    return typer.Option(envvar=f"PARTITA_{variable}", help=text, min=least, max=most, show_default=True)


def _size_option(variable: str, text: str, default: int) -> Any:
    """Make an option that is a size."""
    shown = f"{default // GIB}GiB" if default >= GIB else f"{default // MIB}MiB"
    return typer.Option(envvar=f"PARTITA_{variable}", help=text, metavar="SIZE", parser=_size, show_default=shown)


@guarded
def serve(
    host: Annotated[str, _option("HOST", "Address to listen on; a loopback address.")] = "127.0.0.1",
    port: Annotated[int, _option("PORT", "Port; 0 for any free one.", 0, 65535)] = 8000,
    solves: Annotated[int, _option("SOLVES", "Solves at the same time.", 1)] = DEFAULTS.solves,
    max_waiting: Annotated[int, _option("MAX_WAITING", "Requests that may wait.", 0)] = DEFAULTS.max_waiting,
    slot_wait: Annotated[
        float, _option("SLOT_WAIT", "Seconds that a request waits for its turn.", 0.01)
    ] = DEFAULTS.slot_wait_s,
    max_time_limit: Annotated[
        float, _option("MAX_TIME_LIMIT", "Longest time limit of a problem, seconds.", 0.01)
    ] = DEFAULTS.max_time_limit_s,
    grace: Annotated[
        float, _option("GRACE", "Seconds after its time limit until a solve is killed.", 0.0)
    ] = DEFAULTS.grace_s,
    solve_memory: Annotated[
        int, _size_option("SOLVE_MEMORY", "Address space of a solve; 0 for no limit.", DEFAULTS.solve_memory_bytes)
    ] = DEFAULTS.solve_memory_bytes,
    max_body: Annotated[
        int, _size_option("MAX_BODY", "Largest body of a request.", DEFAULTS.max_body_bytes)
    ] = DEFAULTS.max_body_bytes,
    max_layers: Annotated[int, _option("MAX_LAYERS", "Most layers of a problem.", 1)] = DEFAULTS.max_layers,
    max_devices: Annotated[int, _option("MAX_DEVICES", "Most devices of a problem.", 1)] = DEFAULTS.max_devices,
    max_candidates: Annotated[
        int, _option("MAX_CANDIDATES", "Most candidates of a problem.", 1)
    ] = DEFAULTS.max_candidates,
    max_workers: Annotated[int, _option("MAX_WORKERS", "Most workers of a solve.", 1)] = DEFAULTS.max_workers,
    data: Annotated[Path, _option("DATA", "Folder of the database of jobs and answers.")] = DEFAULTS.data,
    database: Annotated[
        str | None, _option("DATABASE", "PostgreSQL in place of that file: postgresql://user@host/name.")
    ] = None,
    max_queued: Annotated[int, _option("MAX_QUEUED", "Jobs that may wait.", 1)] = DEFAULTS.max_queued,
    lease: Annotated[
        float, _option("LEASE", "Seconds without a sign of life after which a worker's jobs go to others.", 1.0)
    ] = DEFAULTS.lease_s,
    keep: Annotated[float, _option("KEEP", "Days for which ended jobs and answers are kept.", 0.0)] = DEFAULTS.keep_s
    / DAY_S,
    debug: Debug = False,
) -> None:
    """Answer requests over HTTP; see /docs there. Every option is an environment variable too."""
    _check_host(host)
    settings = Settings(
        solves=solves,
        max_waiting=max_waiting,
        slot_wait_s=slot_wait,
        max_time_limit_s=max_time_limit,
        grace_s=grace,
        solve_memory_bytes=solve_memory,
        max_body_bytes=max_body,
        max_layers=max_layers,
        max_devices=max_devices,
        max_candidates=max_candidates,
        max_workers=max_workers,
        data=data,
        database=database,
        max_queued=max_queued,
        lease_s=lease,
        keep_s=keep * DAY_S,
    )
    with _listening(host, port) as listener:
        _serve(settings, listener)


def _check_host(host: str) -> None:
    """Refuse to be reachable from elsewhere, since there are no keys yet."""
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise Stopped(
            f"will not listen on {host}: there are no API keys yet, so everyone who reaches the port could use the "
            "service; use --host 127.0.0.1 and, for access from elsewhere, a proxy that checks who asks",
            BAD_INPUT,
        )


def _listening(host: str, port: int) -> socket.socket:
    """Open the port, so that a port in use is told in one line."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio turns off Nagle's delay of 40 ms only where it is.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(2048)
        return listener
    except OSError as error:
        listener.close()
        raise Stopped(f"cannot listen on {host}, port {port}: {error.strerror}; choose another --port") from None


def _log_config() -> dict[str, Any]:
    """Send all logs to standard error: standard output is for the line with the address."""
    from uvicorn.config import LOGGING_CONFIG

    config = copy.deepcopy(LOGGING_CONFIG)
    config["handlers"]["access"]["stream"] = "ext://sys.stderr"
    config["loggers"]["partita"] = {"handlers": ["default"], "level": "INFO", "propagate": False}
    return config


def _serve(settings: Settings, listener: socket.socket) -> None:
    """Run the server until it is told to stop."""
    import uvicorn

    from partita.service.app import create_app
    from partita.service.jobs.jobs import DatabaseUnusable

    app = create_app(settings)
    try:
        app.state.jobs.open()
    except DatabaseUnusable as error:
        raise Stopped(str(error), FAILED) from None
    config = uvicorn.Config(
        app, timeout_graceful_shutdown=round(settings.shutdown_s), log_config=_log_config(), server_header=False
    )
    server = uvicorn.Server(config)
    end = server.handle_exit
    server.handle_exit = lambda *told: (app.state.jobs.begin_to_close(), end(*told))[1]  # type: ignore[method-assign]
    host, port = listener.getsockname()[:2]
    place = f"[{host}]" if ":" in host else host
    typer.echo(f"Partita listens on http://{place}:{port} (documentation under /docs)")
    try:
        server.run(sockets=[listener])
    finally:
        app.state.solves.close()
    if not server.started:
        raise Stopped("the server did not start; its log says why", FAILED)
