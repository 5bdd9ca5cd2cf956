"""Configuration files of a service: reading, reloading, and detection of changes.

A file is a queues.yaml, or has the ConfigMaps with one (`docs/decisions/archive/0166`). There is one file per
policy group (`docs/decisions/archive/0035`). A reload uses all of them, or none (`docs/decisions/0011`).

`FileWatch` detects changed files by polling. Polling is enough for a handful of files, and detects changes
that notifications miss: files that are replaced as a whole, links that are moved to another version (as
Kubernetes does for mounted ConfigMaps), and folders on network file systems.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import attrs

from yunikorn.config.document import decode
from yunikorn.config.queues_yaml import PluginRef
from yunikorn.errors import ConfigError, UsageError, YunikornError
from yunikorn.framework.plugin_code import CodeSource, LoadedPlugin
from yunikorn.framework.registry import Registry
from yunikorn.interface.scheduler import Scheduler
from yunikorn_commands.config_source import read_source
from yunikorn_commands.plugin_files import CodePermission, trusting
from yunikorn_service.async_scheduler import AsyncScheduler
from yunikorn_service.limited_call import LimitedCall
from yunikorn_service.policy_groups import Configurations
from yunikorn_service.service_settings import Patience

SUFFIXES = (".yaml", ".yml")
DEFAULT_GROUP = ""
"""Policy group of a file that is given without a group."""

_log = logging.getLogger("yunikorn.config")

CODE = (
    "plugins that the present configuration does not load cannot be added over REST, because loading runs"
    " code: add them to the file on the machine of the scheduler, and reload it"
)
READING = "reading the configurations with their plugins"
NO_CODE_OVER_REST = CodePermission(refusal=CODE)
EMPTY = ("", b"")
EMPTIED = "is empty, as if it was just being written; write `partitions: []` if there are to be no partitions"


class ConfigFiles:
    """Configuration files named by the user as `FILE`, `GROUP=FILE`, or a folder of `GROUP.yaml`."""

    def __init__(self, named: Iterable[str]) -> None:
        """Parse the names; raises `UsageError` for a malformed name or a second file of a group."""
        self._files: dict[str, Path] = {}
        self._folders: list[Path] = []
        self._loaded: dict[str, tuple[LoadedPlugin, ...]] = {}
        """Plugins that the configurations loaded when they were read last, by group."""
        self._reads = 0
        """Number of calls of `read`."""
        self._embedded: frozenset[str] = frozenset()
        """Groups whose files were ConfigMaps when they were read last."""
        self.history: PluginRef | None = None
        """Options of the history when the files were read first."""
        for text in named:
            group, path = _split(text)
            path = path.absolute()  # a plugin may change the working directory
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

    def code(self) -> dict[str, CodeSource]:
        """Return what the configuration of each group may load: what it loaded when it was read last.

        So files are executed only here.
        """
        return {
            group: CodePermission(path.parent, in_use=self._loaded.get(group, ()), refusal=CODE)
            for group, path in self.paths().items()
        }

    def watched(self) -> list[Path]:
        """Return the paths to watch: current files, their plugin files, and folders that cannot be read."""
        code = [Path(one.path) for loaded in self._loaded.values() for one in loaded if one.path]
        here = [*self._files.values(), *code]
        for folder in self._folders:
            try:
                here += sorted(_files_of(folder))
            except UsageError:
                here.append(folder)
        return here

    def is_embedded(self, group: str) -> bool:
        """Return True if the configuration of a group is part of a ConfigMap."""
        return group in self._embedded

    def read(self, registry: Registry, in_use: Mapping[str, str | bytes] | None = None) -> dict[str, bytes]:
        """Return the checked texts of all groups; raises `UsageError` with the problems of all files.

        With the previous texts `in_use`, an empty file is refused if the file is new or had content before:
        such a file is probably still being written.
        """
        self._reads += 1
        number = self._reads
        texts: dict[str, bytes] = {}
        problems: list[str] = []
        warnings: list[str] = []
        loaded: dict[str, tuple[LoadedPlugin, ...]] = {}
        embedded: set[str] = set()
        histories: dict[Path, PluginRef] = {}
        for group, path in self.paths().items():
            try:
                content = path.read_bytes()
                source = read_source(decode(content))
            except OSError as error:
                problems.append(f"{path}: cannot be read: {error.strerror or error}")
                continue
            except ConfigError as error:
                problems += [f"{path}: {problem}" for problem in error.problems]
                continue
            texts[group] = content
            if source.is_embedded:
                texts[group] = source.text.encode()
                embedded.add(group)
                warnings += [f"{path}: {warning}" for warning in source.warnings]
            if not texts[group] and in_use is not None and in_use.get(group) not in EMPTY:
                problems.append(f"{path}: {EMPTIED}")
            outcome = source.check(trusting(registry, path.parent))
            problems += [f"{path}: {problem}" for problem in outcome.problems]
            if outcome.config is not None:
                loaded[group] = outcome.config.loaded
                if outcome.config.history is not None:
                    histories[path] = outcome.config.history
        problems += _other_histories(histories)
        if problems:
            raise UsageError("\n".join(problems))
        history = next(iter(histories.values()), None)
        if number == 1:
            self.history = history
        elif history != self.history:
            _log.warning("the change of history: needs a restart, until then the history stays as it is")
        for warning in warnings:
            _log.warning("%s", warning)
        if number == self._reads:
            # An earlier call whose plugins took too long may end after a later one.
            self._loaded, self._embedded = loaded, frozenset(embedded)
        return texts


class LoadedConfigurations(Configurations):
    """Texts that were read and checked last; `replace` exchanges all of them at once."""

    @property
    def texts(self) -> dict[str, str | bytes]:
        """Current texts by policy group."""
        return {group: self.read(group) for group in self.groups}

    @property
    def permissions(self) -> dict[str, CodeSource]:
        """Permissions of the configurations from files, by policy group."""
        return dict(self._code)

    def replace(self, texts: Mapping[str, bytes | str], code: Mapping[str, CodeSource]) -> None:
        """Use these texts from now on, with what those that come from files may load."""
        self._sources, self._code = dict(texts), dict(code)


def _other_histories(histories: Mapping[Path, PluginRef]) -> list[str]:
    """Return the problem of several files with different histories, as a service has one."""
    first = next(iter(histories), None)
    others = [path for path, one in histories.items() if first is not None and one != histories[first]]
    text = f"history: a service has one, and {first} has another: write it into one file"
    return [f"{path}: {text}" for path in others]


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


Texts = Mapping[str, str | bytes]
"""Configurations by policy group."""


@attrs.frozen(eq=False)
class Reloading:
    """Reloader of the configuration files of a running core."""

    files: ConfigFiles
    configurations: LoadedConfigurations
    core: AsyncScheduler
    registry: Registry
    given: Texts
    """Texts that come from no file."""
    limit: float = Patience().reading
    """Time (s) for the code of plugins that is executed while the files are read."""
    lock: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)
    """Held during a reload."""

    async def reload(self, why: str) -> bool:
        """Use the current files; returns False, with the reasons in the log, if nothing was changed."""
        async with self.lock:
            try:
                texts: dict[str, str | bytes] = {**self.given}
                read = partial(self.files.read, self.registry, self.configurations.texts)
                texts |= await LimitedCall(READING, read, self.limit).wait()
                code = self.files.code()
                changed = await self.core.carry_out(lambda core: use(core, self.configurations, texts, code))
            except YunikornError as error:
                _log.error(
                    "%s: the new configuration was rejected, the old configuration stays in use:\n%s",
                    why,
                    error,
                )
                return False
        names = ", ".join(changed) or "no resource manager"
        _log.info("%s: the configuration was reloaded; changed for: %s", why, names)
        return True


def use(
    core: Scheduler,
    configurations: LoadedConfigurations,
    texts: Texts,
    code: Mapping[str, CodeSource],
    commit: Callable[[], object] = lambda: None,
) -> list[str]:
    """Use these texts for all sessions, and return the ids of the RMs whose configuration has changed.

    `commit` is called when nothing can prevent the change any more, and may prevent it by an exception of
    ours. Raises `UsageError` with the problems of all sessions, and changes nothing then.
    """
    new = LoadedConfigurations(texts, code=code)
    wanted: list[str] = []
    problems: list[str] = []
    try:
        for session in core.sessions():
            if session.policy_group is None:
                continue
            wanted.append(session.rm_id)
            try:
                group = session.policy_group
                core.prepare_reload(session.rm_id, new.read(group), new.code(group))
            except YunikornError as error:
                problems.append(f"resource manager {session.rm_id}: {error}")
        if problems:
            raise UsageError("\n".join(problems))
        commit()
        configurations.replace(texts, code)
        return [rm_id for rm_id in wanted if core.reload_configuration(rm_id)]
    finally:
        core.discard_reloads()


INTERVAL = 1.0
"""Seconds between two polls."""

FileStates = tuple[tuple[str, int, int, int], ...]
"""Path, modification time in ns, size in bytes and inode of each file."""


class FileWatch:
    """Detector of changed files that waits until the files are completely written."""

    def __init__(self, files: Callable[[], Iterable[Path]]) -> None:
        self._files = files
        self._known = self._last = self._file_states()

    def settled(self) -> bool:
        """Return True once after each change, as soon as the files are the same in two consecutive calls.

        Call this method at intervals. A file that is being written changes between two calls.
        """
        now = self._file_states()
        same, self._last = now == self._last, now
        if not same or now == self._known:
            return False
        self._known = now
        return True

    def _file_states(self) -> FileStates:
        return tuple(_trait(path) for path in self._files())


def _trait(path: Path) -> tuple[str, int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return str(path), -1, -1, -1
    return str(path), found.st_mtime_ns, found.st_size, found.st_ino


async def watch(
    files: Callable[[], Iterable[Path]],
    changed: Callable[[], Awaitable[object]],
    interval: float = INTERVAL,
) -> None:
    """Call `changed` after every change of the files, until the task is cancelled."""
    watched = FileWatch(files)
    while True:
        await asyncio.sleep(interval)
        if watched.settled():
            await changed()
