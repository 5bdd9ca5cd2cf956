"""The core in a thread of its own: callers in other threads, timers, back-pressure, shutdown, exceptions."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest

from tests.service.kit import CONFIG, PATIENCE, CollectingCallback, work
from yunikorn.clock import Clock, ManualClock, SystemClock
from yunikorn.errors import ConfigError, UsageError
from yunikorn.framework.registry import Registry
from yunikorn.interface.commands import Answer, Command, Update
from yunikorn.interface.messages import RegisterResourceManagerRequest, UpdateRequest, UpdateResponse
from yunikorn.interface.scheduler import Scheduler
from yunikorn_service.runtime.threaded import Closed, CoreStopped, Inbox, ThreadedScheduler


@pytest.fixture
def make(registry: Registry) -> Callable[[Clock], Scheduler]:
    """Creates the scheduler in the core's thread."""
    return lambda clock: Scheduler(registry, clock)


@pytest.fixture
def core(make: Callable[[Clock], Scheduler]) -> Iterator[ThreadedScheduler]:
    """A running core with the system clock."""
    with ThreadedScheduler(make, SystemClock()) as threaded:
        yield threaded


def test_updates_are_scheduled_automatically(core: ThreadedScheduler) -> None:
    callback = CollectingCallback()
    core.register_resource_manager(RegisterResourceManagerRequest("rm", config=CONFIG), callback)
    core.update(work(5))
    assert callback.allocations(5) == [f"app-{i}" for i in range(5)]


