"""Every abuse in the policies that workers call: contained, named, and equal in a replay."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.core.kit import configuration, queue, with_plugins
from tests.plugins.abuses import ABUSES, coroutine, generator
from tests.service.recording.collecting_listener import CollectingListener
from yunikorn.api import AdmissionPolicy, PermitPolicy, PlacementRule, SubmitPolicy, UserGroupResolver
from yunikorn.clock import Clock, ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import (
    AddApplicationRequest,
    AllocationAsk,
    NewNodeInfo,
    RegisterResourceManagerRequest,
    UpdateRequest,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.resources import Resource
from yunikorn_service.recording.recording_reader import read_recording
from yunikorn_service.recording.recording_scheduler import RecordingScheduler
from yunikorn_service.recording.recording_writer import RecordingWriter
from yunikorn_service.recording.replayer import Replay
from yunikorn_service.runtime.policy_workers import PolicyWorkers
from yunikorn_service.runtime.threaded import ThreadedScheduler

NAMES = [name for name, abuse in ABUSES.items() if abuse not in (coroutine, generator)]
"""Abuses of a call; methods that are coroutines or generators are refused at registration."""
IN_WORKER = "yunikorn-policy"


def misbehave(name: str, *arguments: object) -> Any:
    """Misbehave as the number in a name says, in a worker; other names get the answer None."""
    assert threading.current_thread().name == IN_WORKER
    number = name.removeprefix("bad")
    return ABUSES[NAMES[int(number)]](*arguments) if number != name else None


class Resolver(UserGroupResolver):
    name = "bad"

    def groups(self, user: str) -> Any:
        return misbehave(user, user) if user.startswith("bad") else ["staff"]


class Submits(SubmitPolicy):
    name = "bad"

    def submit(self, app: Any) -> Any:
        return misbehave(app.id, app)


class Admits(AdmissionPolicy):
    name = "bad"
    blocking = True

    def admit(self, app: Any) -> Any:
        return misbehave(app.id, app)


class Places(PlacementRule):
    name = "bad"
    blocking = True

    def place(self, app: Any) -> Any:
        return misbehave(app.id, app)


class Permits(PermitPolicy):
    name = "bad"
    blocking = True
    seen: ClassVar[set[str]] = set()

    def permit(self, allocation: Any) -> Any:
        self.seen.add(allocation.app.id)
        return misbehave(allocation.app.id, allocation)


CASES = {
    "user_group_resolvers": (Resolver, {"usergroupresolver": {"type": "bad"}}),
    "submit_policies": (Submits, {"submitpolicies": ["bad"]}),
    "admission_policies": (Admits, {"admission": ["bad"]}),
    "permit_policies": (Permits, {"permits": ["bad"]}),
    "placement_rules": (Places, {"placementrules": [{"name": "bad"}, {"name": "provided"}]}),
}


class Served:
    """A recorded core with real workers."""

    def __init__(self, registry: Registry, file: Path) -> None:
        self.workers, self.writer = PolicyWorkers(), RecordingWriter(file, pytest.fail)
        self.responses: list[UpdateResponse] = []

        def make(clock: Clock) -> Scheduler:
            return RecordingScheduler(self.writer, registry, clock, workers=self.workers)

        self.core = ThreadedScheduler(make, ManualClock(), workers=self.workers)

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Keep a response."""
        self.responses.append(response)


@pytest.mark.parametrize("kind", CASES)
def test_every_abuse_is_contained(kind: str, tmp_path: Path) -> None:
    cls, keys = CASES[kind]
    registry, file = with_plugins(**{kind: [cls]}), tmp_path / "run.jsonl"
    served = Served(registry, file)
    apps = ["good", *(f"bad{number}" for number in range(len(NAMES))), "last"]
    with served.core as core:
        config = configuration(queue("a"), **keys)  # type: ignore[arg-type]
        core.register_resource_manager(RegisterResourceManagerRequest("rm", config=config), served)
        core.update(
            UpdateRequest(
                "rm",
                new_applications=[
                    AddApplicationRequest(app, "root.a", ugi=UserGroupInformation(app)) for app in apps
                ],
                new_schedulable_nodes=[NewNodeInfo("n1", schedulable_resource=Resource(vcore=100))],
                asks=[AllocationAsk("ask", app, resource_ask=Resource(vcore=1)) for app in apps],
            )
        )
        while core.call(outstanding) or (cls is Permits and len(Permits.seen) < len(apps)):
            pass
        failures = core.call(lambda scheduler: [one.plugin for one in scheduler.failures])
        assert set(failures) == {"bad of test-plugin (yunikorn-test 1.0)"}
        assert core.failure is None
    served.writer.close()
    accepted = [one.application_id for each in served.responses for one in each.accepted_applications]
    rejected = [one.application_id for each in served.responses for one in each.rejected_applications]
    assert sorted([*accepted, *rejected]) == sorted(apps)
    assert {"good", "last"} <= set(accepted)

    listener = CollectingListener()
    replay = Replay(read_recording(file).lines, registry, listener)
    replay.run()
    assert str(replay.comparison.first or "") == ""
    assert len(listener.responses) == len(served.responses)


def outstanding(core: Scheduler) -> int:
    """Return the number of questions that are not answered."""
    at = core.partition("rm")
    assert at is not None
    assert at.questions is not None
    return len(at.questions)
