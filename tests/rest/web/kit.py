"""Test kit of the pages: requests to the application in process, and checks of HTML."""

from __future__ import annotations

import asyncio
import itertools
from html.parser import HTMLParser

import httpx
from attrs import evolve

from tests.core.kit import RM
from tests.rest.kit import DirectCore
from yunikorn.clock import SECOND, ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.scheduler import Scheduler
from yunikorn_rest.app import rest_app
from yunikorn_rest.endpoints import RestContext
from yunikorn_rest.event_store import EventStore
from yunikorn_rest.event_streams import EventHub
from yunikorn_rest.kept_history import KeptHistory
from yunikorn_rest.operator_credentials import parse_credentials
from yunikorn_rest.route_access import AccessGate
from yunikorn_rest.routes.all_routes import ENDPOINTS
from yunikorn_rest.web.all_pages import pages

BROWSER = "text/html,application/xhtml+xml,*/*;q=0.8"
VOID = frozenset(("img", "input", "link", "meta", "wbr", "br"))
"""Elements without an end tag that pages have."""
PAGES = (
    "/",
    "/queues",
    "/queue?name=root.a",
    "/applications",
    "/application?id=app",
    "/nodes",
    "/node?id=n1",
    "/racks",
    "/users",
    "/user?name=user",
    "/events",
    "/plugins",
)
"""One address of each page, in the cluster of `at_work`."""


class Web:
    """The pages of the scheduler of a test's resource manager, whose stopwatch advances with each look."""

    def __init__(
        self,
        rm: RM,
        store: EventStore | None = None,
        history: KeptHistory | None = None,
        credentials: str = "",
    ) -> None:
        seconds = itertools.count(step=20 * SECOND)
        self.store = store or EventStore("instance")
        self.hub = EventHub(self.store, lambda: 0)
        self.context = RestContext(
            DirectCore(rm.scheduler),
            rm.scheduler.registry,
            lambda: next(seconds),
            events=self.hub,
            past=history,
        )
        if credentials:
            self.context = evolve(self.context, gate=AccessGate(parse_credentials(credentials)))
        web = pages(self.context.stopwatch, has_history=history is not None)
        self.app = rest_app(self.context, (*ENDPOINTS, *web.endpoints), web.error_page)

    def get(self, path: str, accept: str = BROWSER, method: str = "GET", token: str = "") -> httpx.Response:
        """Return the answer to a request, of an operator if there is a token."""
        headers = {"accept": accept, **({"authorization": f"Bearer {token}"} if token else {})}

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost:9080") as client:
                return await client.request(method, path, headers=headers)

        return asyncio.run(send())

    def page(self, path: str, status: int = 200, token: str = "") -> Page:
        """Return a page, whose HTML is checked."""
        answer = self.get(path, token=token)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        return Page(answer.text)


class Page(HTMLParser):
    """HTML of a page; raises `AssertionError` unless it is well-formed and free of inline code and style."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        assert html.lstrip().lower().startswith("<!doctype html>")
        self.feed(html)
        self.close()
        assert self._open == []
        ids = [found["id"] for _, found in self.tags if "id" in found]
        assert sorted(set(map(str, ids))) == sorted(map(str, ids))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        found = dict(attrs)
        assert len(found) == len(attrs), f"repeated attribute in {tag}"
        assert not any(name == "style" or name.startswith("on") for name in found), found
        assert tag != "style"
        assert tag != "script" or found.get("src")
        self.tags.append((tag, found))
        if tag != "wbr":
            self.text += " "
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag that closes itself, as in SVG."""
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        """Compare with the tag that is open."""
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag
        self.text += " "

    def handle_data(self, data: str) -> None:
        """Collect the text."""
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """Return the attributes of all tags of a name."""
        return [found for name, found in self.tags if name == tag]

    @property
    def links(self) -> list[str]:
        """Addresses of all links."""
        return [str(found.get("href")) for found in self.all("a")]

    @property
    def words(self) -> str:
        """Text with single blanks."""
        return " ".join(self.text.split())


def eventful(config: str = "", registry: Registry | None = None) -> tuple[RM, EventStore]:
    """Return a resource manager whose events are kept, and the store."""
    store = EventStore("instance")
    scheduler = Scheduler(registry or Registry.load(third_party=False), ManualClock(), event_receiver=store)
    return RM(config, scheduler=scheduler), store
