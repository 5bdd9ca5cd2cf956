"""Takes into the site what stands outside of docs/: the README as its first page, and pages linked to.

A link that leads out of docs/ leads to the page made of that file; one to a file that is no page (code, a
configuration) becomes plain text, since the site has no source to show.

Diagrams of state machines, which GitHub draws itself, become the pictures that `docs/images/draw_states.py`
has drawn of them: so nothing is fetched to show them.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

CHECKOUT = Path(__file__).parent.parent.parent
STATES = "images/states"
"""Where the pictures of state machines are, in docs/."""
_DIAGRAM = re.compile(r"^```mermaid\n---\n(?P<name>.*?)\n---\n.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)")


def outside() -> dict[str, str]:
    """The pages from outside: path in the checkout, and name in the site."""
    found = {"README.md": "index.md", "CHANGELOG.md": "changes.md", "benchmarks/README.md": "benchmarks.md"}
    for readme in sorted(CHECKOUT.glob("examples/*/README.md")):
        found[readme.relative_to(CHECKOUT).as_posix()] = f"examples/{readme.parent.name}.md"
    return found


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside."""
    for path, name in outside().items():
        files.append(File.generated(config, name, content=(CHECKOUT / path).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point each link to the place of its file in the site, and replace state diagrams by pictures."""
    here = page.file.src_uri
    markdown = _DIAGRAM.sub(lambda diagram: _picture(diagram["name"], posixpath.dirname(here)), markdown)
    origin = next((path for path, name in outside().items() if name == here), f"docs/{here}")
    return _LINK.sub(lambda link: _led(link, here, posixpath.dirname(origin)), markdown)


def _picture(name: str, folder: str) -> str:
    place = f"{STATES}/{name.lower().replace(' ', '-')}.svg"
    path = posixpath.relpath(place, folder or ".")
    return f"![Which event takes the {name} from which state to which]({path})"


def _led(link: re.Match[str], here: str, folder: str) -> str:
    picture, text, target, anchor = link[1], link[2], link[3], link[4] or ""
    if not target or "://" in target:
        return link[0]
    path = posixpath.normpath(posixpath.join(folder, target))
    place = outside().get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
    if place is None:
        return text
    return f"{picture}[{text}]({posixpath.relpath(place, posixpath.dirname(here) or '.')}{anchor})"
