"""`yunikorn explain`: reasons, ranks and fixes in words."""

from __future__ import annotations

import json

import httpx
import pytest

from tests.rest.commands.operator_kit import Run, answered
from tests.rest.kit import Rest
from yunikorn_rest.commands.explain import explanation_lines, ordinal


def test_a_waiting_application(run: Run, asked: list[str]) -> None:
    status, out, err = run("explain", "wait")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "application:  wait",
        "state:        Starting",
        "queue:        root.b.c",
        "order:        root.b.c is the only queue in root.b with waiting requests",
        "order:        root.b is the only queue in root with waiting requests",
        "waiting:      2 tasks of 2 in the queue",
        "",
        "2 tasks with vcore 4 (big):",
        "  1st to 2nd in the order of the queue, priority 0",
        "  Waits because:",
        "    - no node has room (of 3 nodes: 3 lack vcore)",
        "  Would help:",
        "    - free vcore 1500m on node n1 (the nearest)",
    ]
    assert asked == ["/ws/v1/partition/default/application/wait/explain"]


def test_json_is_what_the_server_sent(run: Run, rest: Rest, asked: list[str]) -> None:
    _, out, _ = run("explain", "wait", "--json", "--queue", "ROOT.b.c", "--limit", "7")
    assert json.loads(out) == rest.json("partition/default/application/wait/explain")
    assert asked == ["/ws/v1/partition/default/queue/root.b.c/application/wait/explain?limit=7"]


def test_nothing_waits(run: Run, asked: list[str]) -> None:
    _, out, _ = run("explain", "run")
    assert out.endswith("waiting:      nothing\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["wai"], "there is no application 'wai', did you mean 'wait'?"),
        (["wait", "--queue", "root.a"], "application 'wait' is in root.b.c, not in root.a"),
        (["wait", "--partition", "gpu"], "there is no such partition; known: default (--partition)"),
    ],
)
def test_wrong_names(run: Run, asked: list[str], arguments: list[str], message: str) -> None:
    assert run("explain", *arguments) == (1, "", f"Error: {message}\n")


def test_an_ended_application(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = {
        "applicationID": "no",
        "applicationState": "Rejected",
        "queueName": "root.x",
        "rejectedMessage": "no such\x1b queue",
        "requests": [],
    }

    def reply(request: httpx.Request) -> httpx.Response:
        if "/applications/" in request.url.path:
            return httpx.Response(200, json=[ended] if "rejected" in request.url.path else [])
        return httpx.Response(404, json={"message": "Application not found"})

    answered(monkeypatch, reply)
    status, out, _ = run("explain", "no")
    assert status == 0
    assert out.splitlines()[3:] == [
        "rejected:     no such\\x1b queue",
        "waiting:      nothing, because the application has ended",
    ]
    assert json.loads(run("explain", "no", "--json")[1]) == {
        name: value for name, value in ended.items() if value
    }


def test_a_server_that_cannot_explain(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def reply(request: httpx.Request) -> httpx.Response:
        if "/applications/" in request.url.path:
            active = (
                [{"applicationID": "a", "applicationState": "Running"}]
                if "active" in request.url.path
                else []
            )
            return httpx.Response(200, json=active)
        return httpx.Response(404, text="404 page not found")

    answered(monkeypatch, reply)
    status, _, err = run("explain", "a")
    assert status == 2
    assert err == "Error: the server has no explanations: YuniKorn 1.9 and older cannot explain\n"


FULL = {
    "applicationID": "a[b]\x1b[2J",
    "awaited": "submit policy tags",
    "reasons": [{"check": "admission", "message": "held until 18:00", "policy": "admission-window"}],
    "queueRanks": [{"queueName": "root.a", "rank": 2, "of": 12, "parent": "root"}],
    "pendingCount": 5,
    "omittedCount": 1,
    "requests": [
        {
            "allocationKeys": ["k1", "k2", "k3", "k4"],
            "requestCount": 40,
            "pendingCount": 40,
            "resource": {"vcore": 1000},
            "placed": True,
            "taskGroupName": "workers",
            "suggestedFixes": ["x", "y"],
            "reasons": [],
        },
        7,
    ],
}


def test_all_fields_are_shown_as_text() -> None:
    lines = list(explanation_lines(FULL, None))
    assert lines[0] == "application:  a[b]\\x1b[2J"
    assert "order:        root.a is 2nd of 12 queues in root with waiting requests" in lines
    assert "not accepted yet: the answer of submit policy tags is awaited" in lines
    assert "  - held until 18:00 [policy admission-window]" in lines
    assert "40 tasks with vcore 1 (k1, k2, k3, 37 more), placed and held:" in lines
    assert "  priority 0, task group workers" in lines
    assert "  Would help, all together:" in lines
    assert lines[-1] == "1 more waiting tasks are not explained here (--limit)"


@pytest.mark.parametrize("width", range(35, 80, 5))
def test_lines_are_wrapped(width: int) -> None:
    assert all(len(line) <= width for line in explanation_lines(FULL, width))


def test_ordinals() -> None:
    found = [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 102, 111, 1013)]
    assert found == ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "111th", "1013th"]


@pytest.mark.parametrize("odd", [None, 1, "x", [], [1], {}, [{}]])
def test_odd_fields_count_as_absent(odd: object) -> None:
    for field in FULL:
        assert list(explanation_lines({**FULL, field: odd}, 40))
    for field in FULL["requests"][0]:  # type: ignore[index]
        assert list(explanation_lines({"requests": [{**FULL["requests"][0], field: odd}]}, None))  # type: ignore[index]
