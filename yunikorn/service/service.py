"""Life cycle of a service: core, network, configurations and signals."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import uuid
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from yunikorn.background import BackgroundTasks
from yunikorn.clock import Clock, SystemClock, steady, stopwatch
from yunikorn.config.load import DEFAULT_TEXT
from yunikorn.errors import UsageError
from yunikorn.framework.plugin_statistics import PluginStatistics
from yunikorn.framework.registry import Registry
from yunikorn.interface.buffered_sinks import BufferedSinks
from yunikorn.interface.scheduler import Scheduler
from yunikorn.metrics.service_figures import WorkerFigures
from yunikorn.model.context import Timeouts
from yunikorn.model.measurements import Measurements
from yunikorn.recording.recording_scheduler import RecordingScheduler
from yunikorn.runtime.async_scheduler import AsyncScheduler
from yunikorn.runtime.decision_store import DecisionStore
from yunikorn.runtime.event_store import EventStore
from yunikorn.runtime.policy_workers import PolicyWorkers
from yunikorn.runtime.threaded import CoreStopped, ThreadedScheduler
from yunikorn.service import demo
from yunikorn.service.config_files import (
    DEFAULT_GROUP,
    READING,
    ConfigFiles,
    LoadedConfigurations,
    Reloading,
    Texts,
    watch,
)
from yunikorn.service.limited_call import LimitedCall
from yunikorn.service.service_settings import ServerSettings
from yunikorn.service.stop_signals import StopSignals
from yunikorn.service.watchdog import (
    Budgets,
    Watchdog,
    keep_budgets,
    keep_watch,
    log_repeatedly,
    log_statistics,
    watch_sinks,
)

if TYPE_CHECKING:
    from yunikorn.metrics.service_metrics import ServiceMetrics
    from yunikorn.recording.recording_writer import RecordingWriter
    from yunikorn.service.rest import Rest

_log = logging.getLogger("yunikorn.service")

DIED = 70
"""Exit status when the core died of a bug."""
ENDED_AT_ONCE = 130
"""Exit status after a second signal."""
POLL_INTERVAL = 1.0
"""Seconds between two checks of the core's progress."""


class Network(Protocol):
    """Interface of the server in `yunikorn.service.grpc_server`, which is imported only if gRPC is needed.

    The shim for Kubernetes has the same interface, and takes its place.
    """

    @property
    def ended(self) -> asyncio.Future[int] | None:
        """Exit status, once the server has ended by itself; None for a server that ends only by `stop`."""
        ...

    @property
    def unready(self) -> str:
        """Reason for which the server is not ready; empty if it is."""
        ...

    @property
    def config_source(self) -> str:
        """Place of the configuration, if the server reads it itself; else empty."""
        ...

    async def start(self) -> str:
        """Listen; returns the address."""
        ...

    async def stop(self) -> None:
        """Stop the core and the server."""
        ...

    async def report(self, green: bool) -> None:
        """Report whether the core makes progress."""
        ...

    def reload_certificates(self) -> bool:
        """Read the certificates again; returns True if they have changed, raises `UsageError`."""
        ...


@attrs.frozen
class BoundAddresses:
    """Addresses at which a service listens; empty for none."""

    grpc: str
    rest: str = ""
    """URL of REST without a path."""


@attrs.frozen
class ServiceOptions:
    """Options of a service."""

    files: ConfigFiles
    settings: ServerSettings
    network: Callable[[AsyncScheduler, ServerSettings], Network] | None
    """Factory of the server; None for a service without network."""
    allow_rm_config: bool = False
    watch: bool = False
    demo: bool = False
    record: Path | None = None
    record_size: int | None = None
    """Size in bytes from which a recording continues in another file; None for no limit."""
    stats: float | None = None
    """Interval in seconds at which the statistics of plugins are logged; None to count nothing."""
    rest: type[Rest] | None = None
    """Class of the REST interface, which is imported only if REST is served; None for a service without."""
    metrics: type[ServiceMetrics] | None = None
    """Metrics that REST serves; None to measure nothing."""


