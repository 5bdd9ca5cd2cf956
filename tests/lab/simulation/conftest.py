"""Builders of small workloads, and a fake core to simulate them with.

The fake core places tasks on the first node that fits, in order of arrival. Like the real core it answers
through the callback before a call returns, confirms releases, releases allocations when their node is
removed, and rejects applications that the test names.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from yunikorn.clock import SECOND, ManualClock
from yunikorn.interface.messages import (
    AcceptedApplication,
    AcceptedNode,
    Allocation,
    AllocationAsk,
    AllocationRelease,
    FailedNodeUpdate,
    NodeAction,
    RegisterResourceManagerRequest,
    RegisterResourceManagerResponse,
    RejectedAllocationAsk,
    RejectedApplication,
    TerminationType,
    UpdatedApplication,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn.resources import Resource, fits, grow, shrink
from yunikorn_lab.simulation.engine import Simulation
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.report import Report
from yunikorn_lab.simulation.workload import (
    NodeEvent,
    Workload,
    WorkloadApplication,
    WorkloadNode,
    WorkloadTaskGroup,
)

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes a file and returns its path."""

    def make(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return path

    return make


class FakeCore:
    """A scheduler without queues; `config` names applications to reject, one per line."""

    def __init__(self) -> None:
        self.requests: list[UpdateRequest] = []
        self.timers: list[int] = []
        self.fired = 0
        self.reject_asks: set[str] = set()
        self.preempt: list[str] = []
        self.fail: list[str] = []
        self._queues: dict[str, str] = {}
        self._free: dict[str, dict[str, int]] = {}
        self._closed: set[str] = set()
        self._pending: list[list[Any]] = []
        self._placed: dict[str, Allocation] = {}
        self._count = 0

    def register_resource_manager(
        self, request: RegisterResourceManagerRequest, callback: Any
    ) -> RegisterResourceManagerResponse:
        self._rejected = set(request.config.split())
        self._callback = callback
        return RegisterResourceManagerResponse()

    def update(self, request: UpdateRequest) -> None:
        self.requests.append(request)
        response = UpdateResponse()
        for application in request.new_applications:
            if application.application_id in self._rejected:
                reason = f"no queue for {application.application_id}"
                response.rejected_applications.append(RejectedApplication(application.application_id, reason))
            else:
                self._queues[application.application_id] = application.queue_name
                response.accepted_applications.append(AcceptedApplication(application.application_id))
        for ask in request.asks:
            self._ask(ask, response)
        for release in request.releases.allocations_to_release:
            self._give_back(release.uuid)
            response.released_allocations.append(release)
        for node in request.new_schedulable_nodes:
            self._free[node.node_id] = dict(node.schedulable_resource)
            response.accepted_nodes.append(AcceptedNode(node.node_id))
        for change in request.updated_nodes:
            self._change(change, response)
        self._callback.recv_update_response(response)

    def _ask(self, ask: AllocationAsk, response: UpdateResponse) -> None:
        if ask.application_id not in self._queues or ask.allocation_key in self.reject_asks:
            response.rejected_allocations.append(
                RejectedAllocationAsk(ask.allocation_key, ask.application_id, "refused")
            )
        else:
            self._pending.append([ask, ask.max_allocations])

    def _change(self, change: Any, response: UpdateResponse) -> None:
        name = change.node_id
        if name not in self._free:
            response.failed_node_updates.append(FailedNodeUpdate(name, "unknown"))
        elif change.action is NodeAction.DRAIN_NODE:
            self._closed.add(name)
        elif change.action is NodeAction.DRAIN_TO_SCHEDULABLE:
            self._closed.discard(name)
        elif change.action is NodeAction.DECOMMISSION:
            for uuid in [uuid for uuid, placed in self._placed.items() if placed.node_id == name]:
                response.released_allocations.append(self._end(uuid, TerminationType.STOPPED_BY_RM))
            del self._free[name]
        else:
            used: dict[str, int] = {}
            for placed in self._placed.values():
                if placed.node_id == name:
                    grow(used, placed.resource_per_alloc)
            self._free[name] = dict(change.schedulable_resource)
            shrink(self._free[name], used)

    def _end(self, uuid: str, kind: TerminationType) -> AllocationRelease:
        placed = self._give_back(uuid)
        assert placed is not None
        return AllocationRelease(placed.application_id, uuid, termination_type=kind)

    def _give_back(self, uuid: str) -> Allocation | None:
        placed = self._placed.pop(uuid, None)
        if placed is not None and placed.node_id in self._free:
            grow(self._free[placed.node_id], placed.resource_per_alloc)
        return placed

    def schedule(self, max_decisions: int | None = None) -> int:
        response = UpdateResponse()
        for entry in self._pending:
            while (
                entry[1] and len(response.new_allocations) != max_decisions and self._place(entry, response)
            ):
                entry[1] -= 1
        self._pending = [entry for entry in self._pending if entry[1]]
        self._callback.recv_update_response(response)
        return len(response.new_allocations)

    def _place(self, entry: list[Any], response: UpdateResponse) -> bool:
        ask = entry[0]
        for name, free in self._free.items():
            if name not in self._closed and fits(free, ask.resource_ask):
                shrink(free, ask.resource_ask)
                self._count += 1
                placed = Allocation(
                    ask.allocation_key,
                    ask.application_id,
                    f"uuid-{self._count}",
                    name,
                    ask.resource_ask,
                    self._queues[ask.application_id],
                )
                self._placed[placed.uuid] = placed
                response.new_allocations.append(placed)
                return True
        return False

    def reload_configuration(self, rm_id: str, text: str) -> bool:
        raise NotImplementedError

    def partition(self, rm_id: str, name: str) -> object | None:
        return self

    def next_timer(self) -> int | None:
        return self.timers[0] if self.timers else None

    def fire_timers(self) -> int:
        response = UpdateResponse()
        while self.timers and self.timers[0] <= self._callback._clock.now():
            self.timers.pop(0)
            self.fired += 1
            for kind, names in (
                (TerminationType.PREEMPTED_BY_SCHEDULER, self.preempt),
                (TerminationType.TIMEOUT, self.fail),
            ):
                for uuid in [u for u, placed in self._placed.items() if placed.application_id in names]:
                    response.released_allocations.append(self._end(uuid, kind))
            for name in self.fail:
                self._pending = [entry for entry in self._pending if entry[0].application_id != name]
                for state in ("Failing", "Failed"):
                    response.updated_applications.append(UpdatedApplication(name, state, 0, "told to"))
            self.preempt, self.fail = [], []
        self._callback.recv_update_response(response)
        return self.fired


@pytest.fixture(scope="session")
def core_class() -> type[FakeCore]:
    """The class of the fake core, for tests that create or extend it."""
    return FakeCore


@pytest.fixture
def core() -> FakeCore:
    """A fake core."""
    return FakeCore()


class Maker:
    """Builders of parts of workloads; times are seconds, sizes vcores."""

    @staticmethod
    def node(name: str, cores: int = 4) -> WorkloadNode:
        return WorkloadNode(name, Resource(vcore=1000 * cores))

    @staticmethod
    def app(
        name: str, submit: float = 0, count: int = 1, runtime: float = 10, cores: int = 1, **more: Any
    ) -> WorkloadApplication:
        group = WorkloadTaskGroup("task", count, Resource(vcore=1000 * cores), round(runtime * SECOND))
        return WorkloadApplication(name, round(submit * SECOND), (group,), queue="root.a", user="ann", **more)

    @staticmethod
    def workload(
        nodes: list[WorkloadNode],
        applications: list[WorkloadApplication],
        events: list[NodeEvent] | None = None,
    ) -> Workload:
        ordered = sorted(applications, key=lambda application: application.submit)
        return Workload("test", "scenario", nodes, ordered, events or [])


@pytest.fixture(scope="session")
def make() -> Maker:
    """Builders of parts of workloads."""
    return Maker()


@pytest.fixture
def play() -> Callable[..., Report]:
    """Return a function that simulates a workload on a core; `until` is in seconds."""

    def run(
        workload: Workload,
        core: Any,
        *,
        reject: str = "",
        until: float | None = None,
        recorder: Recorder | None = None,
        watch: Any = None,
    ) -> Report:
        moment = None if until is None else round(until * SECOND)
        simulation = Simulation(
            workload, core, ManualClock(), config=reject, until=moment, recorder=recorder, watch=watch
        )
        return simulation.run()

    return run
