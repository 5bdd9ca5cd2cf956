"""The test stand: a scheduler with one resource manager, driven through the in-process interface."""

from __future__ import annotations

import time

from benchmarks import extension
from benchmarks.failure import BenchmarkFailure
from benchmarks.workload import RM, Workload
from yunikorn.clock import ManualClock
from yunikorn.interface.messages import (
    AllocationRelease,
    AllocationReleasesRequest,
    RegisterResourceManagerRequest,
    TerminationType,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.interface.threaded import BATCH
from yunikorn.registry import Registry

IN_TWO_STEPS = (TerminationType.PLACEHOLDER_REPLACED, TerminationType.PREEMPTED_BY_SCHEDULER)
"""Ends that count only when the resource manager has confirmed them."""


class ResourceManager:
    """The callback: notes where every task was placed, and when it last heard of a new place."""

    def __init__(self) -> None:
        self.placed: dict[str, tuple[str, str]] = {}
        """By allocation key: uuid and node."""
        self.received = 0
        """New allocations so far."""
        self.last = 0.0
        """When the last of them came, in seconds of `time.perf_counter`."""
        self.told: list[AllocationRelease] = []
        """What it was told to end and has not confirmed yet."""
        self.rejected: list[str] = []
        """Why anything was refused."""

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Take in what the scheduler has to say."""
        if response.new_allocations:
            placed = self.placed
            for allocation in response.new_allocations:
                placed[allocation.allocation_key] = (allocation.uuid, allocation.node_id)
            self.received += len(response.new_allocations)
            self.last = time.perf_counter()
        if response.released_allocations:
            self.told += [
                one for one in response.released_allocations if one.termination_type in IN_TWO_STEPS
            ]
        self.rejected += [refused.reason for refused in response.rejected_applications]
        self.rejected += [refused.reason for refused in response.rejected_nodes]
        self.rejected += [refused.reason for refused in response.rejected_allocations]
        self.rejected += [refused.reason for refused in response.failed_node_updates]


class Stand:
    """A scheduler on a clock that stands still, ready to be measured."""

    def __init__(self, configuration: str) -> None:
        registry = Registry.load(third_party=False)
        if not registry.register(extension, "benchmarks.extension", "benchmarks", "1"):
            raise BenchmarkFailure(str(registry.broken[-1]))
        self.clock = ManualClock()
        self.rm = ResourceManager()
        self.scheduler = Scheduler(registry, self.clock)
        self.scheduler.register_resource_manager(
            RegisterResourceManagerRequest(RM, config=configuration), self.rm
        )

    @classmethod
    def ready(cls, workload: Workload) -> Stand:
        """With the queues, nodes and applications of a workload, but no asks."""
        stand = cls(workload.configuration())
        stand.update(
            UpdateRequest(
                RM,
                new_schedulable_nodes=workload.node_infos(),
                new_applications=workload.application_requests(),
            )
        )
        return stand

    def update(self, request: UpdateRequest) -> None:
        """Hand in an update in which nothing may be refused; raises `BenchmarkFailure`."""
        self.scheduler.update(request)
        self.check()

    def check(self) -> None:
        """Raise `BenchmarkFailure` if anything was refused, or if a plugin failed."""
        if self.rm.rejected:
            raise BenchmarkFailure(f"{len(self.rm.rejected)} refused, the first: {self.rm.rejected[0]}")

    def confirm(self) -> int:
        """End at once what the scheduler wants ended, and say so; returns how many those were."""
        told, self.rm.told = self.rm.told, []
        if told:
            self.scheduler.update(UpdateRequest(RM, releases=AllocationReleasesRequest(told)))
        return len(told)

    def settle(self) -> int:
        """Decide until there is nothing more to decide; returns how many decisions that took.

        Between two responses as many are taken as a service takes.
        """
        decided = 0
        while taken := self.scheduler.schedule(BATCH):
            decided += taken
        return decided
