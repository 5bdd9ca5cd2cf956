"""Usage from a history, which policies count after a restart as if there had been none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.core.kit import RM, configuration, queue
from tests.core.test_owner_usage import REGISTRY, leaf
from tests.history.recorded_core import START, RecordedCore
from yunikorn.clock import SECOND, ManualClock
from yunikorn.interface.commands import CreditUsage
from yunikorn.interface.messages import (
    Allocation,
    RegisterResourceManagerRequest,
    UpdateResponse,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.owner_usage import UsageCredit
from yunikorn.model.usage_history import LN2
from yunikorn.resources import Resource
from yunikorn_history.past_usage import credit_late, credit_past_usage, read_past_usage
from yunikorn_history.recorded_history import HistorySettings
from yunikorn_history.recording_thread import RecordingThread
from yunikorn_service.async_scheduler import AsyncScheduler
from yunikorn_service.runtime.threaded import ThreadedScheduler

HOUR, DAY = 3_600, 86_400
WEEK = 7.0 * DAY
SHARED = configuration(leaf("a", seconds=WEEK, by="user, group, queue, tag:team"))


@pytest.fixture
def core(location: str) -> Iterator[RecordedCore]:
    made = RecordedCore(location, configuration(queue("a")))
    yield made
    made.close()


def work(core: RecordedCore, user: str, hours: float, vcores: int = 2) -> None:
    """Run a task of a user for some hours."""
    app_id = f"{user}-{core.clock.now()}"
    core.rm.app(app_id, user=user, groups=["staff"], team="blue")
    core.rm.ask(app_id, f"task-{app_id}", vcore=vcores)
    core.rm.schedule()
    for _ in range(round(hours)):
        core.rm.pass_time(HOUR)
        core.write()
    core.rm.release(app_id)
    core.write()


def shared(now: int, *credit_from: str) -> RM:
    """Return a resource manager of a scheduler that starts now, with what a history has."""
    scheduler = Scheduler(REGISTRY, ManualClock(now))
    for location in credit_from:
        scheduler.apply(read_past_usage(location))
    rm = RM(SHARED, scheduler=scheduler)
    rm.node("n1", vcore=10)
    return rm


def used(rm: RM, kind: str, name: str) -> float:
    found = rm.find_queue("root.a").order.usage.recent(kind, name)
    return float(found.get("vcore", 0.0))


def test_usage_is_that_of_a_scheduler_that_did_not_restart(core: RecordedCore) -> None:
    core.rm.node("n1", vcore=10)
    core.rm.reload(configuration(queue("a")))
    without = shared(core.clock.now())
    for user, hours in (("ann", 30), ("bob", 4), ("ann", 10), ("eve", 60)):
        work(core, user, hours)
        without.app(f"{user}-{hours}", user=user, groups=["staff"], team="blue")
        without.ask(f"{user}-{hours}", f"task-{user}-{hours}", vcore=2)
        without.schedule()
        without.pass_time(hours * HOUR)
        without.release(f"{user}-{hours}")
    after = shared(core.clock.now(), core.location)
    for kind, name in (
        ("user", "ann"),
        ("user", "bob"),
        ("user", "eve"),
        ("group", "staff"),
        ("queue", "root"),
        ("tag:team", "blue"),
    ):
        wanted = used(without, kind, name)
        assert wanted > 0
        assert used(after, kind, name) == pytest.approx(wanted, rel=2 ** (DAY / WEEK) - 1)
    assert used(after, "user", "ann") == pytest.approx(used(without, "user", "ann"), rel=0.02)


def test_who_used_much_last_week_goes_second_after_a_restart(core: RecordedCore) -> None:
    core.rm.node("n1", vcore=10)
    work(core, "ann", 40)
    monday = core.clock.now() + DAY * SECOND
    orders = []
    for rm in (shared(monday, core.location), shared(monday)):
        for user in ("ann", "bob"):
            rm.app(user, user=user, groups=["staff"])
            rm.ask(user, f"task-{user}", vcore=6)
        orders.append([app_id for app_id, _, _ in rm.schedule()])
    assert orders == [["bob"], ["ann"]]


def test_what_still_runs_counts_once(core: RecordedCore) -> None:
    core.rm.node("n1", vcore=10)
    core.rm.app("long", user="ann", groups=["staff"], team="blue")
    core.rm.ask("long", "task", vcore=2)
    core.rm.schedule()
    for _ in range(3):
        core.rm.pass_time(HOUR)
        core.write()
    core.rm.pass_time(600)
    core.write(ends=True)
    core.rm.pass_time(600)
    rm = shared(core.clock.now(), core.location)
    rm.app("long", user="ann", groups=["staff"], team="blue")
    tags = {"creationTime": str(START // SECOND)}
    rm.node(
        "n2",
        vcore=10,
        existing=[Allocation("task", "long", "u", "n2", Resource(vcore=2), allocation_tags=tags)],
    )
    exact = 2 * WEEK / LN2 * (1 - 2 ** (-(3 * HOUR + 1200) / WEEK))
    assert used(rm, "user", "ann") == pytest.approx(exact, rel=2 ** (HOUR / WEEK) - 1)


def test_an_empty_history_has_no_usage(core: RecordedCore) -> None:
    core.write()
    assert read_past_usage(core.location).credits == ()


class Callback:
    def recv_update_response(self, response: UpdateResponse) -> None:
        pass


def test_usage_is_credited_once_before_the_first_registration(
    core: RecordedCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    core.rm.node("n1", vcore=10)
    work(core, "ann", 2)
    credited: list[UsageCredit] = []
    credit = Scheduler.apply

    def apply(scheduler: Scheduler, command: object) -> object:
        credited.extend(getattr(command, "credits", ()))
        return credit(scheduler, command)  # type: ignore[arg-type]

    monkeypatch.setattr(Scheduler, "apply", apply)

    async def run() -> None:
        threaded = ThreadedScheduler(lambda clock: Scheduler(REGISTRY, clock), ManualClock(core.clock.now()))
        async with AsyncScheduler(threaded) as served:
            served.preparation = lambda: credit_past_usage(served.carry_out, core.location, 0, lambda: None)
            requests = [RegisterResourceManagerRequest(rm_id, config=SHARED) for rm_id in ("rm", "other")]
            await asyncio.gather(*(served.register_resource_manager(one, Callback()) for one in requests))

    asyncio.run(run())
    assert {one.user for one in credited} == {"ann"}
    assert len(credited) == len(read_past_usage(core.location).credits)


def test_a_history_that_cannot_be_read_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    applied: list[object] = []

    async def apply(command: CreditUsage) -> None:
        applied.append(command)

    asyncio.run(credit_past_usage(apply, "/nowhere/history.db", 7, lambda: applied.append("later")))
    assert applied == [CreditUsage((), 7), "later"]
    assert (
        "usage before the start is counted once the history can be read: history /nowhere/history.db"
        in caplog.text
    )


def test_usage_is_read_again_when_the_database_answers(core: RecordedCore) -> None:
    core.rm.node("n1", vcore=10)
    work(core, "ann", 2)
    wanted = read_past_usage(core.location)
    core.close()
    credited: list[CreditUsage] = []
    thread = RecordingThread(HistorySettings(core.location), ManualClock(core.clock.now()))
    thread.past_usage = credited.append
    scheduler = Scheduler(REGISTRY, ManualClock(core.clock.now()), event_receiver=thread.events)
    thread.events.attach(scheduler)
    thread.begin(lambda: False)
    rm = RM(SHARED, scheduler=scheduler)
    rm.node("n1", vcore=10)
    # Everything is written at the end, and for that the database is opened.
    thread.finish()
    assert credited == [wanted]
    assert wanted.credits

    async def apply(command: CreditUsage) -> None:
        scheduler.apply(command)

    asyncio.run(credit_late(apply, wanted))
    assert used(rm, "user", "ann") > 0
