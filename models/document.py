"""From text to a validated model, with every fault explained."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from partita.models.base import MAX_FAULTS
from partita.models.errors import Fault, InvalidInput, join_pointer, short_value
from partita.models.json_text import read_json
from partita.models.messages import describe

__all__ = ["read_json", "validate"]

ModelType = TypeVar("ModelType", bound=BaseModel)


def validate(model_type: type[ModelType], data: object) -> ModelType:
    """Make a model from the values of a document.

    Parameters
    ----------
    model_type
        The model, such as ``Problem``.
    data
        What ``read_json`` gave: objects as dicts, arrays as lists.

    Raises
    ------
    InvalidInput
        With up to 50 faults; each has the pointer to a place in ``data``, its value and a remedy.
    """
    try:
        return model_type.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        lines = [line for line in error.errors(include_url=False) if not _follows(line)]
    left_out = sum(line["ctx"]["count"] for line in lines if line["type"] == "more_faults")
    lines = [line for line in lines if line["type"] != "more_faults"]
    faults = [_fault_of(model_type, data, line) for line in lines[:MAX_FAULTS]]
    left_out += len(lines) - len(faults)
    if left_out:
        faults.append(Fault("", f"{left_out} more faults", None, "more_faults"))
    raise InvalidInput(faults)


def _fault_of(model_type: type[BaseModel], data: object, line: ErrorDetails) -> Fault:
    """Explain one error of pydantic's."""
    location, code, value, context = line["loc"], line["type"], line["input"], line.get("ctx", {})
    nothing = code == "missing" or (value is None and "detail" in context)
    return Fault(
        join_pointer(_place_in(data, location, code == "missing")),
        describe(model_type, location, code, context, value),
        None if nothing else short_value(value),
        code,
    )


def _follows(line: ErrorDetails) -> bool:
    """Tell whether a list is called too short only because items of it were refused, which is reported on its own."""
    return line["type"] == "too_short" and len(line["input"]) >= line["ctx"]["min_length"]


def _place_in(data: object, location: tuple[int | str, ...], missing: bool) -> list[int | str]:
    """Turn pydantic's location into a path that exists in the document.

    Pydantic adds steps for its own validators (the branch of a union, the key of a mapping); a step that leads nowhere
    in the document is such a step. Only a missing field is a real last step that leads nowhere.
    """
    path: list[int | str] = []
    here = data
    for depth, step in enumerate(location):
        if isinstance(here, dict):
            if step in here:
                here = here[step]
            elif missing and depth == len(location) - 1:
                path.append(step)
                break
            else:
                continue
        elif isinstance(here, list | tuple):
            if not (isinstance(step, int) and step < len(here)):
                continue
            here = here[step]
        elif isinstance(here, BaseModel):
            here = getattr(here, str(step), None)
        else:
            continue
        path.append(step)
    return path
