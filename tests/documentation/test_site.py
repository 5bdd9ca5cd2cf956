"""The site builds without warnings and contains every page, and all its links resolve."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.documentation.pages import CHECKOUT, PAGES
from yunikorn_lab.commands.states import lifecycles

pytest.importorskip("material", reason="needs the extra docs: pip install '.[docs]'")

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, run_python: Run) -> Path:
    """The site, as `tox -e docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    done = run_python(
        *("-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)),
        cwd=CHECKOUT,
        NO_MKDOCS_2_WARNING="1",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Links(HTMLParser):
    """Links and link targets of a page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record links and targets."""
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.targets.append(value)
                self.fetched += [value] if tag not in ("a", "link") or ".css" in value else []
            if value and name in ("id", "name"):
                self.anchors.add(value)


def test_every_page_is_in_the_site(site: Path) -> None:
    made = {page.relative_to(site).with_suffix("").as_posix() for page in site.rglob("*.html")}
    for page in PAGES:
        place = page.relative_to(CHECKOUT)
        if place.parts[0] == "docs":
            assert place.relative_to("docs").with_suffix("").as_posix().replace("README", "index") in made
        if place.parts[0] == "examples":
            assert f"examples/{place.parent.name}" in made
    assert {"index", "changes", "contributing", "security", "benchmarks"} <= made


def test_links_of_the_site_have_targets(site: Path) -> None:
    pages = {page: Links(page) for page in site.rglob("*.html") if page.name != "404.html"}
    for page, links in pages.items():
        for target in links.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            file = file / "index.html" if file.is_dir() else file
            assert file.is_file(), f"{page.name} leads to {target}"
            if parts.fragment and file in pages:
                assert unquote(parts.fragment) in pages[file].anchors, f"{page.name} leads to {target}"


def test_site_loads_no_external_resources(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not [target for target in Links(page).fetched if urlsplit(target).netloc]


def test_state_machine_pictures_need_no_network(site: Path) -> None:
    text = (site / "states.html").read_text("utf-8")
    assert text.count('src="images/states/') == len(lifecycles())
    assert not [page.name for page in site.rglob("*.html") if 'class="mermaid"' in page.read_text("utf-8")]