def test_errors_of_the_core_are_raised_to_the_caller_and_the_core_continues(core: ThreadedScheduler) -> None:
    with pytest.raises(UsageError, match="no resource manager 'ghost' is registered"):
        core.update(UpdateRequest("ghost"))
    with pytest.raises(ConfigError):
        core.register_resource_manager(
            RegisterResourceManagerRequest("rm", config="partitions: 7"), CollectingCallback()
        )
    with pytest.raises(ZeroDivisionError):
        core.call(lambda scheduler: 1 // 0)
    assert core.call(lambda scheduler: scheduler.next_timer()) is None
    assert core.failure is None


def test_more_asks_than_a_batch_are_all_scheduled(make: Callable[[Clock], Scheduler]) -> None:
    callback = CollectingCallback()
    with ThreadedScheduler(make, SystemClock(), batch=7) as core:
        core.register_resource_manager(RegisterResourceManagerRequest("rm", config=CONFIG), callback)
        core.update(work(100))
        assert len(callback.allocations(100)) == 100


def test_updates_of_many_threads_are_not_lost(core: ThreadedScheduler) -> None:
    callback = CollectingCallback()
    core.register_resource_manager(RegisterResourceManagerRequest("rm", config=CONFIG), callback)
    threads = [
        threading.Thread(target=lambda name=f"app{i}": core.update(work(20, app=name))) for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    wanted = {f"app{i}-{k}" for i in range(8) for k in range(20)}
    assert set(callback.allocations(160)) == wanted


def test_timers_use_the_given_clock(make: Callable[[Clock], Scheduler]) -> None:
    callback, clock = CollectingCallback(), ManualClock()
    with ThreadedScheduler(make, clock) as core:
        core.register_resource_manager(RegisterResourceManagerRequest("rm", config=CONFIG), callback)
        core.update(work(1))
        callback.allocations(1)
        clock.advance(3600)
        core.call(lambda scheduler: None)  # the core checks its clock at the latest on the next call
        states = []
        while "Running" not in states:
            response = callback.received.get(timeout=PATIENCE)
            states += [update.state for update in response.updated_applications]


def test_a_callback_may_post_but_not_wait(core: ThreadedScheduler) -> None:
    callback = CollectingCallback()
    raised: list[Exception] = []
    posted: list[Future[None]] = []

    class Answering(CollectingCallback):
        def recv_update_response(self, response: UpdateResponse) -> None:
            if response.accepted_nodes and not posted:
                try:
                    core.update(UpdateRequest("rm"))
                except UsageError as error:
                    raised.append(error)
                posted.append(core.post(work(2, app="more")))
            super().recv_update_response(response)

    callback = Answering()
    core.register_resource_manager(RegisterResourceManagerRequest("rm", config=CONFIG), callback)
    core.update(work(1))
    assert set(callback.allocations(3)) == {"app-0", "more-0", "more-1"}
    assert "use post" in str(raised[0])
    posted[0].result(PATIENCE)


def test_halt_completes_queued_calls_and_accepts_no_more(core: ThreadedScheduler) -> None:
    callback = CollectingCallback()
    core.register_resource_manager(RegisterResourceManagerRequest("rm", config=CONFIG), callback)
    busy, release = threading.Event(), threading.Event()

    def hold(_: Scheduler) -> None:
        busy.set()
        release.wait(PATIENCE)

    core.post_call(hold)
    assert busy.wait(PATIENCE)
    late = core.post(work(3))
    ending = threading.Thread(target=core.halt)
    ending.start()
    release.set()
    ending.join(PATIENCE)
    late.result(PATIENCE)
    assert callback.allocations(3) == ["app-0", "app-1", "app-2"]
    assert not core.alive
    with pytest.raises(CoreStopped, match="has been stopped"):
        core.post(work(1))


def test_current_and_later_callers_receive_an_internal_error(
    registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    class Buggy(Scheduler):
        def apply(self, command: Command[Answer]) -> Answer:
            if isinstance(command, Update):
                raise ArithmeticError("the accounting is wrong")
            return super().apply(command)

    died: queue.Queue[BaseException] = queue.Queue()
    core = ThreadedScheduler(lambda clock: Buggy(registry, clock), SystemClock(), died=died.put)
    first, second = core.post(UpdateRequest("rm")), core.post(UpdateRequest("rm"))
    core.start()
    with pytest.raises(ArithmeticError):
        first.result(PATIENCE)
    with pytest.raises(CoreStopped, match="the core has failed: ArithmeticError: the accounting is wrong"):
        second.result(PATIENCE)
    assert isinstance(died.get(timeout=PATIENCE), ArithmeticError)
    with pytest.raises(CoreStopped, match="the accounting is wrong"):
        core.update(UpdateRequest("rm"))
    assert isinstance(core.failure, ArithmeticError)
    assert "the core has failed" in caplog.text
    assert core.halt(PATIENCE)


# -- the inbox ------------------------------------------------------------------------------------------


def test_full_inbox_blocks_the_sender() -> None:
    inbox: Inbox[int] = Inbox(2)
    inbox.put(1)
    inbox.put(2)
    done = threading.Event()

    def send() -> None:
        inbox.put(3)
        done.set()

    thread = threading.Thread(target=send)
    thread.start()
    assert not done.is_set()
    assert inbox.take(1, None) == [1]
    assert done.wait(PATIENCE)
    assert inbox.take(10, None) == [2, 3]
    thread.join(PATIENCE)


def test_nonblocking_sender_is_called_when_there_is_room() -> None:
    inbox: Inbox[int] = Inbox(1)
    rooms: list[str] = []
    assert inbox.offer(1, lambda: rooms.append("never"))
    assert not inbox.offer(2, lambda: rooms.append("second"))
    assert rooms == []
    assert inbox.take(1, 0) == [1]
    assert rooms == ["second"]
    assert inbox.offer(2, lambda: None)
    inbox.take(1, 0)
    assert rooms == ["second"]


def test_closed_inbox_delivers_its_remaining_items() -> None:
    inbox: Inbox[int] = Inbox(1)
    inbox.put(1)
    received: list[type[BaseException]] = []

    def send() -> None:
        try:
            inbox.put(2)
        except Closed as error:
            received.append(type(error))

    thread = threading.Thread(target=send)
    thread.start()
    inbox.close()
    thread.join(PATIENCE)
    assert received == [Closed]
    with pytest.raises(Closed):
        inbox.put(3, always=True)
    assert inbox.take(5, None) == [1]
    assert inbox.take(5, None) == []


def test_inbox_without_capacity_is_rejected() -> None:
    with pytest.raises(ValueError, match="must be at least 1 entry"):
        Inbox(0)
