"""``partita verify``."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from partita.service.commands.bar import bar
from partita.service.commands.captures import captured_model, explaining_captures, needing_torch
from partita.service.commands.failures import BAD_INPUT, DIFFERENT, FAILED, Debug, Stopped, guarded
from partita.service.commands.recompute import RUN, policies_of

if TYPE_CHECKING:
    from partita.models.pytorch.capturing import Capture
    from partita.models.pytorch.proof import Verification
    from partita.models.pytorch.split import RunPlan
    from partita.service.commands.files import AnswerFile

MOST_SHOWN = 10
"""Differences that are listed."""
KINDS = {
    "loss": "losses",
    "gradient": "gradients",
    "buffer": "buffers",
    "parameter": "parameters",
    "capture": "as captured",
}
"""What is compared, the last where the captured graph stands for the module."""


@guarded
def verify(
    answer: Annotated[str, typer.Argument(metavar="ANSWER", help="What plan -o wrote; - for standard input.")],
    model: Annotated[
        str, typer.Argument(metavar="MODULE:FUNCTION", help="What was profiled: gives (module, inputs[, loss]).")
    ],
    candidate: Annotated[int, typer.Option(min=1, help="Which plan of the answer.")] = 1,
    cut: Annotated[
        str | None,
        typer.Option(
            metavar="LAYER,LAYER|FILE",
            help="Try other stages: cut after these layers, named or counted, or a plan as evaluate takes it.",
        ),
    ] = None,
    recompute: Annotated[list[str] | None, RUN] = None,
    steps: Annotated[int, typer.Option(min=1, help="Iterations.")] = 2,
    time_limit: Annotated[float, typer.Option(min=1, help="Seconds until everything is stopped.")] = 300.0,
    debug: Debug = False,
) -> None:
    """Run the stages of a plan beside the unsplit model, and compare losses, gradients, buffers and parameters.

    This runs the code of MODULE. Every rank is a process on this machine, with one thread, that talks to the others by
    gloo; the data are the example inputs with their numbers in other orders. Exit codes: 0 the same, 5 different,
    2 bad input, 1 anything else.
    """
    from partita.service.commands.files import AnswerFile

    file = AnswerFile(answer, candidate)
    with needing_torch("verify"):
        from partita.models.pytorch.matching import matched
    plan = replace(_plan(file, cut), policies=policies_of(recompute or []))
    captured = captured_model(model)
    with explaining_captures(model):
        captured = matched(captured, file.problem.model)
    found = _verified(captured, plan, model, steps=steps, time_limit_s=time_limit)
    for line in _report(found, plan, file.candidate.schedule.kind, steps):
        typer.echo(line)
    if found.wrong:
        raise typer.Exit(DIFFERENT)


def _plan(file: "AnswerFile", cut: str | None) -> "RunPlan":
    """Take from an answer what is needed to run its plan, or other stages under the same schedule."""
    from partita.models.document import read_json
    from partita.models.errors import InvalidInput
    from partita.models.pytorch.split.plan import RunPlan
    from partita.models.writers.torch_plan import read_torch
    from partita.service.reports.exports import EXPORTS
    from partita.service.reports.rank_orders import actions_of
    from partita.solver.layout import pipeline_of

    problem, candidate = file.problem, file.candidate
    if candidate.schedule.kind == "forward_only":
        raise Stopped(f"{file.name}: forward_only has no gradients to compare; plan for training", BAD_INPUT)
    try:
        plan = RunPlan.of(read_torch(read_json(EXPORTS["torch"](problem, candidate).encode())))
    except InvalidInput as error:
        raise file.refused(error.faults) from None
    if cut is None:
        return plan
    stages = _stages(file, cut)
    try:
        orders = actions_of(pipeline_of(problem.configured(candidate), len(stages)))
    except InvalidInput as error:
        raise Stopped(f"--cut: {error.faults[0].detail}", BAD_INPUT) from None
    places = plan.places if len(plan.places) == len(orders) else tuple(range(len(orders)))
    return RunPlan(stages, orders, places, plan.recomputed)


def _stages(file: "AnswerFile", cut: str) -> tuple[tuple[str, ...], ...]:
    """Read the stages that the user names."""
    from partita.models.document import validate
    from partita.models.errors import InvalidInput
    from partita.models.plan import GivenPlan
    from partita.service.commands.files import PlanFile

    layers = [layer.name for layer in file.problem.model.layers]
    if Path(cut).is_file():
        named = PlanFile(cut, 1)
        try:
            return named.plan.stage_layers(layers)
        except InvalidInput as error:
            raise named.refused(error.faults) from None
    places = [
        int(part) if part not in layers and part.isascii() and part.isdigit() else part for part in cut.split(",")
    ]
    try:
        return validate(GivenPlan, {"cut_after": places}).stage_layers(layers)
    except InvalidInput as error:
        raise Stopped("\n".join(f"--cut: {fault}" for fault in error.faults), BAD_INPUT) from None


def _verified(captured: "Capture", plan: "RunPlan", model: str, *, steps: int, time_limit_s: float) -> "Verification":
    """Run everything."""
    from partita.models.pytorch.proof import RankFailed, verify
    from partita.models.pytorch.split.partition import CannotSplit

    try:
        with bar("running stages") as on_round:
            return verify(captured, plan, steps=steps, time_limit_s=time_limit_s, on_round=on_round)
    except CannotSplit as error:
        raise Stopped(f"{model}: {error}", BAD_INPUT) from error
    except RankFailed as error:
        raise Stopped(f"{model}: {error}", DIFFERENT if error.kind == "MixedUp" else FAILED) from error


def _report(found: "Verification", plan: "RunPlan", schedule: str, steps: int) -> Sequence[str]:
    """Say what was compared, how much it differs and where."""
    from partita.models.pytorch.proof import largest
    from partita.service.reports.wording import counted

    other = "the captured model with the same seeds" if found.seeded else "the module itself"
    lines = [
        f"{counted(len(plan.stages), 'stage')} on {counted(len(plan.orders), 'rank')}, {schedule}, "
        f"{counted(plan.num_microbatches, 'microbatch', 'microbatches')}, "
        f"{counted(steps, 'iteration')}, against {other}"
    ]
    for option in plan.unknown:
        lines.append(f"recompute by {option!r} ran as full; --recompute {option} says what it saves")
    for kind, name in KINDS.items():
        compared = [each for each in found.differences if each.kind == kind]
        most = largest(compared)
        if most is None:
            lines += [f"{name:<11}{'none':>6}"] if kind != "capture" else []
        elif not most.relative:
            lines.append(f"{name:<11}{len(compared):>6}  equal to the bit")
        else:
            lines.append(f"{name:<11}{len(compared):>6}  largest difference {most.relative:.2g} of {most.place}")
    wrong = found.wrong
    if not wrong:
        return [*lines, "The same: no difference is larger than rounding explains."]
    lines.append(f"Different: {len(wrong)} of {len(found.differences)} differ more than rounding explains")
    for each in wrong[:MOST_SHOWN]:
        lines.append(
            f"- {each.place}: {each.absolute:.3g} apart, {each.relative:.2g} relative, allowed {each.allowed:.0e}"
        )
    return lines + ([f"- and {len(wrong) - MOST_SHOWN} more"] if len(wrong) > MOST_SHOWN else [])
