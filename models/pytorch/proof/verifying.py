"""Shows that the stages of a plan compute what the unsplit model computes."""

import datetime
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import RawArray
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from partita.models.pytorch.capturing import Capture
from partita.models.pytorch.proof.comparing import Difference, compare, largest, missing
from partita.models.pytorch.proof.data import microbatch, tensors_of
from partita.models.pytorch.proof.labels import KINDS, LabeledStage, Watch
from partita.models.pytorch.proof.launching import RankFailed, run_processes
from partita.models.pytorch.proof.reference import LEARNING_RATE, is_random, run_reference, step_file
from partita.models.pytorch.split.partition import CannotSplit, partition
from partita.models.pytorch.split.pipeline import RankPipeline, materialize
from partita.models.pytorch.split.plan import RunPlan
from partita.models.pytorch.timing import OnRound


@dataclass(frozen=True, slots=True)
class Verification:
    """What was compared.

    Attributes
    ----------
    differences
        Of everything that was compared, in the order of ranks and iterations.
    seeded
        Whether the unsplit model was the captured graph with seeds, because some operations are random; how far that
        is from the module itself is among the differences then.
    """

    differences: tuple[Difference, ...]
    seeded: bool

    @property
    def wrong(self) -> tuple[Difference, ...]:
        """Those that rounding does not explain, largest first."""
        found = [each for each in self.differences if each.is_wrong]
        return tuple(sorted(found, key=lambda each: -each.relative))

    @property
    def largest(self) -> Difference | None:
        """The largest of all; None where nothing was compared."""
        return largest(self.differences)


def verify(
    capture: Capture,
    plan: RunPlan,
    *,
    steps: int = 2,
    time_limit_s: float = 300.0,
    on_round: OnRound = lambda done, total: None,
) -> Verification:
    """Run the stages of a plan and the unsplit model with the same data, each in processes of its own on the CPU.

    Every iteration starts from the same trained parameters, so that rounding does not add up; buffers go on. All that a
    rank holds is compared with the unsplit model: losses, gradients, buffers, and parameters, those that are not
    trained too, after a step of the optimizer.
    The user's module stays as it is.

    Parameters
    ----------
    capture, plan
        The model, on the CPU, and how it runs.
    steps
        How many iterations.
    time_limit_s
        After so many seconds everything is stopped.
    on_round
        Is told how many microbatches and actions have begun, of how many.

    Raises
    ------
    CannotSplit
        When the plan does not fit the model, or there is nothing to train.
    RankFailed
        When a process fails, dies or is late; ``kind`` is ``MixedUp`` where a tensor of another microbatch came.
    """
    parts = partition(capture.graph, capture.layers, plan.stages)
    if capture.graph.device.type != "cpu":
        raise CannotSplit(f"the model is on {capture.graph.device}; build it on the CPU, where it is verified")
    if not parts.owners:
        raise CannotSplit("no parameter is trained, so that there are no gradients to compare; train one")
    deadline = time.monotonic() + time_limit_s
    *watches, first = (RawArray("i", [-1, -1, -1, 0]) for _ in range(len(plan.orders) + 1))
    total = steps * (plan.num_microbatches + sum(len(order) for order in plan.orders))

    def tell() -> None:
        on_round(sum(watch[-1] for watch in (first, *watches)), total)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        unsplit = partial(run_reference, capture, folder, first, steps=steps, num_microbatches=plan.num_microbatches)
        try:
            (as_captured,) = run_processes([unsplit], deadline=deadline, on_wait=tell)
        except RankFailed as error:
            raise RankFailed(str(error).replace("rank 0", "the unsplit model", 1), error.kind) from None
        ranks = [
            partial(_run_rank, capture, plan, folder, steps, place, watch, time_limit_s)
            for place, watch in zip(plan.places, watches, strict=True)
        ]
        found = run_processes(ranks, deadline=deadline, doing=lambda number: _last(watches[number]), on_wait=tell)
        differences = [*as_captured, *(each for rank in found for each in rank)]
        differences += _unreached(folder, differences, steps)
    return Verification(tuple(differences), is_random(capture))


def _last(watch: Watch) -> str:
    """Say what a rank has begun last."""
    stage, kind, number, _ = watch
    return "" if stage < 0 else f"{stage}{KINDS[kind]}{number}"


def _run_rank(
    capture: Capture, plan: RunPlan, folder: Path, steps: int, place: int, watch: Watch, time_limit_s: float
) -> list[Difference]:
    """Be one process: run the stages of a rank and compare."""
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder / 'store'}",
        rank=place,
        world_size=len(plan.places),
        timeout=datetime.timedelta(seconds=time_limit_s),
    )
    pipeline = materialize(capture, plan, stage_type=partial(LabeledStage, watch=watch))
    trained = {name: each for name, each in pipeline.parameters.items() if each.requires_grad}
    optimizer = torch.optim.SGD(trained.values(), lr=LEARNING_RATE) if trained else None
    found: list[Difference] = []
    for step in range(steps):
        for parameter in trained.values():
            parameter.grad = None
        data = [tensors_of(microbatch(capture.inputs, step, number)) for number in range(plan.num_microbatches)]
        losses = pipeline.run(data)
        expected = torch.load(step_file(folder, step), mmap=True)
        found += _compare(pipeline, losses, expected, step)
        if optimizer is not None:
            optimizer.step()
        found += compare("parameter", pipeline.parameters, expected["parameters"], step, pipeline.rank)
        with torch.no_grad():
            for name, parameter in trained.items():
                parameter.copy_(expected["parameters"][name])
    dist.barrier()
    return found


def _compare(pipeline: RankPipeline, losses: Sequence[torch.Tensor], expected: Any, step: int) -> list[Difference]:
    """Compare what a rank has after an iteration."""
    rank = pipeline.rank
    gradients = {
        name: each.grad
        for name, each in pipeline.parameters.items()
        if each.requires_grad and (each.grad is not None or name in expected["gradients"])
    }
    zeros = {
        name: torch.zeros_like(each) for name, each in pipeline.parameters.items() if name not in expected["gradients"]
    }
    return [
        *compare("loss", {str(n): each for n, each in enumerate(losses)}, expected["losses"], step, rank),
        *compare("gradient", gradients, expected["gradients"] | zeros, step, rank),
        *compare("buffer", pipeline.buffers, expected["buffers"], step, rank),
    ]


def _unreached(folder: Path, differences: Sequence[Difference], steps: int) -> list[Difference]:
    """Give what the unsplit model has and no rank had: losses, and gradients."""
    found = []
    for step in range(steps):
        expected = torch.load(step_file(folder, step), mmap=True)
        for kind, names in (("loss", expected["losses"]), ("gradient", expected["gradients"])):
            there = {each.name for each in differences if each.kind == kind and each.step == step}
            found += missing(
                "loss" if kind == "loss" else "gradient", [name for name in names if name not in there], step
            )
    return found
