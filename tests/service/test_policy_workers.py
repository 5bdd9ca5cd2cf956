"""Threads that call policies: one that hangs is replaced, and delays neither the core nor other policies."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import pytest

from tests.core.kit import configuration, queue, with_plugins
from tests.service.kit import PATIENCE, CollectingCallback, work
from yunikorn.api import AdmissionPolicy, Context, Submission, SubmitPolicy, UserGroupResolver
from yunikorn.clock import Clock, ManualClock
from yunikorn.framework.policy_calls import PolicyAnswer
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import (
    AddApplicationRequest,
    AllocationAsk,
    RegisterResourceManagerRequest,
    UpdateRequest,
    UserGroupInformation,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.resources import Resource
from yunikorn_service.runtime.policy_workers import IDLE, PolicyWorkers
from yunikorn_service.runtime.threaded import ThreadedScheduler

CONFIG = configuration(queue("a"), usergroupresolver={"type": "directory"})


class Directory(UserGroupResolver):
    """A directory whose answers about `away` users never come, until `back` is set."""

    name = "directory"
    calls_at_once = 2
    back = threading.Event()
    asked: ClassVar[list[str]] = []
    threads: ClassVar[set[int]] = set()
    closings: ClassVar[list[str]] = []

    def opened(self, context: Context) -> None:
        assert threading.current_thread().name == "yunikorn-core"

    def groups(self, user: str) -> Sequence[str] | None:
        self.asked.append(user)
        self.threads.add(threading.get_ident())
        assert threading.current_thread().name == "yunikorn-policy"
        if user.startswith("away"):
            assert self.back.wait(PATIENCE)
        return ["staff"]

    def closed(self) -> None:
        self.closings.append(threading.current_thread().name)


class Parts:
    """A core with workers on a manual clock, and the RM registered with it."""

    def __init__(self, registry: Registry, config: str) -> None:
        self.clock, self.workers = ManualClock(), PolicyWorkers()

        def make(clock: Clock) -> Scheduler:
            return Scheduler(registry, clock, workers=self.workers)

        self.core = ThreadedScheduler(make, self.clock, workers=self.workers)
        self.core.start()
        self.callback = CollectingCallback()
        self.core.register_resource_manager(
            RegisterResourceManagerRequest("rm", config=config), self.callback
        )

    def submit(self, *apps: str) -> None:
        """Submit an application with an ask for each of these users."""
        self.core.update(
            UpdateRequest(
                "rm",
                new_applications=[
                    AddApplicationRequest(app, "root.a", ugi=UserGroupInformation(app)) for app in apps
                ],
                asks=[AllocationAsk(f"{app}-ask", app, resource_ask=Resource(vcore=1)) for app in apps],
            )
        )

    def pass_time(self, seconds: int) -> None:
        """Move the clock, and wait until the core has fired its timers."""
        self.clock.advance(seconds)
        self.core.call(lambda _: None)

    def wait_for_rejections(self, number: int) -> dict[str, str]:
        """Return this many rejections by application."""
        found: dict[str, str] = {}
        while len(found) < number:
            response = self.callback.received.get(timeout=PATIENCE)
            found |= {one.application_id: one.reason for one in response.rejected_applications}
        return found


@pytest.fixture
def start() -> Iterator[Callable[..., Parts]]:
    """Starts a core with plugins; ends it, and all calls that hang."""
    Directory.back.clear()
    for seen in (Directory.asked, Directory.threads, Directory.closings):
        seen.clear()
    started: list[Parts] = []

    def begin(config: str = CONFIG, **plugins: Any) -> Parts:
        registry = with_plugins(**(plugins or {"user_group_resolvers": [Directory]}))
        started.append(Parts(registry, config))
        return started[-1]

    yield begin
    Directory.back.set()
    for parts in started:
        assert parts.core.close(PATIENCE)


def test_groups_are_found_in_another_thread(start: Callable[..., Parts]) -> None:
    parts = start()
    parts.core.update(work(1))
    parts.submit("bea")
    accepted: list[str] = []
    while len(accepted) < 2:
        response = parts.callback.received.get(timeout=PATIENCE)
        accepted += [one.application_id for one in response.accepted_applications]
    assert sorted(Directory.asked) == ["ann", "bea"]


def test_core_continues_while_all_calls_hang(
    start: Callable[..., Parts], caplog: pytest.LogCaptureFixture
) -> None:
    parts = start()
    users = [f"away{number}" for number in range(1000)]
    parts.submit(*users)
    ready = AddApplicationRequest("ready", "root.a", ugi=UserGroupInformation("x", ["staff"]))
    parts.core.update(UpdateRequest("rm", new_applications=[ready]))
    asked = work(4, app="ready")
    asked.new_applications.clear()
    parts.core.update(asked)
    assert len(parts.callback.allocations(4)) == 4
    with caplog.at_level(logging.ERROR, "yunikorn.plugins"):
        for _ in range(20):
            parts.pass_time(10)
    reasons = parts.wait_for_rejections(1000)
    assert set(reasons) == set(users)
    assert len(Directory.threads) <= 8 + 2
    assert "plugin directory of test-plugin (yunikorn-test 1.0): a call has not returned" in caplog.text
    assert "test_policy_workers.py" in caplog.text
    assert caplog.text.count("its thread is replaced") == 1
    assert parts.core.alive
    Directory.back.set()


def test_thread_that_returns_late_ends_and_the_directory_is_used_again(start: Callable[..., Parts]) -> None:
    parts = start()
    parts.submit("away1", "away2", "ann")
    parts.pass_time(10)
    assert set(parts.wait_for_rejections(2)) == {"away1", "away2"}
    parts.core.update(UpdateRequest("rm", new_schedulable_nodes=work(2, app="n").new_schedulable_nodes))
    assert parts.callback.allocations(1) == ["ann-ask"]
    Directory.back.set()
    parts.submit("away3")
    assert parts.callback.allocations(1) == ["away3-ask"]
    assert len(parts.workers) == 0


class Exits(SubmitPolicy):
    name = "exits"

    def submit(self, app: Submission) -> Any:
        raise {"exit": SystemExit, "interrupt": KeyboardInterrupt, "generator": GeneratorExit}[app.id]


class Hangs(AdmissionPolicy):
    name = "hangs"
    blocking = True
    entered = threading.Event()

    def admit(self, app: Any) -> Any:
        self.entered.set()
        assert Directory.back.wait(PATIENCE)


def test_exceptions_that_end_threads_are_contained(start: Callable[..., Parts]) -> None:
    parts = start(configuration(queue("a"), submitpolicies=["exits"]), submit_policies=[Exits])
    parts.submit("exit", "interrupt", "generator")
    reasons = parts.wait_for_rejections(3)
    assert "SystemExit" in reasons["exit"]
    assert "KeyboardInterrupt" in reasons["interrupt"]
    assert "GeneratorExit" in reasons["generator"]


def test_policy_is_closed_when_its_last_call_has_returned(start: Callable[..., Parts]) -> None:
    parts = start()
    parts.submit("away")
    assert parts.core.call(lambda core: core.reload_configuration("rm", configuration(queue("a"))))
    assert Directory.closings == []
    response = parts.callback.received.get(timeout=PATIENCE)
    assert response.accepted_applications[0].application_id == "away"
    Directory.back.set()
    while not Directory.closings:
        parts.core.call(lambda _: None)
    assert Directory.closings == ["yunikorn-core"]


def test_policy_is_closed_when_its_last_call_is_given_up(start: Callable[..., Parts]) -> None:
    parts = start()
    parts.submit("away")
    parts.core.call(lambda core: core.reload_configuration("rm", configuration(queue("a"))))
    parts.pass_time(10)
    assert Directory.closings == ["yunikorn-core"]


def test_end_does_not_wait_for_calls(start: Callable[..., Parts]) -> None:
    parts = start(configuration(queue("a"), admission=["hangs"]), admission_policies=[Hangs])
    Hangs.entered.clear()
    parts.submit("app")
    assert Hangs.entered.wait(PATIENCE)
    assert parts.core.close(PATIENCE)
    assert parts.core.failure is None


def test_threads_are_used_again_and_few_are_kept() -> None:
    answers: dict[int, PolicyAnswer] = {}
    arrived = threading.Semaphore(0)

    def post(number: int, answer: PolicyAnswer) -> None:
        answers[number] = answer
        arrived.release()

    workers, gate = PolicyWorkers(post), threading.Barrier(IDLE + 4)

    def meet() -> PolicyAnswer:
        gate.wait(PATIENCE)
        return PolicyAnswer(reason=threading.current_thread().name)

    for _ in range(2):
        for number in range(IDLE + 4):
            workers.start(number, meet)
        for _ in range(IDLE + 4):
            assert arrived.acquire(timeout=PATIENCE)
    assert len(answers) == IDLE + 4
    assert len(workers) == 0
    assert len(workers._idle) == IDLE


def test_threads_end_with_their_workers() -> None:
    """A program may run one core after the other, and idle threads would keep all of them."""
    arrived, gate = threading.Semaphore(0), threading.Event()
    workers = PolicyWorkers(lambda number, answer: arrived.release())
    begun = threading.Barrier(3)

    def wait() -> PolicyAnswer:
        begun.wait(PATIENCE)
        gate.wait(PATIENCE)
        return PolicyAnswer()

    before = set(threading.enumerate())
    workers.start(0, PolicyAnswer)
    assert arrived.acquire(timeout=PATIENCE)
    for number in (1, 2):
        workers.start(number, wait)
    begun.wait(PATIENCE)
    threads = set(threading.enumerate()) - before
    assert len(threads) == 2
    workers.close()
    gate.set()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert not arrived.acquire(blocking=False), "answers that come later are dropped"


def test_calls_that_are_given_up_are_counted_until_they_return() -> None:
    arrived, gate = threading.Semaphore(0), threading.Event()
    workers = PolicyWorkers(lambda number, answer: arrived.release())

    def wait() -> PolicyAnswer:
        gate.wait(PATIENCE)
        return PolicyAnswer()

    for number in range(3):
        workers.start(number, wait)
    workers.abandon(0)
    workers.abandon(0)
    workers.abandon(1)
    assert (len(workers), workers.given_up, workers.stuck) == (1, 2, 2)
    gate.set()
    for _ in range(3):
        assert arrived.acquire(timeout=PATIENCE)
    assert (len(workers), workers.given_up, workers.stuck) == (0, 2, 0)


def test_missing_thread_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[PolicyAnswer] = []
    workers = PolicyWorkers(lambda number, answer: answers.append(answer))

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    workers.start(1, PolicyAnswer)
    assert answers == [PolicyAnswer(failed="no worker could be started: can't start new thread")]
