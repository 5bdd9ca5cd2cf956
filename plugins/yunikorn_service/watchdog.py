"""Detection of a hanging core and of slow plugins.

A plugin that hangs cannot be interrupted, but can be reported (`Watchdog`).

`Budgets` reports slow plugins by the duration of single calls, and by their share of the core's time. Nothing
is measured while scheduling. The event loop samples at intervals which plugin runs in the core's thread, as a
sampling profiler does, so plugin calls cost no more than before. The results are only reported; scheduling
does not depend on them (`docs/decisions/archive/0045`).

Event sinks run in threads of their own, and delay no decision when they hang. `watch_sinks` switches them
off, and reports them under the name of their plugin.

The polling loops continue after errors.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable

import attrs

from yunikorn.errors import CONTAINED
from yunikorn.interface.scheduler import Scheduler
from yunikorn_service.buffered_sinks import BufferedSinks
from yunikorn_service.core_activity import CoreActivity, activity_of
from yunikorn_service.plugin_statistics import PluginStatistics
from yunikorn_service.runtime.threaded import CoreStopped, ThreadedScheduler
from yunikorn_service.service_settings import Budget

_log = logging.getLogger("yunikorn.core")
_plugin_log = logging.getLogger("yunikorn.plugins")
_service_log = logging.getLogger("yunikorn.service")


class Watchdog:
    """Observer of the core's progress; `poll` must be called at intervals."""

    def __init__(self, core: ThreadedScheduler, patience: float) -> None:
        self._core = core
        self._patience = patience
        self._steps = -1
        self._since = 0.0
        self.hangs = False
        """True if the core is busy and has made no progress for the allowed time."""

    def poll(self, now: float) -> bool:
        """Check the core at time `now` (seconds, any clock); returns True if `hangs` has changed."""
        core = self._core
        if core.steps != self._steps or not core.at_work:
            self._steps, self._since = core.steps, now
        hangs = now - self._since >= self._patience
        if hangs == self.hangs:
            return False
        self.hangs = hangs
        if hangs:
            _log.critical(
                "the core has made no progress for %.0f s; current activity: %s",
                now - self._since,
                self._doing(),
            )
        else:
            _log.warning("the core makes progress again")
        return True

    def _doing(self) -> object:
        try:
            return activity_of(self._core) or "none: its thread has ended"
        except CONTAINED as error:
            return f"unknown: {type(error).__name__}: {error}"


async def keep_watch(dog: Watchdog, report: Callable[[bool], Awaitable[object]], interval: float) -> None:
    """Check the core at intervals, and call `report` when its progress stops or resumes."""
    reported = dog.hangs

    async def poll(now: float) -> None:
        nonlocal reported
        dog.poll(now)
        if dog.hangs != reported:
            await report(not dog.hangs)
            reported = dog.hangs

    await poll_repeatedly(poll, interval, "watching the progress of the core")


@attrs.define
class _Call:
    """A plugin call that was in progress at the last sample."""

    call: object
    since: float
    is_reported: bool = False


