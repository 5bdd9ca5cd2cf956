"""Schedulers from snapshots: all of the state, or one error and nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, BinaryIO

import attrs
import msgspec

from yunikorn.containment import contained, describe_error
from yunikorn.errors import OptionError, PluginError, UnknownPlugin
from yunikorn.framework.kinds import KINDS
from yunikorn.framework.plugin_code import NotLoaded
from yunikorn.framework.plugin_failures import PluginFailures
from yunikorn.framework.wake_requests import WakeRequests
from yunikorn.interface.callback import Callback, CallbackAdapter, registry_for
from yunikorn.interface.scheduler import Scheduler
from yunikorn.interface.sinks import Sinks
from yunikorn_snapshots.graph_reader import GraphReader
from yunikorn_snapshots.process_parts import is_walked, partitions_of, saves, sessions_of
from yunikorn_snapshots.snapshot_errors import SnapshotError
from yunikorn_snapshots.snapshot_file import MOST_LAYOUTS, SnapshotHeader, SnapshotReading
from yunikorn_snapshots.state_checks import check_state

if TYPE_CHECKING:
    from yunikorn.clock import Clock
    from yunikorn.framework.plugin_code import LoadedPlugin
    from yunikorn.framework.policy_calls import Workers
    from yunikorn.framework.registry import Registry

Row = list[Any]


@attrs.frozen
class SessionRecord:
    """A resource manager of a snapshot, as far as its parts of the process are concerned."""

    rm: str
    methods: list[str]
    predicates: list[str]
    disabled: list[str]
    overriding: list[str]
    loaded: list[tuple[str, str]]
    """Names and digests of the files and modules that the configuration loads as plugins."""


@attrs.frozen
class PluginRecord:
    """A plugin of a snapshot that is made again."""

    place: tuple[str, str, int]
    kind: str
    name: str
    options: dict[str, Any]
    shared: bool
    saves: bool
    saved: Any


@attrs.frozen
class FirstPart:
    """First part of a snapshot."""

    sessions: list[SessionRecord]
    plugins: list[PluginRecord]


@attrs.frozen
class LastPart:
    """Last part of a snapshot."""

    rows: int
    layouts: list[tuple[str, str, str, str, list[str]]]
    sets: list[list[Any]]


def _checked(begin: Any, rows: list[Row], end: Any) -> tuple[FirstPart, LastPart]:
    try:
        first, last = msgspec.convert(begin, FirstPart), msgspec.convert(end, LastPart)
    except msgspec.ValidationError as error:
        raise SnapshotError(f"its first or last part is none: {error}") from error
    if last.rows != len(rows) or len(last.layouts) > MOST_LAYOUTS:
        raise SnapshotError(f"it has {len(rows)} rows instead of {last.rows}, or too many layouts")
    if not all(type(row) is list and row for row in rows):
        raise SnapshotError("one of its rows is empty")
    return first, last


def _finish_key(key: Any) -> None:
    """Compute the hash of a key again, which depends on the process."""
    key._hash = hash(key.value)


def _finish_queue_policies(policies: Any) -> None:
    """Find the books of policies by the identity that the policies have now."""
    policies._subjects = {id(one.keeper.plugin): one for one in policies._subjects.values()}


def _finish_questions(questions: Any) -> None:
    questions._lanes = {id(lane.policy.plugin): lane for lane in questions._lanes.values()}


FINISHED: dict[str, Callable[[Any], None]] = {
    "KeptKey!": _finish_key,
    "QueuePolicies": _finish_queue_policies,
    "WorkerQuestions": _finish_questions,
}
"""Objects with fields that depend on the process; those with a mark before they are hashed."""


class SilentCallback:
    """Callback of a resource manager that is not there: it ignores what it receives, and refuses nothing."""

    def __init__(self, methods: Iterable[str], predicates_in_force: Sequence[str]) -> None:
        """Create a callback with these optional methods, as the original has them."""
        self.predicates_in_force = predicates_in_force
        for method in methods:
            setattr(self, method, self._answer_nothing)

    def recv_update_response(self, response: object) -> None:
        """Ignore a response."""

    def _answer_nothing(self, _: object) -> Any:
        return None


def read_header(source: Path | BinaryIO) -> SnapshotHeader:
    """Return what the first line of a snapshot says. Raises `SnapshotError` and `OSError`."""
    with _opened(source) as file:
        return SnapshotReading(file).header


def restored_scheduler(
    source: Path | BinaryIO,
    registry: Registry,
    clock: Clock,
    callbacks: Mapping[str, Callback] | None = None,
    workers: Workers | None = None,
) -> Scheduler:
    """Return a scheduler that goes on where the one of a snapshot was, which is a file or its content.

    `registry` has the plugins, of which the same must be installed. `clock` must not be behind the time of
    the snapshot. `callbacks` are those of the resource managers, by id; others are silent. `workers` call
    policies that may block; without them a snapshot of a scheduler with workers is refused. Raises
    `SnapshotError`, which names what is wrong, and `OSError`; then nothing was made.
    """
    with _opened(source) as file:
        try:
            return _Restoring(SnapshotReading(file), registry, clock, callbacks or {}, workers).scheduler()
        except MemoryError:
            raise SnapshotError("there is not enough memory for its objects") from None
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError, ArithmeticError) as error:
            raise SnapshotError(f"its rows do not fit together: {type(error).__name__}: {error}") from error


@contextmanager
def _opened(source: Path | BinaryIO) -> Iterator[BinaryIO]:
    """Open a file, whose name is then part of an error."""
    if not isinstance(source, Path):
        yield source
        return
    with source.open("rb") as file:
        try:
            yield file
        except SnapshotError as error:
            raise SnapshotError(f"snapshot {source} cannot be used: {error}") from error


class _Restoring:
    """Parts of the process for one scheduler that is restored."""

    def __init__(
        self,
        reading: SnapshotReading,
        registry: Registry,
        clock: Clock,
        callbacks: Mapping[str, Callback],
        workers: Workers | None,
    ) -> None:
        self._reading, self._registry, self._clock = reading, registry, clock
        self._callbacks, self._workers = callbacks, workers
        self._made = Scheduler.__new__(Scheduler)
        self._registries: dict[tuple[str, str], Registry] = {("", ""): registry}
        self._adapters: dict[str, CallbackAdapter] = {}
        self._loaded: dict[str, list[LoadedPlugin]] = {}
        self._failures = PluginFailures()
        self._plugins: dict[tuple[str, str, int], Any] = {}
        self._classes: dict[tuple[str, str, int], tuple[type[Any], ...]] = {}

    def scheduler(self) -> Scheduler:
        """Return the scheduler."""
        header = self._reading.header
        if self._clock.now() < header.time:
            raise SnapshotError(f"its time is {header.time} ns, and that of the clock {self._clock.now()} ns")
        parts = self._reading.parts()
        begin = next(parts, None)
        rows: list[Row] = []
        end: Any = None
        for part in parts:
            if type(part) is list:
                rows += part
            else:
                end = part
        records, table = _checked(begin, rows, end)
        self._make_sessions(records.sessions)
        self._make_plugins(records.plugins)
        special = {
            "scheduler": lambda _: self._made,
            "clock": lambda _: self._clock,
            "registry": lambda row: self._registries[row[1], row[2]],
            "notify": lambda _: WakeRequests()._notify,
            "lock": lambda _: threading.Lock(),
            "configurations": lambda _: None,
            "measurements": lambda _: None,
            "event_receiver": lambda _: None,
            "workers": self._find_workers,
            "callback": lambda row: self._adapters[row[1]],
            "sinks": lambda _: None,
            "loaded": lambda row: self._loaded[row[1]][row[2]],
            "plugin": lambda row: self._plugins[tuple(row[1:4])],
            "class": lambda row: self._classes[tuple(row[1:4])][row[4]],
            "method": self._method_of_part,
        }
        root = GraphReader(
            map(list, table.layouts), rows, table.sets, header.version, special, FINISHED
        ).read()
        vars(self._made).update(root)
        self._connect()
        self._open_plugins(records.plugins)
        check_state(self._made)
        return self._made

    # -- resource managers ----------------------------------------------------------------------------

    def _make_sessions(self, records: list[SessionRecord]) -> None:
        for one in records:
            given = self._callbacks.get(one.rm)
            callback: Any = given or SilentCallback(one.methods, one.predicates)
            adapter = CallbackAdapter(one.rm, callback, self._failures)
            if sorted(adapter.methods) != one.methods or list(adapter.predicates_in_force) != one.predicates:
                raise SnapshotError(
                    f"the callback of resource manager {one.rm} has the methods {sorted(adapter.methods)} and"
                    f" predicates {list(adapter.predicates_in_force)} instead of {one.methods} and"
                    f" {one.predicates}"
                )
            own = registry_for(one.rm, callback, self._registry, self._failures)
            try:
                self._loaded[one.rm] = [self._load(*each) for each in one.loaded]
                enabled = own.configured(one.disabled, one.overriding, self._loaded[one.rm])
            except UnknownPlugin as error:
                raise SnapshotError(str(error)) from error
            self._registries[one.rm, "own"], self._registries[one.rm, "enabled"] = own, enabled
            self._adapters[one.rm] = adapter

    def _load(self, name: str, digest: str) -> LoadedPlugin:
        """Load a file or module as the registry permits; raise `SnapshotError` if the file is another now."""
        try:
            found = self._registry.code.load(name)
        except NotLoaded as error:
            raise SnapshotError(f"its configuration loads plugin {name}: {error}") from error
        if found.digest != digest:
            raise SnapshotError(f"plugin {name} has changed since the snapshot: use the file of that time")
        return found

    def _connect(self) -> None:
        """Give the sessions their sinks, of which there are none, and make failures known."""
        scheduler = self._made
        for session in sessions_of(scheduler).by_rm.values():
            session.callback_adapter._failures = scheduler.failures
            session.sinks = Sinks(self._clock, scheduler.failures, session._rm_facade)
            session._listen()

    def _find_workers(self, _: Row) -> Workers:
        if self._workers is None:
            raise SnapshotError("its scheduler lets workers call policies that may block: give it workers")
        return self._workers

    # -- plugins of others ----------------------------------------------------------------------------

    def _make_plugins(self, records: list[PluginRecord]) -> None:
        for one in records:
            kind = next((kind for kind in KINDS if kind.id == one.kind), None)
            enabled = self._registries.get((one.place[0], "enabled"))
            if kind is None or enabled is None:
                raise SnapshotError(f"plugin {one.name} is of no kind or resource manager that it names")
            try:
                made = enabled.make_counted(kind, one.name, one.options, comma_lists=one.shared)
                self._classes[one.place] = enabled.classes_of(kind, one.name, one.options)
            except (UnknownPlugin, OptionError, PluginError) as error:
                raise SnapshotError(f"plugin {one.name} cannot be made again: {error}") from error
            if is_walked(made):
                raise SnapshotError(f"plugin {one.name} is now one of this project")
            if one.saves and not saves(made):
                raise SnapshotError(f"plugin {one.name} has no method `restored` any more")
            self._plugins[one.place] = made

    def _open_plugins(self, records: list[PluginRecord]) -> None:
        at = {(session.rm_id, name): one for session, name, one in partitions_of(self._made)}
        for one in records:
            partition = at[one.place[:2]]
            instance = list(partition.instances)[one.place[2]]
            plugin = instance.plugin
            try:
                plugin.opened(partition.instances._context_of(instance))
                if one.saves:
                    plugin.restored(one.saved)
                elif partition.orders.books is not None:
                    others = [
                        each.plugin for each in partition.orders.books.keepers if each.plugin is not plugin
                    ]
                    partition.orders.books.fill(others, partition.partition.nodes.values())
            except contained() as error:
                raise SnapshotError(
                    f"plugin {instance.origin} cannot be restored: {describe_error(error)}"
                ) from error

    def _method_of_part(self, asked: Row) -> Any:
        """Return a method of the clock or of a plugin, by owner, name and row of the owner."""
        owner, name, row = asked
        kind = row[0]
        if kind == "clock" and name == "now":
            return owner.now
        if kind == "plugin" and any(hasattr(one.base, name) for one in KINDS if isinstance(owner, one.base)):
            return getattr(owner, name)
        if kind == "callback" and isinstance(vars(CallbackAdapter).get(name), FunctionType):
            return getattr(owner, name)
        raise SnapshotError(f"it names method {name} of a part of the process")
