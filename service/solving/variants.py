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
from partita.service.solving.references import Found, references_in

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
    """The problems of a batch; where there is a base, they are patches to it.

    Attributes
    ----------
    base, variants
        The base, None where there is none, and the problems or patches.
    of_base, of_variants
        The references in the base, and the different ones in the variants.
    """

    base: bytes | None
    variants: tuple[Variant, ...]
    of_base: tuple[Found, ...] = ()
    of_variants: tuple[Found, ...] = ()


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
        named: set[Found] = set()
        found = Split(None, tuple(_of_lines(body, named)), (), _sorted(named))
    else:
        asked = validate(BatchRequest, read_json(body))
        if asked.problems is not None:
            named = {each for problem in asked.problems for each in references_in(problem)}
            found = Split(None, tuple(Variant(None, _text(problem)) for problem in asked.problems), (), _sorted(named))
        else:
            variants = tuple(Variant(each.name, _text(each.patch)) for each in asked.variants or ())
            named = {found for each in asked.variants or () for found in references_in(each.patch)}
            found = Split(_text(asked.base), variants, tuple(references_in(asked.base, "/base")), _sorted(named))
    count, most = len(found.variants), settings.max_variants
    if not 0 < count <= most:
        detail = f"the batch holds {count} problems; it must hold at least 1 and this server takes at most {most}"
        raise InvalidInput.at("", detail, str(count))
    return found


def _sorted(named: set[Found]) -> tuple[Found, ...]:
    """Bring references into an order that does not change from process to process."""
    return tuple(sorted(named, key=lambda each: (each.kind, each.name, each.digest or "")))


def _of_lines(body: bytes, named: set[Found]) -> Iterator[Variant]:
    """Read NDJSON and note its references; a line that cannot be read stays as it is, and fails alone."""
    for text in body.split(b"\n"):
        if not text.strip():
            continue
        try:
            value = read_json(text)
        except InvalidInput:
            value = None
        if isinstance(value, dict) and set(value) <= {"name", "problem"} and "problem" in value:
            name = value.get("name")
            named.update(references_in(value["problem"]))
            yield Variant(name if _is_name(name) else None, _text(value["problem"]))
        else:
            found = set(references_in(value))
            named.update(found)
            yield Variant(None, _text(value) if found else text)  # so that names stand there without escapes


def _is_name(value: object) -> TypeGuard[str]:
    """Tell whether a value may name a variant."""
    return isinstance(value, str) and len(value) <= MOST_NAMED and "\0" not in value


def _text(value: object) -> bytes:
    """Write JSON."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
