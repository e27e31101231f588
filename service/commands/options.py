"""The options of ``partita serve`` and ``partita worker``; every one is an environment variable too."""

from pathlib import Path
from typing import Annotated, Any

import typer

from partita.service.settings import GIB, MIB, Settings

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


def option(variable: str, text: str, least: float | None = None, most: float | None = None) -> Any:
    """Make an option that is an environment variable too."""
    return typer.Option(envvar=f"PARTITA_{variable}", help=text, min=least, max=most, show_default=True)


def size_option(variable: str, text: str, default: int) -> Any:
    """Make an option that is a size."""
    shown = f"{default // GIB}GiB" if default >= GIB else f"{default // MIB}MiB"
    return typer.Option(envvar=f"PARTITA_{variable}", help=text, metavar="SIZE", parser=_size, show_default=shown)


Solves = Annotated[int, option("SOLVES", "Solves at the same time; give all workers of one queue the same.", 1)]
MaxTimeLimit = Annotated[float, option("MAX_TIME_LIMIT", "Longest time limit of a problem, seconds.", 0.01)]
Grace = Annotated[float, option("GRACE", "Seconds after its time limit until a solve is killed.", 0.0)]
SolveMemory = Annotated[
    int, size_option("SOLVE_MEMORY", "Address space of a solve; 0 for no limit.", DEFAULTS.solve_memory_bytes)
]
MaxLayers = Annotated[int, option("MAX_LAYERS", "Most layers of a problem.", 1)]
MaxDevices = Annotated[int, option("MAX_DEVICES", "Most devices of a problem.", 1)]
MaxCandidates = Annotated[int, option("MAX_CANDIDATES", "Most candidates of a problem.", 1)]
MaxWorkers = Annotated[int, option("MAX_WORKERS", "Most workers of a solve.", 1)]
Data = Annotated[Path, option("DATA", "Folder of the database of jobs and answers.")]
Database = Annotated[str | None, option("DATABASE", "PostgreSQL in place of that file: postgresql://user@host/name.")]
Lease = Annotated[float, option("LEASE", "Seconds without a sign of life after which a worker's jobs go on.", 1.0)]
LogJson = Annotated[
    bool, typer.Option("--log-json", envvar="PARTITA_LOG_JSON", help="Write the log as JSON, an object on every line.")
]
Keep = Annotated[float, option("KEEP", "Days for which ended jobs and answers are kept.", 0.0)]
