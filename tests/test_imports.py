"""Imports go one way, models <- solver <- service, and each outside library is used in one part only."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

ROOT = Path(__file__).parents[1]

MAY_IMPORT = {
    "models": {"partita.models"},
    "solver": {"partita.models", "partita.solver"},
    "service": {"partita.models", "partita.solver", "partita.service"},
}
"""The parts of Partita that each part may use."""

CAPTURE = Path("models", "pytorch")
"""The only folder that may use torch."""

OUTSIDE = {
    "models": {"pydantic", "pydantic_core"},
    "solver": {"highspy", "numpy", "ortools", "pulp", "pydantic"},
    "service": {
        "alembic",
        "dbos",
        "fastapi",
        "httpx",
        "opentelemetry",
        "prometheus_client",
        "pydantic",
        "pydantic_core",
        "rich",
        "sqlalchemy",
        "starlette",
        "typer",
        "uvicorn",
        "vl_convert",
    },
}
"""The libraries that each part may use besides Python's own."""

SOLVERS = {"pulp", "ortools", "highspy"}
WEB = {"alembic", "dbos", "fastapi", "prometheus_client", "rich", "sqlalchemy", "starlette"} | {
    "typer",
    "uvicorn",
    "vl_convert",
}


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    """Give line and module of every import of a file, those inside functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write the import from partita on"
            if node.module == "partita":
                yield from ((node.lineno, f"partita.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, str(node.module)


def is_allowed(part: str, module: str, inside: Path | None = None) -> bool:
    """Tell whether a part, or the file ``inside`` of it, may import a module."""
    top = module.partition(".")[0]
    if top == "torch":
        return inside is not None and CAPTURE in inside.parents
    if top == "partita":
        return module == "partita.__version__" or ".".join(module.split(".")[:2]) in MAY_IMPORT[part]
    return top in sys.stdlib_module_names or top in OUTSIDE[part]


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_a_part_imports_only_what_it_may(part: str) -> None:
    """Tests that no file of a part reaches for another part's libraries, or for a part above it."""
    files = sorted((ROOT / part).rglob("*.py"))
    assert files
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {module}"
        for path in files
        for line, module in imports_of(path)
        if not is_allowed(part, module, path.relative_to(ROOT))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("part", "module"),
    [
        ("models", "partita.solver.costs"),
        ("models", "numpy"),
        ("solver", "partita.service"),  # upward
        ("solver", "fastapi"),
        ("service", "pulp"),
        ("service", "ortools.sat.python"),
        ("service", "torch"),
        ("models", "torch.fx"),
        ("models", "models.errors"),  # the bare folder name
    ],
)
def test_the_rule_refuses_what_it_should(part: str, module: str) -> None:
    """Tests that the test above can fail."""
    assert not is_allowed(part, module)


def test_one_module_knows_the_queue_engine() -> None:
    """Tests that the engine of the job queue could be replaced in one place."""
    users = [path for path in (ROOT / "service").rglob("*.py") if "dbos" in path.read_text(encoding="utf-8").lower()]
    assert [path.name for path in users] == ["queue.py"]


def test_import_linter_contracts_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests the contracts of pyproject.toml, which follow imports through several files."""
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT / "src"))
    assert lint_imports(no_cache=True) == EXIT_STATUS_SUCCESS


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("partita.models.problem", SOLVERS | WEB | {"numpy", "torch"}),
        ("partita.models.answer", SOLVERS | WEB | {"numpy", "torch"}),
        ("partita.solver.planner", WEB | {"torch"}),
        ("partita.service.commands.app", {"torch"}),
        ("partita.service.api.app", {"torch", "opentelemetry.sdk"}),
        ("partita.service.client", SOLVERS | WEB | {"numpy", "torch", "partita.solver"}),
    ],
)
def test_a_part_runs_without_the_libraries_of_others(module: str, unwanted: set[str]) -> None:
    """Tests that a part can be imported where the libraries of the others cannot."""
    blocked = "".join(f"sys.modules[{name!r}] = None\n" for name in sorted(unwanted))
    code = f"import sys\nsys.path.insert(0, {str(ROOT / 'src')!r})\n{blocked}import {module}\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
