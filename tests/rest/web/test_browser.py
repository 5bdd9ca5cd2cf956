"""Pages in a real browser: errors on the console, accessibility, live updates, keyboard, and no JavaScript.

The tests need the extra `browser`, and Chromium, as the system's own or by `playwright install chromium`.
"""

from __future__ import annotations

import importlib.util
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.process import Service

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
