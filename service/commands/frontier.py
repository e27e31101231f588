"""``partita frontier``."""

from typing import TYPE_CHECKING, Annotated

import typer

from partita.service.commands.failures import BAD_INPUT, Debug, Stopped, guarded
from partita.service.commands.plan import ProblemName
from partita.service.commands.remote import ServerKey, ServerUrl, frontier_there

if TYPE_CHECKING:
    from partita.models.front import Front, FrontRequest
    from partita.service.commands.files import ProblemFile


@guarded
def frontier(
    problem: ProblemName,
    metrics: Annotated[
        str,
        typer.Option(
            metavar="FIRST,SECOND",
            help="Two of iteration_time_s, tokens_per_second, bottleneck_time_s, microbatches_per_second, "
            "peak_memory_bytes, num_devices, inter_node_bytes.",
        ),
    ] = "iteration_time_s,peak_memory_bytes",
    points: Annotated[int, typer.Option(metavar="COUNT", help="The most plans to give.")] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print the front as JSON.")] = False,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the front, with its problem, to a file.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Time for the whole front; by default the problem's own.")
    ] = None,
    server: ServerUrl = None,
    key: ServerKey = None,
    debug: Debug = False,
) -> None:
    """Find the plans than which no other is better in one of two metrics and at least as good in the other.

    Exit codes: 0 done, 2 bad input, 3 infeasible, 4 no point was proven in time, 1 anything else.
    """
    from partita.models.document import validate
    from partita.models.errors import InvalidInput
    from partita.models.front import FrontRequest
    from partita.service.commands.delivery import deliver
    from partita.service.commands.files import ProblemFile, check_writable
    from partita.service.commands.plan import with_options

    if output is not None:
        check_writable(output)
    file = ProblemFile(problem)
    asked = with_options(file.problem, {"time_limit_s": time_limit})
    try:
        names = [name.strip() for name in metrics.split(",")]
        request = validate(FrontRequest, {"problem": asked, "metrics": names, "points": points})
    except InvalidInput as error:
        lines = [f"--{fault.pointer.split('/')[1]}: {fault.detail} (got {fault.value})" for fault in error.faults]
        raise Stopped("; ".join(lines), BAD_INPUT) from None
    front = _found(request, file) if server is None else frontier_there(server, key, request, file.refused)
    deliver(front, asked, problem, json=json, output=output)


def _found(request: "FrontRequest", file: "ProblemFile") -> "Front":
    """Find a front in this process."""
    from partita.models.errors import InvalidInput
    from partita.service.commands.interrupt import ends_at_once
    from partita.service.commands.progress import watching_front

    with watching_front(request.problem, request.points) as watch, ends_at_once(watch.stop):
        from partita.solver.frontier import frontier as find

        try:
            return find(request.problem, request.metrics, request.points, on_point=watch.report)
        except InvalidInput as error:
            raise file.refused(error.faults) from None
