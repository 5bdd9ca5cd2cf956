"""Pages of reports in a real browser: sorting by mouse and keyboard, narrow and dark windows, accessibility.

The tests need the extra `browser`, and Chromium, as the system's own or by `playwright install chromium`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from yunikorn_lab.reporting.page import render
from yunikorn_lab.reporting.palette import QueueColours
from yunikorn_lab.reporting.section import Section
from yunikorn_lab.reporting.tables import Number, Table, duration

WHY = "needs the extra browser: pip install 'yunikorn[browser]'"
playwright: Any = pytest.importorskip("playwright.sync_api", reason=WHY)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""Names of the commands of browsers that are tried."""
QUEUES = ("root.b", "root.a", "root.c")


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


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a page with a table of three queues, one without a wait, and a sum."""
    rows = [[name, Number(duration, wait)] for name, wait in zip(QUEUES, (90.0, 7_200.0, None), strict=True)]
    table = Table("Waits", ["queue", "wait"], [*rows, ["and 2 more", "5s"]], has_queues=True, rest=1)
    wide = Table("Wide", ["x" * 200, *["number"] * 20], [["y" * 200, *["123456"] * 20]])
    sections = [Section("waits", "Waits", "lead", tables=[table, wide])]
    file = tmp_path_factory.mktemp("page") / "report.html"
    verdict = ["root." + "long" * 60]
    file.write_text(
        render(title="t" * 200, verdict=verdict, sections=sections, drawn={}, colours=QueueColours(QUEUES)),
        "utf-8",
    )
    return file


def order(shown: Any) -> list[str]:
    """Return the first cells of the table, in the order of the window."""
    return list(shown.locator("table").first.locator("tbody th").all_inner_texts())


def test_a_click_sorts_by_value_and_the_next_one_turns_the_order(browser: Any, page: Path) -> None:
    shown = browser.new_page()
    shown.goto(page.as_uri())
    assert order(shown) == [*QUEUES, "and 2 more"]
    head = shown.get_by_role("button", name="wait")
    head.click()
    assert order(shown) == ["root.a", "root.b", "root.c", "and 2 more"]
    assert head.locator("..").get_attribute("aria-sort") == "descending"
    head.click()
    assert order(shown) == ["root.b", "root.a", "root.c", "and 2 more"]
    shown.close()


def test_the_keyboard_sorts_as_well(browser: Any, page: Path) -> None:
    shown = browser.new_page()
    shown.goto(page.as_uri())
    shown.get_by_role("button", name="queue").focus()
    shown.keyboard.press("Enter")
    assert order(shown) == ["root.a", "root.b", "root.c", "and 2 more"]
    shown.keyboard.press("Space")
    assert order(shown) == ["root.c", "root.b", "root.a", "and 2 more"]
    shown.close()


def test_without_script_the_table_is_complete(browser: Any, page: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    shown = context.new_page()
    shown.goto(page.as_uri())
    assert order(shown) == [*QUEUES, "and 2 more"]
    assert shown.get_by_role("button").count() == 0
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_pages_fit_the_window_and_can_be_read(browser: Any, page: Path, width: int, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason=WHY)
    shown = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    faults: list[str] = []
    shown.on("console", lambda message: faults.append(message.text))
    shown.on("pageerror", lambda error: faults.append(str(error)))
    shown.goto(page.as_uri())
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert [found["id"] for found in axe.Axe().run(shown).response["violations"]] == []
    assert faults == []
    shown.close()
