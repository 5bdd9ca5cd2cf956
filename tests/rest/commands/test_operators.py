"""Commands for a running scheduler: `get`, `describe` and `events`, against the REST interface in process."""

from __future__ import annotations

import contextlib
import functools
import http.server
import itertools
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import httpx
import pytest
import trustme

from tests.rest.commands.operator_kit import Run, answered
from tests.rest.kit import Rest
from yunikorn.clock import SECOND
from yunikorn_commands import text_columns
from yunikorn_rest.commands import rest_client, server_options
from yunikorn_rest.commands.server_options import names_beginning

# -- tables ----------------------------------------------------------------------------------------------


def test_queues(run: Run, asked: list[str]) -> None:
    status, out, err = run("get", "queues")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "QUEUE     STATE   APPS  VCORE USED/QUOTA  MEMORY USED/QUOTA  GUARANTEED  PENDING",
        "root      Active     2              7/12           3Gi/24Gi  -           vcore 8",
        "root.a    Active     1               3/-              3Gi/-  -           -",
        "root.b    Active     1               4/-                0/-  -           vcore 8",
        "root.b.c  Active     1               4/-                0/-  -           vcore 8",
    ]


def test_nodes(run: Run, asked: list[str]) -> None:
    _, out, _ = run("get", "nodes", "--wide")
    rows = [line.split() for line in out.splitlines()[1:]]
    assert [row[:2] for row in rows] == [[f"n{number}", "Schedulable"] for number in range(3)]
    assert sorted(row[3] for row in rows) == ["1.5/4", "1.5/4", "4/4"]


def test_apps(run: Run, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yunikorn.clock.SystemClock.now", lambda _: 4000 * SECOND)
    assert run("get", "apps")[1].splitlines() == [
        "APPLICATION  QUEUE     USER  STATE     AGE  TASKS  WAITING  VCORE  MEMORY  PENDING",
        "run          root.a    ann   Running   66m      2        0      3     3Gi  -",
        "wait         root.b.c  bob   Starting  66m      1        2      4       0  vcore 8",
    ]


def test_users(run: Run, asked: list[str]) -> None:
    _, out, _ = run("get", "users", "--queue", "ROOT.b")
    assert out.splitlines() == [
        "USER  QUEUE     APPS  VCORE USED/LIMIT  MEMORY USED/LIMIT",
        "bob   root.b       1               4/-                0/-",
        "bob   root.b.c     1               4/-                0/-",
    ]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ([], ["run", "wait"]),
        (["--user", "ann"], ["run"]),
        (["--queue", "root.b"], ["wait"]),
        (["--state", "running"], ["run", "wait"]),
        (["--state", "rejected"], ["no"]),
        (["--all"], ["run", "wait", "no"]),
        (["--all", "--user", "bob"], ["wait", "no"]),
    ],
)
def test_filters_hold_also_where_the_server_ignores_them(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str], found: list[str]
) -> None:
    active = [
        {"applicationID": "run", "queueName": "root.a", "user": "ann", "applicationState": "Running"},
        {"applicationID": "wait", "queueName": "root.b.c", "user": "bob", "applicationState": "Running"},
    ]
    ended = [{"applicationID": "no", "queueName": "root.a", "user": "bob", "applicationState": "Rejected"}]
    lists = {"active": active, "completed": [], "rejected": ended}
    answered(monkeypatch, lambda request: httpx.Response(200, json=lists[Path(request.url.path).name]))
    _, out, _ = run("get", "apps", "--json", *arguments)
    assert [json.loads(line)["applicationID"] for line in out.splitlines()] == found


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nodes", "--user", "ann"], "--user is for apps, users, not for nodes"),
        (["apps", "--state", "runing"], "--state runing: unknown, did you mean 'Running'?; known: New, "),
        (["events", "--all"], "--all is for apps, not for events"),
    ],
)
def test_unusable_filters_are_refused(run: Run, asked: list[str], arguments: list[str], message: str) -> None:
    status, out, err = run("get", *arguments)
    assert (status, out) == (2, "")
    assert err.startswith(f"Error: {message}")
    assert not asked


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["get", "apps", "--queue", "root.b.d"], "there is no queue 'root.b.d', did you mean 'root.b.c'?"),
        (["get", "apps", "--all", "--queue", "root.x"], "there is no queue 'root.x', did you mean 'root.b'?"),
        (["get", "queues", "--queue", "ROOT.B.D"], "there is no queue 'root.b.d', did you mean 'root.b.c'?"),
        (["get", "users", "--queue", "root.nope", "--json"], "there is no queue 'root.nope'"),
        (["decisions", "--queue", "root.nope"], "there is no queue 'root.nope'"),
        (["decisions", "--application", "nope"], "there is no application 'nope'"),
        (["decisions", "--application", "wai"], "there is no application 'wai', did you mean 'wait'?"),
        (["decisions", "--application", "run", "--node", "n9"], "there is no node 'n9'"),
    ],
)
def test_a_filter_by_an_unknown_name_is_no_empty_list(
    run: Run, asked: list[str], arguments: list[str], message: str
) -> None:
    status, out, err = run(*arguments)
    assert (status, out) == (1, "")
    assert err.startswith(f"Error: {message}")


