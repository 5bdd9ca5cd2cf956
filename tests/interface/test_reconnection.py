"""Cut connections and killed cores: after an RM's report the accounting equals the RM's records."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import example, given
from hypothesis import strategies as st

from tests.core.kit import RM, configuration, queue
from yunikorn.clock import ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    NewNodeInfo,
    RegisterResourceManagerRequest,
    SchedulerAction,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.resources import Resource

REGISTRY = Registry.load(third_party=False)
CONFIG = configuration(queue("a"), queue("b", resources={"max": {"vcore": "6m"}}))
APPS = {"one": "root.a", "two": "root.b", "three": "root.b"}
PATHS = ("root", "root.a", "root.b")
NODES = {"n1": 4, "n2": 3, "n3": 5}
FORCED = {"application.create.force": "true"}

RMState = dict[str, Any]


class Shim(RM):
    """An RM that records its pending asks and running allocations, and can report all of them."""

    def __init__(self) -> None:
        self.wanted: dict[tuple[str, str], int] = {}
        """Pending allocations by application and key."""
        self.reported: list[SchedulerAction] = []
        self.deaf = False
        """True while the connection is broken and the scheduler has not noticed: responses are lost."""
        super().__init__(CONFIG, REGISTRY, scheduler=Scheduler(REGISTRY, ManualClock(1)))
        self.report(applications_first=True, at_once=True)

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Record running and pending allocations, unless the response is lost."""
        if self.deaf:
            return
        self.reported.append(response.action)
        super().recv_update_response(response)
        for one in response.new_allocations:
            self.wanted[one.application_id, one.allocation_key] -= 1

    def want(self, app_id: str, key: str, count: int) -> None:
        """Set the pending count of a key, and send the ask."""
        self.wanted[app_id, key] = count
        self.ask(app_id, key, count, vcore=1)

    def drop(self, number: int) -> None:
        """Release a running allocation."""
        if self.running:
            one = self.running[sorted(self.running)[number % len(self.running)]]
            self.release(one.application_id, uuid=one.uuid)

    def cut(self) -> None:
        """Break the connection, and reconnect."""
        self.deaf = False
        self.scheduler.pause(self.rm_id)
        self.scheduler.schedule()
        self.scheduler.reconnect(self.rm_id, self)
        assert self.reported[-1] == SchedulerAction.RESYNC

    def kill(self) -> None:
        """Replace the core by a new one, one second later."""
        self.deaf = False
        self.clock = ManualClock(self.clock.now() + 1_000_000_000)
        self.scheduler = Scheduler(REGISTRY, self.clock)

    def come_back(self, *, applications_first: bool, at_once: bool) -> None:
        """Register, and report everything."""
        request = RegisterResourceManagerRequest(self.rm_id, config=CONFIG)
        self.scheduler.register_resource_manager(request, self)
        self.report(applications_first=applications_first, at_once=at_once)

    def report(self, *, applications_first: bool, at_once: bool) -> None:
        """Report all applications, nodes with their allocations, and pending asks."""
        owner = UserGroupInformation("user", ["group"])
        applications = [AddApplicationRequest(name, path, ugi=owner) for name, path in APPS.items()]
        nodes = [
            NewNodeInfo(name, {}, Resource(vcore=room), existing_allocations=self.on(name))
            for name, room in NODES.items()
        ]
        asks = [
            AllocationAsk(key, app_id, "", Resource(vcore=1), count)
            for (app_id, key), count in self.wanted.items()
            if count > 0
        ]
        if at_once:
            self.update(new_applications=applications, new_schedulable_nodes=nodes, asks=asks)
            return
        if applications_first:  # the core then decides before all allocations are reported
            self.update(new_applications=applications)
            self.update(asks=asks)
        for node in nodes:
            self.update(new_schedulable_nodes=[node])
            self.scheduler.schedule(1)
        if not applications_first:
            self.update(new_applications=applications)
            self.update(asks=asks)

    def on(self, node_id: str) -> list[Allocation]:
        """Return the running allocations of a node, marked for recovery."""
        return [
            attrs.evolve(one, allocation_tags=FORCED)
            for one in self.running.values()
            if one.node_id == node_id
        ]

    def accounting(self) -> RMState:
        """Return the accounting of the core, without zeros."""
        at = self.at_work().partition
        return {
            "nodes": {node.id: sum(node.available.values()) for node in at.nodes.values()},
            "used": {path: sum(self.find_queue(path).allocated.values()) for path in PATHS},
            "waiting": {path: sum(self.find_queue(path).pending.values()) for path in PATHS},
            "running": {app.id: sorted(app.allocations) for app in at.applications.values()},
        }

    def own_accounting(self) -> RMState:
        """Return the same sums from the RM's records, without applications that the core has removed."""
        used = dict.fromkeys(PATHS, 0)
        waiting = dict.fromkeys(PATHS, 0)
        nodes = dict(NODES)
        for one in self.running.values():
            nodes[one.node_id] -= 1
            for path in ("root", APPS[one.application_id]):
                used[path] += 1
        for (app_id, _), count in self.wanted.items():
            for path in ("root", APPS[app_id]):
                waiting[path] += count
        running = {
            app_id: sorted(uuid for uuid, one in self.running.items() if one.application_id == app_id)
            for app_id in self.at_work().partition.applications
        }
        return {"nodes": nodes, "used": used, "waiting": waiting, "running": running}


STEPS = st.one_of(
    st.tuples(st.just("want"), st.sampled_from(sorted(APPS)), st.sampled_from("xyz"), st.integers(1, 4)),
    st.tuples(st.just("schedule"), st.integers(1, 5)),
    st.tuples(st.just("drop"), st.integers(0, 20)),
    st.tuples(st.just("cut"), st.booleans(), st.booleans(), st.booleans()),
    st.tuples(st.just("kill"), st.booleans(), st.booleans(), st.booleans()),
)


@example([("want", "one", "x", 4), ("schedule", 2), ("kill", True, False, True)])
@given(st.lists(STEPS, max_size=25))
def test_recovery_loses_and_duplicates_no_allocations(steps: list[tuple[Any, ...]]) -> None:
    shim = Shim()
    for kind, *values in steps:
        if kind == "want":
            shim.want(*values)
        elif kind == "schedule":
            shim.schedule(*values)
        elif kind == "drop":
            shim.drop(*values)
        else:
            shim.deaf = values[2]
            shim.scheduler.schedule(2)
            shim.cut() if kind == "cut" else shim.kill()
            shim.come_back(applications_first=values[0], at_once=values[1])
        assert shim.entries("rejected_allocations") == []
        assert shim.accounting() == shim.own_accounting()
