"""Random operations of two resource managers on a recorded core, covering everything a recording can hold.

`RandomHistory` draws one random operation after the other: updates, scheduling, timers, lost connections,
configuration reloads, failing callbacks. Tests replay the recording and compare the responses. The golden
recordings are made the same way.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.core.kit import configuration, queue
from yunikorn.clock import SECOND, ManualClock
from yunikorn.errors import YunikornError
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    AllocationRelease,
    AllocationReleasesRequest,
    NewNodeInfo,
    NodeAction,
    NodePredicatesArgs,
    PredicatesArgs,
    RegisterResourceManagerRequest,
    RemoveApplicationRequest,
    TerminationType,
    UpdateConfigurationRequest,
    UpdateConfigurationResponse,
    UpdateContainerSchedulingStateRequest,
    UpdateNodeInfo,
    UpdateRequest,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.model.context import Timeouts
from yunikorn.resources import Resource
from yunikorn_service.policy_groups import Configurations
from yunikorn_service.recording.recording_scheduler import RecordingScheduler
from yunikorn_service.recording.recording_writer import RecordingWriter

CONFIRMED = (
    TerminationType.TIMEOUT,
    TerminationType.PREEMPTED_BY_SCHEDULER,
    TerminationType.PLACEHOLDER_REPLACED,
)
START = 1_763_648_178_123_456_789


def text(size: int) -> str:
    """Return a configuration with a guarantee of `size` for `root.a` and a max of `size` + 4 for `root.b`."""
    return configuration(
        queue("a", resources={"guaranteed": {"memory": size}}),
        queue("b", resources={"max": {"memory": size + 4}}),
        predicates=[{"name": "rm"}],
    )


class Manager:
    """A resource manager that at random refuses nodes and configurations, raises, or calls the core back."""

    def __init__(self, life: RandomHistory, rm_id: str) -> None:
        self.life, self.rm_id, self.dice = life, rm_id, life.dice
        self.running: dict[str, Allocation] = {}
        self.to_confirm: list[AllocationRelease] = []
        self.received: list[UpdateResponse] = []

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Record the response; now and then raise, or send another ask from within the callback."""
        self.received.append(response)
        for one in response.new_allocations:
            self.running[one.uuid] = one
        for release in response.released_allocations:
            if release.termination_type in CONFIRMED:
                self.to_confirm.append(release)
            else:
                self.running.pop(release.uuid, None)
        mood = self.dice.random()
        if mood < 0.01:
            raise RuntimeError("the resource manager stumbles: ü")
        if mood < 0.05 and response.new_allocations:
            one = response.new_allocations[0]
            self.life.scheduler.update(
                UpdateRequest(self.rm_id, [self.life.ask(one.application_id, f"more-{one.uuid}")])
            )

    def update_container_scheduling_state(self, request: UpdateContainerSchedulingStateRequest) -> None:
        """Ignore the report."""

    def update_configuration(self, request: UpdateConfigurationRequest) -> UpdateConfigurationResponse:
        """Accept, refuse or fail at random."""
        mood = self.dice.random()
        if mood < 0.2:
            raise OSError("no room")
        return UpdateConfigurationResponse(mood < 0.8, "", "not today")


class Single(Manager):
    """A resource manager with the predicate call for single nodes."""

    def predicates(self, args: PredicatesArgs) -> str | None:
        """Answer at random."""
        mood = self.dice.random()
        if mood < 0.05:
            raise ValueError(f"cannot say of {args.node_id}")
        return "no" if mood < 0.4 else None


class Many(Manager):
    """A resource manager with the predicate call for many nodes."""

    def node_predicates(self, args: NodePredicatesArgs) -> Mapping[str, str]:
        """Answer at random."""
        if self.dice.random() < 0.05:
            raise TimeoutError
        return {node: "not there" for node in args.node_ids if self.dice.random() < 0.4}


