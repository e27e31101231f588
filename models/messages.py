"""What a fault of validation means, and what would be right, in words."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from partita.models.naming import listing

TYPES = {
    "float_type": "a number",
    "int_type": "a whole number",
    "string_type": "text in quotes",
    "bool_type": "true or false",
    "model_type": "an object, {…}",
    "model_attributes_type": "an object, {…}",
    "dict_type": "an object, {…}",
    "tuple_type": "a list, […]",
    "list_type": "a list, […]",
}
"""What the errors of a wrong type expect."""

BOUNDS = {
    "greater_than": ("gt", "must be greater than {}"),
    "greater_than_equal": ("ge", "must be at least {}"),
    "less_than": ("lt", "must be less than {}"),
    "less_than_equal": ("le", "must be at most {}"),
    "too_short": ("min_length", "too few items; at least {} needed"),
    "too_long": ("max_length", "too many items; at most {} allowed"),
    "string_too_short": ("min_length", "a name has at least {} character"),
    "string_too_long": ("max_length", "a name has at most {} characters"),
    "literal_error": ("expected", "expected {}"),
}
"""For the errors of a bound: where the bound stands, and what to say."""

OTHERS = {
    "optimizer_form": "expected the name of an optimizer, or an object with its bytes per weight byte",
    "objective_form": "expected the name of an objective, an object with the weights of metrics, or a list of names",
    "missing": "required, but missing; add it",
    "finite_number": "must be a finite number",
    "string_pattern_mismatch": "a name has no control characters, such as a line break; remove them",
    "string_unicode": "not valid text: it contains half of a surrogate pair",
}


def describe(
    model_type: type[BaseModel], location: tuple[int | str, ...], code: str, context: Mapping[str, Any], value: object
) -> str:
    """Say what is wrong and what would be right.

    Parameters
    ----------
    model_type
        The model being validated.
    location
        Pydantic's location of the fault in it.
    code, context
        Pydantic's type of error and the figures that belong to it.
    value
        The value found there.
    """
    if "detail" in context:
        return str(context["detail"])
    if code == "extra_forbidden":
        return _unknown_field(model_type, location)
    if code in TYPES:
        return f"expected {TYPES[code]}{_type_remedy(code, value)}"
    if code in BOUNDS:
        key, text = BOUNDS[code]
        bound = context.get(key)
        return text.format(f"{bound:g}" if isinstance(bound, float) else bound)
    return OTHERS.get(code, f"not allowed here ({code})")


def _type_remedy(code: str, value: object) -> str:
    """Say how to write the value, where it can be told what was meant."""
    if value is None:
        return "; leave the field out if there is none"
    if code == "int_type" and isinstance(value, float) and value.is_integer() and abs(value) < 1e18:
        return f"; write {int(value)}"
    if code in ("int_type", "float_type") and isinstance(value, str):
        return "; write the number alone, without quotes or unit"
    if code == "float_type" and isinstance(value, int) and not isinstance(value, bool):
        return " below 1e308"
    return ""


def _unknown_field(model_type: type[BaseModel], location: tuple[int | str, ...]) -> str:
    """Name the fields that exist where an unknown one was given, and the most similar of them."""
    known = {
        str(field.validation_alias or name): None
        for model in _models_at(model_type, location[:-1])
        for name, field in model.model_fields.items()
    }
    similar = get_close_matches(str(location[-1])[:64], known, n=1)
    hint = f"did you mean {similar[0]!r}? " if similar else ""
    return f"unknown field; {hint}the fields here are {listing(known, limit=30)}"


def _models_at(model_type: type[BaseModel], location: tuple[int | str, ...]) -> list[type[BaseModel]]:
    """Find the models that may stand at a place, by following the annotations."""
    here: list[object] = [model_type]
    for step in location:
        inside: list[object] = []
        for kind in here:
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                inside += [
                    field.annotation
                    for name, field in kind.model_fields.items()
                    if step in (name, field.validation_alias)
                ]
            elif get_origin(kind) is tuple and isinstance(step, int):
                inside.append(get_args(kind)[0])
            elif get_origin(kind) is dict and isinstance(step, str):
                inside.append(get_args(kind)[1])
        if inside:  # else a step of pydantic's own, such as the branch of a union
            here = [kind for annotation in inside for kind in _alternatives(annotation)]
    return [kind for kind in here if isinstance(kind, type) and issubclass(kind, BaseModel)]


def _alternatives(annotation: object) -> Iterator[object]:
    """Take an annotation apart into the types it allows, without its metadata."""
    if hasattr(annotation, "__metadata__"):
        yield from _alternatives(get_args(annotation)[0])
    elif get_origin(annotation) in (None, tuple, dict):
        yield annotation
    else:
        for part in get_args(annotation):
            yield from _alternatives(part)
