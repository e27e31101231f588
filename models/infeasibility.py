"""Parts of the reason why there is no plan: limits that cannot hold together, and changes that allow one."""

from pydantic import Field, JsonValue

from partita.models.base import Model


class NamedLimit(Model):
    """One limit that the problem sets.

    Attributes
    ----------
    name
        The field with dots, such as ``limits.peak_memory_bytes`` or ``constraints.pins.embed``.
    pointer
        JSON pointer to it in the problem.
    value
        What the problem has there.
    words
        What it demands, in words and numbers.
    """

    name: str
    pointer: str
    value: JsonValue
    words: str


class Change(Model):
    """One change of the problem after which a plan was found.

    Attributes
    ----------
    pointer
        JSON pointer to the field that changes.
    from_value, to_value
        What is there and what would be (``from`` and ``to`` in JSON); a ``to`` of None leaves the field out.
    size
        How large the change is: the relative change of a number; 1 where it was 0, a constraint is left out or another
        kind of recompute is taken.
    smallest
        Whether it is proven that no smaller change of this field is enough.
    words
        The change in words and numbers, those of times rounded to the side that works.
    objective_value
        What the best plan found then reaches, in the unit of the objective; None where time ran out before.
    """

    pointer: str
    from_value: JsonValue = Field(validation_alias="from", serialization_alias="from")
    to_value: JsonValue = Field(validation_alias="to", serialization_alias="to")
    size: float
    smallest: bool
    words: str
    objective_value: float | None = None
