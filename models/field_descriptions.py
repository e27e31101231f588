"""What a model's docstring says of its fields, put where readers of the JSON Schema look for it: at each field."""

import re
from inspect import cleandoc
from typing import Any

from pydantic import BaseModel

_SECTION = re.compile(r"\n*^Attributes\n-+\n(?P<body>.*?)(?=\n\n\w+\n-+\n|\Z)", re.DOTALL | re.MULTILINE)
_ENTRY = re.compile(r"^(?P<names>\w+(?:, \w+)*)\n(?P<text>(?: {4}.*(?:\n|\Z)|\n)+)", re.MULTILINE)


def describe_fields(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Move what the docstring says of attributes to the properties of the schema; inherited ones as well.

    An entry for several attributes is given to each of them.

    Parameters
    ----------
    schema
        The model's own JSON Schema, changed in place.
    model
        The model, its docstring in numpy style.
    """
    if "description" in schema:
        schema["description"] = _SECTION.sub("", schema["description"])
    texts = {name: text for each in reversed(model.__mro__) for name, text in _entries(each.__doc__ or "").items()}
    for name, field in model.model_fields.items():
        place = schema.get("properties", {}).get(field.alias or field.serialization_alias or name)
        if place is not None and name in texts:
            place.setdefault("description", texts[name])


def _entries(docstring: str) -> dict[str, str]:
    """Give the text of every attribute that a docstring lists, on one line."""
    section = _SECTION.search(cleandoc(docstring))
    if section is None:
        return {}
    entries = _ENTRY.finditer(section["body"] + "\n")
    return {name: " ".join(entry["text"].split()) for entry in entries for name in entry["names"].split(", ")}
