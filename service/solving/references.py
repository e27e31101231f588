"""Problems that name stored profiles and clusters in place of holding them.

``{"ref": "bert24", "digest": "sha256:…"}`` may stand for the model or the cluster of a problem. Without the digest it
means what is stored under that name when the request is taken, with it that content and no other.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from partita.models.base import Model
from partita.models.document import read_json, validate
from partita.models.errors import Fault, InvalidInput
from partita.models.merge_patch import merged
from partita.service.names import NAME

DocumentKind = Literal["profile", "cluster"]

PLACES: dict[str, DocumentKind] = {"model": "profile", "cluster": "cluster"}
"""The members of a problem for which a reference may stand, and what it leads to."""

MARK = b'"ref"'
"""What a body holds that has references; where it is missing, nobody need look for them."""


class Reference(Model):
    """The name of a stored profile or cluster.

    Attributes
    ----------
    ref
        The name.
    digest
        Which content is meant; null for the one that is stored when the request is taken.
    """

    ref: Annotated[str, Field(pattern=NAME)]
    digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")] | None = None


class ReferenceChanged(InvalidInput):
    """A reference to a content that is not, or no longer, what is stored under its name."""

    default_code: ClassVar[str] = "reference_changed"


@dataclass(frozen=True, slots=True)
class Found:
    """A reference in a body, and the JSON pointer to it."""

    kind: DocumentKind
    name: str
    digest: str | None
    pointer: str


@dataclass(frozen=True, slots=True)
class References:
    """All references in a body."""

    found: tuple[Found, ...]


@dataclass(frozen=True, slots=True)
class Content:
    """What is stored under a name: canonical JSON, and its digest."""

    kind: DocumentKind
    name: str
    digest: str
    body: bytes


def references_in(problem: object, pointer: str = "") -> Iterator[Found]:
    """Give the references of a problem, or of a patch; those that are not well-formed are refused later."""
    for member, kind in PLACES.items():
        value = problem.get(member) if isinstance(problem, dict) else None
        if _is_reference(value):
            try:
                named = validate(Reference, value)
            except InvalidInput:
                continue
            yield Found(kind, named.ref, named.digest, f"{pointer}/{member}")


def references_of(body: bytes) -> References:
    """Give the references in a body that is a problem, or holds one; none where it cannot be read."""
    try:
        data = read_json(body)
    except InvalidInput:
        return References(())
    if isinstance(data, dict) and "problem" in data:
        return References(tuple(references_in(data["problem"], "/problem")))
    return References(tuple(references_in(data)))


def check(found: Iterable[Found], contents: Iterable[Content]) -> None:
    """Refuse references that lead nowhere.

    Raises
    ------
    InvalidInput
        Where nothing is stored under a name.
    ReferenceChanged
        Where something else is stored there than the digest says.
    """
    stored = {(content.kind, content.name): content for content in contents}
    missing, changed = list[Fault](), list[Fault]()
    for each in found:
        content = stored.get((each.kind, each.name))
        if content is None:
            detail = f"there is no stored {each.kind} of this name; PUT it to /v1/{each.kind}s/{each.name} first"
            missing.append(Fault(f"{each.pointer}/ref", detail, each.name, "unknown_reference"))
        elif each.digest not in (None, content.digest):
            detail = f"the stored {each.kind} {each.name} is {content.digest}; name that digest, or store the one meant"
            changed.append(Fault(f"{each.pointer}/digest", detail, each.digest, ReferenceChanged.default_code))
    if missing:
        raise InvalidInput(missing)
    if changed:
        raise ReferenceChanged(changed)


def filled_in(problem: object, contents: tuple[Content, ...], pointer: str = "") -> object:
    """Give a problem with the contents in place of its references; raises as ``check`` does, and for wrong ones."""
    if not isinstance(problem, dict):
        return problem
    result = dict(problem)
    for member, kind in PLACES.items():
        if _is_reference(problem.get(member)):
            result[member] = _content(problem[member], kind, contents, f"{pointer}/{member}")
    return result


def patched(base: object, patch: object, contents: tuple[Content, ...]) -> object:
    """Apply a merge patch to a base; a reference in the patch takes the place of what was there, whole."""
    whole = filled_in(base, contents)
    if not isinstance(patch, dict):
        return merged(whole, patch)
    named = {member: value for member, value in patch.items() if member in PLACES and _is_reference(value)}
    result = merged(whole, {member: value for member, value in patch.items() if member not in named})
    assert isinstance(result, dict)
    return filled_in({**result, **named}, contents)


def _is_reference(value: object) -> bool:
    """Tell whether a value is meant to be a reference; no model and no cluster has a member of that name."""
    return isinstance(value, dict) and "ref" in value


def _content(value: object, kind: DocumentKind, contents: tuple[Content, ...], pointer: str) -> object:
    """Give the content that a reference leads to."""
    try:
        named = validate(Reference, value)
    except InvalidInput as error:
        raise InvalidInput(Fault(pointer + f.pointer, f.detail, f.value, f.code) for f in error.faults) from None
    check([Found(kind, named.ref, named.digest, pointer)], contents)
    return read_json(next(each.body for each in contents if (each.kind, each.name) == (kind, named.ref)))
