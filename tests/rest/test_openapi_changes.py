"""Routes that change something, checked against the OpenAPI document with drawn requests."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.core.kit import RM, document, partition, queue
from tests.rest.steering_kit import ADMIN, VIEWER, Steered
from tests.rest.test_openapi import EXAMPLES, KNOWN
from yunikorn_rest.endpoints import Endpoint
from yunikorn_rest.guards import PERIOD, Throttle
from yunikorn_rest.routes.all_routes import ENDPOINTS
from yunikorn_service.log_levels import LogLevels

CHANGING = [one for one in ENDPOINTS if one.changes]


@pytest.fixture(scope="module")
def schema() -> Any:
    rm = RM(document(partition(queue("a"))))
    rm.node("n1", vcore=4)
    rm.app("app-1")
    rest = Steered(rm, log_levels=LogLevels(()))
    rest.gate.throttle = Throttle(itertools.count(0, PERIOD).__next__)
    return schemathesis.openapi.from_asgi("/ws/v1/openapi.json", rest.app)


@pytest.mark.parametrize("token", [ADMIN, VIEWER, "unknown"])
@pytest.mark.parametrize("endpoint", CHANGING, ids=lambda one: f"{one.method} {one.path}")
def test_answers_to_changes_are_as_documented(schema: Any, endpoint: Endpoint, token: str) -> None:
    operation = schema[endpoint.path][endpoint.method]
    statuses = set()

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def send(case: Any) -> None:
        for name in case.path_parameters or {}:
            case.path_parameters[name] = KNOWN[name]
        # The names of loggers, and what a configuration may contain, are not in the document.
        opaque = [positive_data_acceptance] if endpoint.method == "PUT" else []
        headers = {"Authorization": f"Bearer {token}"}
        statuses.add(case.call_and_validate(headers=headers, excluded_checks=opaque).status_code)

    send()
    assert statuses <= ({200, 400, 404, 409} if token == ADMIN else {400, 401, 403, 404})
    assert token == ADMIN or 200 not in statuses


def test_routes_that_change_something_are_found() -> None:
    assert len(CHANGING) >= 9
