"""Commands: the same effect as the methods, and operations for cores in threads."""

from __future__ import annotations

import asyncio
from typing import Any

import attrs
import pytest

from tests.core.kit import RM, document, partition, queue, with_plugins
from tests.service.kit import PATIENCE
from yunikorn.api import Ask, Node, Predicate
from yunikorn.clock import ManualClock, SystemClock
from yunikorn.errors import UsageError
from yunikorn.framework.policy_calls import PolicyAnswer
from yunikorn.framework.registry import Registry
from yunikorn.interface.commands import (
    Close,
    Command,
    CreditUsage,
    FireTimers,
    Pause,
    Reconnect,
    RegisterPlugin,
    RegisterResourceManager,
    ReloadConfiguration,
    Resync,
    Schedule,
    Stop,
    TakePolicyAnswer,
    UnregisterPlugin,
    Update,
    UpdateConfiguration,
    UseCallback,
    Wake,
)
from yunikorn.interface.messages import (
    NewNodeInfo,
    RegisterResourceManagerRequest,
    SchedulerAction,
    UpdateConfigurationRequest,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn.interface.operator_commands import (
    DrainNode,
    FailApplication,
    StartPartition,
    StartQueue,
    StopPartition,
    StopQueue,
    UndrainNode,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.resources import Resource
from yunikorn_service.async_scheduler import AsyncScheduler
from yunikorn_service.policy_groups import Configurations
from yunikorn_service.recording.recorded_commands import FORMS
from yunikorn_service.runtime.threaded import ThreadedScheduler


class Silent:
    """Callback that ignores all responses."""

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Ignore the response."""


REGISTRATION = RegisterResourceManager(RegisterResourceManagerRequest("rm"), Silent())
COMMANDS: list[Command[Any]] = [
    REGISTRATION,
    Update(UpdateRequest("rm")),
    ReloadConfiguration("rm", document(partition(queue("a"), queue("b")))),
    UpdateConfiguration("rm", UpdateConfigurationRequest("")),
    CreditUsage((), 0),
    FailApplication("rm", "app", reason="no longer needed"),
    Pause("rm", "lost"),
    Reconnect("rm", Silent()),
    UseCallback("rm", Silent()),
    Resync("rm", "to be sure"),
    RegisterPlugin("rm", object(), "own"),
    UnregisterPlugin("rm", "own"),
    StopQueue("rm", "root.a"),
    StartQueue("rm", "root.a"),
    StopPartition("rm"),
    StartPartition("rm"),
    DrainNode("rm", "n1"),
    UndrainNode("rm", "n1"),
    Schedule(),
    FireTimers(),
    TakePolicyAnswer(1, PolicyAnswer()),
    Wake("rm", "default", "predicate"),
    Stop("rm"),
    Close(),
]


def test_the_list_has_every_command() -> None:
    assert {type(command) for command in COMMANDS} == {form.command for form in FORMS}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.method())
def test_plugin_cannot_apply_a_command_during_a_decision(command: Command[Any]) -> None:
    refusals: list[str] = []

    class Meddler(Predicate):
        """Applies a command from within a predicate."""

        name = "meddler"

        def check(self, ask: Ask, node: Node) -> None:
            try:
                rm.scheduler.apply(command)
            except UsageError as error:
                refusals.append(str(error))

    rm = RM(document(partition(queue("a"), predicates=["meddler"])), with_plugins(predicates=[Meddler]))
    rm.node("n1", vcore=1)
    rm.app()
    rm.ask(vcore=1)
    assert len(rm.schedule()) == 1
    assert refusals == [
        f"{command.method()} was called while the core is making decisions: a predicate or another plugin"
        " must not call the scheduler. Call it after the current call has returned"
    ]


def test_commands_return_what_the_methods_return() -> None:
    rm = RM(document(partition(queue("a"))))
    rm.node("n1", vcore=2)
    rm.app()
    rm.ask(count=2, vcore=1)
    apply = rm.scheduler.apply
    assert [apply(Schedule(1)), apply(Schedule()), apply(Schedule())] == [1, 1, 0]
    assert [apply(StopQueue("rm", "root.a")), apply(StopQueue("rm", "root.a"))] == [True, False]
    assert apply(StartQueue("rm", "root.a"))
    assert apply(UpdateConfiguration("rm", UpdateConfigurationRequest("partitions: 5"))).success is False
    assert apply(FireTimers()) == 0
    with pytest.raises(UsageError, match="there is no application 'ghost' in partition"):
        apply(FailApplication("rm", "ghost"))


def test_equal_commands_are_equal_and_cannot_be_changed() -> None:
    assert StopQueue("rm", "root.a") == StopQueue("rm", "root.a", partition="", lasting=False)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Pause("rm", "lost").reason = "closed"  # type: ignore[misc]


def test_core_in_a_thread_takes_commands() -> None:
    with ThreadedScheduler(
        lambda clock: Scheduler(Registry.load(third_party=False), clock), SystemClock()
    ) as core:
        core.call(REGISTRATION)
        assert core.post_call(Schedule()).result(PATIENCE) == 0
        core.notify(Pause("rm", "lost")).result(PATIENCE)
        assert core.call(lambda scheduler: scheduler.session_state("rm")) == "Paused"
        with pytest.raises(UsageError, match="no resource manager 'ghost' is registered"):
            core.call(Stop("ghost"))


def test_event_loop_takes_commands() -> None:
    async def scenario() -> str:
        threaded = ThreadedScheduler(
            lambda clock: Scheduler(Registry.load(third_party=False), clock), SystemClock()
        )
        async with AsyncScheduler(threaded) as core:
            await core.carry_out(REGISTRATION)
            await core.call(Resync("rm", "to be sure"))
            return await core.call(lambda scheduler: scheduler.session_state("rm"))

    assert asyncio.run(scenario()) == "Paused"


def test_what_is_not_a_command_is_refused() -> None:
    scheduler = RM().scheduler
    wrong: Any = "pause"
    with pytest.raises(UsageError, match="'pause' is not a command"):
        scheduler.apply(wrong)


class Stumbling:
    """Callback that raises at the first response."""

    def __init__(self) -> None:
        self.actions: list[SchedulerAction] = []

    def recv_update_response(self, response: UpdateResponse) -> None:
        self.actions.append(response.action)
        if len(self.actions) == 1:
            raise RuntimeError("stumbled")


GROUP = document(partition(queue("a")))


def stumbled(policy_group: str = "") -> tuple[Scheduler, Stumbling]:
    """Return a scheduler that owes RESYNC to a resource manager, and the callback of that."""
    configurations = Configurations({policy_group: GROUP}) if policy_group else None
    scheduler = Scheduler(Registry.load(third_party=False), ManualClock(), configurations=configurations)
    callback = Stumbling()
    scheduler.register_resource_manager(
        RegisterResourceManagerRequest("rm", policy_group=policy_group), callback
    )
    node = NewNodeInfo("n1", schedulable_resource=Resource(vcore=1))
    scheduler.update(UpdateRequest("rm", new_schedulable_nodes=[node]))
    return scheduler, callback


def test_a_reload_without_a_source_sends_nothing() -> None:
    """The messages of an earlier call are sent by the next call that does something."""
    scheduler, callback = stumbled()
    assert not scheduler.reload_configuration("rm")
    assert len(callback.actions) == 1
    scheduler.schedule()
    assert callback.actions[1:] == [SchedulerAction.RESYNC]


def test_a_refused_configuration_sends_nothing() -> None:
    scheduler, callback = stumbled("queues")
    answer = scheduler.update_configuration("rm", UpdateConfigurationRequest("partitions: ["))
    assert "belongs to the scheduler" in answer.reason
    assert len(callback.actions) == 1
    scheduler.schedule()
    assert callback.actions[1:] == [SchedulerAction.RESYNC]
