"""Life cycle of a service: core, doors, configurations and signals."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from yunikorn.api import Door
from yunikorn.clock import Clock, SystemClock, steady, stopwatch
from yunikorn.config.load import DEFAULT_TEXT
from yunikorn.errors import UsageError
from yunikorn.framework.kinds import DOOR
from yunikorn.framework.registry import Registry
from yunikorn.interface.scheduler import Scheduler
from yunikorn.interface.sinks import EventReceiver
from yunikorn.model.context import Timeouts
from yunikorn_service import demo
from yunikorn_service.async_scheduler import AsyncScheduler
from yunikorn_service.background import BackgroundTasks
from yunikorn_service.buffered_sinks import BufferedSinks
from yunikorn_service.config_files import (
    DEFAULT_GROUP,
    READING,
    ConfigFiles,
    LoadedConfigurations,
    Reloading,
    Texts,
    watch,
)
from yunikorn_service.limited_call import LimitedCall
from yunikorn_service.open_doors import OpenDoors
from yunikorn_service.plugin_statistics import PluginStatistics
from yunikorn_service.runtime.policy_workers import PolicyWorkers
from yunikorn_service.runtime.threaded import CoreStopped, ThreadedScheduler
from yunikorn_service.service_door import CoreParts
from yunikorn_service.service_settings import ServerSettings
from yunikorn_service.stop_signals import StopSignals
from yunikorn_service.watchdog import (
    Budgets,
    Watchdog,
    keep_budgets,
    keep_watch,
    log_repeatedly,
    log_statistics,
    watch_sinks,
)

_log = logging.getLogger("yunikorn.service")

DIED = 70
"""Exit status when the core died of a bug."""
ENDED_AT_ONCE = 130
"""Exit status after a second signal."""
POLL_INTERVAL = 1.0
"""Seconds between two checks of the core's progress."""


@attrs.frozen
class ServiceOptions:
    """Options of a service."""

    files: ConfigFiles
    settings: ServerSettings
    doors: Sequence[Door] = ()
    """Doors in the order in which they are opened and closed."""
    allow_rm_config: bool = False
    watch: bool = False
    demo: bool = False
    stats: float | None = None
    """Interval in seconds at which the statistics of plugins are logged; None to count nothing."""
    history_file: str = ""
    """File of the history if neither an option nor a configuration names a database; empty for none."""


def serve(
    options: ServiceOptions,
    registry: Registry,
    announce: Callable[[Mapping[str, str]], None],
    clock: Clock | None = None,
) -> int:
    """Serve until a signal arrives; returns the exit status.

    `announce` is called with the address of each door when the service is ready. Raises
    `UsageError` for options that cannot be used.
    """

    async def run() -> int:
        return await Service(options, registry, steady(clock or SystemClock())).run(announce)

    return asyncio.run(run())


