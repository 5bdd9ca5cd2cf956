"""docs/architecture.md draws all folders, as the READMEs of packages do, and names files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent
CORE = CHECKOUT / "yunikorn"
PAGE = CHECKOUT / "docs" / "architecture.md"
PACKAGES = sorted(
    file.parent for root in ("plugins", "policies") for file in (CHECKOUT / root).glob("*/__init__.py")
)


def drawn() -> set[str]:
    """Return the paths of the folders that the drawing names."""
    text = PAGE.read_text("utf-8")
    drawing = text.split("## The source tree", 1)[1].split("```")[1]
    found: set[str] = set()
    path: list[str] = []
    for line in drawing.strip("\n").splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        names = [name.rstrip("/") for name in line.split() if name.endswith("/")]
        path[depth:] = names[:1]
        found |= {"/".join([*path[:depth], name]) for name in names}
    return found


def test_drawn_folders_exist() -> None:
    assert [folder for folder in sorted(drawn()) if not (CHECKOUT / folder).is_dir()] == []


def test_every_folder_of_the_packages_is_drawn() -> None:
    packages = {
        path.parent.relative_to(CHECKOUT).as_posix()
        for root in ("yunikorn", "plugins", "policies")
        for path in (CHECKOUT / root).rglob("__init__.py")
    }
    assert packages - drawn() == {"plugins/yunikorn_service/wire/generated"}


def test_files_that_the_page_names_exist() -> None:
    """Find them by their paths in the checkout, in a folder of the core, or in a package."""
    places = [CHECKOUT, CORE, CORE / "scheduling", *(CHECKOUT / root for root in ("plugins", "policies"))]
    places += PACKAGES
    named = set(re.findall(r"\b[\w/]+/\w+\.py\b", PAGE.read_text("utf-8")))
    assert named
    assert [file for file in sorted(named) if not any((place / file).is_file() for place in places)] == []


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.name)
def test_every_package_has_a_readme_that_names_its_folders(folder: Path) -> None:
    text = (folder / "README.md").read_text("utf-8")
    assert text.startswith(f"# {folder.name}\n")
    assert len(text.splitlines()) < 60
    inner = [path.parent.name for path in folder.glob("*/__init__.py")]
    assert [name for name in inner if f"`{name}/`" not in text] == []
