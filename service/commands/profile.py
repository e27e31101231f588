"""``partita profile``."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from partita.service.commands.bar import bar
from partita.service.commands.captures import captured_model, needing_torch
from partita.service.commands.failures import BAD_INPUT, Debug, Stopped, guarded, say
from partita.service.commands.recompute import MEASURED, policies_of

if TYPE_CHECKING:
    from partita.models.problem import Problem
    from partita.models.pytorch.layers import Depth


MOST_SPREAD = 0.1
"""Interquartile range of the times of layers, relative to their medians, from which a warning is due."""

Function = Annotated[
    str, typer.Argument(metavar="MODULE:FUNCTION", help="Gives (module, inputs) or (module, inputs, loss).")
]
Layers = Annotated[
    str,
    typer.Option(
        metavar="blocks|points|operations|N",
        help="Layers: repeated blocks, parts between points that one value passes, single operations, or modules "
        "whose paths have N names.",
    ),
]
Bandwidth = Annotated[
    float | None, typer.Option(metavar="BYTES_PER_S", help="Between two devices, one way; by default 1e9 or 25e9.")
]
Device = Annotated[
    str | None,
    typer.Option(metavar="a100|h100|h200", help="Estimate for this kind of device; for models on the meta device."),
]
Output = Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the problem to a file.")]


@guarded
def profile(
    model: Function,
    devices: Annotated[int, typer.Option(help="Devices of the node that is planned for.")] = 4,
    schedule: Annotated[str, typer.Option(help="How they train.")] = "1f1b",
    microbatches: Annotated[int, typer.Option(help="Microbatches of an iteration.")] = 16,
    depth: Layers = "blocks",
    recompute: Annotated[list[str] | None, MEASURED] = None,
    repetitions: Annotated[int, typer.Option(min=1, help="How often each layer is measured.")] = 5,
    bandwidth: Bandwidth = None,
    device: Device = None,
    output: Output = None,
    debug: Debug = False,
) -> None:
    """Measure a PyTorch model layer by layer, and print a problem that is ready to plan.

    This runs the code of MODULE. On a CPU, one thread computes. A model on the meta device is estimated instead. Exit
    codes: 0 done, 2 bad input, 1 anything else.
    """
    from partita.service.commands.files import check_writable, write_whole

    if output is not None:
        check_writable(output)
    joined = _depth(depth)
    with needing_torch("profile"):
        from partita.models.pytorch.ready import ready_problem
        from partita.models.pytorch.roofline import DEVICES
    policies = policies_of(recompute or [])
    captured = captured_model(model, joined)
    roofline = None if device is None else DEVICES.get(device)
    if captured.on_meta == (roofline is None) or (device is not None and roofline is None):
        raise Stopped(_wrong_device(device, tuple(DEVICES), on_meta=captured.on_meta), BAD_INPUT)

    ready = partial(
        ready_problem,
        captured,
        devices=devices,
        schedule=schedule,
        microbatches=microbatches,
        bandwidth_bytes_per_s=bandwidth,
        roofline=roofline,
    )
    ready(captured.outline())  # so that a bad option is refused before anything is measured
    name = Path(model).name  # without the folders, for a file
    with bar("measuring layers") as on_round, _explaining_policies(), redirect_stdout(sys.stderr):
        if roofline is None:
            measured = captured.profile(name=name, repetitions=repetitions, policies=policies, on_round=on_round)
        else:
            measured = captured.estimate(roofline, name=name, policies=policies, on_round=on_round)
    problem = ready(measured)
    say(f"{model}: {_summary(problem)}")
    doubt = unsteady(problem)
    if doubt is not None:
        say(f"{model}: {doubt}")
    if captured.unread:
        say(f"{model}: on no stage, because nothing reads them: {', '.join(captured.unread)}")
    text = json.dumps(problem.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False, indent=1) + "\n"
    if output is not None:
        write_whole(output, text)
    else:
        sys.stdout.buffer.write(text.encode())


@contextmanager
def _explaining_policies() -> "Iterator[None]":
    """Say whose mistake it is when a policy saves nothing."""
    from partita.models.pytorch.policies import UnusedPolicy

    try:
        yield
    except UnusedPolicy as error:
        raise Stopped(f"--recompute: {error}", BAD_INPUT) from None


def _depth(text: str) -> "Depth":
    """Read how far operations are joined.

    Raises
    ------
    Stopped
        When it is neither a word nor a number that is possible.
    """
    words: dict[str, Depth] = {"blocks": "blocks", "points": "points", "operations": "operations"}
    if text in words:
        return words[text]
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    raise Stopped(f"--depth: blocks, points, operations or a number from 1 on (got {text!r})", BAD_INPUT)


def _wrong_device(device: str | None, known: tuple[str, ...], *, on_meta: bool) -> str:
    """Say what is wrong with the device to estimate for."""
    if on_meta:
        got = "" if device is None else f" (got {device!r})"
        return f"--device: the model is on the meta device; say what to estimate for: {', '.join(known)}{got}"
    return f"--device: the model is measured where it is; build it on the meta device to estimate it (got {device!r})"


def _summary(problem: "Problem") -> str:
    """Say in one line what was measured, how well the layers add up to the whole, and what was assumed."""
    from partita.service.reports.wording import counted, percent, seconds, sized

    model, device = problem.model, next(iter(problem.cluster.devices.values()))
    measured, fabric = model.measurement, problem.cluster.nodes[0].fabric
    if measured is None:
        return f"{len(model.layers)} layers"
    forward, backward = (sum(getattr(layer, name) for layer in model.layers) for name in ("forward_s", "backward_s"))
    parts = [
        f"{counted(len(model.layers), 'layer', 'layers')} on {measured.device}",
        f"forward {seconds(measured.forward_s)}, backward {seconds(measured.backward_s)}",
        f"the layers add up to {_of(forward, measured.forward_s)} and {_of(backward, measured.backward_s)} of that",
        f"largest spread {percent(max(measured.spreads.values()))}" if measured.kind == "measured" else "all estimated",
        f"assumed {sized(device.memory_bytes)} for each device",
    ]
    if fabric is not None:
        parts.append(f"{fabric.bandwidth_bytes_per_s:g} bytes/s between two")
    if measured.module_saved_bytes not in (None, measured.saved_bytes):
        parts.append(
            f"saves {measured.saved_bytes} bytes as captured but {measured.module_saved_bytes} by itself, "
            "because its code runs otherwise when it is exported; recompute of its own is left out"
        )
    return "; ".join(parts)


def unsteady(problem: "Problem") -> str | None:
    """Say how far the times of layers vary, weighted by how long these take, where that makes plans doubtful."""
    from partita.service.reports.wording import percent

    measured, layers = problem.model.measurement, problem.model.layers
    took = sum(layer.forward_s + layer.backward_s for layer in layers)
    if measured is None or not took:
        return None
    spread = sum(measured.spreads[each.name] * (each.forward_s + each.backward_s) for each in layers) / took
    if spread <= MOST_SPREAD:
        return None
    return (
        f"the times of its layers vary by {percent(spread)} on average, so plans may be wrong by as much; measure "
        "again while nothing else runs, or with more --repetitions"
    )


def _of(part: float, whole: float) -> str:
    """Give a part as a percentage of a whole, where there is one."""
    from partita.service.reports.wording import percent

    return percent(part / whole) if whole else "none"
