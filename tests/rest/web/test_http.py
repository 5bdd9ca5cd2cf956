"""Pages over HTTP: headers, files, errors, shared answers, and notices of changes."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from tests.core.kit import RM
from tests.rest.kit import Rest
from tests.rest.web.kit import PAGES, Web, eventful
from yunikorn.errors import UsageError
from yunikorn_service.runtime.threaded import CoreStopped

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}


@pytest.fixture(scope="module")
def web() -> Web:
    """Create an empty cluster that the tests only read."""
    rm = RM()
    rm.node()
    rm.app()
    return Web(rm)


def policy(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (part.strip().partition(" ") for part in text.split(";"))}


def test_headers_of_pages_and_files(web: Web) -> None:
    files = [str(one["href"]) for one in web.page("/").all("link")]
    assert len(files) == 2
    for path in (*PAGES[:2], *files, "/queue?name=none", "/none"):
        headers = web.get(path).headers
        assert policy(headers["content-security-policy"]) == POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert not [name for name in headers if name.startswith("access-control")]


def test_files_are_kept_by_browsers_under_the_name_of_their_content(web: Web) -> None:
    page = web.page("/")
    found = [one["src"] for one in page.all("script")] + [one["href"] for one in page.all("link")]
    types = {web.get(str(path)).headers["content-type"] for path in found}
    assert types == {"text/css; charset=utf-8", "text/javascript; charset=utf-8", "image/svg+xml"}
    assert "immutable" in web.get(str(found[0])).headers["cache-control"]
    assert web.get("/static/passwd").status_code == 404
    assert web.get("/static/../static/live.js").status_code in (200, 301)


def test_unchanged_page_is_not_sent_again(web: Web) -> None:
    answer = web.get("/queues")
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["etag"] == web.get("/queues").headers["etag"]


def test_other_methods_are_refused(web: Web) -> None:
    assert web.get("/queues", method="POST").status_code == 405
    assert web.get("/queues", method="POST").headers["allow"] == "GET, OPTIONS"


def test_routes_of_the_rest_interface_answer_as_before(web: Web) -> None:
    for accept in ("*/*", "text/html,*/*"):
        answer = web.get("/ws/v1/none", accept)
        assert (answer.status_code, answer.text) == (404, "404 page not found\n")
    answer = web.get("/ws/v1/partition/none/queues", "application/json, */*")
    assert answer.json()["message"] == "Partition not found"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert web.get("/ws/v1/partitions").headers["content-type"].startswith("application/json")
    assert not any(
        "Page for a browser" in str(one) for one in Rest(RM()).json("openapi.json")["paths"].values()
    )


def test_errors_are_pages_for_browsers(web: Web) -> None:
    assert "There is no page /no<b>ne." in web.page("/no%3Cb%3Ene", 404).words
    assert web.get("/none", "*/*").text == "404 page not found\n"
    answer = web.get("/ws/v1/partition/none/queues")
    assert answer.status_code == 404
    assert "Partition not found" in answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (CoreStopped("stopped"), 503, "the scheduler is stopping"),
        (UsageError("the file is gone"), 500, "the file is gone"),
        (ZeroDivisionError("a/b"), 500, "The page cannot be shown: ZeroDivisionError."),
    ],
)
def test_failures_are_pages(
    monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, text: str
) -> None:
    web = Web(RM())

    async def read(*_: Any) -> Any:
        raise error

    monkeypatch.setattr("tests.rest.kit.DirectCore.read", read)
    for path in PAGES:
        assert text in web.page(path, status).words
    assert "<title>" in web.get("/").text


def test_readers_at_the_same_time_share_a_page() -> None:
    rm, store = eventful()
    web = Web(rm, store)
    readings = 0
    core: Any = web.context.core
    read = core.read

    async def counted(reading: Any) -> Any:
        nonlocal readings
        readings += 1
        await asyncio.sleep(0)
        return await read(reading)

    core.read = counted

    async def all_at_once() -> set[str]:
        transport = httpx.ASGITransport(web.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            answers = await asyncio.gather(*(client.get("/queues") for _ in range(50)))
        return {answer.text for answer in answers}

    assert len(asyncio.run(all_at_once())) == 1
    assert readings == 1


# -- notices of changes ----------------------------------------------------------------------------------


class Client:
    """Client of a stream, which leaves when it has as many messages as it wants."""

    def __init__(self, app: Any, wanted: int) -> None:
        self.app, self.wanted = app, wanted
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.messages: list[bytes] = []
        self._enough = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self._enough.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])
        elif message["body"]:
            self.messages.append(message["body"])
        if len(self.messages) >= self.wanted or self.status != 200:
            self._enough.set()

    async def run(self) -> None:
        scope = {"type": "http", "method": "GET", "path": "/live", "headers": [], "query_string": b""}
        await self.app({**scope, "client": ("127.0.0.1", 1)}, self.receive, self.send)


@pytest.mark.slow  # waits for a clock
def test_a_burst_of_changes_is_one_notice_and_another_at_its_end() -> None:
    rm, store = eventful()
    web = Web(rm, store)

    async def play() -> Client:
        client = Client(web.app, 3)
        running = asyncio.create_task(client.run())
        while not client.messages:
            await asyncio.sleep(0)
        for number in range(100):
            rm.app(f"app-{number}")
        await running
        return client

    client = asyncio.run(play())
    assert client.headers[b"content-type"] == b"text/event-stream"
    assert b"content-security-policy" in client.headers
    assert client.messages[0] == b"retry: 2000\nevent: open\ndata: instance\n\n"
    last = b"event: change\ndata: %d\n\n" % store.bounds[1]
    assert client.messages[1:] == [last, last]
    assert web.hub.streams == []


def test_too_many_streams_are_refused() -> None:
    rm, store = eventful()
    web = Web(rm, store)

    async def play() -> int:
        for _ in range(15):
            web.hub.open("127.0.0.1", 0)
        client = Client(web.app, 1)
        await client.run()
        return client.status

    assert asyncio.run(play()) == 503
