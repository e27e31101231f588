"""``partita import`` and ``partita schema``."""

import json
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from partita.service.commands.failures import BAD_INPUT, Debug, Stopped, guarded, say

if TYPE_CHECKING:
    from partita.models.problem import Problem


class Described(StrEnum):
    """What a schema can be had of."""

    PROBLEM = "problem"
    ANSWER = "answer"
    FRONT = "front"


FLAGS = {
    "devices": "--devices",
    "memory_bytes": "--memory-bytes",
    "edge_cost_unit": "--edge-cost-unit",
    "bandwidth_bytes_per_s": "--bandwidth",
    "keep_inputs": "--keep-inputs",
    "time_unit": "--time-unit",
    "no_data_parallel": "--no-data-parallel",
    "no_tensor_parallel": "--no-tensor-parallel",
    "no_recompute": "--no-recompute",
}
"""The options of readers by the names that readers have for them."""

EdgeCostUnit = Annotated[
    str | None, typer.Option(metavar="ms|s", help="dnn-partitioning: unit of the costs of edges; by default ms.")
]
Bandwidth = Annotated[
    float | None,
    typer.Option(
        metavar="BYTES_PER_S",
        help="pipedream: of every link, one way; by default 1.25e9. piper: by default the file's.",
    ),
]
TimeUnit = Annotated[str | None, typer.Option(metavar="s|ms", help="piper: unit of the times; by default s.")]
NoDataParallel = Annotated[bool | None, typer.Option("--no-data-parallel", help="piper: one replica of every stage.")]
NoTensorParallel = Annotated[
    bool | None, typer.Option("--no-tensor-parallel", help="piper: one device for every replica.")
]
NoRecompute = Annotated[bool | None, typer.Option("--no-recompute", help="piper: no layer is recomputed.")]


@guarded
def import_profile(
    format: Annotated[str, typer.Argument(metavar="FORMAT", help="dnn-partitioning, pipedream or piper.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file; - for standard input.")],
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the problem to a file.")
    ] = None,
    devices: Annotated[int | None, typer.Option(help="Number; by default 4 (pipedream), or the file's.")] = None,
    memory_bytes: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Memory of a device; by default 16GiB (pipedream), or the file's."),
    ] = None,
    edge_cost_unit: EdgeCostUnit = None,
    bandwidth: Bandwidth = None,
    keep_inputs: Annotated[
        bool | None,
        typer.Option("--keep-inputs", help="pipedream: keep the input nodes; by default left out."),
    ] = None,
    time_unit: TimeUnit = None,
    no_data_parallel: NoDataParallel = None,
    no_tensor_parallel: NoTensorParallel = None,
    no_recompute: NoRecompute = None,
    debug: Debug = False,
) -> None:
    """Turn another tool's profile into a problem, and print it."""
    from partita.models.errors import InvalidInput
    from partita.models.readers import READERS
    from partita.service.commands.files import BadFile, check_writable, read_bytes, write_whole

    reader = READERS.get(format)
    if reader is None:
        raise Stopped(f"there is no format {format!r}; the formats are {', '.join(READERS)}", BAD_INPUT)
    options = {
        "devices": devices,
        "memory_bytes": _size(memory_bytes),
        "edge_cost_unit": edge_cost_unit,
        "bandwidth_bytes_per_s": bandwidth,
        "keep_inputs": keep_inputs,
        "time_unit": time_unit,
        "no_data_parallel": no_data_parallel,
        "no_tensor_parallel": no_tensor_parallel,
        "no_recompute": no_recompute,
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
    say(f"{format}: {_assumed(problem, set(reader.options) - set(given))}")
    text = json.dumps(problem.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False, indent=1) + "\n"
    if output is not None:
        write_whole(output, text)
    else:
        _print(text)


def _assumed(problem: "Problem", left_out: set[str]) -> str:
    """Say in one line what a reader took where no option was given, as it stands in the problem."""
    from partita.service.reports.wording import counted, sized

    memory = max(device.memory_bytes for device in problem.cluster.devices.values())
    fabric = problem.cluster.nodes[0].fabric
    values = {
        "devices": f"{problem.cluster.num_devices}",
        "memory_bytes": sized(memory),
        "bandwidth_bytes_per_s": f"{fabric.bandwidth_bytes_per_s:g}" if fabric else "",
        "edge_cost_unit": "ms",
        "time_unit": "s",
    }
    taken = [f"{FLAGS[name]} {value}" for name, value in values.items() if name in left_out and value]
    microbatches = counted(problem.training.microbatches, "microbatch", "microbatches")
    return f"assumed {', '.join([*taken, microbatches])}"


def _size(text: str | None) -> int | str | None:
    """Read a size given as a number or as a number with its unit."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else text


@guarded
def schema(
    what: Annotated[Described, typer.Argument(metavar="problem|answer|front", help="What to describe.")],
    debug: Debug = False,
) -> None:
    """Print the JSON Schema of a problem, of an answer or of a front."""
    from partita.models.answer import Answer
    from partita.models.front import Front
    from partita.models.problem import Problem

    if what is Described.PROBLEM:
        document = Problem.model_json_schema(by_alias=True, mode="validation")
    else:
        written = Answer if what is Described.ANSWER else Front
        document = written.model_json_schema(by_alias=True, mode="serialization")
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", **document}
    _print(json.dumps(document, ensure_ascii=False, indent=1) + "\n")


def _print(text: str) -> None:
    """Write text to standard output, as UTF-8 whatever the terminal."""
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()
