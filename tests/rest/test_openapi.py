"""The OpenAPI document, checked against the running application with drawn requests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.core.kit import RM, document, partition, queue
from tests.history.written_history import START, WrittenHistory
from tests.rest.kit import Rest
from yunikorn.clock import MILLISECOND
from yunikorn_history.history_tables import CONFIGS
from yunikorn_rest.endpoints import Endpoint
from yunikorn_rest.kept_history import KeptHistory
from yunikorn_rest.routes.all_routes import ENDPOINTS

EXAMPLES = 8
"""Number of drawn requests for each route."""
KNOWN = {
    "partition": "default",
    "queue": "root.a",
    "application": "app-1",
    "node": "n1",
    "user": "ann",
    "group": "dev",
    "number": "1",
}
"""Names of objects that exist, by parameter of the path."""
LONG = ("/ws/v1/events/stream", "/debug/pprof/profile")
"""Routes that take as long as a client wants."""
READING = [
    one
    for one in ENDPOINTS
    if one.path not in LONG and (one.method == "GET" or one.path.endswith("/validate-conf"))
]
WITH_NAMES = [one for one in READING if "{" in one.path]


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Rest:
    """The routes over a cluster that has one of everything."""
    limits = [
        {"limit": "ann", "users": ["ann"], "maxapplications": 2},
        {"limit": "dev", "groups": ["dev"], "maxapplications": 3},
    ]
    rm = RM(document(partition(queue("a", limits=limits), queue("p", queue("b")))))
    rm.node("n1", vcore=4)
    rm.app("app-1", user="ann", groups=["dev"])
    rm.ask("app-1", "task", 8, vcore=1)
    rm.schedule()
    history = WrittenHistory()
    history.task(history.application("app-1", START), "task", START)
    history.add(CONFIGS, time=START, text="partitions: []")
    location = str(tmp_path_factory.mktemp("history") / "history.db")
    history.write(location)
    return Rest(rm, past=KeptHistory(location, lambda: START * MILLISECOND))


@pytest.fixture(scope="module")
def schema(rest: Rest) -> Any:
    return schemathesis.openapi.from_asgi("/ws/v1/openapi.json", rest.app)


def check(schema: Any, endpoint: Endpoint, known: Iterable[tuple[str, str]] = ()) -> set[int]:
    """Send drawn requests, compare the answers with the document, and return their statuses."""
    statuses: set[int] = set()
    operation = schema[endpoint.path][endpoint.method]

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def send(case: Any) -> None:
        for name, value in known:
            if name in case.path_parameters:
                case.path_parameters[name] = value
        # A token of a page is from an earlier answer, which a drawn one is not.
        excluded = [positive_data_acceptance] if "continue" in (case.query or {}) else []
        if 501 in endpoint.errors:
            excluded.append(not_a_server_error)
        statuses.add(case.call_and_validate(excluded_checks=excluded).status_code)

    send()
    return statuses


@pytest.mark.parametrize("endpoint", READING, ids=lambda one: f"{one.method} {one.path}")
def test_answers_are_as_documented(schema: Any, endpoint: Endpoint) -> None:
    check(schema, endpoint)


@pytest.mark.parametrize("endpoint", WITH_NAMES, ids=lambda one: one.path)
def test_answers_about_objects_that_exist_are_as_documented(schema: Any, endpoint: Endpoint) -> None:
    assert 200 in check(schema, endpoint, KNOWN.items())


def test_schemas_are_valid(rest: Rest) -> None:
    schemas = rest.json("openapi.json")["components"]["schemas"]
    for one in schemas.values():
        Draft202012Validator.check_schema(one)
    assert len(schemas) > 30