def test_a_list_without_matches_is_empty(run: Run, asked: list[str]) -> None:
    for arguments in (
        ["get", "apps", "--queue", "root.b", "--user", "ann"],
        ["decisions", "--queue", "root.b"],
    ):
        status, _, err = run(*arguments, "--json")
        assert (status, err) == (0, "")


def test_ended_applications_of_a_queue_that_is_gone_are_listed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = {"applicationID": "old", "queueName": "root.gone", "applicationState": "Completed"}

    def reply(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("active"):
            return httpx.Response(404, json={"message": "Queue not found"})
        return httpx.Response(200, json=[ended] if request.url.path.endswith("completed") else [])

    answered(monkeypatch, reply)
    status, out, _ = run("get", "apps", "--all", "--queue", "root.gone", "--json")
    assert (status, json.loads(out)) == (0, ended)


def test_all_pages_are_read(run: Run, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_client, "PAGE", 1)
    _, out, _ = run("get", "nodes", "--json")
    assert [json.loads(line)["nodeID"] for line in out.splitlines()] == ["n0", "n1", "n2"]
    assert len(asked) == 3


def test_json_is_what_the_server_sent(run: Run, rest: Rest, asked: list[str]) -> None:
    for kind, path in (("nodes", "nodes"), ("apps", "applications/active")):
        _, out, _ = run("get", kind, "--json")
        expected = sorted(map(repr, rest.json(f"partition/default/{path}")))
        assert sorted(repr(json.loads(line)) for line in out.splitlines()) == expected
    _, out, _ = run("describe", "app", "run", "--json")
    assert json.loads(out) == rest.json("partition/default/application/run")


# -- descriptions ----------------------------------------------------------------------------------------


def test_describe_an_application(run: Run, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yunikorn.clock.SystemClock.now", lambda _: 100 * SECOND)
    status, out, err = run("describe", "app", "wait")
    assert (status, err) == (0, "")
    assert "state:        Starting\n" in out
    assert "submitted:    1970-01-01T00:00:01.000Z (99s ago)\n" in out
    requests = out.partition("Waiting requests:\n")[2].partition("\n\n")[0].splitlines()
    assert requests[1].startswith("big       2  99s         0  vcore 4")
    tasks = out.partition("Tasks:\n")[2].splitlines()
    assert tasks[1:] == ["big  n0    99s  vcore 4  -"]


def test_describe_a_queue_and_a_node(run: Run, asked: list[str]) -> None:
    _, out, _ = run("describe", "queue", "Root")
    assert out.startswith("queue:        root\n")
    assert "Queues below:\n" in out
    assert "root.b.c" in out
    _, out, _ = run("describe", "node", "n1")
    assert out.startswith("node:             n1\n")
    assert "vcore used/size:  " in out


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("app", "wai", "there is no application 'wai', did you mean 'wait'?"),
        ("queue", "root.bc", "there is no queue 'root.bc', did you mean 'root.b.c'?"),
        ("queue", "root.(", "there is no queue 'root.(', did you mean 'root."),
        ("node", "n11", "there is no node 'n11', did you mean 'n1'?"),
        ("node", "..", "there is no node '..'"),
        ("node", "a/b\x1b[1m", "there is no node 'a/b\\x1b[1m'"),
    ],
)
def test_unknown_names_get_a_suggestion(
    run: Run, asked: list[str], kind: str, name: str, message: str
) -> None:
    status, out, err = run("describe", kind, name)
    assert (status, out) == (1, "")
    assert err.startswith(f"Error: {message}")


