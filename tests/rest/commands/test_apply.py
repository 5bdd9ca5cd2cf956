"""`yunikorn apply` and `yunikorn log-level`: against the answers of the REST interface."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.rest.commands.operator_kit import Run, answered
from tests.rest.commands.terminal_kit import RestContext, TerminalSession, site

SUM = "AB" * 32
NO_PLAN = (
    "note: the effects of the change are not known: "
    "http://127.0.0.1:9080: status 404: there are no snapshots here\n"
)
HARMLESS = {
    "path": "partition default, queue root.a: max.vcore",
    "partition": "default",
    "queue": "root.a",
    "key": "max.vcore",
    "change": "changed",
    "before": "8",
    "after": "16",
}
REMOVED = {
    "path": "partition default, queue root.old",
    "partition": "default",
    "queue": "root.old",
    "change": "removed",
    "note": "drains: accepts no new applications\x1b",
}


class Service:
    """A server with a configuration."""

    def __init__(self, *changes: dict[str, Any]) -> None:
        self.changes = list(changes)
        self.problems: list[dict[str, Any]] = []
        self.status = 200
        self.applied: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer a request."""
        if request.method == "GET":
            return httpx.Response(404, json={"message": "there are no snapshots here"})
        assert request.method == "PUT"
        dry = "dryRun" in request.url.params
        body = {"checksum": SUM, "changes": self.changes, "problems": self.problems, "applied": not dry}
        if dry:
            return httpx.Response(200, json=body)
        self.applied.append(request)
        return httpx.Response(self.status, json={**body, "persisted": True, "message": "changed meanwhile"})


Serve = Callable[..., Service]


