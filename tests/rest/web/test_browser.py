"""Pages in a real browser: errors on the console, accessibility, live updates, keyboard, and no JavaScript.

The tests need the extra `browser`, and Chromium, as the system's own or by `playwright install chromium`.
"""

from __future__ import annotations

import importlib.util
import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.rest.web.kit import Web
from tests.rest.web.past_cluster import past_web
from tests.rest.web.test_past_pages import PAST_PAGES
from tests.service.process import Service
from tests.topology.racks import gang, racks

WHY = "needs the extra browser: pip install 'yunikorn[browser]'"
playwright: Any = pytest.importorskip("playwright.sync_api", reason=WHY)

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""Names of the commands of browsers that are tried."""
PATIENCE = 30_000
"""Milliseconds in which a page must have changed."""
PATHS = (
    "/",
    "/queues",
    "/queue?name=root.web",
    "/applications?state=all",
    "/nodes",
    "/node?id=node-1",
    "/racks",
    "/users",
    "/user?name=ann",
    "/events",
    "/plugins",
)
AXE = "() => axe.run(document, {resultTypes: ['violations']}).then(found => found.violations)"
HIDDEN_SECTIONS = """[...document.querySelectorAll('.top nav a')]
    .filter(one => one.getBoundingClientRect().right > innerWidth).map(one => one.textContent)"""
"""Expression for the sections that the navigation shows only after scrolling."""
CUT = """[...document.querySelectorAll('main *')]
    .filter(one => one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX !== 'visible'
        && one.clientWidth > 1 && !getComputedStyle(one).backgroundImage.includes('gradient'))
    .map(one => one.outerHTML.slice(0, 80))"""
"""Expression for what is cut off at the right without a shadow that says so."""
OVERLAPPING = """[...document.querySelectorAll('.x-axis, .y-axis, .mark-axis')].flatMap(axis => {
    const boxes = [...axis.querySelectorAll('text')].map(one => one.getBoundingClientRect());
    const after = (box, other) => box.left < other.right - 1 && box.right > other.left + 1
        && box.top < other.bottom - 4 && box.bottom > other.top + 4;
    return boxes.slice(1).filter((box, index) => after(box, boxes[index])).map(() => axis.textContent)})"""
"""Expression for the axes of charts whose texts overlap."""
CHARTED = (
    *("/", "/?time=year", "/?time=month", "/queue?name=root.a", "/queue?name=root.a&time=week"),
    *("/queue?name=root.a&time=hours", "/user?name=user", "/node?id=n1"),
)
TIME = "document.querySelector('#live > p:last-child time').textContent"
"""Expression for the time on a page."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Run the demo, and return the address of its pages."""
    service = Service("--demo", "--grpc", "off", "--rest", "127.0.0.1:0")
    try:
        assert service.process.stdout is not None
        line = service.process.stdout.readline()
        assert line.startswith("REST: "), line
        service.wait_for("runs on node-1")
        yield line.removeprefix("REST: ").strip().removesuffix("/ws/v1")
    finally:
        service.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Start a browser."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    with playwright.sync_playwright() as engine:
        try:
            started = engine.chromium.launch(executable_path=found, args=["--no-sandbox"])
        except playwright.Error as problem:
            pytest.skip(f"needs Chromium, such as by `playwright install chromium`: {problem}")
        yield started
        started.close()


