"""Failures of plugins during scheduling: contained, attributed, counted, and reported once.

Failures that plugins report themselves by `context.report`, from any thread, are kept until the core records
them. They are bounded, so that a plugin that reports without end neither fills the memory nor the log: by the
number of kinds per plugin, and by the number of texts that are kept until the core takes the reports. What is
suppressed is counted (`docs/decisions/archive/0082`).
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

import attrs

from yunikorn.api import Context
from yunikorn.containment import (
    LONGEST_NAME,
    WrongAnswer,
    contained,
    cut,
    describe_error,
    number_of,
    safe_repr,
    safe_text,
)
from yunikorn.errors import CallbackError, PluginError

_log = logging.getLogger("yunikorn.plugins")


@attrs.define
class PluginFailure:
    """A distinct failure of a plugin, and how often it occurred."""

    plugin: str
    """Name, distribution and version of the plugin."""
    operation: str
    message: str
    """Error message of the first occurrence."""
    count: int = 1
    last: str = ""
    """Message of the last report through `context.report`; empty for failures detected by the core."""
    texts: int = 0
    """Number of times that the message of a report differed from the previous one."""
    unlogged: int = 0
    """Number of such messages that were not logged, because there were too many."""

    def marks(self) -> dict[str, object]:
        """Return the structured fields of a log entry about this failure."""
        return {"plugin": self.plugin, "operation": self.operation, "times": self.count}


class PluginFailures:
    """All failures of plugins since the start."""

    def __init__(self) -> None:
        self._failures: dict[tuple[str, str], PluginFailure] = {}
        self._listeners: list[Callable[[PluginFailure], None]] = []
        self.reports = PluginReports()
        """Failures reported by plugins, possibly from other threads, and not recorded yet."""
        self.count = 0
        """Number of distinct failures, without those in `reports`."""

    def __iter__(self) -> Iterator[PluginFailure]:
        self._take_reports()
        return iter(self._failures.values())

    def __len__(self) -> int:
        if self.reports.pending:
            self._take_reports()
        return len(self._failures)

    def since(self, count: int) -> list[PluginFailure]:
        """Return the failures recorded after the first `count`."""
        return list(islice(self._failures.values(), count, None)) if len(self) > count else []

    def sum_up(self) -> None:
        """Log the number of occurrences of each repeated failure; its first occurrence is in the log."""
        for failure in self:
            if failure.count > 1:
                unlogged = f" ({failure.unlogged} other texts were not logged)" if failure.unlogged else ""
                _log.warning(
                    "%d times: %s%s", failure.count, failure.message, unlogged, extra=failure.marks()
                )

    def context_of(self, plugin: str, context: Context) -> Context:
        """Return a copy of `context` whose `report` attributes failures to this plugin."""
        return attrs.evolve(context, report=partial(self.reports.add, plugin))

    def _take_reports(self) -> None:
        if not self.reports.pending:
            return
        for reports in self.reports.take():
            for cause in reports.causes:
                failure, error = self._record(reports.plugin, reports.operation, cause)
                self._log_report(failure, str(error))
            failure.count += reports.times - len(reports.causes)

    @staticmethod
    def _log_report(failure: PluginFailure, text: str) -> None:
        """Log a report with a new text; the more of them there are, the fewer are logged."""
        if failure.count > 1 and text != failure.last:
            # Unlike errors, whose text depends on the object involved, a new text from a plugin is intended.
            failure.texts += 1
            if failure.texts <= MOST_TEXTS or failure.texts.bit_count() == 1:
                _log.error("%s", text, extra=failure.marks())
            else:
                failure.unlogged += 1
        failure.last = text

    def listen(self, listener: Callable[[PluginFailure], None]) -> None:
        """Call `listener` with each new distinct failure."""
        self._listeners.append(listener)

    def report(self, plugin: str, operation: str, cause: BaseException | str, where: str = "") -> PluginError:
        """Record a failure of `plugin` during `operation` on the object `where`; logs its first occurrence.

        If the plugin only passed on an error of a callback, the failure is attributed to the callback's
        plugin, as named by `cause`.
        """
        return self._record(plugin, operation, cause, where)[1]

    def _record(
        self, plugin: str, operation: str, cause: BaseException | str, where: str = ""
    ) -> tuple[PluginFailure, PluginError]:
        if issubclass(type(cause), CallbackError):
            assert isinstance(cause, CallbackError)
            plugin, operation = cause.plugin, cause.operation
            error: PluginError = CallbackError(plugin, f"{operation} {where}".rstrip(), cause.cause)
        else:
            error = PluginError(plugin, f"{operation} {where}".rstrip(), cause)
        failure = self._failures.get((plugin, operation))
        if failure is not None:
            failure.count += 1
            return failure, error
        failure = self._failures[plugin, operation] = PluginFailure(plugin, operation, str(error))
        self.count += 1
        _log.error("%s", error, extra=failure.marks())
        for listener in self._listeners:
            listener(failure)
        return failure, error

    def call_guarded(
        self, plugin: str, operation: str, owner: object, method: str, *arguments: object
    ) -> bool:
        """Call a method of a plugin without a result; report an exception. Returns True on success."""
        try:
            getattr(owner, method)(*arguments)
        except contained() as error:
            self.report(plugin, operation, error)
            return False
        return True


def read_flag(owner: object, name: str, origin: str, failures: PluginFailures) -> bool:
    """Return True if the attribute `name` of a plugin object is True; False if it is not, or is invalid."""
    try:
        return getattr(owner, name, False) is True
    except contained() as error:
        failures.report(origin, f"reading its {name}", error)
        return False


def read_version(owner: object, origin: str, failures: PluginFailures) -> int:
    """Return the `classes_version` of a plugin; 0 if it is invalid."""
    try:
        version = getattr(owner, "classes_version", 0)
        if type(version) is not int:
            raise WrongAnswer(f"{safe_repr(version)} is not a whole number")
        return version
    except contained() as error:
        failures.report(origin, "reading its classes_version", error)
        return 0


LONGEST_SECONDS = 1e9
"""Upper bound of timing options of policies (about 30 years); larger numbers are rejected."""
BELOW_LONGEST = math.nextafter(LONGEST_SECONDS, 0)
SHORTEST = {"refresh_every": 0.1}
"""Lower bounds of timing options in seconds: a smaller number is reported, and the bound applies."""


def read_seconds(policy: object, option: str, origin: str, failures: PluginFailures) -> float | None:
    """Return the attribute `option` of `policy` in seconds; None if missing, 0 or invalid.

    A number below `SHORTEST` is reported and replaced, because recomputing all the time would leave no time
    to decide.
    """
    try:
        said = getattr(policy, option, None)
        if said is None:
            return None
        fault = "is neither None nor a number of seconds from 0 to below 1e9"
        number, shortest = number_of(said, fault, 0, BELOW_LONGEST), SHORTEST.get(option, 0.0)
        if not 0 < number < shortest:
            return number or None
    except contained() as error:
        failures.report(origin, f"reading its {option}", error)
        return None
    fault = f"{safe_repr(said)} seconds is too short; {shortest:g} seconds applies instead"
    failures.report(origin, f"reading its {option}", fault)
    return shortest


MOST_KINDS = 20
"""Largest number of kinds of failures, by operation, that one plugin may report."""
OVERFLOW = f"reporting more than {MOST_KINDS} kinds of failures"
"""Operation under which the reports of further kinds are counted."""
MOST_TEXTS = 10
"""Largest number of different texts of one kind that are logged one by one."""


@attrs.define
class Reports:
    """Reports of one kind since the last `take`."""

    plugin: str
    operation: str
    times: int = 0
    causes: list[CallbackError | str] = attrs.field(factory=list)
    """Causes of the reports in order, without repetitions; no more than `MOST_TEXTS`."""


class PluginReports:
    """Reports that the core has not recorded yet; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.pending: dict[tuple[str, str], Reports] = {}
        """Reports by plugin and operation; empty most of the time."""
        self._kinds: dict[str, set[str]] = {}
        """Operations that each plugin has reported."""

    def add(self, plugin: str, operation: str, cause: BaseException | str) -> None:
        """Add a report of a plugin."""
        # The texts are read here, in the thread of the plugin, so that nothing of the plugin is kept.
        kind = cut(safe_text(operation), LONGEST_NAME)
        known: CallbackError | str
        if issubclass(type(cause), CallbackError):
            known = cause  # type: ignore[assignment]
        elif issubclass(type(cause), BaseException):
            known = describe_error(cause)  # type: ignore[arg-type]
        else:
            known = safe_text(cause)
        with self._lock:
            kinds = self._kinds.setdefault(plugin, set())
            if kind not in kinds and len(kinds) >= MOST_KINDS:
                known, kind = f"{kind}: {known}", OVERFLOW
            else:
                kinds.add(kind)
            reports = self.pending.setdefault((plugin, kind), Reports(plugin, kind))
            reports.times += 1
            if len(reports.causes) < MOST_TEXTS and known not in reports.causes[-1:]:
                reports.causes.append(known)

    def take(self) -> list[Reports]:
        """Return the reports since the last call, in the order of their first occurrence."""
        with self._lock:
            taken, self.pending = list(self.pending.values()), {}
        return taken
