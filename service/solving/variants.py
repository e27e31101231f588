"""From the body of a batch to its problems, each of which is read on its own later."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

from pydantic import Field, JsonValue, model_validator

from partita.models.base import Many, Model, fault
from partita.models.document import read_json, validate
from partita.models.errors import InvalidInput
from partita.service.settings import Settings

MOST_NAMED = 1_000
"""The longest name of a variant."""


class VariantRequest(Model):
    """A problem as a JSON merge patch to the base of its batch, with a name for its result."""

    name: str | None = Field(default=None, max_length=MOST_NAMED, pattern=r"^[^\x00]*$")
    patch: dict[str, JsonValue]


class BatchRequest(Model):
    """Many problems: ``problems`` as they are, or ``variants`` of a ``base``."""

    problems: Many[JsonValue] | None = None
    base: dict[str, JsonValue] | None = None
    variants: Many[VariantRequest] | None = None

    @model_validator(mode="after")
    def _one_form(self) -> "BatchRequest":
        """Refuse what is neither the one form nor the other."""
        forms = (self.problems is not None, self.base is not None, self.variants is not None)
        if forms not in ((True, False, False), (False, True, True)):
            raise fault("contradiction", "give either 'problems', or 'base' and 'variants'")
        return self


@dataclass(frozen=True, slots=True)
class Variant:
    """One problem of a batch: its name, and its JSON or the patch that makes it."""

    name: str | None
    body: bytes


@dataclass(frozen=True, slots=True)
class Split:
    """The problems of a batch; where there is a base, they are patches to it."""

    base: bytes | None
    variants: tuple[Variant, ...]


def split(body: bytes, lines: bool, settings: Settings) -> Split:
    """Split a batch into its problems.

    Parameters
    ----------
    body
        The body as it came.
    lines
        Whether it is NDJSON, with a problem on every line, or ``{"name": …, "problem": …}``.
    settings
        What the server allows.

    Raises
    ------
    InvalidInput
        When it is no batch, is empty or holds too many problems. What is wrong in one problem is told by its result.
    """
    if lines:
        found = Split(None, tuple(_of_lines(body)))
    else:
        asked = validate(BatchRequest, read_json(body))
        if asked.problems is not None:
            found = Split(None, tuple(Variant(None, _text(problem)) for problem in asked.problems))
        else:
            variants = tuple(Variant(each.name, _text(each.patch)) for each in asked.variants or ())
            found = Split(_text(asked.base), variants)
    count, most = len(found.variants), settings.max_variants
    if not 0 < count <= most:
        detail = f"the batch holds {count} problems; it must hold at least 1 and this server takes at most {most}"
        raise InvalidInput.at("", detail, str(count))
    return found


def _of_lines(body: bytes) -> Iterator[Variant]:
    """Read NDJSON; a line that cannot be read stays as it is, and fails alone."""
    for text in body.split(b"\n"):
        if not text.strip():
            continue
        try:
            value = read_json(text)
        except InvalidInput:
            value = None
        if isinstance(value, dict) and set(value) <= {"name", "problem"} and "problem" in value:
            name = value.get("name")
            yield Variant(name if _is_name(name) else None, _text(value["problem"]))
        else:
            yield Variant(None, text)


def _is_name(value: object) -> TypeGuard[str]:
    """Tell whether a value may name a variant."""
    return isinstance(value, str) and len(value) <= MOST_NAMED and "\0" not in value


def _text(value: object) -> bytes:
    """Write JSON."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
