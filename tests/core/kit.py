"""Test kit of the core: a resource manager with its own scheduler, and builders of configurations.

`RM` sends messages to `Scheduler` through its public interface only, and records every response. Its clock
stands still until a test moves it, so tests need neither threads nor sleeps. A typical test:

    rm = RM(configuration(queue("a")))
    rm.node(vcore=4)
    rm.app()
    rm.ask(vcore=1)
    assert rm.schedule() == [("app", "ask", "n1")]
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from yunikorn.api import hookimpl
from yunikorn.clock import ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    AllocationReleasesRequest,
    NewNodeInfo,
    NodeAction,
    PreemptionMode,
    PreemptionPolicy,
    RegisterResourceManagerRequest,
    RemoveApplicationRequest,
    TerminationType,
    UpdateNodeInfo,
    UpdateRequest,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.application import Application
from yunikorn.model.context import Timeouts
from yunikorn.model.node import Node
from yunikorn.model.queue import Queue
from yunikorn.resources import Resource
from yunikorn.scheduling.partition_scheduler import PartitionScheduler

TO_CONFIRM = (TerminationType.PREEMPTED_BY_SCHEDULER, TerminationType.TIMEOUT)
"""Terminations that the scheduler carries out only after the RM has confirmed them."""

Tree = Mapping[str, Any]
Decision = tuple[str, str, str]
"""Application id, allocation key and node id of one placement."""


def queue(name: str, *children: Tree, **keys: Any) -> dict[str, Any]:
    """Return the configuration of a queue; `properties` and `resources` are written as in the YAML."""
    found = {"name": name, **keys}
    if children:
        found["queues"] = list(children)
    return found


def partition(*queues: Tree, name: str = "default", **keys: Any) -> dict[str, Any]:
    """Return the configuration of a partition: a root queue open to all users, and these queues below it."""
    return {"name": name, "queues": [{"name": "root", "submitacl": "*", "queues": list(queues)}], **keys}


def document(*partitions: Tree, **keys: Any) -> str:
    """Return the text of a configuration; JSON is valid YAML."""
    return json.dumps({"partitions": list(partitions), **keys})


def configuration(*queues: Tree, **keys: Any) -> str:
    """Return the text of a configuration with one partition that has these keys; default is a leaf `a`."""
    return document(partition(*(queues or (queue("a"),)), **keys))


def with_plugins(**classes: Sequence[type[Any]]) -> Registry:
    """Return a registry of the default plugins and these: `with_plugins(app_sort_policies=[MyPolicy])`."""
    registry = Registry.load(third_party=False)
    plugin = plugin_with(**classes)
    assert registry.register(plugin, "test-plugin", "yunikorn-test", "1.0"), registry.broken
    return registry


def plugin_with(**classes: Sequence[type[Any]]) -> object:
    """Return a plugin that offers these classes, as for `with_plugins`."""
    members = {}
    for kind, found in classes.items():
        function = _returning(list(found))
        function.__name__ = f"yunikorn_{kind}"
        members[f"yunikorn_{kind}"] = staticmethod(hookimpl(function))
    return type("TestPlugin", (), members)()


def _returning(classes: list[type[Any]]) -> Any:
    def hook() -> list[type[Any]]:
        return classes

    return hook


class RM:
    """A registered resource manager with a scheduler and a manual clock; shorthands send one message each."""

    def __init__(
        self,
        config: str = "",
        registry: Registry | None = None,
        *,
        rm_id: str = "rm",
        timeouts: Timeouts | None = None,
        scheduler: Scheduler | None = None,
        modes: Sequence[PreemptionMode] = (),
    ) -> None:
        self.rm_id = rm_id
        self.clock = ManualClock()
        if scheduler is not None:
            assert isinstance(scheduler.clock, ManualClock)
            self.clock = scheduler.clock
        self.scheduler = scheduler or Scheduler(
            registry or Registry.load(third_party=False), self.clock, timeouts
        )
        self.responses: list[UpdateResponse] = []
        self.running: dict[str, Allocation] = {}
        """Running allocations by uuid, as this RM has learned them from the responses."""
        self.evicted: dict[str, AllocationRelease] = {}
        """Releases by uuid that the scheduler has requested and this RM has not confirmed yet."""
        self.policy: PreemptionPolicy | None = None
        """Preemption policy of all asks that name none themselves."""
        request = RegisterResourceManagerRequest(
            rm_id, config=config or configuration(), preemption_modes=[*modes]
        )
        self.scheduler.register_resource_manager(request, self)

    # -- messages from the scheduler -----------------------------------------------------------------------

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Record the response, and update `running` and `evicted`."""
        self.responses.append(response)
        for allocation in response.new_allocations:
            assert allocation.uuid not in self.running, f"{allocation.uuid} was placed twice"
            self.running[allocation.uuid] = allocation
        for release in response.released_allocations:
            if release.termination_type in TO_CONFIRM:
                self.evicted[release.uuid] = release
            else:
                self.running.pop(release.uuid, None)
                self.evicted.pop(release.uuid, None)

    def entries(self, kind: str) -> list[Any]:
        """Return all entries of one kind (a field of `UpdateResponse`) received so far, oldest first."""
        return [entry for response in self.responses for entry in getattr(response, kind)]

    def take_response(self) -> UpdateResponse:
        """Return the entries received since the last call as one response, and clear the record."""
        whole = UpdateResponse()
        for response in self.responses:
            for field in attrs.fields(UpdateResponse):
                if isinstance(getattr(whole, field.name), list):
                    getattr(whole, field.name).extend(getattr(response, field.name))
        self.responses.clear()
        return whole

    # -- messages to the scheduler -------------------------------------------------------------------------

    def update(self, **entries: Any) -> None:
        """Send one `UpdateRequest` with these entries."""
        self.scheduler.update(UpdateRequest(self.rm_id, **entries))

    def node(
        self,
        node_id: str = "n1",
        attributes: Mapping[str, str] | None = None,
        *,
        schedulable: bool = True,
        occupied: Mapping[str, int] | None = None,
        existing: Sequence[Allocation] = (),
        capacity: Mapping[str, int] | None = None,
        **amounts: int,
    ) -> None:
        """Register a node; `capacity` replaces the keyword amounts."""
        self.update(
            new_schedulable_nodes=[
                NewNodeInfo(
                    node_id,
                    dict(attributes or {}),
                    Resource(amounts if capacity is None else capacity),
                    Resource(occupied or {}),
                    list(existing),
                    schedulable,
                )
            ]
        )

    def change_node(
        self,
        node_id: str,
        action: NodeAction = NodeAction.UPDATE,
        attributes: Mapping[str, str] | None = None,
        *,
        occupied: Mapping[str, int] | None = None,
        capacity: Mapping[str, int] | None = None,
        **amounts: int,
    ) -> None:
        """Update a node; without amounts the capacity stays."""
        if capacity is None and amounts:
            capacity = amounts
        self.update(
            updated_nodes=[
                UpdateNodeInfo(
                    node_id,
                    action,
                    dict(attributes or {}),
                    None if capacity is None else Resource(capacity),
                    None if occupied is None else Resource(occupied),
                )
            ]
        )

    def app(
        self,
        app_id: str = "app",
        queue_name: str = "root.a",
        *,
        user: str = "user",
        groups: Iterable[str] = ("group",),
        partition_name: str = "",
        **tags: str,
    ) -> None:
        """Submit an application."""
        self.app_tagged(app_id, queue_name, tags, user=user, groups=groups, partition_name=partition_name)

    def app_tagged(
        self,
        app_id: str,
        queue_name: str,
        tags: Mapping[str, str],
        *,
        user: str = "user",
        groups: Iterable[str] = ("group",),
        partition_name: str = "",
    ) -> None:
        """Submit an application whose tag names are not valid Python names."""
        info = UserGroupInformation(user, list(groups))
        self.update(
            new_applications=[AddApplicationRequest(app_id, queue_name, partition_name, info, dict(tags))]
        )

    def remove_app(self, app_id: str) -> None:
        """Remove an application."""
        self.update(remove_applications=[RemoveApplicationRequest(app_id)])

    def ask(
        self,
        app_id: str = "app",
        key: str = "ask",
        count: int = 1,
        *,
        priority: int | None = None,
        tags: Mapping[str, str] | None = None,
        partition_name: str = "",
        originator: bool = False,
        policy: PreemptionPolicy | None = None,
        resource: Mapping[str, int] | None = None,
        **amounts: int,
    ) -> None:
        """Send an ask for `count` allocations of `amounts`, or of `resource`."""
        self.update(
            asks=[
                AllocationAsk(
                    key,
                    app_id,
                    partition_name,
                    Resource(amounts if resource is None else resource),
                    count,
                    priority,
                    tags=dict(tags or {}),
                    originator=originator,
                    preemption_policy=self.policy if policy is None else policy,
                )
            ]
        )

    def release(
        self,
        app_id: str = "app",
        uuid: str = "",
        key: str = "",
        termination: TerminationType = TerminationType.STOPPED_BY_RM,
    ) -> None:
        """Release the allocations of this uuid or key."""
        release = AllocationRelease(app_id, uuid, "", termination, "", key)
        self.update(releases=AllocationReleasesRequest([release], []))
        if termination != TerminationType.STOPPED_BY_RM:
            self.running.pop(uuid, None)

    def confirm(self, *uuids: str) -> None:
        """Confirm requested releases: those of these uuids, or all."""
        gone = [self.evicted.pop(uuid) for uuid in uuids or list(self.evicted)]
        for release in gone:
            self.running.pop(release.uuid, None)
        self.update(releases=AllocationReleasesRequest(gone, []))

    def release_ask(self, app_id: str = "app", key: str = "") -> None:
        """Release the asks of a key, or all asks of the application."""
        self.update(releases=AllocationReleasesRequest([], [AllocationAskRelease(app_id, key)]))

    def reload(self, config: str) -> bool:
        """Reload this configuration; return True if it differs from the current one."""
        return self.scheduler.reload_configuration(self.rm_id, config)

    # -- time and decisions --------------------------------------------------------------------------------

    def schedule(self, most: int | None = None) -> list[Decision]:
        """Run the scheduler for at most `most` decisions; return the placements in their order."""
        before = len(self.responses)
        count = self.scheduler.schedule(most)
        made = [one for response in self.responses[before:] for one in response.new_allocations]
        # A placement that a permit policy holds is a decision, and is announced later.
        permits = any(at.policies.permits for at in self.scheduler.partitions(self.rm_id))
        assert count == len(made) or permits
        return [(one.application_id, one.allocation_key, one.node_id) for one in made]

    def pass_time(self, seconds: float) -> None:
        """Move the clock by `seconds`, firing each timer at the moment it is due."""
        end = self.clock.now() + round(seconds * 1_000_000_000)
        while (due := self.scheduler.next_timer()) is not None and due <= end:
            self.clock.set(max(due, self.clock.now()))
            self.scheduler.fire_timers()
        self.clock.set(end)

    # -- inspection ----------------------------------------------------------------------------------------

    def at_work(self, name: str = "default") -> PartitionScheduler:
        """Return the scheduler of a partition."""
        found = self.scheduler.partition(self.rm_id, name)
        assert found is not None, f"there is no partition {name}"
        return found

    def find_app(self, app_id: str = "app") -> Application:
        """Return an application, whether it is active or has ended."""
        objects = self.at_work().partition
        return objects.applications.get(app_id) or objects.ended[app_id]

    def state(self, app_id: str = "app") -> str:
        """Return the state of an application."""
        return self.find_app(app_id).state

    def find_queue(self, path: str = "root.a") -> Queue:
        """Return the queue with this path."""
        found = self.at_work().partition.queue(path)
        assert found is not None, f"there is no queue {path}"
        return found

    def find_node(self, node_id: str = "n1") -> Node:
        """Return the node with this id."""
        return self.at_work().partition.nodes[node_id]

    def failures(self) -> list[str]:
        """Return the messages of all recorded plugin failures."""
        return [failure.message for failure in self.scheduler.failures]
