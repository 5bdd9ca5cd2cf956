"""`yunikorn dump`, and tokens of the commands for a running scheduler."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.rest.commands.operator_kit import Run, answered
from tests.rest.kit import Rest

TOKEN = "s3cret-T0ken"


def test_the_state_is_written_to_a_file(run: Run, rest: Rest, asked: list[str], tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    status, out, err = run("dump", "--output", str(file))
    assert (status, out) == (0, "")
    assert err.startswith(f"{file}: ")
    assert set(json.loads(file.read_text())) == set(json.loads(rest.get("/debug/fullstatedump").content))
    assert asked == ["/debug/fullstatedump"]
    assert list(tmp_path.iterdir()) == [file]


class _Broken(httpx.SyncByteStream):
    """Body of which the second half never arrives."""

    def __iter__(self) -> Iterator[bytes]:
        yield b'{"half":'
        raise httpx.RemoteProtocolError("peer closed the connection")


def test_an_incomplete_state_leaves_the_file_as_it_was(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answered(monkeypatch, lambda request: httpx.Response(200, stream=_Broken()))
    file = tmp_path / "state.json"
    file.write_text("before")
    status, _, err = run("dump", "-o", str(file))
    assert status == 2
    assert err == "Error: http://127.0.0.1:9080: peer closed the connection\n"
    assert list(tmp_path.iterdir()) == [file]
    assert file.read_text() == "before"


def test_a_folder_that_does_not_exist(run: Run, asked: list[str], tmp_path: Path) -> None:
    file = tmp_path / "no" / "state.json"
    assert run("dump", "-o", str(file)) == (2, "", f"Error: {file}: No such file or directory\n")


# -- tokens ----------------------------------------------------------------------------------------------


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of the header of each request."""
    found: list[str] = []

    def reply(request: httpx.Request) -> httpx.Response:
        found.append(request.headers.get("authorization", ""))
        return httpx.Response(200, json=[])

    answered(monkeypatch, reply)
    return found


def test_a_token_is_read_from_a_file_or_the_variable(
    run: Run, sent: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    run("get", "nodes")
    run("get", "nodes", "--token-file", str(file))
    monkeypatch.setenv("YUNIKORN_TOKEN", "other")
    run("get", "nodes")
    run("get", "nodes", "--token-file", str(file))
    assert sent == ["", f"Bearer {TOKEN}", "Bearer other", f"Bearer {TOKEN}"]


def test_a_token_is_not_sent_in_the_clear(run: Run, sent: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YUNIKORN_TOKEN", TOKEN)
    status, out, err = run("get", "nodes", "--server", "http://example.com:80")
    assert (status, out, sent) == (2, "", [])
    assert err.startswith(
        "Error: the token is not sent to http://example.com:80, because others could read it"
    )
    assert TOKEN not in err
    for given in (
        ["--server", "http://example.com", "--insecure"],
        ["--server", "https://example.com"],
        ["--server", "http://[::1]:9080"],
    ):
        assert run("get", "nodes", *given)[0] == 0
    assert sent == [f"Bearer {TOKEN}"] * 3


@pytest.mark.parametrize("content", ["", "two words", "two\nlines", "caf\u00e9", "x" * 5000])
def test_an_unusable_token_is_not_shown(run: Run, sent: list[str], tmp_path: Path, content: str) -> None:
    file = tmp_path / "token"
    file.write_text(content)
    found = run("get", "nodes", "--token-file", str(file))
    assert found == (2, "", f"Error: --token-file {file}: expected one line with a token\n")
    assert not sent


def test_missing_and_unknown_credentials(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    answered(monkeypatch, lambda request: httpx.Response(401, json={"message": "no"}))
    _, _, err = run("get", "nodes")
    assert "wants credentials: --token-file FILE, YUNIKORN_TOKEN or --tls-cert FILE" in err
    monkeypatch.setenv("YUNIKORN_TOKEN", TOKEN)
    _, _, err = run("get", "nodes")
    assert err == (
        "Error: http://127.0.0.1:9080 does not know this token: check --token-file or YUNIKORN_TOKEN\n"
    )
