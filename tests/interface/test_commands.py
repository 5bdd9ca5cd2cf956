"""Commands: the same effect as the methods, and operations for cores in threads."""

from __future__ import annotations

import asyncio
from typing import Any

import attrs
import pytest

from tests.core.kit import RM, document, partition, queue, with_plugins
from tests.service.kit import PATIENCE
from yunikorn.api import Ask, Node, Predicate
from yunikorn.clock import SystemClock
from yunikorn.errors import UsageError
from yunikorn.framework.policy_calls import PolicyAnswer
from yunikorn.framework.registry import Registry
from yunikorn.interface.commands import (
    Close,
    Command,
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
)
from yunikorn.interface.messages import (
    RegisterResourceManagerRequest,
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
from yunikorn.recording.recorded_commands import FORMS
from yunikorn.runtime.async_scheduler import AsyncScheduler
from yunikorn.runtime.threaded import ThreadedScheduler


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
    assert StopQueue("rm", "root.a") == StopQueue("rm", "root.a", "", lasting=False)
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
