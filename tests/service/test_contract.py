"""The service against its own description, with requests that a program makes up."""

import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import CHECKS

from partita.service.openapi import openapi_document
from partita.service.settings import Settings

UNFIT = {"positive_data_acceptance"}  # a schema cannot say that names must exist and times add up
schema = schemathesis.openapi.from_dict(openapi_document(Settings()))


def run(call, real_client, case):
    case.call_and_validate(
        base_url=str(real_client.base_url).rstrip("/"), excluded_checks=[CHECKS.get_one(name) for name in UNFIT]
    )


@schema.parametrize()
@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_keeps_its_contract(case, real_client):
    """Tests that whatever is sent has an answer that the description allows."""
    run(None, real_client, case)
