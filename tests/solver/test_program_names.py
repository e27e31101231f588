"""Tests that the formulation as it is written names every family of rows that is built."""

import ast
import re
from pathlib import Path

import partita.solver.program

FOLDER = Path(partita.solver.program.__file__).parent
ROWS = ("at_least", "equal")


def rows_built() -> dict[str, set[str]]:
    """Give the names of the rows that every file of the program adds."""
    found: dict[str, set[str]] = {}
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ROWS:
                name = node.args[0]
                assert isinstance(name, ast.Constant | ast.Name), f"{path.name}: the name of a row is written out"
                if isinstance(name, ast.Constant):
                    found.setdefault(path.name, set()).add(str(name.value))
                else:  # the name is a parameter: the calls of the function tell it
                    found.setdefault(path.name, set()).update(names_passed(path, name.id))
    return found


def names_passed(path: Path, parameter: str) -> set[str]:
    """Give the texts that a file passes for a parameter of one of its functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    passed: set[str] = set()
    for function in functions:
        places = [argument.arg for argument in function.args.args]
        if parameter not in places:
            continue
        method = places[0] == "self"
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
                at = places.index(parameter) - method
                given = node.args[at] if called == function.name and len(node.args) > at else None
                if isinstance(given, ast.Constant):
                    passed.add(str(given.value))
    assert passed, f"{path.name}: nobody passes {parameter}"
    return passed


def test_every_family_of_rows_is_in_the_formulation() -> None:
    """Tests that the docstring of the program names each family as a word."""
    words = set(re.findall(r"\w+", partita.solver.program.__doc__ or ""))
    missing = {name: rows - words for name, rows in rows_built().items() if rows - words}
    assert not missing


def test_names_are_words() -> None:
    """Tests that PuLP has nothing to rewrite in them, and that the parts of the program build rows at all."""
    built = rows_built()
    assert {"assignment.py", "memory.py", "placement.py", "transfers.py", "timing.py", "builder.py"} <= set(built)
    assert all(name.isidentifier() for rows in built.values() for name in rows)
