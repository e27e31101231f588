"""The container file, the compose file and the operator's page: every command, option and name in them exists."""

import re
from pathlib import Path

import pytest
import typer
import yaml

from partita.service.api.app import ROUTERS
from partita.service.commands.app import app
from partita.service.metrics import Metrics

ROOT = Path(__file__).parents[1]
CONTAINER = (ROOT / "deploy" / "Containerfile").read_text()
COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
PAGE = (ROOT / "docs" / "operating.md").read_text()
COMMANDS = typer.main.get_command(app).commands
PATHS = {route.path for router in ROUTERS for route in router.routes}
OURS = [name for name, service in COMPOSE["services"].items() if service["image"] == "partita"]


def options(command):
    """Give the options of a command, with what each is called in the environment."""
    return {name: each.envvar for each in COMMANDS[command].params for name in each.opts}


def told_in(text):
    """Give the options, variables and paths that a text names."""
    return (
        set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)),
        set(re.findall(r"PARTITA_[A-Z_]+", text)),
        set(re.findall(r"(?:GET |127\.0\.0\.1:\d+)(/[a-z]+)", text)),
    )


@pytest.mark.parametrize("name", OURS)
def test_compose_starts_what_exists(name):
    """Tests that commands, options and variables of our services are those of the command line."""
    service = COMPOSE["services"][name]
    command, *given = service["command"]
    known = options(command)
    assert [each for each in given if each.startswith("-") and each not in known] == []
    assert set(service["environment"]) <= set(known.values())
    COMMANDS[command].make_context(command, list(given))  # refuses values that are none


def test_compose_has_a_store_and_two_workers():
    """Tests that server and workers use one database, whose name and user are those that it is made with."""
    database, worker = COMPOSE["services"]["database"], COMPOSE["services"]["worker"]
    assert worker["deploy"]["replicas"] == 2
    user, name = database["environment"]["POSTGRES_USER"], database["environment"]["POSTGRES_DB"]
    for each in OURS:
        address = COMPOSE["services"][each]["environment"]["PARTITA_DATABASE"]
        assert re.fullmatch(rf"postgresql://{user}:\$\{{POSTGRES_PASSWORD\}}@(database|127\.0\.0\.1)/{name}", address)
    assert all(port.startswith("127.0.0.1:") for port in database["ports"])


def test_the_image_has_no_privileges():
    """Tests that it runs as a user of its own, in the folder that this user owns, and is asked whether it is ready."""
    user = re.findall(r"^USER (\S+)$", CONTAINER, re.MULTILINE)[-1]
    folder = re.search(r"PARTITA_DATA=(\S+)", CONTAINER)[1]
    assert re.search(rf"useradd .*--home-dir {folder} --create-home {user}$", CONTAINER, re.MULTILINE)
    assert CONTAINER.index("USER ") < CONTAINER.index("ENTRYPOINT")
    assert "/readyz" in CONTAINER.split("HEALTHCHECK")[1].splitlines()[1]
    assert (ROOT / ".dockerignore").read_text().splitlines()[:2] == [".git", ".venv"]


@pytest.mark.parametrize("text", [CONTAINER, PAGE, (ROOT / "deploy" / "compose.yaml").read_text()])
def test_names_exist(text):
    """Tests that no text names an option, a variable or a path of the service that does not exist."""
    named, variables, paths = told_in(text)
    known = {**options("serve"), **options("worker"), **options("plan")}
    keys = COMMANDS["keys"].commands.values()
    others = {name for command in keys for each in command.params for name in each.opts}
    others |= {
        "--no-cache-dir",
        "--no-deps",
        "--wheel-dir",
        "--mount",
        "--system",
        "--uid",
        "--home-dir",
        "--create-home",
    }
    others |= {"--interval", "--timeout", "--start-period", "--from", "--username", "--build", "--detach", "--help"}
    assert named - set(known) - others == set()
    assert variables - set(filter(None, known.values())) == set()
    assert paths - PATHS == set()


def test_figures_of_the_page_exist():
    """Tests that every figure that the page tells to watch is one that the service has."""
    families = {name for family in Metrics().registry.collect() for name in (family.name, f"{family.name}_total")}
    named = set(re.findall(r"`(partita_[a-z_]+)`", PAGE))
    assert len(named) > 8 and named <= families


def test_places_exist():
    """Tests that the files that the page names are there."""
    for path in re.findall(r"`((?:deploy|docs)/[\w.]+)`", PAGE):
        assert (ROOT / path).is_file()
