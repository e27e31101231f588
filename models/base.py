"""What all of Partita's data models have in common."""

from collections.abc import Sequence
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Strict
from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

from partita.models.field_descriptions import describe_fields

Item = TypeVar("Item")

Many = Annotated[tuple[Item, ...], Strict(False)]
"""A list in JSON, kept as a tuple so that a model cannot change."""

MAX_FAULTS = 50
"""Most faults that are reported for one input."""


class Model(BaseModel):
    """A frozen, strict model that refuses unknown fields and numbers that are not finite."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        validate_by_alias=True,
        validate_by_name=True,
        serialize_by_alias=True,
        json_schema_extra=describe_fields,
    )


class Faults:
    """Collects what is wrong, so that a validator reports everything at once.

    Only the first 50 faults are kept; the others are counted.
    """

    def __init__(self) -> None:
        self._details: list[InitErrorDetails] = []
        self._left_out = 0

    @property
    def count(self) -> int:
        """How many faults were found."""
        return len(self._details) + self._left_out

    def add(self, place: Sequence[str | int], detail: str, value: object = None, code: str = "contradiction") -> None:
        """Note one fault at a place given relative to the model being validated."""
        if len(self._details) < MAX_FAULTS:
            self._details.append(InitErrorDetails(type=fault(code, detail), loc=tuple(place), input=value))
        else:
            self._left_out += 1

    def raise_if_any(self, title: str) -> None:
        """Raise everything noted as one error of the model named ``title``."""
        if self._left_out:
            rest = PydanticCustomError("more_faults", "{count} more faults", {"count": self._left_out})
            self._details.append(InitErrorDetails(type=rest, loc=(), input=None))
        if self._details:
            raise ValidationError.from_exception_data(title, self._details)


def fault(code: str, detail: str) -> PydanticCustomError:
    """Make the error that a validator raises; ``detail`` may contain any character."""
    return PydanticCustomError(code, "{detail}", {"detail": detail})


def at_most(limit: int, what: str) -> BeforeValidator:
    """Make a validator that refuses a longer list before looking at its items.

    Parameters
    ----------
    limit
        Largest number of items allowed.
    what
        The plural name of the items, for the message.
    """

    def check(value: object) -> object:
        if isinstance(value, list | tuple) and len(value) > limit:
            raise fault("too_long", f"{len(value)} {what} are given; at most {limit} are allowed")
        return value

    return BeforeValidator(check)


def unique(what: str) -> BeforeValidator:
    """Make a validator that refuses a list in which a name or number stands twice.

    Parameters
    ----------
    what
        The singular name of the items, for the message.
    """

    def check(value: object) -> object:
        if not isinstance(value, list | tuple):
            return value
        faults = Faults()
        seen: set[str | int] = set()
        for index, item in enumerate(value):
            if isinstance(item, str | int):
                if item in seen:
                    faults.add((index,), f"{what} {item!r} is listed twice; list it once", item, "repeated")
                seen.add(item)
        faults.raise_if_any(what)
        return value

    return BeforeValidator(check)
