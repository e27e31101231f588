"""What commands that run PyTorch models have in common."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING

from partita.service.commands.failures import BAD_INPUT, Stopped

if TYPE_CHECKING:
    from partita.models.pytorch.capturing import Capture
    from partita.models.pytorch.layers import Depth


@contextmanager
def needing_torch(command: str) -> Iterator[None]:
    """Say what is missing where PyTorch is not installed.

    Raises
    ------
    Stopped
        With what to install.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        detail = "needs PyTorch, which is not installed here: in a clone, .venv/bin/pip install -e '.[torch]'"
        raise Stopped(f"partita {command} {detail}", BAD_INPUT) from None


@contextmanager
def explaining_captures(model: str) -> Iterator[None]:
    """Say why a model cannot be captured; what its code prints meanwhile is no part of what the command prints.

    Raises
    ------
    Stopped
        With the reason.
    """
    from partita.models.pytorch.errors import CannotCapture

    try:
        with redirect_stdout(sys.stderr):
            yield
    except CannotCapture as error:
        raise Stopped(f"{model}: {error}", BAD_INPUT) from error


def captured_model(model: str, depth: "Depth" = "blocks") -> "Capture":
    """Capture the model that MODULE:FUNCTION gives.

    Raises
    ------
    Stopped
        When it cannot be captured.
    """
    from partita.models.pytorch.capturing import capture
    from partita.service.commands.user_code import load_model

    given = load_model(model)
    with explaining_captures(model):
        return capture(given.module, given.inputs, given.loss, depth=depth)
