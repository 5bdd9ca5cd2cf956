"""Health, history, probes, dumps, and the OpenAPI document."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.gangs import GangRM
from tests.core.kit import RM
from tests.rest.kit import Rest
from tests.whole_readings import read_at_once
from yunikorn.clock import SECOND
from yunikorn.interface.messages import NodeAction
from yunikorn_rest.endpoints import RestContext
from yunikorn_rest.health_check import HealthBoard, check
from yunikorn_rest.routes.all_routes import ENDPOINTS
from yunikorn_rest.sampled_history import KEPT, HistorySample, SampledHistory, take_sample
from yunikorn_rest.shapes import Health

NAMES = [
    "Scheduling errors",
    "Failed nodes",
    "Negative resources",
    "Negative resources",
    "Consistency of data",
    "Consistency of data",
    "Reservation check",
    "Orphan allocation on node check",
    "Orphan allocation on app check",
]


# -- health ----------------------------------------------------------------------------------------------


def test_health_of_an_empty_scheduler() -> None:
    found = Rest(RM()).json("scheduler/healthcheck")
    assert found["Healthy"] is True
    assert [check["Name"] for check in found["HealthChecks"]] == NAMES
    assert all(check["Succeeded"] for check in found["HealthChecks"])
    assert [check["DiagnosisMessage"] for check in found["HealthChecks"]] == [
        "There were 0 scheduling errors logged in the metrics",
        "There were 0 failed nodes logged in the metrics",
        "Partitions with negative resources: []",
        "Nodes with negative resources: []",
        "Partitions with inconsistent data: []",
        "Nodes with inconsistent data: []",
        "Reservation/node nr ratio: [NaN]",
        "Orphan allocations: []",
        "OrphanAllocations: []",
    ]


def test_failed_nodes_and_negative_resources_are_found() -> None:
    rm = RM()
    rm.node("n1", vcore=4)
    rm.node("n1", vcore=4)
    rm.app()
    rm.ask(vcore=4)
    rm.schedule()
    rm.change_node("n1", vcore=2)
    found = Rest(rm).json("scheduler/healthcheck")
    assert found["Healthy"] is False
    failed = [check["DiagnosisMessage"] for check in found["HealthChecks"] if not check["Succeeded"]]
    assert failed == [
        "There were 1 failed nodes logged in the metrics",
        'Nodes with negative resources: ["n1"]',
    ]


def test_wrong_accounting_is_found() -> None:
    rm = RM()
    rm.node("n1", vcore=4)
    rm.node("n2", vcore=4)
    rm.app()
    rm.ask("app", "ask", 2, vcore=1)
    rm.schedule()
    app = rm.find_app()
    first, second = app.allocations.values()
    del app.allocations[first.uuid]
    del rm.find_node(second.node.id).allocations[second.uuid]
    del rm.at_work().partition.nodes[first.node.id]
    found = read_at_once(rm.scheduler, check)
    failed = [check.diagnosis_message for check in found.health_checks if not check.succeeded]
    assert failed == [
        'Partitions with inconsistent data: ["[rm]default"]',
        f'Nodes with inconsistent data: ["{second.node.id}"]',
        f'OrphanAllocations: ["{second.uuid}"]',
    ]


def test_a_result_is_used_for_half_a_minute() -> None:
    now = 100 * SECOND
    board = HealthBoard(lambda: now)
    assert board.latest is None
    health = board.post(Health(healthy=True))
    now += 29 * SECOND
    assert board.latest is health
    now += SECOND
    assert board.latest is None


@given(
    st.lists(st.tuples(st.sampled_from(["step", "ask", "run", "release", "node", "gone"]), st.integers(0, 9)))
)
def test_decisions_during_a_check_are_no_false_alarm(actions: list[tuple[str, int]]) -> None:
    rm = GangRM()
    rm.node("n0", vcore=8)
    rm.node("n1", vcore=8)
    rm.app()
    rm.gang("gang", vcore=2)
    rm.task("gang", "ph", "tg", 2, placeholder=True, vcore=1)
    rm.task("gang", "real", "tg", 1, vcore=1)
    rm.schedule()
    slices = check(rm.scheduler)
    found: Health | None = None
    for turn, (action, number) in enumerate(actions):
        if action == "ask":
            rm.ask("app", f"ask{turn}", number + 1, vcore=1)
        elif action == "run":
            rm.scheduler.schedule(number)
        elif action == "release" and rm.running:
            uuid = sorted(rm.running)[number % len(rm.running)]
            rm.release(rm.running[uuid].application_id, uuid)
        elif action == "node":
            rm.node(f"m{turn}", vcore=8)
        elif action == "gone" and f"n{number}" in rm.at_work().partition.nodes:
            rm.change_node(f"n{number}", NodeAction.DECOMMISSION)
        elif action == "step" and found is None:
            try:
                next(slices)
            except StopIteration as end:
                found = end.value
    while found is None:
        try:
            next(slices)
        except StopIteration as end:
            found = end.value
    assert found.healthy, [one.diagnosis_message for one in found.health_checks if not one.succeeded]


# -- history ---------------------------------------------------------------------------------------------


def test_history() -> None:
    rm = RM()
    rm.pass_time(60)
    rm.node("n1", vcore=4)
    rm.app()
    rm.ask("app", "ask", 3, vcore=1)
    rm.schedule()
    rest = Rest(rm)
    assert rest.json("history/apps") == rest.json("history/containers") == []
    rest.context.history.add(read_at_once(rm.scheduler, take_sample))
    assert rest.json("history/apps") == [{"timestamp": 60 * SECOND, "totalApplications": "1"}]
    assert rest.json("history/containers") == [{"timestamp": 60 * SECOND, "totalContainers": "3"}]


def test_history_counts_starting_applications_as_running() -> None:
    rm = RM()
    rm.node("n1", vcore=4)
    rm.app()
    rm.ask(vcore=1)
    rm.schedule()
    rest = Rest(rm)
    rest.context.history.add(read_at_once(rm.scheduler, take_sample))
    assert rest.json("partition/default/application/app")["designState"] == "Starting"
    assert rest.json("history/apps")[0]["totalApplications"] == "1"


def test_history_has_the_samples_of_a_day() -> None:
    history = SampledHistory()
    for number in range(KEPT + 5):
        history.add(HistorySample(number, 0, 0))
    assert len(history.samples) == KEPT
    assert history.samples[0].time == 5


def test_samples_are_taken_at_intervals() -> None:
    rest = Rest(RM())

    async def keep(site: RestContext) -> None:
        task = asyncio.create_task(site.history.keep(site.core, 0.001))
        while len(site.history.samples) < 3:
            await asyncio.sleep(0.001)
        task.cancel()

    asyncio.run(keep(rest.context))


# -- probes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
def test_probes(path: str) -> None:
    answer = Rest(RM()).get(path)
    assert (answer.status_code, answer.text) == (200, "ok\n")
    assert answer.headers["cache-control"] == "no-store"


def test_readiness_fails_while_the_rest_of_the_service_is_not_ready() -> None:
    rest = Rest(RM(), unready=lambda: "another replica leads")
    answer = rest.get("/readyz")
    assert answer.status_code == 503
    assert "another replica leads" in answer.text
    assert rest.get("/livez").status_code == 200


# -- dumps -----------------------------------------------------------------------------------------------


def test_state_dump() -> None:
    rm = RM()
    rm.pass_time(60)
    rm.node("n1", vcore=4)
    rm.app()
    rm.ask(vcore=1)
    rm.schedule()
    rm.app("lost", "root.none")
    rest = Rest(rm)
    rest.context.history.add(read_at_once(rm.scheduler, take_sample))
    redirected = rest.get("fullstatedump?x=1")
    assert (redirected.status_code, redirected.headers["location"]) == (301, "/debug/fullstatedump?x=1")
    dump = rest.json("/debug/fullstatedump")
    assert dump["timestamp"] == 60 * SECOND
    assert dump["partitions"] == rest.json("partitions")
    assert dump["queues"] == [rest.json("partition/default/queues")]
    assert dump["nodes"] == [{"partitionName": "default", "nodesInfo": rest.json("partition/default/nodes")}]
    assert dump["applications"] == [
        *rest.json("partition/default/applications/active"),
        *rest.json("partition/default/applications/rejected"),
    ]
    assert dump["clusterInfo"] == rest.json("clusters")
    assert dump["appHistory"] == rest.json("history/apps")
    assert dump["containerHistory"] == rest.json("history/containers")
    assert dump["config"] == rest.request("GET", "config", {"accept": "application/json"}).json()
    assert dump["placementRules"] == [
        {"partition": "default", "rules": rest.json("partition/default/placementrules")}
    ]
    assert dump["rmDiagnostics"] == {"empty": "Resource Manager did not register callback"}
    assert dump["logLevel"]


def test_stacks_of_all_threads() -> None:
    rest = Rest(RM())
    assert rest.get("stack").headers["location"] == "/debug/stack"
    answer = rest.get("/debug/stack")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert "MainThread" in answer.text


# -- OpenAPI ---------------------------------------------------------------------------------------------


def references(value: Any) -> set[str]:
    """Return the names of all schemas that a document refers to."""
    if isinstance(value, dict):
        own = {value["$ref"].rpartition("/")[2]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def test_every_route_is_in_the_openapi_document() -> None:
    found = Rest(RM()).json("openapi.json")
    assert found["openapi"] == "3.1.0"
    described = {(path, method.upper()) for path, one in found["paths"].items() for method in one}
    assert described == {(endpoint.path, endpoint.method) for endpoint in ENDPOINTS}
    assert references(found) == found["components"]["schemas"].keys()
    operations = [one["operationId"] for path in found["paths"].values() for one in path.values()]
    assert len(operations) == len(set(operations))


def test_every_field_is_described() -> None:
    schemas = Rest(RM()).json("openapi.json")["components"]["schemas"]
    for name, schema in schemas.items():
        assert schema["description"], name
        for field, described in schema["properties"].items():
            assert described["description"], f"{name}.{field}"
        assert set(schema["required"]) <= schema["properties"].keys()


def test_answers_agree_with_the_openapi_document() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    rm = RM()
    rm.pass_time(60)
    rm.node("n1", {"a": "b"}, vcore=4)
    rm.app()
    rm.ask("app", "ask", 2, vcore=1)
    rm.ask("app", "large", vcore=9)
    rm.schedule()
    rest = Rest(rm)
    rest.context.history.add(read_at_once(rm.scheduler, take_sample))
    document = rest.json("openapi.json")
    values = {"partition": "default", "queue": "root.a", "application": "app", "node": "n1", "user": "user"}
    checked = 0
    for path, methods in document["paths"].items():
        schema = methods.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        if "application/json" not in schema or "{group}" in path or path.endswith("whoami"):
            continue
        if "501" in methods["get"]["responses"]:
            continue  # it needs a history: tests/rest/test_history_routes.py
        answer = rest.request("GET", path.format(state="active", **values), {"accept": "application/json"})
        assert answer.status_code == 200, path
        whole = {**schema["application/json"]["schema"], "components": document["components"]}
        jsonschema.validate(answer.json(), whole)
        checked += 1
    assert checked > 15
