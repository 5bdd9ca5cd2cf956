"""Test harness: a scheduler with one resource manager, used through the in-process interface."""

from __future__ import annotations

import time
import weakref
from shutil import rmtree
from tempfile import mkdtemp

from benchmarks import extension
from benchmarks.example_packages import example_module
from benchmarks.failure import BenchmarkFailure
from benchmarks.workload import RM, Workload
from yunikorn.clock import ManualClock, stopwatch
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import (
    AllocationRelease,
    AllocationReleasesRequest,
    RegisterResourceManagerRequest,
    TerminationType,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.interface.sinks import EventReceiver
from yunikorn_history.recorded_history import HistorySettings
from yunikorn_history.recording_thread import RecordingThread
from yunikorn_rest.event_store import EventStore
from yunikorn_service.measurements import Measurements
from yunikorn_service.plugin_statistics import PluginStatistics
from yunikorn_service.runtime.threaded import BATCH

IN_TWO_STEPS = (TerminationType.PLACEHOLDER_REPLACED, TerminationType.PREEMPTED_BY_SCHEDULER)
"""Terminations that are final only after the resource manager confirms them."""


class ResourceManager:
    """Callback that records the node of every task and the time of the last allocation."""

    def __init__(self) -> None:
        self.placed: dict[str, tuple[str, str]] = {}
        """Uuid and node by allocation key."""
        self.received = 0
        """Number of new allocations so far."""
        self.last = 0.0
        """Time of the last new allocation, in seconds of `time.perf_counter`."""
        self.releases_to_confirm: list[AllocationRelease] = []
        """Releases requested by the scheduler and not confirmed yet."""
        self.rejected: list[str] = []
        """Reasons of all rejections."""

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Record a response of the scheduler."""
        if response.new_allocations:
            placed = self.placed
            for allocation in response.new_allocations:
                placed[allocation.allocation_key] = (allocation.uuid, allocation.node_id)
            self.received += len(response.new_allocations)
            self.last = time.perf_counter()
        if response.released_allocations:
            self.releases_to_confirm += [
                one for one in response.released_allocations if one.termination_type in IN_TWO_STEPS
            ]
        self.rejected += [refused.reason for refused in response.rejected_applications]
        self.rejected += [refused.reason for refused in response.rejected_nodes]
        self.rejected += [refused.reason for refused in response.rejected_allocations]
        self.rejected += [refused.reason for refused in response.failed_node_updates]


def _end_recording(recording: RecordingThread, folder: str) -> None:
    recording.finish()
    rmtree(folder, ignore_errors=True)


class Harness:
    """Scheduler on a manual clock, ready to be measured."""

    def __init__(
        self,
        configuration: str,
        *,
        installed: bool = False,
        example: str = "",
        stored: bool = False,
        recorded: bool = False,
        metrics: bool = False,
        statistics: bool = False,
    ) -> None:
        """Create a harness, with the installed plugins of others if `installed`, and an example package.

        `stored` keeps the latest events, `recorded` writes a history, `metrics` counts and measures as a
        service with metrics does; `statistics` counts the calls of plugins.
        """
        registry = Registry.load(third_party=installed)
        modules = {"benchmarks": extension, **({example: example_module(example)} if example else {})}
        for distribution, module in modules.items():
            if not registry.register(module, module.__name__, distribution, "1"):
                raise BenchmarkFailure(str(registry.broken[-1]))
        if statistics:
            registry = registry.counting(PluginStatistics(stopwatch))
        self.clock = ManualClock()
        self.rm = ResourceManager()
        store: EventReceiver | None = EventStore("benchmark") if stored else None
        if recorded:
            folder = mkdtemp(prefix="yunikorn-benchmark-")
            self.recording = RecordingThread(HistorySettings(f"{folder}/history.db"), self.clock)
            weakref.finalize(self, _end_recording, self.recording, folder)
            store = self.recording.events
        measurements = Measurements(stopwatch) if metrics else None
        self.scheduler = Scheduler(registry, self.clock, event_receiver=store, measurements=measurements)
        if recorded:
            self.recording.events.attach(self.scheduler)
            self.recording.begin(lambda: True)
        self.scheduler.register_resource_manager(
            RegisterResourceManagerRequest(RM, config=configuration), self.rm
        )

    @classmethod
    def ready(cls, workload: Workload) -> Harness:
        """Return a harness with the queues, nodes and applications of a workload, but without asks."""
        harness = cls(
            workload.configuration(),
            installed=workload.plugins,
            example=workload.example,
            stored=workload.stored,
            recorded=workload.recorded,
            metrics=workload.metrics,
            statistics=workload.stats,
        )
        harness.update(
            UpdateRequest(
                RM,
                new_schedulable_nodes=workload.node_infos(),
                new_applications=workload.application_requests(),
            )
        )
        return harness

    def update(self, request: UpdateRequest) -> None:
        """Send an update. Raises `BenchmarkFailure` if anything is rejected."""
        self.scheduler.update(request)
        self.check()

    def check(self) -> None:
        """Raise `BenchmarkFailure` if anything was rejected."""
        if self.rm.rejected:
            raise BenchmarkFailure(f"{len(self.rm.rejected)} refused, the first: {self.rm.rejected[0]}")

    def confirm(self) -> int:
        """Confirm all releases that the scheduler has requested, and return their number."""
        releases_to_confirm, self.rm.releases_to_confirm = self.rm.releases_to_confirm, []
        if releases_to_confirm:
            self.scheduler.update(UpdateRequest(RM, releases=AllocationReleasesRequest(releases_to_confirm)))
        return len(releases_to_confirm)

    def settle(self) -> int:
        """Schedule until there is nothing left to decide, and return the number of decisions.

        The batches have the size of those in a service.
        """
        decided = 0
        while taken := self.scheduler.schedule(BATCH):
            decided += taken
        return decided
