"""Changes over REST: roles, admin ACLs of queues, effects, and abuses."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.core.kit import RM, configuration, queue
from tests.rest.kit import Rest
from tests.rest.steering_kit import ADMIN, OPERATOR, TOKENS, VIEWER, Steered, entries
from yunikorn_rest.audit import Audit
from yunikorn_rest.guards import BURST, PERIOD
from yunikorn_rest.operator_actions import Change
from yunikorn_rest.route_access import Caller

CONFIG = configuration(
    queue("a"),
    queue("owned", queue("b"), adminacl="zoe dev"),
    queue("stopped", properties={"queue.state": "stopped"}),
)
QUEUE, NODE, APP = "partition/default/queue", "partition/default/node", "partition/default/application"


@pytest.fixture
def rm() -> RM:
    """Return an RM with a node, and an application in each queue."""
    rm = RM(CONFIG)
    rm.node(memory=10)
    rm.app("app", "root.a")
    rm.app("other", "root.owned.b")
    return rm


ROUTES = {
    "partition/default/stop": "operate",
    "partition/default/start": "operate",
    f"{QUEUE}/root.a/stop": "operate",
    f"{QUEUE}/root.a/start": "operate",
    f"{NODE}/n1/drain": "operate",
    f"{NODE}/n1/undrain": "operate",
    f"{APP}/app/fail": "operate",
}
ORDER = list(TOKENS)


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("role", ["", *TOKENS])
def test_each_change_needs_its_role(rm: RM, path: str, role: str) -> None:
    rest = Steered(rm)
    answer = rest.ask("POST", path, TOKENS.get(role, ""))
    if not role:
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == 'Bearer realm="yunikorn"'
    elif ORDER.index(role) < ORDER.index(ROUTES[path]):
        assert answer.status_code == 403
        assert f"the role {ROUTES[path]} is needed" in answer.json()["message"]
    else:
        assert answer.status_code == 200, answer.text
        assert answer.json().keys() == {"changed", "before", "after"}


@pytest.mark.parametrize("path", ROUTES)
def test_nothing_can_be_changed_without_credentials_configured(rm: RM, path: str) -> None:
    answer = Rest(rm).request("POST", path, {"authorization": f"Bearer {ADMIN}"})
    assert answer.status_code == 403
    assert "--rest-credentials" in answer.json()["message"]
    assert Rest(rm).get("whoami").status_code == 403


def test_queue_is_stopped_and_started(rm: RM) -> None:
    rest = Steered(rm)
    before = {"changed": True, "before": "Active", "after": "Stopped"}
    assert rest.change(f"{QUEUE}/ROOT.a/stop") == before
    assert rest.change(f"{QUEUE}/root.a/stop") == {**before, "changed": False, "before": "Stopped"}
    rm.ask("app", memory=1)
    assert rm.schedule() == []
    assert rest.change(f"{QUEUE}/root.a/start") == {"changed": True, "before": "Stopped", "after": "Active"}
    assert len(rm.schedule()) == 1


def test_partition_is_stopped_and_started(rm: RM) -> None:
    rest = Steered(rm)
    assert rest.change("partition/default/stop", OPERATOR)["after"] == "Stopped"
    assert rest.change("partition/default/start", OPERATOR)["after"] == "Active"


def test_node_is_drained_and_undrained(rm: RM) -> None:
    rest = Steered(rm)
    drained = "Draining, drained by operator"
    assert rest.change(f"{NODE}/n1/drain") == {"changed": True, "before": "Schedulable", "after": drained}
    assert rest.json(f"{NODE}/n1")["drainedBy"] == ["operator"]
    assert rest.change(f"{NODE}/n1/drain")["changed"] is False
    assert rest.change(f"{NODE}/n1/undrain") == {"changed": True, "before": drained, "after": "Schedulable"}
    assert "drainedBy" not in rest.json(f"{NODE}/n1")


def test_application_fails_with_the_reason(rm: RM) -> None:
    rest = Steered(rm)
    rm.take_response()
    assert rest.change(f"{APP}/app/fail", reason="budget is spent")["changed"] is True
    assert rm.state("app") in ("Failing", "Failed")
    updates = rm.take_response().updated_applications
    assert [update.state for update in updates] == ["Failing", "Failed"]
    assert "budget is spent (by operator anna)" in updates[0].message


def test_application_that_has_ended_is_not_failed_again(rm: RM) -> None:
    rest = Steered(rm)
    rest.change(f"{APP}/app/fail")
    assert rest.change(f"{APP}/app/fail") == {"changed": False, "before": "Failed", "after": "Failed"}
    rm.app("refused", "root.none")
    answer = rest.ask("POST", f"{APP}/refused/fail", ADMIN)
    assert (answer.status_code, answer.json()["message"]) == (
        409,
        "the application has ended already, it is Rejected",
    )


def test_reasons_are_printable(rm: RM) -> None:
    answer = Steered(rm).ask("POST", f"{APP}/app/fail", ADMIN, content=b'{"reason": "a\\ud800\\u001b\\nb"}')
    assert answer.status_code == 200
    assert rm.take_response().updated_applications[0].message == "a\\ud800\\x1b\\nb (by operator anna)"


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("partition/none/stop", 404, "Partition not found"),
        (f"{QUEUE}/root.none/stop", 404, "Queue not found"),
        (f"{QUEUE}/a.b!/stop", 400, "invalid queue name"),
        (f"{NODE}/n2/drain", 404, "Node not found"),
        (f"{NODE}/n2/undrain", 404, "Node not found"),
        (f"{APP}/none/fail", 404, "Application not found"),
        (f"{QUEUE}/root.stopped/start", 409, "is stopped by its property queue.state"),
    ],
)
def test_what_cannot_be_changed_is_refused(rm: RM, path: str, status: int, message: str) -> None:
    answer = Steered(rm).ask("POST", path, ADMIN)
    assert answer.status_code == status
    assert message in answer.json()["message"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not valid JSON"),
        (b"[" * 100_000, "larger than"),
        (b"[" * 60_000, "not valid JSON"),
        (b"[]", "not a JSON object"),
        (b"\xff", "not valid JSON"),
        (b'{"reason": 1}', "expected a text"),
        (b'{"raeson": "x"}', "did you mean 'reason'"),
        (json.dumps({"reason": "x" * 1001}).encode(), "at most 1000"),
    ],
)
def test_bodies_that_cannot_be_used_change_nothing(rm: RM, content: bytes, message: str) -> None:
    answer = Steered(rm).ask("POST", f"{APP}/app/fail", ADMIN, content=content)
    assert answer.status_code in (400, 413)
    assert message in answer.json()["message"]
    assert rm.state("app") == "New"


# -- admin ACLs ------------------------------------------------------------------------------------------


def test_admin_acl_decides_about_its_queue_and_those_below(rm: RM) -> None:
    rest = Steered(rm)
    for path in (f"{QUEUE}/root.owned/stop", f"{QUEUE}/root.owned.b/stop", f"{APP}/other/fail"):
        refused = rest.ask("POST", path, OPERATOR)
        assert refused.status_code == 403
        assert "in the adminacl of root.owned" in refused.json()["message"]
        assert rest.ask("POST", path, VIEWER).status_code == 200
    assert rest.ask("POST", f"{QUEUE}/root.owned/start", ADMIN).status_code == 200


def test_admin_acl_gives_no_right_to_other_objects(rm: RM) -> None:
    rest = Steered(rm)
    assert rest.ask("POST", f"{QUEUE}/root/stop", VIEWER).status_code == 403
    assert rest.ask("POST", f"{NODE}/n1/drain", VIEWER).status_code == 403


# -- credentials -----------------------------------------------------------------------------------------


def test_who_am_i(rm: RM) -> None:
    rest = Steered(rm)
    assert rest.ask("GET", "whoami", VIEWER).json() == {"name": "vera", "role": "view", "groups": ["dev"]}
    certified = rest.ask("GET", "whoami", certificate="carl.example.org")
    assert certified.json() == {"name": "carl", "role": "operate", "groups": []}
    assert rest.ask("GET", "whoami", certificate="someone.else").status_code == 401
    assert rest.ask("GET", "whoami").status_code == 401
    assert rest.ask("POST", f"{NODE}/n1/drain", certificate="carl.example.org").status_code == 200


def test_a_token_counts_before_a_certificate(rm: RM) -> None:
    rest = Steered(rm)
    assert rest.ask("GET", "whoami", VIEWER, certificate="carl.example.org").json()["name"] == "vera"
    assert rest.ask("GET", "whoami", "wrong", certificate="carl.example.org").status_code == 401


def basic(name: str, token: str) -> dict[str, str]:
    """Return the header of HTTP Basic."""
    return {"authorization": f"Basic {base64.b64encode(f'{name}:{token}'.encode()).decode()}"}


def test_basic_is_for_reading_only(rm: RM) -> None:
    rest = Steered(rm, reading_is_open=False)
    unknown = rest.ask("GET", "partitions")
    assert unknown.status_code == 401
    assert unknown.headers["www-authenticate"].startswith('Basic realm="yunikorn"')
    assert rest.ask("GET", "partitions", headers=basic("vera", VIEWER)).status_code == 200
    assert rest.ask("GET", "partitions", headers=basic("otto", VIEWER)).status_code == 401
    changing = rest.ask("POST", f"{NODE}/n1/drain", headers=basic("anna", ADMIN))
    assert changing.status_code == 401
    assert "Bearer" in changing.json()["message"]


def test_reading_where_it_is_not_open(rm: RM) -> None:
    rest = Steered(rm, reading_is_open=False)
    for path in ("partitions", "config", "metrics", "events/batch", "/debug/stack", "openapi.json"):
        assert rest.ask("GET", path).status_code == 401, path
    assert rest.ask("POST", "validate-conf").status_code == 401
    assert rest.ask("POST", "validate-conf", VIEWER).status_code == 200
    assert rest.ask("GET", "/livez").status_code == 200
    assert rest.ask("GET", "/readyz").status_code == 200
    assert rest.ask("GET", "partitions", VIEWER).status_code == 200


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        f"Bearer {'x' * 60_000}",
        f"bearer {ADMIN} {ADMIN}",
        f"Digest {ADMIN}",
        ADMIN,
        "Basic",
        "Basic ===",
        "Basic /w==",
        "\x80\xff",
        f"Bearer {ADMIN[:-1]}",
    ],
)
def test_odd_credentials_are_unknown(rm: RM, header: str) -> None:
    rest = Steered(rm)
    for method, path in (("GET", "partitions"), ("POST", f"{NODE}/n1/drain")):
        answer = rest.ask(method, path, headers=[("authorization", header.encode("latin-1"))])  # type: ignore[list-item]
        assert answer.status_code == 401
        assert ADMIN not in answer.text


def test_two_authorizations_are_unknown(rm: RM) -> None:
    headers = [("authorization", f"Bearer {ADMIN}"), ("authorization", f"Bearer {VIEWER}")]
    assert Steered(rm).ask("GET", "whoami", headers=headers).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "https://localhost:9080"},
        {"origin": "http://localhost:9081"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_pages_of_other_sites_cannot_change_anything(rm: RM, headers: dict[str, str]) -> None:
    rest = Steered(rm)
    path = f"{NODE}/n1/drain"
    for answer in (
        rest.ask("POST", path, ADMIN, headers=headers),
        rest.ask("POST", path, headers=headers, certificate="carl.example.org"),
    ):
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers
    assert rm.find_node().schedulable


def test_own_page_may_change_something(rm: RM) -> None:
    headers = {"origin": "http://localhost:9080", "sec-fetch-site": "same-origin"}
    assert Steered(rm).ask("POST", f"{NODE}/n1/drain", ADMIN, headers=headers).status_code == 200


def test_preflights_permit_no_changes(rm: RM) -> None:
    answer = Steered(rm).ask("OPTIONS", f"{NODE}/n1/drain")
    assert "access-control-allow-origin" not in answer.headers
    answer = Steered(rm).ask("OPTIONS", "partitions")
    assert "authorization" not in answer.headers["access-control-allow-headers"].lower()


def test_guesses_are_slowed_down_but_not_others(rm: RM) -> None:
    rest = Steered(rm)
    assert rest.ask("GET", "whoami", VIEWER).status_code == 200
    for _ in range(BURST):
        rest.time += 10_000_000
        assert rest.ask("GET", "whoami", "wrong").status_code == 401
    for token in ("wrong", ADMIN):
        answer = rest.ask("GET", "whoami", token)
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "60")
    assert rest.ask("GET", "whoami", VIEWER).status_code == 200
    assert rest.ask("GET", "whoami", ADMIN, address="10.0.0.2").status_code == 200
    rest.time += PERIOD
    assert rest.ask("GET", "whoami", ADMIN).status_code == 200


def test_addresses_of_one_network_count_together(rm: RM) -> None:
    rest = Steered(rm)
    for number in range(BURST):
        rest.ask("GET", "whoami", "wrong", address=f"2001:db8::{number:x}")
    assert rest.ask("GET", "whoami", ADMIN, address="2001:db8::ffff").status_code == 429
    assert rest.ask("GET", "whoami", ADMIN, address="2001:db8:0:1::1").status_code == 200


# -- audit -----------------------------------------------------------------------------------------------


def test_changes_and_refused_attempts_are_audited(
    rm: RM, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "audit"
    rest = Steered(rm, file)
    caplog.set_level("INFO", "yunikorn.audit")
    rest.time = 1_500_000_000
    rest.change(f"{QUEUE}/root.a/stop", OPERATOR)
    rest.ask("POST", f"{QUEUE}/root.a/stop", VIEWER)
    rest.ask("POST", f"{NODE}/n1/drain", VIEWER)
    rest.ask("POST", f"{NODE}/n1/drain")
    rest.ask("GET", "partitions", "wrong")
    rest.ask("GET", "partitions", VIEWER)
    rest.ask("POST", f"{QUEUE}/root.none/stop", ADMIN)
    begun, done, *others = entries(file)
    who = {"name": "otto", "role": "operate", "address": "127.0.0.1"}
    target = {"partition": "default", "queue": "root.a"}
    common = {"time": "1970-01-01T00:00:01.500Z", "who": who, "what": "stop queue", "target": target, "id": 1}
    assert begun == {**common, "outcome": "begun"}
    assert done == {**common, "outcome": "done", "changed": True, "before": "Active", "after": "Stopped"}
    outcomes = [
        (one["who"]["name"], one["what"], one["outcome"]) for one in others if one["outcome"] != "begun"
    ]
    assert outcomes == [
        ("vera", "stop queue", "refused"),
        ("vera", f"POST /ws/v1/{NODE}/n1/drain", "refused"),
        ("", f"POST /ws/v1/{NODE}/n1/drain", "refused"),
        ("", "GET /ws/v1/partitions", "refused"),
        ("anna", "stop queue", "failed"),
    ]
    assert "otto (operate, 127.0.0.1): stop queue" in caplog.text
    assert not any(token in caplog.text + file.read_text() for token in TOKENS.values())


def test_flood_of_attempts_does_not_fill_the_audit_log(rm: RM, tmp_path: Path) -> None:
    rest = Steered(rm, tmp_path / "audit")
    for _ in range(3 * BURST):
        rest.ask("POST", f"{NODE}/n1/drain")
        rest.ask("GET", "partitions", "wrong")
    assert len(entries(tmp_path / "audit")) <= BURST


def test_rotated_audit_log_is_opened_again(rm: RM, tmp_path: Path) -> None:
    file = tmp_path / "audit"
    rest = Steered(rm, file)
    rest.change(f"{NODE}/n1/drain")
    file.rename(tmp_path / "old")
    rest.change(f"{NODE}/n1/undrain")
    assert [one["outcome"] for one in entries(file)] == ["begun", "done"]
    assert len(entries(tmp_path / "old")) == 2


def test_nothing_is_changed_while_the_audit_log_cannot_be_written(rm: RM, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    rest = Steered(rm, folder / "audit")
    (folder / "audit").rename(tmp_path / "old")
    folder.rmdir()
    answer = rest.ask("POST", f"{NODE}/n1/drain", ADMIN)
    assert answer.status_code == 503
    assert "nothing was changed: the audit log cannot be written" in answer.json()["message"]
    assert rm.find_node().schedulable
    folder.mkdir()
    assert rest.change(f"{NODE}/n1/drain")["changed"] is True


def test_incomplete_entry_is_removed(rm: RM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "audit"
    rest = Steered(rm, file)
    rest.change(f"{NODE}/n1/drain")
    real = Audit._write_all

    def half(descriptor: int, data: bytes) -> int:
        return real(descriptor, data[:10])

    monkeypatch.setattr(Audit, "_write_all", staticmethod(half))
    assert rest.ask("POST", f"{NODE}/n1/undrain", ADMIN).status_code == 503
    assert len(entries(file)) == 2


def test_description_names_the_credentials_of_each_route(rm: RM) -> None:
    found: dict[str, Any] = Steered(rm).json("openapi.json")
    drain = found["paths"]["/ws/v1/partition/{partition}/node/{node}/drain"]["post"]
    assert drain["security"] == [{"token": []}, {"certificate": []}]
    assert {"401", "403", "409", "429"} <= drain["responses"].keys()
    assert {} in found["paths"]["/ws/v1/partitions"]["get"]["security"]
    assert found["paths"]["/livez"]["get"]["security"] == []


def test_a_change_whose_request_ends_early_is_audited_completely(rm: RM, tmp_path: Path) -> None:
    rest = Steered(rm, tmp_path / "audit")
    steering = rest.context.steering
    assert steering is not None

    async def scenario() -> None:
        may_go_on = asyncio.Event()

        async def make() -> Change:
            await may_go_on.wait()
            return Change(changed=True, before=1, after=2)

        request = asyncio.create_task(steering.change(Caller("127.0.0.1"), "test", {}, make))
        while len(entries(tmp_path / "audit")) < 1:
            await asyncio.sleep(0)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        may_go_on.set()
        while len(entries(tmp_path / "audit")) < 2:
            await asyncio.sleep(0)

    asyncio.run(scenario())
    assert [one["outcome"] for one in entries(tmp_path / "audit")] == ["begun", "done"]