def test_an_unknown_partition_is_named(run: Run, asked: list[str]) -> None:
    for arguments in (("get", "nodes"), ("get", "queues")):
        status, _, err = run(*arguments, "--partition", "gpu")
        assert status == 1
        assert err == "Error: there is no such partition; known: default (--partition)\n"


def test_an_ended_application_and_a_name_with_a_slash_are_found_in_lists(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reply(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/completed"):
            return httpx.Response(200, json=[{"applicationID": "a/b", "applicationState": "Completed"}])
        if "/applications/" in request.url.path:
            return httpx.Response(200, json=[])
        return httpx.Response(404, text="Not Found")

    answered(monkeypatch, reply)
    status, out, _ = run("describe", "app", "a/b")
    assert status == 0
    assert "state:        Completed\n" in out


# -- events ----------------------------------------------------------------------------------------------


def event(number: int, **fields: Any) -> dict[str, Any]:
    """Return a record of an event."""
    return {"type": 2, "objectID": f"app-{number}", "timestampNano": number, "resource": {}, **fields}


def test_the_latest_events_are_read_in_batches(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yunikorn_rest.commands.events.BATCH", 3)
    kept = {number: event(number) for number in range(10, 20)}

    def reply(request: httpx.Request) -> httpx.Response:
        start, count = int(request.url.params.get("start", "0")), int(request.url.params["count"])
        found = (
            [kept[number] for number in range(start, start + count) if number in kept]
            if start in kept
            else None
        )
        return httpx.Response(
            200, json={"LowestID": 10, "HighestID": 19, "EventRecords": found if start in kept else None}
        )

    asked = answered(monkeypatch, reply)
    _, out, _ = run("events", "--json", "--last", "7")
    assert [json.loads(line)["objectID"] for line in out.splitlines()] == [f"app-{n}" for n in range(13, 20)]
    assert len(asked) == 4
    assert len(run("get", "events", "--json")[1].splitlines()) == 10
    _, out, _ = run("events", "--json", "--object", "app-15", "--type", "app")
    assert len(out.splitlines()) == 1
    assert run("events", "--last", "0", "--json")[1] == ""


def test_a_service_without_events_has_an_empty_table(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"LowestID": 0, "HighestID": 0, "EventRecords": None}
    answered(monkeypatch, lambda request: httpx.Response(200, json=body))
    assert run("events") == (0, "TIME  TYPE  OBJECT  CHANGE  OF  MESSAGE\n", "")


def test_events_are_followed_until_the_stream_ends(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        {"InstanceUUID": "x"},
        event(1, eventChangeType=2, eventChangeDetail=203, message="new\x1b[2J"),
        event(2, type=1, resource={"resources": {"vcore": {"value": 1500}, "memory": {}}}),
        event(3, eventChangeType=1, eventChangeDetail=206, designState="Starting"),
        {"status_code": 503, "message": "too slow", "description": "3"},
    ]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    answered(monkeypatch, lambda request: httpx.Response(200, text=text))
    status, out, err = run("events", "--follow", "--last", "0")
    assert status == 2
    first, second, third = out.splitlines()
    assert "app-1" in first
    assert "add app_new" in first
    assert first.endswith("new\\x1b[2J")
    assert second.endswith("vcore 1.5")
    assert "set app_starting" in third
    assert err == "Error: the server has ended the stream: too slow\n"


def test_applications_that_start_are_starting(run: Run, asked: list[str]) -> None:
    def named(state: str) -> list[str]:
        _, out, _ = run("get", "apps", "--state", state)
        return [line.split()[0] for line in out.splitlines()[1:]]

    assert (named("running"), named("starting")) == (["run"], ["wait"])
    _, out, _ = run("describe", "app", "run")
    states = out.partition("States:\n")[2].partition("\n\n")[0].splitlines()[1:]
    assert [line.split()[1] for line in states] == ["Accepted", "Starting", "Running"]


# -- hostile and absent servers --------------------------------------------------------------------------


def test_control_characters_of_names_are_escaped(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "\x1b]0;x\x07[bold]\u202e\ud800<b>"
    body = json.dumps([{"nodeID": name, "schedulable": True, "capacity": {name: 1}}])
    answered(monkeypatch, lambda request: httpx.Response(200, content=body))
    _, out, _ = run("get", "nodes")
    assert "\\x1b]0;x\\x07[bold]\\u202e\\ud800<b>" in out
    assert out.replace("\n", "").isprintable()
    _, out, _ = run("get", "nodes", "--json")
    assert out.isascii()
    assert json.loads(out)["nodeID"] == name


@pytest.mark.parametrize(
    "body",
    ["", "<html>", "[1]", "{}", "null", '[{"nodeID": 1}, 2]', "[" * 100_000, "9" * 5000],
)
def test_a_foreign_server_is_named(run: Run, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    answered(monkeypatch, lambda request: httpx.Response(200, text=body))
    status, out, err = run("get", "nodes", "--server", "http://ann:secret@localhost:80/x/")
    assert (status, out) == (2, "")
    assert err.startswith("Error: http://localhost:80/x is not the REST interface of YuniKorn: ")


def _sent(text: str, _: httpx.Request) -> httpx.Response:
    return httpx.Response(200, text=text)


ODD: list[Any] = [None, 1, -5, True, "x", [], [1], {}, {"vcore": "x", "memory": 1.5}, [{}], [{"children": 1}]]


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("app", ("stateLog", "requests", "allocations", "groups", "usedResource", "submissionTime", "user")),
        ("node", ("capacity", "allocations", "attributes", "reservations")),
        (
            "queue",
            ("children", "properties", "maxResource", "runningApps", "currentPriority"),
        ),
    ],
)
def test_odd_fields_count_as_absent(
    run: Run, monkeypatch: pytest.MonkeyPatch, kind: str, fields: tuple[str, ...]
) -> None:
    for odd, field in itertools.product(ODD, fields):
        text = json.dumps({field: odd})
        answered(monkeypatch, functools.partial(_sent, text))
        status, _, err = run("describe", kind, "x")
        assert (status, err) == (0, ""), (field, odd)


def test_a_server_that_repeats_a_page_is_left(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    answered(monkeypatch, lambda request: httpx.Response(200, json=[], headers={"x-continue": "abc"}))
    status, _, err = run("get", "nodes")
    assert status == 2
    assert "the same page is sent again" in err


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (httpx.Response(403, text="no"), "http://127.0.0.1:9080 refuses the request: status 403"),
        (
            httpx.Response(503, json={"message": "busy\x1b"}),
            "http://127.0.0.1:9080: status 503: busy\\x1b",
        ),
        (
            httpx.Response(404, text="Not Found"),
            "http://127.0.0.1:9080 is not the REST interface of YuniKorn: status 404",
        ),
    ],
)
def test_refusals_of_a_server(
    run: Run, monkeypatch: pytest.MonkeyPatch, reply: httpx.Response, message: str
) -> None:
    answered(monkeypatch, lambda request: reply)
    assert run("get", "nodes") == (2, "", f"Error: {message}\n")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (httpx.ReadTimeout(""), "does not answer in time (--timeout)"),
        (
            httpx.ConnectError("refused"),
            "cannot be reached: refused (--server or YUNIKORN_SERVER has the address)",
        ),
        (httpx.RemoteProtocolError("bad"), "bad"),
    ],
)
def test_failures_of_the_connection(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    def fail(request: httpx.Request) -> httpx.Response:
        raise error

    answered(monkeypatch, fail)
    status, _, err = run("events", "--server", "localhost:1")
    assert status == 2
    assert err.startswith("Error: http://localhost:1")
    assert err.endswith(f"{message}\n")


@pytest.mark.parametrize(
    "url", ["", "ftp://x", "http://", "http://x:99999", "http://a b", "http://x/?q=1", "http://[::1"]
)
def test_unusable_addresses(run: Run, url: str) -> None:
    assert run("get", "nodes", "--server", url) == (
        2,
        "",
        "Error: --server: expected http://HOST:PORT or https://HOST:PORT\n",
    )


def test_the_extra_is_named_if_it_is_missing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    status, out, err = run("get", "nodes")
    assert (status, out) == (2, "")
    assert "httpx is not installed, but is needed to reach a scheduler" in err
    assert run("get", "--help")[0] == 0


def test_nobody_listens(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    status, _, err = run("get", "nodes", "--server", f"127.0.0.1:{port}")
    assert status == 2
    assert "cannot be reached: " in err


# -- a real connection -----------------------------------------------------------------------------------


class _Empty(http.server.BaseHTTPRequestHandler):
    """Server whose lists are empty."""

    def do_GET(self) -> None:
        """Answer with an empty list."""
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"[]")

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@contextmanager
def served(context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Run a server with empty lists, and return its port."""
    with http.server.HTTPServer(("127.0.0.1", 0), _Empty) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=functools.partial(server.serve_forever, poll_interval=0.01))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def test_tls_with_an_authority_of_its_own(run: Run, tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(file)
    with served(context) as port:
        address = f"https://127.0.0.1:{port}"
        assert run("get", "nodes", "--server", address, "--tls-ca", str(file))[0] == 0
        status, _, err = run("get", "nodes", "--server", address)
        assert status == 2
        assert "certificate verify failed" in err
    file.write_text("nothing")
    status, _, err = run("get", "nodes", "--server", address, "--tls-ca", str(file))
    assert status == 2
    assert err.startswith(f"Error: --tls-ca {file}: ")
    assert run("get", "nodes", "--tls-key", str(file))[2] == "Error: --tls-key needs --tls-cert\n"


def test_a_closed_pipe_ends_the_command(rest: Rest) -> None:
    with served() as port:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        call = [sys.executable, "-m", "yunikorn", "get", "nodes", "--server", f"127.0.0.1:{port}"]
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(call, stdout=writing, stderr=subprocess.PIPE, env=environment, check=False)
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


# -- terminals -------------------------------------------------------------------------------------------


def test_a_terminal_is_asked_for_its_width(
    run: Run, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yunikorn_rest.commands.get.terminal_width", lambda: 70)
    _, out, err = run("get", "queues")
    assert max(map(len, out.splitlines())) <= 70
    assert err == "columns left out in this width: guaranteed, pending (--wide shows them)\n"
    assert "GUARANTEED" in run("get", "queues", "--wide")[1]
    assert text_columns.terminal_width() is None


# -- completion ------------------------------------------------------------------------------------------


def completed(kind: str, incomplete: str) -> list[str]:
    """Return the completions of a name."""
    return names_beginning(click.Context(click.Command("x")), kind, incomplete)


def test_names_are_completed_by_the_server(asked: list[str]) -> None:
    assert completed("queue", "root.b") == ["root.b", "root.b.c"]
    assert completed("app", "w") == ["wait"]
    assert completed("node", "") == ["n0", "n1", "n2"]
    assert completed("user", "a") == ["ann"]


def test_a_completion_has_no_errors_and_no_unsafe_names(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [{"nodeID": name} for name in ("n1", "$(reboot)", "a b", "n\n2", "*")]
    answered(monkeypatch, lambda request: httpx.Response(200, json=names))
    assert completed("node", "") == ["n1"]
    answered(monkeypatch, lambda request: httpx.Response(500, text="?"))
    assert completed("node", "") == []
    monkeypatch.setattr(server_options, "DEFAULT_SERVER", "ftp://")
    assert completed("node", "") == []


def test_a_shell_gets_completions(run: Run, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_YUNIKORN_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "yunikorn describe node n")
    monkeypatch.setenv("COMP_CWORD", "3")
    assert run() == (0, "plain,n0\nplain,n1\nplain,n2\n", "")


@contextmanager
def server_that_sends(first: bytes) -> Iterator[int]:
    """Run a server that sends something to every client, ends the connection, and return its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connected, _ = listening.accept()
                    connected.sendall(first)
                    connected.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.skipif(sys.platform != "linux", reason="shutdown of a listening socket")
def test_the_address_of_grpc_is_named(run: Run) -> None:
    with server_that_sends(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00") as port:
        status, out, err = run("get", "nodes", "--server", f"127.0.0.1:{port}")
    assert (status, out) == (2, "")
    assert err == (
        f"Error: http://127.0.0.1:{port} is the gRPC address of a scheduler, for resource managers: --server"
        " is the address of REST, http://127.0.0.1:9080 unless `yunikorn serve --rest` says otherwise\n"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="shutdown of a listening socket")
def test_a_server_that_may_want_tls_is_named(run: Run) -> None:
    alert = b"\x15\x03\x03\x00\x02\x02\x32"
    with server_that_sends(alert) as port:
        status, out, err = run("get", "nodes", "--server", f"127.0.0.1:{port}")
    assert (status, out) == (2, "")
    assert err.startswith(f"Error: http://127.0.0.1:{port}: ")
    assert err.endswith(" (a server with TLS has an address with https://)\n")
