"""``partita import`` and ``partita schema``."""

import json
import sys
from enum import StrEnum
from typing import Annotated

import typer

from partita.service.failures import BAD_INPUT, Debug, Stopped, guarded


class Described(StrEnum):
    """What a schema can be had of."""

    PROBLEM = "problem"
    ANSWER = "answer"


FLAGS = {
    "devices": "--devices",
    "memory_bytes": "--memory-bytes",
    "edge_cost_unit": "--edge-cost-unit",
    "bandwidth_bytes_per_s": "--bandwidth",
    "keep_inputs": "--keep-inputs",
}
"""The options of readers by the names that readers have for them."""


@guarded
def import_profile(
    format: Annotated[str, typer.Argument(metavar="FORMAT", help="dnn-partitioning or pipedream.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file; - for standard input.")],
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the problem to a file.")
    ] = None,
    devices: Annotated[int | None, typer.Option(help="Number of devices.")] = None,
    memory_bytes: Annotated[str | None, typer.Option(metavar="SIZE", help="Memory of a device, as 16GiB.")] = None,
    edge_cost_unit: Annotated[
        str | None, typer.Option(metavar="ms|s", help="dnn-partitioning: unit of the costs of edges.")
    ] = None,
    bandwidth: Annotated[
        float | None, typer.Option(metavar="BYTES_PER_S", help="pipedream: of every link, in one direction.")
    ] = None,
    keep_inputs: Annotated[
        bool | None, typer.Option("--keep-inputs", help="pipedream: keep the nodes that are inputs.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Turn another tool's profile into a problem, and print it."""
    from partita.models.errors import InvalidInput
    from partita.models.readers import READERS
    from partita.service.files import BadFile, check_writable, read_bytes, write_whole

    reader = READERS.get(format)
    if reader is None:
        raise Stopped(f"there is no format {format!r}; the formats are {', '.join(READERS)}", BAD_INPUT)
    options = {
        "devices": devices,
        "memory_bytes": _size(memory_bytes),
        "edge_cost_unit": edge_cost_unit,
        "bandwidth_bytes_per_s": bandwidth,
        "keep_inputs": keep_inputs,
    }
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in reader.options:
            known = ", ".join(FLAGS[option] for option in reader.options)
            raise Stopped(f"{FLAGS[name]} is no option of the format {format}; it has {known}", BAD_INPUT)
    if output is not None:
        check_writable(output)
    try:
        problem = reader.read(read_bytes(file), **given)
    except InvalidInput as error:
        raise BadFile(file, error.faults) from None
    text = json.dumps(problem.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False, indent=1) + "\n"
    if output is not None:
        write_whole(output, text)
    else:
        _print(text)


def _size(text: str | None) -> int | str | None:
    """Read a size given as a number or as a number with its unit."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else text


@guarded
def schema(
    what: Annotated[Described, typer.Argument(metavar="problem|answer", help="What to describe.")],
    debug: Debug = False,
) -> None:
    """Print the JSON Schema of a problem or of an answer."""
    from partita.models.answer import Answer
    from partita.models.problem import Problem

    if what is Described.PROBLEM:
        document = Problem.model_json_schema(by_alias=True, mode="validation")
    else:
        document = Answer.model_json_schema(by_alias=True, mode="serialization")
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", **document}
    _print(json.dumps(document, ensure_ascii=False, indent=1) + "\n")


def _print(text: str) -> None:
    """Write text to standard output, as UTF-8 whatever the terminal."""
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()
