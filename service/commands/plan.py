"""``partita plan`` and ``partita evaluate``."""

from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from partita.service.commands.failures import BAD_INPUT, Debug, Stopped, guarded
from partita.service.commands.remote import ServerKey, ServerUrl, evaluate_there, plan_there

if TYPE_CHECKING:
    from collections.abc import Iterable

    from partita.models.answer import Answer
    from partita.models.errors import Fault
    from partita.models.problem import Problem
    from partita.service.commands.files import PlanFile, ProblemFile


class SolverChoice(StrEnum):
    """The solvers that can be asked for."""

    AUTO = "auto"
    CP_SAT = "cp-sat"
    HIGHS = "highs"


ProblemName = Annotated[
    str, typer.Argument(metavar="PROBLEM", help="A problem in JSON, or an answer that holds one; - for standard input.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the answer as JSON, also where there is no plan.")]
Output = Annotated[
    str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the answer, with its problem, to a file.")
]


@guarded
def plan(
    problem: ProblemName,
    json: Json = False,
    output: Output = None,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Time for the search; by default the problem's own.")
    ] = None,
    solver: Annotated[SolverChoice | None, typer.Option(help="The solver; by default the problem's own.")] = None,
    candidates: Annotated[
        int | None, typer.Option(metavar="COUNT", help="How many plans to rank; by default the problem's own.")
    ] = None,
    orders: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Plan for these orders of the ranks, the compute-only CSV of torch.distributed.pipelining, instead of "
            "the problem's schedule.",
        ),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="ANSWER",
            help="The plan in use, an answer or any PLAN of evaluate: it stays first unless the best is better by more "
            "than --keep-if-within.",
        ),
    ] = None,
    keep_if_within: Annotated[
        float | None,
        typer.Option(metavar="FRACTION", help="How much better a plan must be to replace it: 0.02 is 2 %."),
    ] = None,
    server: ServerUrl = None,
    key: ServerKey = None,
    debug: Debug = False,
) -> None:
    """Find ranked plans for a problem, and prove how good they are.

    Exit codes: 0 done, 2 bad input, 3 infeasible, 4 no solution in time, 1 anything else.
    """
    from partita.service.commands.delivery import deliver
    from partita.service.commands.files import OrdersFile, PlanFile, ProblemFile, check_writable

    _check_one_input({"PROBLEM": problem, "--orders": orders, "--keep": keep})
    if output is not None:
        check_writable(output)
    file = ProblemFile(problem, None if orders is None else OrdersFile(orders))
    asked = with_options(
        file.problem,
        {
            "time_limit_s": time_limit,
            "solver": None if solver is None else solver.value,
            "candidates": candidates,
            "keep": None if keep is None else PlanFile(keep, 1).plan,
            "keep_if_within": keep_if_within,
        },
    )
    answer = _planned(asked, file) if server is None else plan_there(server, key, asked, file.refused)
    deliver(answer, asked, problem, json=json, output=output)


def _planned(asked: "Problem", file: "ProblemFile") -> "Answer":
    """Find plans in this process."""
    from partita.models.errors import InvalidInput
    from partita.service.commands.interrupt import ends_at_once
    from partita.service.commands.progress import watching

    with watching(asked) as watch, ends_at_once(watch.stop):
        from partita.solver.planner import plan_problem

        try:
            return plan_problem(asked, on_progress=watch.report)
        except InvalidInput as error:
            raise file.refused(error.faults) from None


@guarded
def evaluate(
    problem: ProblemName,
    plan: Annotated[
        str,
        typer.Argument(
            metavar="PLAN",
            help="A plan in JSON, or an answer or a front with plans; - for standard input. Or a layout of Megatron "
            "such as 'Et*3|(tt|)*4L', or a list of vLLM such as 8,8,8,8, as it stands or in a file.",
        ),
    ],
    json: Json = False,
    output: Output = None,
    candidate: Annotated[
        int, typer.Option(min=1, metavar="RANK", help="Which plan of an answer, or point of a front, to take.")
    ] = 1,
    solve: Annotated[
        bool, typer.Option("--solve/--no-solve", help="Whether to search for the best plan, to compare with it.")
    ] = True,
    server: ServerUrl = None,
    key: ServerKey = None,
    debug: Debug = False,
) -> None:
    """Price a plan that you bring: what it costs, how far it is from the best, which single move improves it most.

    Exit codes: 0 done, 2 bad input, 3 the plan breaks a limit, 1 anything else.
    """
    from partita.service.commands.delivery import deliver
    from partita.service.commands.files import PlanFile, ProblemFile, check_writable

    _check_one_input({"PROBLEM": problem, "PLAN": plan})
    if output is not None:
        check_writable(output)
    asked, given = ProblemFile(problem), PlanFile(plan, candidate)
    given.check_belongs(asked.problem)
    if server is None:
        answer = _evaluated(asked, given, solve=solve)
    else:
        blamed = partial(_blamed, problem=asked, plan=given)
        answer = evaluate_there(server, key, asked.problem, given.plan, solve=solve, refused=blamed)
    deliver(answer, asked.problem, problem, json=json, output=output)


def _evaluated(asked: "ProblemFile", given: "PlanFile", *, solve: bool) -> "Answer":
    """Price a plan in this process."""
    from partita.models.errors import InvalidInput
    from partita.service.commands.interrupt import ends_at_once
    from partita.service.commands.progress import watching

    with watching(asked.problem) as watch, ends_at_once(watch.stop):
        from partita.solver.what_if import evaluate_given

        try:
            return evaluate_given(asked.problem, given.plan, solve=solve, on_progress=watch.report)
        except InvalidInput as error:
            raise _blamed(error.faults, asked, given) from None


def _check_one_input(names: dict[str, str | None]) -> None:
    """Refuse to read several inputs from standard input."""
    from partita.service.commands.files import STANDARD

    several = [place for place, name in names.items() if name == STANDARD]
    if len(several) > 1:
        named = " and ".join([", ".join(several[:-1]), several[-1]])
        raise Stopped(f"only one of {named} can be standard input; name files for the others", BAD_INPUT)


def _blamed(faults: "Iterable[Fault]", problem: "ProblemFile", plan: "PlanFile") -> Exception:
    """Find the file that is at fault."""
    from partita.service.solving.work import belongs_to_plan

    every = list(faults)
    if all(belongs_to_plan(fault.pointer) for fault in every):
        return plan.refused(replace(fault, pointer=fault.pointer.removeprefix("/plan")) for fault in every)
    return problem.refused(every)


def with_options(problem: "Problem", given: dict[str, object]) -> "Problem":
    """Replace parts of the problem's search by what the options say."""
    from partita.models.document import validate
    from partita.models.errors import InvalidInput
    from partita.models.search import Search

    chosen = {name: value for name, value in given.items() if value is not None}
    if not chosen:
        return problem
    try:
        search = validate(Search, {**problem.search.model_dump(), **chosen})
    except InvalidInput as error:
        named = [(line.pointer[1:].removesuffix("_s").replace("_", "-"), line) for line in error.faults]
        lines = [f"--{option}: {line.detail} (got {line.value})" for option, line in named]
        raise Stopped("; ".join(lines), BAD_INPUT) from None
    return problem.model_copy(update={"search": search})
