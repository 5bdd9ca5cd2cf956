"""A resource manager in a test: it talks to a scheduler through the front door and remembers the answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from yunikorn.api import hookimpl
from yunikorn.clock import ManualClock
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    AllocationReleasesRequest,
    NewNodeInfo,
    NodeAction,
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
from yunikorn.objects.application import Application
from yunikorn.objects.node import Node
from yunikorn.objects.queue import Queue
from yunikorn.objects.timeouts import Timeouts
from yunikorn.registry import Registry
from yunikorn.resources import Resource
from yunikorn.scheduling.partition_scheduler import PartitionScheduler

TO_CONFIRM = (TerminationType.PREEMPTED_BY_SCHEDULER, TerminationType.TIMEOUT)
"""What the scheduler only counts as gone when the RM says so."""

Tree = Mapping[str, Any]
Decision = tuple[str, str, str]
"""Application, allocation key, node."""


def queue(name: str, *children: Tree, **keys: Any) -> dict[str, Any]:
    """A queue of a configuration; `properties` and `resources` as in the YAML."""
    found = {"name": name, **keys}
    if children:
        found["queues"] = list(children)
    return found


def partition(*queues: Tree, name: str = "default", **keys: Any) -> dict[str, Any]:
    """A partition of a configuration with these queues below a root where everybody may submit."""
    return {"name": name, "queues": [{"name": "root", "submitacl": "*", "queues": list(queues)}], **keys}


def document(*partitions: Tree, **keys: Any) -> str:
    """The text of a configuration: JSON is YAML."""
    return json.dumps({"partitions": list(partitions), **keys})


def configuration(*queues: Tree, **keys: Any) -> str:
    """The text of a configuration with one partition; `keys` are the partition's."""
    return document(partition(*(queues or (queue("a"),)), **keys))


def with_plugins(**classes: Sequence[type[Any]]) -> Registry:
    """The default plugins and these: `with_plugins(app_sort_policies=[MyPolicy])`."""
    registry = Registry.load(third_party=False)

    members = {}
    for kind, found in classes.items():
        function = _returning(list(found))
        function.__name__ = f"yunikorn_{kind}"
        members[f"yunikorn_{kind}"] = staticmethod(hookimpl(function))
    plugin = type("TestPlugin", (), members)()
    assert registry.register(plugin, "test-plugin", "yunikorn-test", "1.0"), registry.broken
    return registry


def _returning(classes: list[type[Any]]) -> Any:
    def hook() -> list[type[Any]]:
        return classes

    return hook


class RM:
    """One resource manager with a scheduler of its own, on a clock that stands still."""

    def __init__(
        self,
        config: str = "",
        registry: Registry | None = None,
        *,
        rm_id: str = "rm",
        timeouts: Timeouts | None = None,
        scheduler: Scheduler | None = None,
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
        """By uuid: what this RM believes to be running."""
        self.evicted: dict[str, AllocationRelease] = {}
        """By uuid: what it was told to end, and has not confirmed yet."""
        self.policy: PreemptionPolicy | None = None
        """Of the asks that it makes."""
        request = RegisterResourceManagerRequest(rm_id, config=config or configuration())
        self.scheduler.register_resource_manager(request, self)

    # -- what the scheduler says --------------------------------------------------------------------

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Remember the answer, and keep the RM's own books of what runs."""
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

    def said(self, kind: str) -> list[Any]:
        """Everything of a kind (a field of `UpdateResponse`) that was ever said, oldest first."""
        return [entry for response in self.responses for entry in getattr(response, kind)]

    def heard(self) -> UpdateResponse:
        """What was said since the last call of `heard`, in one response."""
        whole = UpdateResponse()
        for response in self.responses:
            for field in attrs.fields(UpdateResponse):
                if isinstance(getattr(whole, field.name), list):
                    getattr(whole, field.name).extend(getattr(response, field.name))
        self.responses.clear()
        return whole

    # -- what the RM says ---------------------------------------------------------------------------

    def update(self, **entries: Any) -> None:
        """One update with these entries of `UpdateRequest`."""
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
        """A node joins; `capacity` is one more way to give its amounts."""
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
        """A node changes; without amounts its capacity stays."""
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
        """An application is submitted."""
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
        """An application is submitted with tags that are no Python names."""
        info = UserGroupInformation(user, list(groups))
        self.update(
            new_applications=[AddApplicationRequest(app_id, queue_name, partition_name, info, dict(tags))]
        )

    def remove_app(self, app_id: str) -> None:
        """An application is taken away."""
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
        """An application asks for `count` times `amounts`, or `resource`."""
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
        """Allocations end."""
        release = AllocationRelease(app_id, uuid, "", termination, "", key)
        self.update(releases=AllocationReleasesRequest([release], []))
        if termination != TerminationType.STOPPED_BY_RM:
            self.running.pop(uuid, None)

    def confirm(self, *uuids: str) -> None:
        """What it was told to end has ended: these, or all."""
        gone = [self.evicted.pop(uuid) for uuid in uuids or list(self.evicted)]
        for release in gone:
            self.running.pop(release.uuid, None)
        self.update(releases=AllocationReleasesRequest(gone, []))

    def release_ask(self, app_id: str = "app", key: str = "") -> None:
        """An ask is taken back."""
        self.update(releases=AllocationReleasesRequest([], [AllocationAskRelease(app_id, key)]))

    def reload(self, config: str) -> bool:
        """Another configuration; returns whether it was another."""
        return self.scheduler.reload_configuration(self.rm_id, config)

    # -- making time pass, and decisions --------------------------------------------------------------

    def schedule(self, most: int | None = None) -> list[Decision]:
        """Have the scheduler decide; returns the decisions in their order."""
        before = len(self.responses)
        count = self.scheduler.schedule(most)
        made = [one for response in self.responses[before:] for one in response.new_allocations]
        assert count == len(made)
        return [(one.application_id, one.allocation_key, one.node_id) for one in made]

    def pass_time(self, seconds: float) -> None:
        """Move the clock in one go to each timer that comes due on the way, and on to the end."""
        end = self.clock.now() + round(seconds * 1_000_000_000)
        while (due := self.scheduler.next_timer()) is not None and due <= end:
            self.clock.set(max(due, self.clock.now()))
            self.scheduler.fire_timers()
        self.clock.set(end)

    # -- looking in -----------------------------------------------------------------------------------

    def at_work(self, name: str = "default") -> PartitionScheduler:
        """The partition at work."""
        found = self.scheduler.partition(self.rm_id, name)
        assert found is not None, f"there is no partition {name}"
        return found

    def find_app(self, app_id: str = "app") -> Application:
        """An application, also one that has ended."""
        objects = self.at_work().partition
        return objects.applications.get(app_id) or objects.ended[app_id]

    def state(self, app_id: str = "app") -> str:
        """The state of an application."""
        return self.find_app(app_id).state

    def find_queue(self, path: str = "root.a") -> Queue:
        """A queue."""
        found = self.at_work().partition.queue(path)
        assert found is not None, f"there is no queue {path}"
        return found

    def find_node(self, node_id: str = "n1") -> Node:
        """A node."""
        return self.at_work().partition.nodes[node_id]

    def failures(self) -> list[str]:
        """What plugins did wrong, as texts."""
        return [failure.message for failure in self.scheduler.failures]
