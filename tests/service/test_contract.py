"""The service against its own description, with requests that a program makes up."""

import pytest
import schemathesis
from cli_calls import partita
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import CHECKS

from partita.service.api.openapi import openapi_document
from partita.service.settings import Settings

UNFIT = ("positive_data_acceptance",)  # a schema cannot say that names must exist and that there is room for all stages
SETTINGS = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@schemathesis.serializer("application/x-ndjson")
def lines(context, value):
    """Send text as it is."""
    return str(value).encode(errors="replace")


def described(coverage, require_keys=False):
    """Read the description; with ``coverage``, every field is also varied systematically, in thousands of requests."""
    schema = schemathesis.openapi.from_dict(openapi_document(Settings(require_keys=require_keys)))
    schema.config.phases.coverage.enabled = coverage
    return schema


random_schema, whole_schema, keyed_schema = described(False), described(True), described(False, require_keys=True)


@pytest.fixture(scope="session")
def keyed_server(tmp_path_factory):
    """A server that asks for keys: its client, and the headers of a key."""
    from processes import running

    folder = str(tmp_path_factory.mktemp("keyed"))
    options = ("--role", "admin", "--requests-per-minute", "100000", "--data", folder)
    key = partita("keys", "create", "alice", *options).out.strip()
    with running("-m", "partita.service", "serve", "--port", "0", "--data", folder) as (_, client):
        yield client, {"Authorization": f"Bearer {key}", "Prefer": "wait=30"}


def check(case, client, headers=None):
    """Send a request, and compare what comes back with the description."""
    excluded = [CHECKS.get_one(name) for name in UNFIT]
    base = str(client.base_url).rstrip("/")
    case.call_and_validate(base_url=base, headers=headers, excluded_checks=excluded, timeout=60)


@random_schema.parametrize()
@SETTINGS
def test_keeps_its_contract(case, real_client):
    """Tests that whatever is sent has an answer that the description allows."""
    check(case, real_client)


@keyed_schema.parametrize()
@settings(SETTINGS, max_examples=4, phases=[Phase.generate])  # the test above sends the examples
def test_keeps_its_contract_with_keys(case, keyed_server):
    """Tests the same where every call needs a key; each is also sent without one, and with a wrong one."""
    check(case, *keyed_server)


@pytest.mark.slow
@whole_schema.parametrize()
@SETTINGS
def test_keeps_its_contract_in_every_field(case, real_client):
    """Tests the same with every field at its limits and beyond."""
    check(case, real_client)