class Opened:
    """A page, with everything that its console shows."""

    def __init__(self, browser: Any, **settings: Any) -> None:
        self.context = browser.new_context(**settings)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.console: list[str] = []
        self.page.on("console", lambda message: self._heard(message.type, message.text))
        self.page.on("pageerror", lambda error: self._heard("error", str(error)))

    def _heard(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.console.append(text)


@pytest.fixture
def opened(browser: Any, request: pytest.FixtureRequest) -> Iterator[Opened]:
    """Open an empty page, with the settings that a test gives."""
    found = Opened(browser, **getattr(request, "param", {}))
    yield found
    found.context.close()


def axe() -> str:
    """Return the source of axe-core; skips the test if it is not installed."""
    spec = importlib.util.find_spec("axe_playwright_python")
    if spec is None or spec.origin is None:
        pytest.skip(WHY)
    return (Path(spec.origin).parent / "axe.min.js").read_text("utf-8")


@pytest.mark.parametrize(
    "opened",
    [
        {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
        for scheme, width in (("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390))
    ],
    indirect=True,
    ids=["light", "dark", "light-phone", "dark-phone"],
)
def test_pages_have_no_fault(opened: Opened, address: str) -> None:
    source = axe()
    page = opened.page
    for path in PATHS:
        page.goto(address + path)
        page.wait_for_selector("#status[data-state=live]")
        page.evaluate(source)
        violations = [(one["id"], one["nodes"][0]["html"]) for one in page.evaluate(AXE)]
        assert violations == [], path
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        assert page.evaluate(HIDDEN_SECTIONS) == [], path
        assert page.evaluate(CUT) == [], path
    assert opened.console == []


@contextmanager
def answered(page: Any, web: Web) -> Iterator[Any]:
    """Answer the requests of a page to `http://test` in process, but for notices of changes."""

    def answer(route: Any) -> None:
        # The engine has an event loop in this thread.
        found = executor.submit(web.get, route.request.url.removeprefix("http://test")).result()
        route.fulfill(status=found.status_code, headers=dict(found.headers), body=found.content)

    with ThreadPoolExecutor(1) as executor:
        page.route("**/*", answer)
        page.route("**/live", lambda route: route.abort())
        yield page


@pytest.mark.parametrize(
    "opened",
    [
        {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
        for scheme, width in (("light", 1280), ("dark", 390))
    ],
    indirect=True,
    ids=["light", "dark-phone"],
)
def test_picture_of_racks_has_no_fault(opened: Opened) -> None:
    rm = racks(blocks=3, per_block=12, nodes=2)
    gang(rm, "train", 40, {"required": "block"})
    gang(rm, "small", 5, "rack")
    rm.schedule()
    with answered(opened.page, Web(rm)) as page:
        for path in ("/racks", "/racks?application=train", "/rack?level=rack&name=b1/r1"):
            page.goto(f"http://test{path}")
            page.evaluate(axe())
            violations = [(one["id"], one["nodes"][0]["html"]) for one in page.evaluate(AXE)]
            assert violations == [], path
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
            assert page.evaluate(CUT) == [], path
        page.goto("http://test/racks")
        page.get_by_role("link", name="gpu: 0 of 16 free, 0 of 2 nodes idle, train with 16").first.click()
        page.wait_for_url("**/rack?level=rack&name=*")
        page.get_by_role("link", name="train", exact=True).click()
        page.wait_for_url("**/application?id=train")


@pytest.mark.parametrize(
    "opened",
    [
        {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
        for scheme, width in (("light", 1440), ("dark", 390))
    ],
    indirect=True,
    ids=["light", "dark-phone"],
)
def test_pages_of_a_history_have_no_fault(opened: Opened, tmp_path: Path) -> None:
    with answered(opened.page, past_web(str(tmp_path / "past.db"))) as page:
        for path in (*CHARTED, *PAST_PAGES):
            page.goto(f"http://test{path}")
            page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
            page.evaluate(axe())
            violations = [(one["id"], one["nodes"][0]["html"]) for one in page.evaluate(AXE)]
            assert violations == [], path
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
            assert page.evaluate(HIDDEN_SECTIONS) == [], path
            assert page.evaluate(CUT) == [], path
            assert page.evaluate(OVERLAPPING) == [], path


@pytest.mark.parametrize("opened", [{"java_script_enabled": False}], indirect=True)
def test_charts_and_search_by_keyboard_without_javascript(opened: Opened, tmp_path: Path) -> None:
    with answered(opened.page, past_web(str(tmp_path / "past.db"))) as page:
        page.goto("http://test/queue?name=root.a")
        page.get_by_role("link", name="Week").focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/queue?name=root.a&time=week")
        page.locator(".chart summary").first.press("Enter")
        page.get_by_role("row", name="Thu 26 Nov 12:00").first.wait_for()
        page.get_by_role("searchbox", name="Search").fill("train")
        page.keyboard.press("Enter")
        page.get_by_role("link", name="train-7").click()
        page.wait_for_url("**/run?id=62")


def test_page_of_an_application(opened: Opened, address: str) -> None:
    page = opened.page
    page.goto(f"{address}/applications?state=all")
    link = page.locator("tbody th a").first
    name = link.text_content()
    link.click()
    page.wait_for_url("**/application?id=*")
    assert page.locator("h1").text_content() == name
    page.evaluate(axe())
    assert [one["id"] for one in page.evaluate(AXE)] == []
    assert opened.console == []


def test_open_page_is_updated_until_it_is_paused(opened: Opened, address: str) -> None:
    page = opened.page
    page.goto(f"{address}/events")
    page.wait_for_selector("#status[data-state=live]")
    first = page.locator("tbody tr").first.get_attribute("id")
    page.wait_for_function("(first) => document.querySelector('tbody tr').id !== first", arg=first)
    page.get_by_role("button", name="Pause").click()
    assert page.locator("#status").text_content() == "paused"
    page.get_by_role("button", name="Resume").click()
    page.wait_for_selector("#status[data-state=live]")
    assert opened.console == []


def test_update_keeps_the_focus_and_closed_parts(opened: Opened, address: str) -> None:
    page = opened.page
    page.goto(f"{address}/queues")
    page.locator("summary").click()
    page.locator("a", has_text="root").focus()
    time = page.evaluate(TIME)
    page.wait_for_function(f"(time) => {TIME} !== time", arg=time)
    assert page.evaluate("document.activeElement.textContent") == "root"
    assert not page.evaluate("document.querySelector('details').open")


def test_keyboard(opened: Opened, address: str) -> None:
    page = opened.page
    page.goto(f"{address}/queues")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "SUMMARY":
            break
    page.keyboard.press("Enter")
    assert not page.evaluate("document.querySelector('details').open")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


@pytest.mark.parametrize("opened", [{"java_script_enabled": False}], indirect=True)
def test_without_javascript(opened: Opened, address: str) -> None:
    page = opened.page
    page.goto(f"{address}/applications")
    page.get_by_label("Id contains").fill("none-of-them")
    page.get_by_role("button", name="Filter").click()
    page.get_by_text("No application matches.").wait_for()
    assert page.locator("#liveness").is_hidden()


def test_lost_connection_is_shown_and_the_content_stays(opened: Opened) -> None:
    service = Service("--demo", "--grpc", "off", "--rest", "127.0.0.1:0")
    try:
        assert service.process.stdout is not None
        address = service.process.stdout.readline().removeprefix("REST: ").strip().removesuffix("/ws/v1")
        page = opened.page
        page.goto(f"{address}/nodes")
        page.wait_for_selector("#status[data-state=live]")
        page.wait_for_selector("tbody tr >> nth=3")
        service.signal(signal.SIGKILL)
        page.wait_for_selector("#status[data-state=lost]")
        assert page.locator("#status").text_content() == "connection lost, trying again"
        assert page.locator("tbody tr").count() == 4
    finally:
        service.close()