def serve(
    options: ServiceOptions,
    registry: Registry,
    announce: Callable[[BoundAddresses], None],
    clock: Clock | None = None,
) -> int:
    """Serve until a signal arrives; returns the exit status.

    `announce` is called with the addresses when the service is ready. Raises
    `UsageError` for options that cannot be used.
    """

    async def run() -> int:
        return await _Service(options, registry, steady(clock or SystemClock())).run(announce)

    return asyncio.run(run())


class _Service:
    """Running service and its parts. Created and used in one event loop."""

    def __init__(self, options: ServiceOptions, registry: Registry, clock: Clock) -> None:
        self._options = options
        self._given = given_texts(options)
        # Not later, when decisions would wait for it.
        registry.import_defaults()
        limit = options.settings.patience.reading
        texts: dict[str, str | bytes] = {
            **self._given,
            **LimitedCall(READING, partial(options.files.read, registry), limit).result(),
        }
        self._configurations = LoadedConfigurations(
            texts, allow_rm_config=options.allow_rm_config, code=options.files.code()
        )
        with_metrics = options.metrics is not None and options.rest is not None
        self._measurements = Measurements(stopwatch) if with_metrics else None
        self._statistics = None if options.stats is None else PluginStatistics(stopwatch)
        self._registry = registry if self._statistics is None else registry.counting(self._statistics)
        self._over = asyncio.Event()
        self._signals_to_stop = StopSignals(asyncio.get_running_loop().time)
        self._tasks = BackgroundTasks(_log)
        self._recorder = _recorder(options)
        self._sinks = BufferedSinks()
        self._workers = PolicyWorkers()
        self._events = None if options.rest is None else _event_store(options, clock)
        loop = asyncio.get_running_loop()
        threaded = ThreadedScheduler(
            self._make,
            clock,
            died=lambda _: loop.call_soon_threadsafe(self._over.set),
            workers=self._workers,
        )
        self.core = AsyncScheduler(threaded)
        self._budgets = Budgets(threaded, options.settings.budget)
        self._network = None if options.network is None else options.network(self.core, options.settings)
        self._rest: Rest | None = None
        if options.rest is not None and self._events is not None:
            self._rest = options.rest(
                self.core, options.settings, registry, self._metrics(), self._events, clock
            )
        self._reloading = Reloading(
            options.files, self._configurations, self.core, registry, self._given, limit
        )
        if self._rest is not None:
            self._rest.change_configurations(self._reloading, self._config_source)
            if self._network is not None:
                network = self._network
                self._rest.ask_readiness(lambda: network.unready)

    def _make(self, clock: Clock) -> Scheduler:
        parts: dict[str, Any] = {
            "registry": self._registry,
            "clock": clock,
            "timeouts": Timeouts(session=self._options.settings.patience.session_ns),
            "configurations": self._configurations,
            "buffer_sinks": self._sinks,
            "workers": self._workers,
            "measurements": self._measurements,
            "event_receiver": self._events,
        }
        return Scheduler(**parts) if self._recorder is None else RecordingScheduler(self._recorder, **parts)

    def _config_source(self) -> str:
        return "" if self._network is None else self._network.config_source

    def _metrics(self) -> ServiceMetrics | None:
        if self._options.metrics is None:
            return None
        core, plugin_time = self.core, self._budgets.seconds
        made = self._options.metrics(core.read, core.threaded, plugin_time, self._statistics, self._sinks)
        workers = self._workers
        made.workers = lambda: WorkerFigures(len(workers), workers.stuck, workers.given_up)
        return made

    async def run(self, announce: Callable[[BoundAddresses], None]) -> int:
        """Run from start to end; returns the exit status."""
        try:
            bound = await self._listen()
            self.core.threaded.start()
            with self._signals():
                self._begin()
                announce(bound)
                await self._over.wait()
                await self._end()
                await asyncio.to_thread(self._sinks.finish)
        finally:
            if self._recorder is not None:
                self._recorder.close()
        if self._statistics is not None:
            log_statistics(self._statistics)
        if not self.core.threaded.alive:
            self.core.threaded.failures.sum_up()
        return DIED if self.core.threaded.failure is not None else self._status()

    def _status(self) -> int:
        """Return the exit status of a service whose core did not fail."""
        ended = None if self._network is None else self._network.ended
        return ended.result() if ended is not None and ended.done() else 0

    async def _listen(self) -> BoundAddresses:
        rest = "" if self._rest is None else await self._rest.start()
        try:
            return BoundAddresses("" if self._network is None else await self._network.start(), rest)
        except UsageError:
            if self._rest is not None:
                await self._rest.stop()
            raise

    def _begin(self) -> None:
        options = self._options
        if options.demo:
            self._keep(demo.Demo(self.core).run())
        if options.watch:
            self._keep(watch(options.files.watched, lambda: self._reloading.reload("a file has changed")))
        self._keep(keep_budgets(self._budgets, options.settings.budget.interval))
        patience = options.settings.patience
        if self._statistics is not None and options.stats is not None:
            self._keep(log_repeatedly(self._statistics, options.stats))
        self._keep(watch_sinks(self._sinks, self.core.threaded, patience.sink, POLL_INTERVAL))
        if self._network is not None:
            dog = Watchdog(self.core.threaded, patience.hang)
            self._keep(keep_watch(dog, self._network.report, POLL_INTERVAL))
            if self._network.ended is not None:
                self._network.ended.add_done_callback(lambda _: self._over.set())

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` in the background, and log its errors."""
        what = f"a part of the service ({getattr(work, '__qualname__', '')})"
        self._tasks.begin(work, what, expected=(CoreStopped,))

    async def _end(self) -> None:
        await self._tasks.close()
        if self._rest is not None:
            await self._rest.stop()
        if self._network is None:
            await self.core.close()
        else:
            await self._network.stop()

    # -- signals ------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        handlers: dict[str, Callable[[], object]] = {
            "SIGTERM": lambda: self._stop("SIGTERM"),
            "SIGINT": lambda: self._stop("SIGINT"),
            "SIGHUP": lambda: self._keep(self._reload()),
        }
        statistics = self._statistics
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
        recorder = self._recorder
        if recorder is not None:
            # Only the core's thread may write to the recording.
            self.core.threaded.notify(lambda core: recorder.reopen(core.clock.now()))
        for server in (self._network, self._rest):
            if server is not None:
                _reload_certificates(server)
        if self._rest is not None:
            self._rest.reload_credentials()
        await self._reloading.reload("SIGHUP")

    def _stop(self, why: str) -> None:
        if self._signals_to_stop.asks():
            _log.info("%s: stopping; a second signal ends the process at once", why)
            self._over.set()
        elif self._signals_to_stop.is_repeated:
            _log.warning("%s again: ending at once", why)
            os._exit(ENDED_AT_ONCE)


def _event_store(options: ServiceOptions, clock: Clock) -> EventStore:
    limits = options.settings.rest.events
    return EventStore(_instance(clock), limits.stored, DecisionStore(limits.decisions))


def _instance(clock: Clock) -> str:
    """Return an identifier for this start of the process: of the machine, the process and the time."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{socket.gethostname()} {os.getpid()} {clock.now()}"))


def _reload_certificates(server: Network | Rest) -> None:
    try:
        if server.reload_certificates():
            _log.info("SIGHUP: the certificates were reloaded for new connections")
    except UsageError as error:
        _log.error("SIGHUP: the old certificates stay in use: %s", error)


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


def _recorder(options: ServiceOptions) -> RecordingWriter | None:
    if options.record is None:
        return None
    try:
        from yunikorn.recording.recording_writer import RecordingWriter
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "google":
            raise
        raise UsageError("--record needs the package protobuf: pip install 'yunikorn[grpc]'") from error
    return RecordingWriter(options.record, _log.error, options.record_size)
