"""``partita worker``."""

import logging.config
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from partita.service.commands.database import needing_database
from partita.service.commands.failures import Debug, Stopped, guarded
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
)
from partita.service.logs import log_config
from partita.service.settings import DAY_S, Settings

if TYPE_CHECKING:
    from partita.service.metrics import Metrics

LOOK_S = 0.1
"""How often a worker looks whether it was told to stop."""


@guarded
def worker(
    data: Data = DEFAULTS.data,
    database: Database = None,
    solves: Solves = DEFAULTS.solves,
    max_time_limit: MaxTimeLimit = DEFAULTS.max_time_limit_s,
    grace: Grace = DEFAULTS.grace_s,
    solve_memory: SolveMemory = DEFAULTS.solve_memory_bytes,
    max_layers: MaxLayers = DEFAULTS.max_layers,
    max_devices: MaxDevices = DEFAULTS.max_devices,
    max_candidates: MaxCandidates = DEFAULTS.max_candidates,
    max_workers: MaxWorkers = DEFAULTS.max_workers,
    log_json: LogJson = DEFAULTS.log_json,
    lease: Lease = DEFAULTS.lease_s,
    keep: Keep = DEFAULTS.keep_s / DAY_S,
    metrics_port: Annotated[
        int | None, option("METRICS_PORT", "Port for figures about this worker, for Prometheus.", 0, 65535)
    ] = None,
    metrics_host: Annotated[str, option("METRICS_HOST", "Address for that port.")] = "127.0.0.1",
    debug: Debug = False,
) -> None:
    """Solve the jobs that servers take, on this machine or, with --database, on another one."""
    settings = Settings(
        data=data,
        database=database,
        solves=solves,
        max_time_limit_s=max_time_limit,
        grace_s=grace,
        solve_memory_bytes=solve_memory,
        max_layers=max_layers,
        max_devices=max_devices,
        max_candidates=max_candidates,
        max_workers=max_workers,
        lease_s=lease,
        keep_s=keep * DAY_S,
    )
    logging.config.dictConfig(log_config(log_json))
    _work(settings, metrics_port, metrics_host)


def _work(settings: Settings, metrics_port: int | None = None, metrics_host: str = "127.0.0.1") -> None:
    """Solve jobs until told to stop."""
    from partita.service.jobs.jobs import Jobs
    from partita.service.solving.solves import Solves as Slots
    from partita.service.tracing import traces_from

    told: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: told.append(number))
    slots = Slots(settings)
    jobs = Jobs(settings, slots, traces_from(os.environ))
    with _figures(slots.metrics, metrics_port, metrics_host):
        with needing_database():
            jobs.open()
        try:
            slots.warm_up()
            jobs.work()
            typer.echo(f"Partita works on jobs as {jobs.slot}")
            while not told:  # waiting without end for a lock could miss the signal, or stop its handler for ever
                time.sleep(LOOK_S)
        finally:
            jobs.close()


@contextmanager
def _figures(metrics: "Metrics", port: int | None, host: str) -> Iterator[None]:
    """Let Prometheus ask for figures, where a port is given."""
    if port is None:
        yield
        return
    from prometheus_client import start_http_server

    try:
        server, thread = start_http_server(port, host, metrics.registry)
    except OSError as error:
        reason = f"cannot listen on {host}, port {port}: {error.strerror}; choose another --metrics-port"
        raise Stopped(reason) from None
    typer.echo(f"Figures are on http://{host}:{server.server_port}/metrics")
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
