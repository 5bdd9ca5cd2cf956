"""Configuration files of a service: one file per policy group (`docs/decisions/0035`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from yunikorn.config.load import check_config
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn.interface.configurations import Configurations

SUFFIXES = (".yaml", ".yml")
DEFAULT_GROUP = ""
"""Policy group of a file that is given without a group."""

EMPTY = ("", b"")
EMPTIED = "is empty, as if it was just being written; write `partitions: []` if there are to be no partitions"


class ConfigFiles:
    """Configuration files named by the user as `FILE`, `GROUP=FILE`, or a folder of `GROUP.yaml`."""

    def __init__(self, named: Iterable[str]) -> None:
        """Parse the names; raises `UsageError` for a malformed name or a second file of a group."""
        self._files: dict[str, Path] = {}
        self._folders: list[Path] = []
        for text in named:
            group, path = _split(text)
            if path.is_dir():
                if group:
                    raise UsageError(f"--config {text}: a folder has one file per group, so name no group")
                self._folders.append(path)
            elif group in self._files:
                raise _twice(f"--config {text}", group, self._files[group])
            else:
                self._files[group] = path

    def paths(self) -> dict[str, Path]:
        """Return the current file of each group; raises `UsageError` if two files belong to one group."""
        found = dict(self._files)
        for folder in self._folders:
            files = sorted(_files_of(folder))
            if not files:
                raise UsageError(f"--config {folder}: there is no GROUP.yaml in this folder")
            for file in files:
                if file.stem in found:
                    raise _twice(str(file), file.stem, found[file.stem])
                found[file.stem] = file
        return found

    def watched(self) -> list[Path]:
        """Return the paths to watch for changes: the current files, and folders that cannot be read."""
        here = list(self._files.values())
        for folder in self._folders:
            try:
                here += sorted(_files_of(folder))
            except UsageError:
                here.append(folder)
        return here

    def read(self, registry: Registry, in_use: Mapping[str, str | bytes] | None = None) -> dict[str, bytes]:
        """Return the checked texts of all groups; raises `UsageError` with the problems of all files.

        With the previous texts `in_use`, an empty file is refused if the file is new or had content before:
        such a file is probably still being written.
        """
        texts: dict[str, bytes] = {}
        problems: list[str] = []
        for group, path in self.paths().items():
            try:
                texts[group] = path.read_bytes()
            except OSError as error:
                problems.append(f"{path}: cannot be read: {error.strerror or error}")
                continue
            if not texts[group] and in_use is not None and in_use.get(group) not in EMPTY:
                problems.append(f"{path}: {EMPTIED}")
            outcome = check_config(texts[group], registry)
            problems += [f"{path}: {problem}" for problem in outcome.problems]
        if problems:
            raise UsageError("\n".join(problems))
        return texts


class LoadedConfigurations(Configurations):
    """Texts that were read and checked last; `replace` exchanges all of them at once."""

    @property
    def texts(self) -> dict[str, str | bytes]:
        """Current texts by policy group."""
        return {group: self.read(group) for group in self.groups}

    def replace(self, texts: Mapping[str, bytes | str]) -> None:
        """Use these texts from now on."""
        self._sources = dict(texts)


def _split(text: str) -> tuple[str, Path]:
    group, equals, path = text.partition("=")
    if not equals or Path(text).exists():
        return DEFAULT_GROUP, Path(text)
    if not group or not path:
        raise UsageError(f"--config {text}: give a file, GROUP=FILE, or a folder")
    return group, Path(path)


def _files_of(folder: Path) -> list[Path]:
    try:
        return [
            file
            for file in folder.iterdir()
            if file.suffix in SUFFIXES and not file.name.startswith(".") and file.is_file()
        ]
    except OSError as error:
        raise UsageError(f"--config {folder}: cannot be read: {error.strerror or error}") from error


def _twice(what: str, group: str, first: Path) -> UsageError:
    called = f"policy group '{group}'" if group else "the default policy group"
    return UsageError(f"{what}: {called} already has a file: {first}")