@pytest.fixture
def serve(run: Run, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Return a function that starts a server with the changes that a file would make."""

    def start(*changes: dict[str, Any]) -> Service:
        found = Service(*changes)
        answered(monkeypatch, found)
        return found

    return start


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Write a configuration, and return its path."""
    path = tmp_path / "queues.yaml"
    path.write_text("partitions: []\n")
    return str(path)


def test_a_change_is_shown_and_applied(run: Run, serve: Serve, file: str) -> None:
    service = serve(HARMLESS)
    status, out, err = run("apply", file, "--policy-group", "batch", "--no-persist")
    assert (status, err) == (0, NO_PLAN)
    assert out.splitlines() == [
        "~ partition default, queue root.a: max.vcore: 8 -> 16",
        "applied, 1 change; the file of the service was replaced",
    ]
    (request,) = service.applied
    assert request.read() == b"partitions: []\n"
    assert request.headers["if-match"] == f'"{SUM}"'
    assert dict(request.url.params) == {"policyGroup": "batch", "persist": "false"}


def test_a_dry_run_changes_nothing(run: Run, serve: Serve, file: str) -> None:
    service = serve(HARMLESS, REMOVED)
    status, out, _ = run("apply", file, "--dry-run")
    assert status == 0
    assert out.splitlines()[1:] == [
        "- partition default, queue root.old",
        "    drains: accepts no new applications\\x1b",
    ]
    assert not service.applied
    assert json.loads(run("apply", file, "--dry-run", "--json")[1])["checksum"] == SUM


def test_a_script_removes_queues_on_purpose_only(run: Run, serve: Serve, file: str) -> None:
    service = serve(REMOVED)
    status, out, err = run("apply", file, "--no-plan")
    assert status == 2
    assert "- partition default, queue root.old" in out
    assert err == f"Error: {file} removes partition default, queue root.old: --yes does it anyway\n"
    assert not service.applied
    status, out, _ = run("apply", file, "--yes", "--json")
    assert status == 0
    assert json.loads(out)["applied"] is True
    assert len(service.applied) == 1


def test_problems_have_their_places(run: Run, serve: Serve, file: str) -> None:
    service = serve()
    service.problems = [
        {"path": "partitions[0].name", "line": 3, "column": 7, "message": "empty"},
        {"message": "odd\x1b"},
    ]
    for more in ([], ["--dry-run"]):
        found = run("apply", file, *more)
        assert found == (1, "", f"{file}: partitions[0].name (line 3, column 7): empty\n{file}: odd\\x1b\n")
    assert run("apply", file, "--json")[0] == 1
    assert not service.applied


def test_a_concurrent_change_is_not_overwritten(run: Run, serve: Serve, file: str) -> None:
    service = serve(HARMLESS)
    service.status = 412
    status, _, err = run("apply", file, "--no-plan")
    assert status == 1
    assert "changed by another since the comparison; nothing was applied" in err
    service.status = 409
    assert run("apply", file, "--no-plan")[2] == "Error: changed meanwhile\n"


def test_nothing_changes(run: Run, serve: Serve, file: str) -> None:
    serve()
    _, out, _ = run("apply", file)
    assert out == "nothing changes\nnothing changed; the file of the service was replaced\n"


def test_wrong_options(run: Run, serve: Serve, file: str, tmp_path: Path) -> None:
    status, _, err = run("apply", file, "--rm", "a", "--policy-group", "b")
    assert (status, err) == (2, "Error: expected --policy-group or --rm, not both\n")
    missing = str(tmp_path / "no.yaml")
    assert run("apply", missing) == (2, "", f"Error: {missing}: cannot be read: No such file or directory\n")


@pytest.fixture
def server() -> Iterator[RestContext]:
    """Serve a configuration of which a queue would be removed."""
    with site(Service(REMOVED)) as found:
        yield found


def test_a_terminal_is_asked(server: RestContext, file: str) -> None:
    service = server.reply
    assert isinstance(service, Service)
    for answer, status in (("n", 1), ("y", 0)):
        session = TerminalSession("apply", file, "--server", f"127.0.0.1:{server.port}")
        session.shows("- partition default, queue root.old", "Apply this change? [y/N]")
        session.press(f"{answer}\r")
        assert session.ended() == (status, None)
        assert len(service.applied) == (answer == "y")


# -- log levels ------------------------------------------------------------------------------------------


def test_log_levels(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []

    def reply(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, json={"levels": {"yunikorn": "info", "rest": "debug"}})
        sent.append(json.loads(request.read()))
        if sent[-1]["levels"].get("rest") == "loud":
            return httpx.Response(400, json={"message": "rest: expected a level"})
        return httpx.Response(
            200,
            json={
                "changed": True,
                "before": {"rest": "info", "x": "info"},
                "after": {"rest": "debug", "x": "info"},
            },
        )

    answered(monkeypatch, reply)
    assert run("log-level") == (0, "LOGGER    LEVEL\nyunikorn  info\nrest      debug\n", "")
    assert run("log-level", "rest", "--json") == (0, '{"rest": "debug"}\n', "")
    assert run("log-level", "rset") == (2, "", "Error: no logger is called 'rset', did you mean 'rest'?\n")
    changed = "rest: info -> debug\nx: nothing changed, it is info\n"
    assert run("log-level", "rest", "debug") == (0, changed, "")
    assert run("log-level", "rest", "loud") == (1, "", "Error: rest: expected a level\n")
    assert sent[0] == {"levels": {"rest": "debug"}}


def test_loggers_and_levels_are_completed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    answered(
        monkeypatch, lambda request: httpx.Response(200, json={"levels": {"rest": "info", "x y": "info"}})
    )
    monkeypatch.setenv("_YUNIKORN_COMPLETE", "bash_complete")
    for words, offered in (("log-level ", ["rest"]), ("log-level rest d", ["debug"])):
        monkeypatch.setenv("COMP_WORDS", f"yunikorn {words}")
        monkeypatch.setenv("COMP_CWORD", str(len(words.split(" "))))
        _, out, _ = run()
        assert [line.partition(",")[2] for line in out.splitlines()] == offered


def test_the_configuration_in_use_is_printed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url.copy_with(scheme="http", host="x", port=None)))
        return httpx.Response(200, content="# ours\npartitions: []\n")

    answered(monkeypatch, answer)
    assert run("config") == (0, "# ours\npartitions: []\n", "")
    assert run("config", "--policy-group", "a b")[0] == 0
    assert asked == ["http://x/ws/v1/config/text", "http://x/ws/v1/config/text?policyGroup=a+b"]
    assert run("config", "--policy-group", "a", "--rm", "b")[0] == 2


@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        (404, "no resource manager 'nope' is registered; registered: demo", 1),
        (404, "no policy group is called 'nope'; known: demo", 1),
        (409, "resource manager demo has the configuration of policy group 'demo': give policyGroup=demo", 2),
    ],
)
def test_the_server_explains_why_there_is_no_configuration(
    run: Run, monkeypatch: pytest.MonkeyPatch, status: int, message: str, expected: int
) -> None:
    answered(monkeypatch, lambda _: httpx.Response(status, json={"message": message}))
    assert run("config", "--rm", "nope") == (expected, "", f"Error: {message}\n")


def test_the_configuration_needs_a_role(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = {"message": "the role view of ann does not suffice: the role admin is needed"}
    answered(monkeypatch, lambda _: httpx.Response(403, json=refusal))
    status, out, err = run("config")
    assert (status, out) == (2, "")
    assert "the role admin is needed" in err