class Budgets:
    """Sampler of the core's activity; `poll` must be called at short intervals.

    A call is observed from its first to its last sample, so the reported duration is a lower bound. A share
    is the fraction of samples that found the plugin running. Samples of an idle core count too, since a
    plugin that delays no other work is not slow.
    """

    def __init__(self, core: ThreadedScheduler, budget: Budget) -> None:
        self._core = core
        self._budget = budget
        self._call: _Call | None = None
        self._samples = 0
        self._found: Counter[tuple[str, str]] = Counter()
        """Number of samples per plugin and operation that found the plugin running."""
        self._last: float | None = None
        """Time of the last sample."""
        self.seconds: dict[tuple[str, str], float] = {}
        """Time per plugin and operation since the start: a sample stands for the time since the last one."""

    def poll(self, now: float) -> None:
        """Sample the core at `now` (seconds, any clock), and report calls and shares beyond the budget."""
        doing = activity_of(self._core) if self._core.at_work else None
        if doing is None or not doing.plugin:
            self._call = None
        else:
            key = doing.plugin, doing.operation
            self._found[key] += 1
            self.seconds[key] = self.seconds.get(key, 0.0) + now - (now if self._last is None else self._last)
            self._follow(doing, now)
        self._last = now
        self._samples += 1
        if self._samples >= self._budget.samples:
            self._sum_up()

    def _follow(self, doing: CoreActivity, now: float) -> None:
        if self._call is None or self._call.call is not doing.call:
            self._call = _Call(doing.call, now)
        limit, on_call = self._budget.call, now - self._call.since
        if limit is None or on_call < limit or self._call.is_reported:
            return
        self._call.is_reported = True
        text = f"one call blocked the core for more than {on_call:.1f} s; the limit is {limit:g} s"
        self._report(doing.plugin, f"taking long in {doing.operation}", text)

    def _sum_up(self) -> None:
        most = self._budget.share * self._samples
        for plugin in dict.fromkeys(plugin for plugin, _ in self._found):
            by_operation = {
                operation: times for (whose, operation), times in self._found.items() if whose == plugin
            }
            if sum(by_operation.values()) > most:
                text = (
                    f"it was running in {sum(by_operation.values())} of {self._samples} samples,"
                    f" more than the limit of {self._budget.share:.0%}; mostly in"
                    f" {max(by_operation, key=by_operation.__getitem__)}"
                )
                self._report(plugin, "blocking the core", text)
        self._samples = 0
        self._found.clear()

    def _report(self, plugin: str, operation: str, text: str) -> None:
        def note(scheduler: Scheduler) -> None:
            scheduler.failures.report(plugin, operation, text)

        # Plugin failures belong to the core's thread, which runs `note` after the call.
        with contextlib.suppress(CoreStopped):
            self._core.notify(note)


async def keep_budgets(budgets: Budgets, interval: float) -> None:
    """Sample the core at intervals until the task is cancelled."""

    async def poll(now: float) -> None:
        budgets.poll(now)

    await poll_repeatedly(poll, interval, "watching for slow plugins")


async def watch_sinks(sinks: BufferedSinks, core: ThreadedScheduler, limit: float, interval: float) -> None:
    """Switch off sinks that hang; check at intervals, until the task is cancelled."""

    def note(scheduler: Scheduler) -> None:
        len(scheduler.failures)  # records what has been reported from other threads

    async def poll(now: float) -> None:
        if sinks.poll(now, limit):
            with contextlib.suppress(CoreStopped):
                core.notify(note)

    await poll_repeatedly(poll, interval, "watching for event sinks that hang")


async def poll_repeatedly(poll: Callable[[float], Awaitable[None]], interval: float, purpose: str) -> None:
    """Call `poll` with the loop's time every `interval` seconds, until the task is cancelled.

    Errors do not end the loop, since a look may read data that another thread is changing. Each type of error
    is logged once.
    """
    loop = asyncio.get_running_loop()
    reported: set[type[BaseException]] = set()
    while True:
        try:
            await poll(loop.time())
        except CONTAINED as error:
            if type(error) not in reported:
                reported.add(type(error))
                text = "%s: a check failed; checks continue: %s: %s"
                _service_log.error(text, purpose, type(error).__name__, error, exc_info=error)
        await asyncio.sleep(interval)


# -- statistics of plugins: `yunikorn serve --stats TIME` ------------------------------------------------


def log_statistics(statistics: PluginStatistics) -> None:
    """Log one entry for each method of a plugin that was called; JSON entries have the numbers as well."""
    for use in statistics:
        _plugin_log.info("%s", use, extra={"statistics": attrs.asdict(use)})


async def log_repeatedly(statistics: PluginStatistics, interval: float) -> None:
    """Log the statistics every `interval` seconds, until the task is cancelled."""
    while True:
        await asyncio.sleep(interval)
        log_statistics(statistics)
