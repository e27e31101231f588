"""``partita serve``."""

import socket
from types import FrameType
from typing import Annotated

import typer

from partita.service.access.addresses import is_loopback
from partita.service.commands.database import needing_database
from partita.service.commands.failures import BAD_INPUT, FAILED, Debug, Stopped, guarded
from partita.service.commands.options import (
    DEFAULTS,
    Data,
    Database,
    Grace,
    Keep,
    Lease,
    LogJson,
    MaxCandidates,
    MaxDevices,
    MaxLayers,
    MaxTimeLimit,
    MaxWorkers,
    SolveMemory,
    Solves,
    option,
    size_option,
)
from partita.service.logs import log_config
from partita.service.settings import DAY_S, Settings


@guarded
def serve(
    host: Annotated[str, option("HOST", "Address to listen on; a loopback one without keys.")] = "127.0.0.1",
    port: Annotated[int, option("PORT", "Port; 0 for any free one.", 0, 65535)] = 8000,
    data: Data = DEFAULTS.data,
    database: Database = None,
    solves: Solves = DEFAULTS.solves,
    max_waiting: Annotated[int, option("MAX_WAITING", "Requests that may wait.", 0)] = DEFAULTS.max_waiting,
    slot_wait: Annotated[
        float, option("SLOT_WAIT", "Seconds that a request waits for its turn.", 0.01)
    ] = DEFAULTS.slot_wait_s,
    max_queued: Annotated[int, option("MAX_QUEUED", "Jobs that may wait.", 1)] = DEFAULTS.max_queued,
    max_variants: Annotated[int, option("MAX_VARIANTS", "Most problems of a batch.", 1)] = DEFAULTS.max_variants,
    max_documents: Annotated[
        int, option("MAX_DOCUMENTS", "Profiles and clusters that one owner may store.", 0)
    ] = DEFAULTS.max_documents,
    max_document_bytes: Annotated[
        int, size_option("MAX_DOCUMENT_BYTES", "Size of all of them together.", DEFAULTS.max_document_bytes)
    ] = DEFAULTS.max_document_bytes,
    max_time_limit: MaxTimeLimit = DEFAULTS.max_time_limit_s,
    grace: Grace = DEFAULTS.grace_s,
    solve_memory: SolveMemory = DEFAULTS.solve_memory_bytes,
    max_body: Annotated[
        int, size_option("MAX_BODY", "Largest body of a request.", DEFAULTS.max_body_bytes)
    ] = DEFAULTS.max_body_bytes,
    max_layers: MaxLayers = DEFAULTS.max_layers,
    max_devices: MaxDevices = DEFAULTS.max_devices,
    max_candidates: MaxCandidates = DEFAULTS.max_candidates,
    max_workers: MaxWorkers = DEFAULTS.max_workers,
    log_json: LogJson = DEFAULTS.log_json,
    lease: Lease = DEFAULTS.lease_s,
    keep: Keep = DEFAULTS.keep_s / DAY_S,
    debug: Debug = False,
) -> None:
    """Answer requests over HTTP; see /docs there. Every option is an environment variable too."""
    settings = Settings(
        data=data,
        database=database,
        solves=solves,
        max_waiting=max_waiting,
        slot_wait_s=slot_wait,
        max_queued=max_queued,
        max_variants=max_variants,
        max_documents=max_documents,
        max_document_bytes=max_document_bytes,
        max_time_limit_s=max_time_limit,
        grace_s=grace,
        solve_memory_bytes=solve_memory,
        max_body_bytes=max_body,
        max_layers=max_layers,
        max_devices=max_devices,
        max_candidates=max_candidates,
        max_workers=max_workers,
        log_json=log_json,
        lease_s=lease,
        keep_s=keep * DAY_S,
        require_keys=not is_loopback(host),
    )
    _check_keys(host, settings)
    with _listening(host, port) as listener:
        _serve(settings, listener)


def _check_keys(host: str, settings: Settings) -> None:
    """Refuse to be reachable from elsewhere without keys: nobody could use the service, or everybody."""
    if not settings.require_keys:
        return
    from partita.service.access.key_store import KeyStore
    from partita.service.jobs.opening import opened_database

    with needing_database(), opened_database(settings) as engine:
        known = KeyStore(engine).listed()
    if not known:
        raise Stopped(
            f"will not listen on {host or 'all addresses'}: there are no API keys yet; make one with partita keys "
            "create NAME (with the same --data or --database), or use --host 127.0.0.1",
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


def _serve(settings: Settings, listener: socket.socket) -> None:
    """Run the server until it is told to stop."""
    import uvicorn

    from partita.service.api.app import create_app

    app = create_app(settings)
    with needing_database():
        app.state.jobs.open()
    config = uvicorn.Config(
        app,
        timeout_graceful_shutdown=round(settings.shutdown_s),
        log_config=log_config(settings.log_json),
        access_log=False,
        server_header=False,
    )
    server = uvicorn.Server(config)
    end = server.handle_exit

    def told_to_end(sig: int, frame: FrameType | None) -> None:
        app.state.jobs.begin_to_close()  # who waits for a job gets it at once, as it stands
        end(sig, frame)

    server.handle_exit = told_to_end  # type: ignore[method-assign]
    host, port = listener.getsockname()[:2]
    place = f"[{host}]" if ":" in host else host
    typer.echo(f"Partita listens on http://{place}:{port} (documentation under /docs)")
    try:
        server.run(sockets=[listener])
    finally:
        app.state.jobs.close()
    if not server.started:
        raise Stopped("the server did not start; its log says why", FAILED)
