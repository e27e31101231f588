"""Runs the unsplit model, microbatch by microbatch, and keeps what the stages must reach."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from partita.models.pytorch.capturing import Capture
from partita.models.pytorch.exporting import user_name
from partita.models.pytorch.preserve import preserved
from partita.models.pytorch.proof.comparing import Difference, compare
from partita.models.pytorch.proof.data import microbatch, tensors_of
from partita.models.pytorch.split.draws import Moment
from partita.models.pytorch.split.partition import partition
from partita.models.pytorch.split.stage import StageOptions, build_stage

LEARNING_RATE = 0.01
"""Of plain stochastic gradient descent, in which a step is as exact as its gradients."""


def step_file(folder: Path, step: int) -> Path:
    """Name the file with what an iteration must give."""
    return folder / f"step-{step}.pt"


def is_random(capture: Capture) -> bool:
    """Tell whether some operation of the model is random."""
    return any(operation.random for operation in capture.graph.operations.values())


def run_reference(capture: Capture, folder: Path, watch: Any, *, steps: int, num_microbatches: int) -> list[Difference]:
    """Train the unsplit model and write for each iteration losses, gradients, buffers and then the new parameters.

    It is the user's own module. Only where operations are random it is the captured graph as a whole, with the same
    seed for every operation as the stages have; that this graph computes what the module does is compared first.

    Parameters
    ----------
    capture
        The model.
    folder
        Where the files go.
    watch
        An array in shared memory whose last element counts microbatches.
    steps, num_microbatches
        How many iterations, and how many microbatches each has.

    Returns
    -------
    list
        How far the captured graph is from the module, where it takes its place.

    Raises
    ------
    ValueError
        When a loss is no finite number.
    """
    moment = Moment()
    found = compare_capture(capture) if is_random(capture) else []
    run = _seeded(capture, moment) if is_random(capture) else capture.program
    named = tuple(capture.program.named_parameters())
    trained = {user_name(name): each for name, each in named if each.requires_grad}
    optimizer = torch.optim.SGD(trained.values(), lr=LEARNING_RATE)
    for step in range(steps):
        optimizer.zero_grad(set_to_none=True)
        losses = {}
        moment.iteration = step
        for number in range(num_microbatches):
            moment.microbatch = number
            loss = run(*microbatch(capture.inputs, step, number))
            if not loss.isfinite():
                detail = "nothing can be compared; give inputs whose losses are finite, in any order of their numbers"
                raise ValueError(f"the loss of microbatch {number} in iteration {step} is {loss.item()}: {detail}")
            (loss / num_microbatches).backward()
            losses[str(number)] = loss.detach()
            watch[-1] += 1
        reached = {
            "losses": losses,
            "gradients": {name: each.grad.clone() for name, each in trained.items() if each.grad is not None},
            "buffers": {user_name(name): each.clone() for name, each in capture.program.named_buffers()},
        }
        optimizer.step()
        reached["parameters"] = {user_name(name): each.detach().clone() for name, each in named}
        torch.save(reached, step_file(folder, step))
    return found


def compare_capture(capture: Capture) -> list[Difference]:
    """Compare one microbatch of the captured graph with the user's module, both from the same random state."""
    found, expected = (_given_once(capture, run) for run in (capture.graph.module, capture.program))
    return compare("capture", found, expected, 0, None)


def _given_once(capture: Capture, run: Callable[..., torch.Tensor]) -> dict[str, torch.Tensor]:
    """Give the loss, the gradients and the buffers after one microbatch, and leave the module as it was."""
    program = capture.program
    with preserved(program):
        torch.manual_seed(0)
        loss = run(*microbatch(capture.inputs, 0, 0))
        loss.backward()
        given = {"loss": loss.detach()}
        for name, each in program.named_parameters():
            if each.requires_grad:
                given[f"gradient {user_name(name)}"] = torch.zeros_like(each) if each.grad is None else each.grad
        return given | {f"buffer {user_name(name)}": each.clone() for name, each in program.named_buffers()}


def _seeded(capture: Capture, moment: Moment) -> Callable[..., torch.Tensor]:
    """Give the whole graph as one stage."""
    graph, layers = capture.graph, capture.layers
    whole = partition(graph, layers, [[layer.name for layer in layers]])
    stage = build_stage(graph, whole, 0, StageOptions(moment))

    def run(*inputs: Any) -> torch.Tensor:
        result: torch.Tensor = stage.module(*tensors_of(inputs))
        return result

    return run
