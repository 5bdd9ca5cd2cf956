"""The drawing of the source tree in docs/architecture.md names the files that exist."""

from __future__ import annotations

import re
from pathlib import Path

CHECKOUT = Path(__file__).parent.parent
PAGE = CHECKOUT / "docs" / "architecture.md"


def drawn() -> dict[str, set[str]]:
    """Return the files of each folder that the drawing names, by the folder's path."""
    text = PAGE.read_text("utf-8")
    drawing = text.split("## The source tree", 1)[1].split("```")[1]
    found: dict[str, set[str]] = {}
    path: list[str] = []
    for line in drawing.strip("\n").splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        names = re.split(r"\s{2,}", line.strip())[0].split()
        if names[0].endswith("/"):
            path[depth:] = [names[0].rstrip("/")]
            for name in names:
                found.setdefault("/".join([*path[:depth], name.rstrip("/")]), set())
        else:
            found["/".join(path[:depth])].update(names)
    return found


def test_drawn_folders_exist() -> None:
    assert [folder for folder in drawn() if not (CHECKOUT / folder).is_dir()] == []


def test_folders_with_files_are_drawn_completely() -> None:
    for folder, files in drawn().items():
        if files:
            present = {path.name for path in (CHECKOUT / folder).glob("*.py")}
            assert files == present - {"__init__.py", "__main__.py", "pytest_plugin.py"}, folder


def test_every_folder_of_the_package_is_drawn() -> None:
    packages = {
        path.parent.relative_to(CHECKOUT).as_posix() for path in (CHECKOUT / "yunikorn").rglob("__init__.py")
    }
    assert packages - drawn().keys() <= {"yunikorn/wire/generated"}