class RandomHistory:
    """Random operations on a recorded core, determined by a seed."""

    def __init__(self, seed: int, file: Path, registry: Registry) -> None:
        self.dice = random.Random(seed)
        self.recorder = RecordingWriter(file, _never)
        self.clock = ManualClock(START)
        self.registry = registry
        self.size = 4
        self.groups = Configurations({"": lambda: text(self.size), "other": text(9)}, allow_rm_config=True)
        self.count = 0
        self.scheduler = self.begin()
        self.managers = {"one": Single(self, "one"), "two": Many(self, "two")}
        for rm_id in self.managers:
            self.register(rm_id)

    def begin(self) -> RecordingScheduler:
        """Create a core, as after a restart of the server."""
        timeouts = Timeouts(session=20 * SECOND, reservation=SECOND)
        return RecordingScheduler(
            self.recorder, self.registry, self.clock, timeouts, configurations=self.groups
        )

    def live(self, steps: int) -> None:
        """Apply this many random operations."""
        operations: list[Callable[[], object]] = [
            *[self.submit] * 3,
            *[self.want] * 6,
            *[self.node] * 2,
            *[self.change_node] * 2,
            *[self.end] * 5,
            *[self.confirm] * 4,
            *[self.decide] * 8,
            *[self.wait] * 6,
            *[self.configure] * 2,
            self.session,
            self.switch,
            self.remove,
        ]
        for _ in range(steps):
            try:
                self.dice.choice(operations)()
            except YunikornError:
                continue
        self.recorder.close()

    # -- operations ----------------------------------------------------------------------------------------

    def pick(self) -> Manager:
        """Return the id of one of the two RMs."""
        return self.managers[self.dice.choice(["one", "two"])]

    def number(self) -> int:
        """Return a new number."""
        self.count += 1
        return self.count

    def register(self, rm_id: str) -> None:
        """Register again, with a policy group or a configuration of its own."""
        manager = self.managers[rm_id]
        manager.running, manager.to_confirm = {}, []
        request = RegisterResourceManagerRequest(rm_id, "1.0", self.dice.choice(["", "other"]))
        if self.dice.random() < 0.2:
            request.config = text(7)
        self.scheduler.register_resource_manager(request, manager)
        node = NewNodeInfo(f"n{self.number()}", {}, Resource(memory=12, vcore=12))
        app = AddApplicationRequest("app1", "root.a", ugi=UserGroupInformation("ann"))
        self.scheduler.update(UpdateRequest(rm_id, new_schedulable_nodes=[node], new_applications=[app]))

    def node(self) -> None:
        """Register a node."""
        node = NewNodeInfo(f"n{self.dice.randint(1, 6)}", {"zone": "ä"}, Resource(memory=6, vcore=6))
        node.schedulable = self.dice.random() < 0.9
        self.scheduler.update(UpdateRequest(self.pick().rm_id, new_schedulable_nodes=[node]))

    def change_node(self) -> None:
        """Drain, enlarge or remove a node."""
        change = UpdateNodeInfo(f"n{self.dice.randint(1, 6)}", self.dice.choice(list(NodeAction)))
        if self.dice.random() < 0.5:
            change.schedulable_resource = Resource(memory=self.dice.randint(1, 9), vcore=6)
        self.scheduler.update(UpdateRequest(self.pick().rm_id, updated_nodes=[change]))

    def submit(self) -> None:
        """Submit an application, with or without a gang."""
        app = AddApplicationRequest(f"app{self.dice.randint(1, 4)}", self.dice.choice(["root.a", "root.b"]))
        app.ugi = UserGroupInformation(self.dice.choice(["ann", "bob"]))
        if self.dice.random() < 0.3:
            app.placeholder_ask = Resource(memory=2)
            app.gang_scheduling_style = self.dice.choice(["Soft", "Hard", "Atomic"])
            app.execution_timeout_ms = 5000
        self.scheduler.update(UpdateRequest(self.pick().rm_id, new_applications=[app]))

    def ask(self, app_id: str, key: str) -> AllocationAsk:
        """Return a new ask."""
        ask = AllocationAsk(key, app_id, resource_ask=Resource(memory=self.dice.randint(0, 3), vcore=1))
        ask.max_allocations = self.dice.randint(1, 3)
        ask.priority = self.dice.choice([None, 0, 5])
        ask.execution_timeout_ms = self.dice.choice([0, 0, 8000])
        if self.dice.random() < 0.3:
            ask.task_group_name, ask.placeholder = "workers", self.dice.random() < 0.5
        return ask

    def want(self) -> None:
        """Send an ask of an application."""
        ask = self.ask(f"app{self.dice.randint(1, 4)}", f"k{self.dice.randint(1, 20)}")
        self.scheduler.update(UpdateRequest(self.pick().rm_id, [ask]))

    def end(self) -> None:
        """Release an allocation that runs, or an unknown one."""
        manager = self.pick()
        gone = AllocationRelease("app1", "nobody#7")
        if manager.running:
            one = manager.running[self.dice.choice(list(manager.running))]
            gone = AllocationRelease(one.application_id, one.uuid, one.partition_name)
        self.scheduler.update(UpdateRequest(manager.rm_id, releases=AllocationReleasesRequest([gone])))

    def confirm(self) -> None:
        """Confirm the releases that the core has requested."""
        manager = self.pick()
        gone, manager.to_confirm = manager.to_confirm, []
        for one in gone:
            manager.running.pop(one.uuid, None)
        self.scheduler.update(UpdateRequest(manager.rm_id, releases=AllocationReleasesRequest(gone)))

    def remove(self) -> None:
        """Remove or fail an application."""
        manager, app_id = self.pick(), f"app{self.dice.randint(1, 4)}"
        if self.dice.random() < 0.5:
            self.scheduler.fail_application(manager.rm_id, "default", app_id, "enough")
        else:
            gone = RemoveApplicationRequest(app_id)
            self.scheduler.update(UpdateRequest(manager.rm_id, remove_applications=[gone]))

    def decide(self) -> None:
        """Schedule, with or without a limit of decisions."""
        self.scheduler.schedule(self.dice.choice([1, 2, 256, None]))

    def wait(self) -> None:
        """Let time pass and fire timers, late as on a busy machine."""
        self.clock.set(self.clock.now() + self.dice.randint(1, 4 * SECOND))
        self.scheduler.fire_timers()
        self.scheduler.schedule(256)
        for rm_id in self.managers:
            if self.scheduler.session_state(rm_id) != "Running" and self.dice.random() < 0.4:
                self.register(rm_id)

    def configure(self) -> None:
        """Reload a configuration: from the server's file, from the RM, or an invalid one."""
        self.size = self.dice.randint(2, 9)
        rm_id = self.pick().rm_id
        how = self.dice.randint(0, 3)
        if how == 0:
            self.scheduler.reload_configuration(rm_id)
        elif how == 1:
            self.scheduler.reload_configuration(rm_id, text(self.size))
        elif how == 2:
            self.scheduler.update_configuration(rm_id, UpdateConfigurationRequest(text(self.size)))
        else:
            self.scheduler.reload_configuration(rm_id, "partitions: 5")

    def session(self) -> None:
        """Lose the connection and reconnect, or restart the core."""
        manager = self.pick()
        how = self.dice.randint(0, 6)
        if how == 0:
            self.scheduler.pause(manager.rm_id)
        elif how == 1:
            self.scheduler.reconnect(manager.rm_id, manager)
        elif how == 2:
            self.scheduler.resync(manager.rm_id, "to be sure")
        elif how == 3:
            self.scheduler.stop(manager.rm_id)
        elif how == 4:
            self.scheduler.use_callback(manager.rm_id, manager)
        else:
            self.register(manager.rm_id)

    def switch(self) -> None:
        """Stop or start a queue or the partition."""
        rm_id = self.pick().rm_id
        scheduler = self.scheduler
        operation = self.dice.choice([scheduler.stop_queue, scheduler.start_queue, scheduler.start_queue])
        operation(rm_id, "default", self.dice.choice(["root.a", "root.b"]))
        if self.dice.random() < 0.2:
            scheduler.stop_partition(rm_id, "default")
            scheduler.start_partition(rm_id, "default")
        for owner, at in self.scheduler.all_partitions():
            if owner == rm_id and at.partition.queues.lasting_stops:
                scheduler.start_queue(rm_id, at.name, next(iter(at.partition.queues.lasting_stops)))
            elif owner == rm_id and self.dice.random() < 0.1:
                scheduler.stop_queue(rm_id, at.name, "root.b", lasting=True)
            if owner == rm_id and at.partition.drained_by_operator:
                scheduler.undrain_node(rm_id, at.name, next(iter(at.partition.drained_by_operator)))
            elif owner == rm_id and at.partition.nodes and self.dice.random() < 0.3:
                scheduler.drain_node(rm_id, at.name, self.dice.choice(list(at.partition.nodes)))


def _never(warning: str) -> None:
    raise AssertionError(warning)
