"""`yunikorn plugins new`: write a package that contains one plugin, as a starting point.

Exit status: 0 when the package was written, 2 when that is not possible (then nothing is written).
"""

from __future__ import annotations

import builtins
import keyword
import re
import shutil
from importlib import resources
from pathlib import Path

import attrs
import click

from yunikorn import __version__, api
from yunikorn.errors import UsageError, printable
from yunikorn.framework.kinds import ALL_KINDS, COMMAND, DOOR, WORKLOAD_READER, PluginKind
from yunikorn_commands.allowed_plugins import load_registry
from yunikorn_commands.output import echo

PREFIX = "yunikorn-"
LONGEST = 50
VOWELS = "aeio"
"""Initial letters after the article "an"; "u" is left out because of words such as "user"."""
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*\Z")
_HOLE = re.compile(r"\{\{(\w+)\}\}")
TAKEN = {*api.__all__, *dir(builtins), "CommandContract", "DoorContract", "Path", "Sequence", "Scheduler"}
"""Names that a generated file uses otherwise, which its class must not have."""


@attrs.frozen
class Blank:
    """Plugin for which a package is written."""

    kind: PluginKind
    name: str

    @property
    def distribution(self) -> str:
        """Name of the package for installers."""
        return f"{PREFIX}{self.name}"

    @property
    def module(self) -> str:
        """Import name of the package."""
        return self.distribution.replace("-", "_")

    @property
    def plugin_name(self) -> str:
        """Name of the plugin in configurations; names of placement rules have no hyphens."""
        return self.name if self.kind.name_form.pattern.match(self.name) else self.name.replace("-", "_")

    @property
    def class_name(self) -> str:
        """Name of the plugin's class."""
        words = "".join(word.capitalize() for word in self.name.split("-"))
        free = words not in TAKEN and not keyword.iskeyword(words)
        return words if free else f"{words}Plugin"

    def files(self) -> dict[str, str]:
        """Return the texts of all files of the package by path."""
        kind = self.kind.id
        sources = {
            "pyproject.toml": "pyproject.toml",
            f"{self.module}/__init__.py": f"module-{kind}.py",
            f"tests/test_{self.module}.py": f"test-{kind}.py",
        }
        if self.kind is COMMAND:
            sources |= {"README.md": "README-command.md", f"{self.module}/call.py": "call-command.py"}
        elif self.kind is DOOR:
            sources |= {"README.md": "README-door.md", "queues.yaml": "queues-door.yaml"}
        elif self.kind is WORKLOAD_READER:
            sources |= {"README.md": "README-workload-reader.md"}
        else:
            more = {"queues.yaml": f"queues-{kind}.yaml", "workload.yaml": "workload.yaml"}
            sources |= {"README.md": "README.md", **more}
        return {f"{self.module}/py.typed": "", **{path: self._fill(name) for path, name in sources.items()}}

    def _fill(self, template: str) -> str:
        title = self.kind.title
        words = {
            "a_title": f"{'An' if title[0] in VOWELS else 'A'} {title}",
            "class": self.class_name,
            "distribution": self.distribution,
            "extra": "[kubernetes]" if self.kind is WORKLOAD_READER else "",
            "kind": self.kind.id,
            "method": self.kind.method,
            "module": self.module,
            "name": self.plugin_name,
            "title": title,
            "version": ".".join(__version__.split(".")[:2]),
        }
        folder = resources.files("yunikorn_lab.commands").joinpath("templates")
        text = folder.joinpath(f"{template}.txt").read_text("utf-8")
        return _HOLE.sub(lambda hole: words[hole[1]], text)


@click.command(name="new")
@click.argument("kind_id", metavar="KIND", type=click.Choice([kind.id for kind in ALL_KINDS]))
@click.argument("name")
@click.option(
    "--in",
    "parent",
    metavar="FOLDER",
    default=".",
    type=click.Path(path_type=Path),
    help="Folder to create the package's folder in; the current folder by default.",
)
def new(kind_id: str, name: str, parent: Path) -> None:
    """Write a ready package with a plugin of this KIND called NAME.

    It has its packaging, types, a test, and for a policy a configuration and a workload to try it on; it
    installs, and passes its own test and `mypy --strict` as it is. KIND is one of app-sort, queue-sort,
    node-sort, placement, predicate, event-sink, user-groups, preemption, submit, admission, quota,
    reservation, permit, topology, gang-placement, run-time, command, door and workload-reader.
    """
    blank = Blank(next(kind for kind in ALL_KINDS if kind.id == kind_id), name)
    check_name(blank)
    folder = parent / blank.distribution
    write_package(folder, blank.files())
    echo(f"{blank.kind.title} {blank.plugin_name}: {folder}")
    for path in sorted(blank.files()):
        echo(f"  {path}")
    echo("Next: change the plugin, install it and try it, as README.md describes:")
    echo(f"  cd {folder}")
    echo("  pip install -e '.[test]'")
    echo("  pytest")


def check_name(blank: Blank) -> None:
    """Raise `UsageError` for a name that is invalid, or that an installed plugin has."""
    name = blank.name
    if name.startswith(PREFIX):
        raise UsageError(
            f"'{printable(name)}': leave '{PREFIX}' out of the name; the prefix is added automatically"
        )
    if not _NAME.match(name) or len(name) > LONGEST:
        raise UsageError(
            f"'{printable(name)}' cannot be the name of a plugin: use at most {LONGEST} lower-case letters"
            " and digits, beginning with a letter, with single hyphens between words, such as 'coldest-first'"
        )
    for offer in load_registry().offers(blank.kind):
        if offer.name == blank.plugin_name:
            raise UsageError(
                f"{blank.kind.title} '{offer.name}' already exists: {offer.origin}; choose another name"
            )


def write_package(folder: Path, files: dict[str, str]) -> None:
    """Write the files of a package into a new folder, or no file at all.

    Raises `UsageError` if the folder exists or its parent folder does not, and `OSError` if a file cannot be
    written.
    """
    if not folder.parent.is_dir():
        raise UsageError(f"{folder.parent}: there is no such folder; create it first")
    try:
        folder.mkdir()
    except FileExistsError:
        raise UsageError(
            f"{folder}: already exists and was not changed; choose another name or another folder (--in)"
        ) from None
    try:
        for path, text in files.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(text, "utf-8", newline="\n")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
