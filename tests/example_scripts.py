"""Scripts of the folder of examples, as modules."""

import importlib.util
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(path: str) -> Any:
    """Import a script of the folder of examples, which is in no package."""
    place = EXAMPLES / path
    spec = importlib.util.spec_from_file_location(place.stem, place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
