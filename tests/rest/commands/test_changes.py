"""Commands that change a running scheduler: stop, start, drain, undrain, fail and whoami."""

from __future__ import annotations

import json
from typing import Any

import click
import httpx
import pytest

from tests.rest.commands.operator_kit import Run, answered, small_rm, through
from tests.rest.steering_kit import OPERATOR, VIEWER, Steered
from yunikorn_rest.commands.operator_calls import effect, not_repeated
from yunikorn_rest.commands.server_options import complete


@pytest.fixture
def steered(monkeypatch: pytest.MonkeyPatch) -> Steered:
    """Let the commands change a small cluster, as an operator."""
    found = Steered(small_rm())
    answered(monkeypatch, through(found))
    return found


@pytest.fixture(autouse=True)
def operator(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send the token of an operator."""
    monkeypatch.setenv("YUNIKORN_TOKEN", OPERATOR)


def test_queues_are_stopped_and_started(run: Run, steered: Steered) -> None:
    assert run("stop", "ROOT.a", "root.b") == (
        0,
        "ROOT.a: Active -> Stopped\nroot.b: Active -> Stopped\n",
        "",
    )
    assert run("stop", "root.a") == (0, "root.a: nothing changed, it is Stopped\n", "")
    status, out, _ = run("start", "root.a", "--json")
    assert status == 0
    assert json.loads(out) == {"name": "root.a", "changed": True, "before": "Stopped", "after": "Active"}


def test_a_partition_is_stopped_and_started(run: Run, steered: Steered) -> None:
    assert run("stop", "--whole-partition") == (0, "default: Active -> Stopped\n", "")
    assert run("start", "--whole-partition") == (0, "default: Stopped -> Active\n", "")
    message = "gpu: there is no such partition; known: default (--partition)\n"
    assert run("stop", "--whole-partition", "--partition", "gpu") == (1, "", message)
    assert run("stop", "root.a", "--partition", "gpu") == (1, "", message.replace("gpu:", "root.a:"))


@pytest.mark.parametrize("arguments", [[], ["root.a", "--whole-partition"]])
def test_queues_or_the_partition(run: Run, steered: Steered, arguments: list[str]) -> None:
    message = "Error: expected the names of queues, or --whole-partition\n"
    assert run("stop", *arguments) == (2, "", message)


def test_every_node_is_tried(run: Run, steered: Steered) -> None:
    status, out, err = run("drain", "n0", "n7", "n1", "n0", "a/b\x1b")
    assert status == 1
    assert out == "".join(f"{name}: Schedulable -> Draining, drained by operator\n" for name in ("n0", "n1"))
    assert err.splitlines()[0].startswith("n7: there is no such node")
    assert err.splitlines()[1] == "a/b\\x1b: there is no such node"
    assert run("undrain", "n0", "n2") == (
        0,
        "n0: Draining, drained by operator -> Schedulable\nn2: nothing changed, it is Schedulable\n",
        "",
    )


def test_an_application_fails(run: Run, steered: Steered) -> None:
    status, out, err = run("fail", "wait", "rum", "--reason", "too big")
    assert (status, out) == (1, "wait: Starting -> Failed\n")
    assert err == "rum: there is no such application, did you mean 'run'?\n"
    assert "Missing option '--reason'" in run("fail", "run")[2]


def test_whoami(run: Run, steered: Steered, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("whoami") == (0, "name:   otto\nrole:   operate\ngroups: -\n", "")
    monkeypatch.setenv("YUNIKORN_TOKEN", VIEWER)
    assert json.loads(run("whoami", "--json")[1]) == {"name": "vera", "role": "view", "groups": ["dev"]}


# -- refusals --------------------------------------------------------------------------------------------


def test_a_role_that_does_not_suffice(run: Run, steered: Steered, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YUNIKORN_TOKEN", VIEWER)
    status, out, err = run("drain", "n0", "n1")
    assert (status, out) == (1, "")
    assert [line.partition(":")[0] for line in err.splitlines()] == ["n0", "n1"]
    assert "the role operate is needed" in err
    assert VIEWER not in err


def test_unknown_credentials_end_the_command(
    run: Run, steered: Steered, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YUNIKORN_TOKEN", "no-such-token")
    status, out, err = run("drain", "n0", "n1", "n2")
    assert (status, out) == (2, "")
    assert err.splitlines() == [
        "n0: http://127.0.0.1:9080 does not know this token: check --token-file or YUNIKORN_TOKEN",
        "not tried: n1, n2",
    ]


@pytest.mark.parametrize(
    ("reply", "status", "message"),
    [
        (httpx.Response(403, json={"message": "changes need credentials"}), 1, "changes need credentials"),
        (httpx.Response(409, json={"message": "the configuration stops it\x1b"}), 1, "stops it\\x1b"),
        (httpx.Response(403, json={"message": 7}), 1, "refused without a reason"),
        (httpx.Response(404, text="404 page not found"), 1, "YuniKorn 1.9 and older cannot be changed"),
        (httpx.Response(405, text="Method Not Allowed"), 1, "YuniKorn 1.9 and older cannot be changed"),
        (httpx.Response(403, text="no"), 2, "refuses the request: status 403"),
        (httpx.Response(302, text="?"), 2, "is not the REST interface of YuniKorn: status 302"),
        (httpx.Response(200, text="<html>"), 2, "is not the REST interface of YuniKorn: status 200"),
    ],
)
def test_refusals_of_a_server(
    run: Run, monkeypatch: pytest.MonkeyPatch, reply: httpx.Response, status: int, message: str
) -> None:
    answered(monkeypatch, lambda request: reply)
    found, out, err = run("drain", "n0")
    assert (found, out) == (status, "")
    assert err.startswith("n0: ")
    assert message in err
    found, out, _ = run("drain", "n0", "--json")
    assert found == status
    assert json.loads(out)["name"] == "n0"


def test_an_answer_that_does_not_arrive(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("")

    asked = answered(monkeypatch, fail)
    status, _, err = run("drain", "n0", "n1")
    assert status == 2
    assert "does not answer in time (--timeout), so it is unknown whether the change was made" in err
    assert len(asked) == 1


# -- texts and completion --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"changed": True, "before": "a", "after": "b"}, "a -> b"),
        ({"changed": False, "before": "a", "after": "a"}, "nothing changed, it is a"),
        ({"changed": False}, "nothing changed, it is as requested"),
        ({}, "? -> ?"),
        ({"before": {"x": 1}, "after": []}, '{"x": 1} -> []'),
    ],
)
def test_effects(result: dict[str, Any], words: str) -> None:
    assert effect(result) == words


def test_a_name_is_offered_once(steered: Steered) -> None:
    context = click.Context(click.Command("drain"))
    context.params["nodes"] = ("n1",)
    argument = click.Argument(["nodes"], nargs=-1)
    assert not_repeated(complete("node"))(context, argument, "n") == ["n0", "n2"]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("drain n0 ", "n1 n2"),
        ("undrain ", "n0 n1 n2"),
        ("stop root.b", "root.b root.b.c"),
        ("start root.a", "root.a"),
        ("fail ", "run wait"),
        ("explain w", "wait"),
        ("decisions --application r", "run"),
        ("decisions --node n", "n0 n1 n2"),
        ("decisions --queue root.b", "root.b root.b.c"),
        ("top ", "queues nodes apps"),
    ],
)
def test_a_shell_completes_names(
    run: Run, steered: Steered, monkeypatch: pytest.MonkeyPatch, words: str, offered: str
) -> None:
    monkeypatch.setenv("_YUNIKORN_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"yunikorn {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" "))))
    status, out, _ = run()
    assert (status, [line.partition(",")[2] for line in out.splitlines()]) == (0, offered.split())


# -- decisions -------------------------------------------------------------------------------------------


def test_decisions(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        {"time": 2_000_000_000, "decision": "placed", "applicationID": "a", "nodeID": "n0"},
        {"time": 1_000_000_000, "decision": "refused", "message": "no\x1b room", "resource": {"vcore": 1500}},
    ]
    asked = answered(monkeypatch, lambda request: httpx.Response(200, json=found))
    status, out, err = run("decisions", "--application", "a b", "--queue", "ROOT", "--limit", "7")
    assert (status, err) == (0, "")
    assert [line.split()[:2] for line in out.splitlines()] == [
        ["TIME", "DECISION"],
        ["1970-01-01T00:00:01.000Z", "refused"],
        ["1970-01-01T00:00:02.000Z", "placed"],
    ]
    assert "no\\x1b room" in out
    assert asked == ["/ws/v1/partition/default/decisions?limit=7&application=a+b&queue=root"]
    _, out, _ = run("decisions", "--json")
    assert [json.loads(line) for line in out.splitlines()] == found[::-1]