class Service:
    """Running service and its parts. Created and used in one event loop."""

    def __init__(self, options: ServiceOptions, registry: Registry, clock: Clock) -> None:
        self._options = options
        self.clock = clock
        given = given_texts(options)
        # Not later, when decisions would wait for it.
        registry.import_defaults()
        limit = options.settings.patience.reading
        texts: dict[str, str | bytes] = {
            **given,
            **LimitedCall(READING, partial(options.files.read, registry), limit).result(),
        }
        self._configurations = LoadedConfigurations(
            texts, allow_rm_config=options.allow_rm_config, code=options.files.code()
        )
        self.statistics = None if options.stats is None else PluginStatistics(stopwatch)
        """Statistics of plugins; None if they are not counted."""
        self.registry = registry if self.statistics is None else registry.counting(self.statistics)
        self._over, self._is_open = asyncio.Event(), asyncio.Event()
        self._opening: asyncio.Task[Any] | None = None
        """Task that opens the doors."""
        self._reloads = asyncio.Lock()
        loop = asyncio.get_running_loop()
        self._signals_to_stop = StopSignals(loop.time)
        self._tasks = BackgroundTasks(_log)
        self.sinks = BufferedSinks()
        self.workers = PolicyWorkers()
        self.doors = OpenDoors(options.doors, registry)
        given_doors = [one for one in (options.files.history,) if one is not None]
        configured = {one.name: registry.make(DOOR, one.name, one.options) for one in given_doors}
        self._parts = self.doors.prepared(CoreParts(clock, configured, options.history_file))
        threaded = ThreadedScheduler(
            self._make,
            clock,
            died=lambda _: loop.call_soon_threadsafe(self._over.set),
            workers=self.workers,
        )
        self.core = AsyncScheduler(threaded)
        self.budgets = Budgets(threaded, options.settings.budget)
        self.reloading = Reloading(options.files, self._configurations, self.core, registry, given, limit)

    @property
    def now(self) -> Callable[[], int]:
        """Clock of the service (ns since 1970)."""
        return self.clock.now

    def _make(self, clock: Clock) -> Scheduler:
        parts = self._parts
        return (parts.make or Scheduler)(
            registry=self.registry,
            clock=clock,
            timeouts=Timeouts(session=self._options.settings.patience.session_ns),
            configurations=self._configurations,
            buffer_sinks=self.sinks,
            workers=self.workers,
            measurements=parts.measurements,
            event_receiver=self._receiver(),
        )

    def _receiver(self) -> EventReceiver | None:
        receivers = self._parts.event_receivers
        if len(receivers) < 2:
            return receivers[0] if receivers else None
        # Only here, because most services have one receiver.
        from yunikorn_service.joined_receivers import JoinedReceivers

        return JoinedReceivers(receivers)

    def config_source(self) -> str:
        """Return the place of the configuration, if a door reads it itself; else an empty text."""
        door = self.doors.for_resource_managers
        return "" if door is None else door.config_source

    def unready(self) -> str:
        """Return the reason for which a door is not ready; empty if all are."""
        return self.doors.unready()

    async def run(self, announce: Callable[[Mapping[str, str]], None]) -> int:
        """Run from start to end; returns the exit status."""
        try:
            with self._signals():
                try:
                    bound = await self._opened()
                    if bound is not None:
                        await self._run_core(bound, announce)
                finally:
                    await self._tasks.close()
                    await self.doors.close()
                await self.core.close()
                await asyncio.to_thread(self.sinks.finish)
        finally:
            self.doors.closed()
        if self.statistics is not None:
            log_statistics(self.statistics)
        if not self.core.threaded.alive:
            self.core.threaded.failures.sum_up()
        return DIED if self.core.threaded.failure is not None else self._status()

    async def _opened(self) -> dict[str, str] | None:
        """Open the doors; returns their addresses, or None if a signal has ended that."""
        self._opening = task = asyncio.current_task()
        assert task is not None
        try:
            return await self.doors.open(self)
        except asyncio.CancelledError:
            if not self._over.is_set():
                raise
            return None
        finally:
            self._opening = None
            if self._over.is_set():
                # The doors are closed by a task that nothing cancels.
                task.uncancel()

    async def _run_core(
        self, bound: Mapping[str, str], announce: Callable[[Mapping[str, str]], None]
    ) -> None:
        """Run the core until the end of the service."""
        self.core.threaded.start()
        self._begin()
        self._is_open.set()
        announce(bound)
        await self._over.wait()

    def _status(self) -> int:
        """Return the exit status of a service whose core did not fail."""
        door = self.doors.for_resource_managers
        ended = None if door is None else door.ended
        return ended.result() if ended is not None and ended.done() else 0

    def _begin(self) -> None:
        options = self._options
        if options.demo:
            self.run_in_background(demo.Demo(self.core).run())
        if options.watch:
            self.run_in_background(
                watch(options.files.watched, lambda: self.reloading.reload("a file has changed"))
            )
        self.run_in_background(keep_budgets(self.budgets, options.settings.budget.interval))
        if self.statistics is not None and options.stats is not None:
            self.run_in_background(log_repeatedly(self.statistics, options.stats))
        limit = options.settings.patience.sink
        self.run_in_background(watch_sinks(self.sinks, self.core.threaded, limit, POLL_INTERVAL))
        door = self.doors.for_resource_managers
        if door is not None:
            dog = Watchdog(self.core.threaded, door.hang)
            self.run_in_background(keep_watch(dog, door.report, POLL_INTERVAL))
            if door.ended is not None:
                door.ended.add_done_callback(lambda _: self._over.set())

    def run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine until the service stops, and log its errors."""
        what = f"a part of the service ({getattr(work, '__qualname__', '')})"
        self._tasks.begin(work, what, expected=(CoreStopped,))

    # -- signals ------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        handlers: dict[str, Callable[[], object]] = {
            "SIGTERM": lambda: self._stop("SIGTERM"),
            "SIGINT": lambda: self._stop("SIGINT"),
            "SIGHUP": lambda: self.run_in_background(self._reload()),
        }
        statistics = self.statistics
        if statistics is not None:
            handlers["SIGUSR1"] = lambda: log_statistics(statistics)
        set_here = []
        for name, handler in handlers.items():
            number = getattr(signal, name, None)
            if number is not None:
                # Not every platform and thread supports signal handlers.
                with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                    loop.add_signal_handler(number, handler)
                    set_here.append(number)
        try:
            yield
        finally:
            for number in set_here:
                loop.remove_signal_handler(number)

    async def _reload(self) -> None:
        await self._is_open.wait()
        async with self._reloads:
            await self.doors.reload()
            await self.reloading.reload("SIGHUP")

    def _stop(self, why: str) -> None:
        if self._signals_to_stop.asks():
            _log.info("%s: stopping; a second signal ends the process at once", why)
            self._over.set()
            if self._opening is not None:
                self._opening.cancel()
        elif self._signals_to_stop.is_repeated:
            _log.warning("%s again: ending at once", why)
            os._exit(ENDED_AT_ONCE)


def given_texts(options: ServiceOptions) -> Texts:
    """Return the configurations that come from no file: the demo's, and a default if RMs bring their own.

    Raises `UsageError` if there is no configuration at all.
    """
    groups = options.files.paths()
    texts: dict[str, str | bytes] = {}
    if options.demo and demo.GROUP not in groups:
        texts[demo.GROUP] = demo.CONFIG
    if options.allow_rm_config and not groups:
        texts[DEFAULT_GROUP] = DEFAULT_TEXT
    if not (groups or texts):
        raise UsageError(
            "there is no configuration: give --config FILE, or --allow-rm-config if resource managers"
            " bring their configuration, or --demo to look around"
        )
    return texts
