"""Names of files and classes: each is there once, so that a name finds one place."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from yunikorn.cli.main import COMMANDS

CHECKOUT = Path(__file__).parent.parent
ROOTS = ("yunikorn", "plugins", "policies")
STANDARD = ("__init__.py", "__main__.py")
SAME_THING = {
    "yunikorn/api": "a view of the object, as authors of plugins name it",
    "yunikorn/interface/messages.py": "messages have the names of the scheduler interface",
    "yunikorn/rest/shapes.py": "JSON objects of the REST interface",
    "yunikorn/rest/config_shapes.py": "JSON objects of the REST interface",
    "yunikorn/rest/plugin_shapes.py": "JSON objects of the REST interface",
    "yunikorn/rest/event_json.py": "JSON objects of the REST interface",
    "plugins/yunikorn_kubernetes/objects.py": "objects of the Kubernetes API",
}
"""Files whose classes may have the names of others, with the reason."""


def files() -> list[Path]:
    """Return the source files of the product that are written by hand."""
    found = [file for root in ROOTS for file in sorted((CHECKOUT / root).rglob("*.py"))]
    return [file for file in found if "generated" not in file.parts]


def is_counterpart(path: str) -> bool:
    """Return True for a file whose classes may have the names of others."""
    return any(path == known or path.startswith(f"{known}/") for known in SAME_THING)


def is_command(file: Path) -> bool:
    """Return True for the file of a command, which has the command's name."""
    return file.parent == CHECKOUT / "yunikorn" / "cli" and file.stem.replace("_", "-") in COMMANDS


def test_no_two_files_have_one_name() -> None:
    places = defaultdict(list)
    for file in files():
        if file.name not in STANDARD and not is_command(file):
            places[file.name].append(str(file.relative_to(CHECKOUT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_two_public_classes_have_one_name() -> None:
    places = defaultdict(list)
    for file in files():
        path = str(file.relative_to(CHECKOUT))
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and not is_counterpart(path):
                places[node.name].append(path)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_every_file_of_counterparts_exists() -> None:
    assert [path for path in SAME_THING if not (CHECKOUT / path).exists()] == []
