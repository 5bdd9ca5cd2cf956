"""Hooks of mkdocs that add pages from outside docs/, such as README.md, which is the first page of the site.

Links to these files are changed to links to their pages. Links to other files outside docs/, such as code,
become plain text, because the site has no page for these files.

Mermaid diagrams of state machines, which GitHub renders, are replaced with the images of
`docs/images/draw_states.py`, so that the site loads no script from the network.
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
"""Folder of the images of state machines, relative to docs/."""
_DIAGRAM = re.compile(r"^```mermaid\n---\n(?P<name>.*?)\n---\n.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)")


def outside() -> dict[str, str]:
    """Return the pages from outside docs/: path in the checkout, and name in the site."""
    found = {
        "README.md": "index.md",
        "CHANGELOG.md": "changes.md",
        "CONTRIBUTING.md": "contributing.md",
        "SECURITY.md": "security.md",
        "benchmarks/README.md": "benchmarks.md",
    }
    for readme in sorted(CHECKOUT.glob("examples/*/README.md")):
        found[readme.relative_to(CHECKOUT).as_posix()] = f"examples/{readme.parent.name}.md"
    return found


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside docs/."""
    for path, name in outside().items():
        files.append(File.generated(config, name, content=(CHECKOUT / path).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the page with links adapted to the site, and state diagrams replaced with images."""
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
