"""``partita worker``."""

import logging.config
import signal
import time

import typer

from partita.service.commands.failures import Debug, guarded
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
)
from partita.service.commands.serve import open_store
from partita.service.logs import log_config
from partita.service.settings import DAY_S, Settings

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
    _work(settings)


def _work(settings: Settings) -> None:
    """Solve jobs until told to stop."""
    from partita.service.jobs.jobs import Jobs
    from partita.service.solving.solves import Solves as Slots

    told: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: told.append(number))
    slots = Slots(settings)
    jobs = Jobs(settings, slots)
    open_store(jobs)
    try:
        slots.warm_up()
        jobs.work()
        typer.echo(f"Partita works on jobs as {jobs.slot}")
        while not told:  # waiting without end for a lock could miss the signal, or stop its handler for ever
            time.sleep(LOOK_S)
    finally:
        jobs.close()
