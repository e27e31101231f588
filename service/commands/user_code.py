"""Runs the user's own code: the function that gives a model."""

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from partita.service.commands.failures import BAD_INPUT, Stopped

WANTED = "(module, inputs) or (module, inputs, loss), with a torch.nn.Module and a tuple of example inputs"


class UserModel(NamedTuple):
    """What the user's function gave: a module, example inputs of one microbatch, and a loss or None."""

    module: Any
    inputs: tuple[Any, ...]
    loss: Callable[[Any], Any] | None


def load_model(name: str) -> UserModel:
    """Import a module, call a function of it and check what it gives; what it prints goes to standard error.

    Parameters
    ----------
    name
        ``MODULE:FUNCTION``; the module by its name, also one in the working folder, or as the path of a file.

    Raises
    ------
    Stopped
        When there is no such module or function, it fails, or gives anything else.
    """
    function = load_function(name)
    with redirect_stdout(sys.stderr):
        try:
            given = function()
        except Exception as error:
            raise Stopped(f"{name}: the function failed: {_failure(error)}", BAD_INPUT) from error
    return _checked(name, given)


def load_function(name: str) -> Callable[..., Any]:
    """Import a module and give a function of it; what the import prints goes to standard error.

    Parameters
    ----------
    name
        ``MODULE:FUNCTION``, as for ``load_model``.

    Raises
    ------
    Stopped
        When there is no such module or function.
    """
    module_name, colon, function_name = name.rpartition(":")
    if not colon or not module_name or not function_name:
        raise Stopped(f"{name}: expected MODULE:FUNCTION, such as my_model:build or my_model.py:build", BAD_INPUT)
    with redirect_stdout(sys.stderr):
        function: Callable[..., Any] | None = getattr(_imported(module_name), function_name, None)
    if not callable(function):
        raise Stopped(f"{name}: {module_name} has no function {function_name!r}", BAD_INPUT)
    return function


def _imported(name: str) -> ModuleType:
    """Import a module by its name or from a file."""
    try:
        if not name.endswith(".py"):
            if "" not in sys.path:
                sys.path.insert(0, "")
            return importlib.import_module(name)
        if not Path(name).is_file():
            raise Stopped(f"there is no file {name}; give the name of a module or the path of its file", BAD_INPUT)
        sys.path.insert(0, str(Path(name).resolve().parent))  # as for a script: its neighbors can be imported
        spec = importlib.util.spec_from_file_location(f"user_{Path(name).stem}", name)
        if spec is None or spec.loader is None:
            raise Stopped(f"{name} is not a file that Python can import", BAD_INPUT)
        module = importlib.util.module_from_spec(spec)
        sys.modules[module.__name__] = module
        spec.loader.exec_module(module)
    except Stopped:
        raise
    except Exception as error:
        raise Stopped(f"{name} cannot be imported: {_failure(error)}", BAD_INPUT) from error
    return module


def _failure(error: Exception) -> str:
    """Say what was raised, and in which line of the user's code."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno}, in {last.name})"


def _checked(name: str, given: object) -> UserModel:
    """Refuse what is no model with its inputs; whether the model is one is for the capture to say."""
    if not isinstance(given, tuple) or len(given) not in (2, 3):
        raise Stopped(f"{name}: the function must give {WANTED}; it gave a {type(given).__name__}", BAD_INPUT)
    module, inputs, *rest = given
    if not isinstance(inputs, tuple):
        detail = f"the inputs are a {type(inputs).__name__}; give a tuple, with a comma after a single one"
        raise Stopped(f"{name}: {detail}{_keywords(inputs)}", BAD_INPUT)
    loss = rest[0] if rest else None
    if loss is not None and not callable(loss):
        raise Stopped(f"{name}: the loss is a {type(loss).__name__}; give a function of the outputs", BAD_INPUT)
    return UserModel(module, inputs, loss)


def _keywords(inputs: object) -> str:
    """Say what to do about keyword arguments, where inputs look like these."""
    return (
        "; for keywords, wrap the module in one whose forward takes them in order" if isinstance(inputs, dict) else ""
    )
