"""Usage by user, group, queue and tag: exact, kept over reloads and sessions, continued after a restart."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest

from tests.core.kit import RM, configuration, document, partition, queue, with_plugins
from yunikorn.api import Application, AppSortPolicy, Queue, QueueSortPolicy
from yunikorn.clock import SECOND, ManualClock
from yunikorn.interface.messages import Allocation
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.owner_usage import ROOMY, OwnerUsage, UsageCredit
from yunikorn.model.usage_history import LN2
from yunikorn.resources import Resource

ALL = ("user", "group", "queue", "tag:account")
FOREVER = 9e8


@attrs.frozen
class LeastUser(AppSortPolicy):
    """Orders applications by the recent usage of their users."""

    name = "least-user"
    gangs = True
    seconds: float = FOREVER
    by: tuple[str, ...] = ALL

    @property
    def half_life(self) -> float | None:
        return self.seconds or None

    @property
    def usage_by(self) -> Sequence[str]:
        return self.by

    @property
    def refresh_every(self) -> float:
        return 1.0

    def key(self, app: Application) -> float:
        return app.usage.recent("user", app.user).get("vcore", 0.0)


class LeastQueue(QueueSortPolicy):
    """Orders queues by the recent usage of the account that is called like the queue."""

    name = "least-queue"
    half_life = FOREVER
    usage_by = ("tag:account",)
    refresh_every = 1.0

    def key(self, queue: Queue) -> float:
        return queue.usage.recent("tag:account", queue.path.rpartition(".")[2]).get("vcore", 0.0)


REGISTRY = with_plugins(app_sort_policies=[LeastUser], queue_sort_policies=[LeastQueue])


def leaf(name: str, **options: Any) -> dict[str, Any]:
    properties = {"application.sort.policy": "least-user"}
    properties |= {f"application.sort.policy.{key}": str(value) for key, value in options.items()}
    return queue(name, properties=properties)


def config(**options: Any) -> str:
    return configuration(queue("p", leaf("a", **options), queue("b")), leaf("c", **options))


def rm_with(scheduler: Scheduler | None = None, **options: Any) -> RM:
    rm = RM(config(**options), REGISTRY, scheduler=scheduler)
    rm.node(vcore=100, gpu=8)
    return rm


def used(rm: RM, kind: str, name: str, resource: str = "vcore", leaf: str = "root.c") -> float:
    recent: Mapping[str, float] = rm.find_queue(leaf).order.usage.recent(kind, name)
    return recent.get(resource, 0.0)


def run(
    rm: RM, app_id: str, path: str = "root.c", user: str = "ann", account: str = "", **amounts: int
) -> None:
    tags = {"account": account} if account else {}
    rm.app(app_id, path, user=user, groups=("staff", f"of-{user}"), **tags)
    rm.ask(app_id, f"task-{app_id}", resource=amounts)
    rm.schedule()


def test_usage_counts_for_user_groups_queues_and_tag() -> None:
    rm = rm_with()
    run(rm, "one", account="bio", vcore=2)
    run(rm, "two", "root.p.b", user="bob", vcore=3, gpu=1)
    rm.pass_time(10)
    found = {(kind, name): round(used(rm, kind, name), 3) for kind, name in EXPECTED}
    assert found == EXPECTED
    assert used(rm, "group", "staff", "gpu") == pytest.approx(10)
    assert used(rm, "queue", "root", leaf="root.p.a") == pytest.approx(50)
    assert rm.failures() == []


EXPECTED = {
    ("user", "ann"): 20,
    ("user", "bob"): 30,
    ("user", "eve"): 0,
    ("group", "staff"): 50,
    ("group", "of-bob"): 30,
    ("queue", "root"): 50,
    ("queue", "root.p"): 30,
    ("queue", "root.p.b"): 30,
    ("queue", "root.c"): 20,
    ("tag:account", "bio"): 20,
}


def test_who_used_more_waits_longer_whatever_the_queue_and_the_application() -> None:
    rm = rm_with(seconds=1000)
    run(rm, "old", "root.p.b", user="ann", vcore=100)
    rm.pass_time(60)
    for user in ("ann", "bob"):
        rm.app(f"new-{user}", "root.c", user=user)
        rm.ask(f"new-{user}", vcore=1)
    rm.release("old")
    assert [app_id for app_id, _, _ in rm.schedule()] == ["new-bob", "new-ann"]


def test_queues_are_ordered_by_usage_of_accounts() -> None:
    tree = queue("p", queue("bio"), queue("art"), properties={"queue.sort.policy": "least-queue"})
    rm = RM(configuration(tree, queue("other")), REGISTRY)
    rm.node(vcore=10)
    run(rm, "old", "root.other", account="art", vcore=10)
    rm.pass_time(60)
    for name in ("art", "bio"):
        rm.app(f"new-{name}", f"root.p.{name}")
        rm.ask(f"new-{name}", vcore=1)
    rm.release("old")
    assert [app_id for app_id, _, _ in rm.schedule()] == ["new-bio", "new-art"]


def test_usage_is_exact_however_often_it_is_read() -> None:
    seldom, often = rm_with(seconds=50), rm_with(seconds=50)
    drawn = random.Random(7)
    for step in range(60):
        for rm in (seldom, often):
            run(rm, f"app-{step}", "root.c" if step % 3 else "root.p.b", vcore=1 + step % 4)
        if step > 5:
            for rm in (seldom, often):
                rm.release(f"app-{step - 5}")
        used(often, "user", "ann")
        pause = drawn.uniform(0, 20)
        for rm in (seldom, often):
            rm.pass_time(pause)
        used(often, "queue", "root")
    for kind, name in (("user", "ann"), ("group", "staff"), ("queue", "root"), ("queue", "root.p")):
        assert used(seldom, kind, name) == pytest.approx(used(often, kind, name), rel=1e-9)
    assert used(seldom, "user", "ann") == pytest.approx(used(seldom, "queue", "root"), rel=1e-9)


def test_usage_continues_over_reloads_and_begins_with_what_runs() -> None:
    rm = RM(configuration(queue("p", queue("a"), queue("b")), queue("c")), REGISTRY)
    rm.node(vcore=100)
    run(rm, "one", vcore=2)
    rm.pass_time(10)
    rm.reload(config())
    assert used(rm, "user", "ann") == pytest.approx(20)
    rm.pass_time(10)
    rm.reload(config(by="user, queue"))
    assert used(rm, "user", "ann") == pytest.approx(40)
    with pytest.raises(ValueError, match="usage_by of the policy does not name 'group'"):
        used(rm, "group", "staff")
    rm.reload(configuration(queue("p", queue("a"), queue("b")), queue("c")))
    with pytest.raises(ValueError, match="set usage_by and half_life of the policy to read usage by user"):
        used(rm, "user", "ann")
    assert rm.find_queue("root.c").observer is None


def test_new_queues_count_too() -> None:
    rule = [{"name": "user", "create": True}]
    rm = RM(configuration(leaf("c"), placementrules=rule), REGISTRY)
    rm.node(vcore=10)
    rm.app("app", "", user="ann")
    rm.ask("app", vcore=2)
    rm.schedule()
    rm.pass_time(10)
    assert used(rm, "queue", "root.ann") == pytest.approx(20)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"by": "user, nobody"}, "'nobody' is no kind of owner; known: user, group, queue, tag:TAG"),
        ({"seconds": 0}, "it needs a half_life"),
    ],
)
def test_invalid_kinds_are_reported(options: Mapping[str, Any], fault: str) -> None:
    rm = rm_with(**options)
    (failure,) = rm.failures()
    assert "reading its usage_by" in failure
    assert fault in failure


# -- sessions and restarts ---------------------------------------------------------------------------------


def test_usage_continues_in_the_next_session() -> None:
    rm = rm_with(seconds=100)
    run(rm, "one", vcore=4)
    run(rm, "two", user="bob", vcore=1)
    rm.pass_time(30)
    before = used(rm, "user", "ann"), used(rm, "user", "bob")
    start = rm.clock.now() // SECOND - 30
    again = RM(config(seconds=100), scheduler=rm.scheduler)
    assert (used(again, "user", "ann"), used(again, "user", "bob")) == pytest.approx(before)
    again.app("one", "root.c", user="ann")
    tags = {"creationTime": str(start)}
    running = [Allocation("task-one", "one", "u", "n1", Resource({"vcore": 4}), allocation_tags=tags)]
    again.node("n1", vcore=100, existing=running)
    assert used(again, "user", "ann") == pytest.approx(before[0]), "what still runs does not count twice"
    again.pass_time(100)
    assert used(again, "user", "bob") == pytest.approx(before[1] / 2)
    assert used(again, "user", "ann") == pytest.approx(before[0] / 2 + 4 * 100 / LN2 / 2)


def credit(user: str, begin: int, end: int, vcores: float, **keys: Any) -> UsageCredit:
    """Return usage of so many vcores in a span of seconds."""
    service = {"vcore": round(vcores * (end - begin) * 1000)}
    return UsageCredit("rm", "default", "root.p.b", user, begin * SECOND, end * SECOND, service, **keys)


def scheduler_at(seconds: float) -> Scheduler:
    clock = ManualClock()
    clock.advance(seconds)
    return Scheduler(REGISTRY, clock)


def test_usage_before_the_start_decays_to_now() -> None:
    scheduler = scheduler_at(1000)
    ann = credit("ann", 800, 900, 3, groups=("staff",), tags={"account": "bio"})
    scheduler.credit_usage((ann,), 900 * SECOND)
    rm = rm_with(scheduler, seconds=100)
    whole = 3 * 100 / LN2 * (0.5 - 0.25)
    owners = [("user", "ann"), ("group", "staff"), ("tag:account", "bio")]
    for kind, name in [*owners, *(("queue", path) for path in ("root", "root.p", "root.p.b"))]:
        assert used(rm, kind, name) == pytest.approx(whole)
    assert used(rm, "queue", "root.c") == 0


def test_usage_before_the_start_counts_for_policies_of_later_configurations() -> None:
    scheduler = scheduler_at(100)
    scheduler.credit_usage((credit("ann", 0, 50, 1),), 50 * SECOND)
    rm = RM(configuration(queue("p", queue("a"), queue("b")), queue("c")), scheduler=scheduler)
    rm.reload(config())
    assert used(rm, "user", "ann") == pytest.approx(50)


def test_usage_belongs_to_its_resource_manager_and_partition() -> None:
    scheduler = scheduler_at(100)
    scheduler.credit_usage((credit("ann", 0, 50, 1),), 50 * SECOND)
    text = document(partition(leaf("c")), partition(leaf("c"), name="other"))
    for rm_id in ("rm", "other"):
        RM(text, scheduler=scheduler, rm_id=rm_id)
    partitions = [one.partition for rm_id in ("rm", "other") for one in scheduler.partitions(rm_id)]
    leaves = filter(None, (one.queue("root.c") for one in partitions))
    found = [leaf.order.usage.recent("user", "ann") for leaf in leaves]
    assert found == [{"vcore": pytest.approx(50)}, {}, {}, {}]


@pytest.mark.parametrize("is_late", [False, True])
def test_usage_that_is_credited_late_counts_as_if_it_had_come_in_time(is_late: bool) -> None:
    """A task of bob from 500 s on is known until 900 s, and goes on at the start, at 1,000 s."""
    scheduler = scheduler_at(1000)
    known = (credit("ann", 800, 900, 3), credit("bob", 500, 900, 2)), 900 * SECOND
    scheduler.credit_usage(*((), 1000 * SECOND) if is_late else known)
    rm = rm_with(scheduler, seconds=100)
    rm.app("job", queue_name="root.p.b", user="bob")
    tags = {"creationTime": "500"}
    task = Allocation("task", "job", "uuid", "n9", Resource(vcore=2), allocation_tags=tags)
    rm.node("n9", vcore=10, existing=[task])
    rm.pass_time(50)
    if is_late:
        assert used(rm, "user", "ann") == 0
        scheduler.credit_usage(*known)
    rm.pass_time(50)
    assert used(rm, "user", "ann") == pytest.approx(3 * 100 / LN2 * (0.25 - 0.125))
    assert used(rm, "user", "bob") == pytest.approx(2 * 100 / LN2 * (1 - 2**-6))


def test_usage_needs_a_span_of_time() -> None:
    with pytest.raises(ValueError, match="usage needs a span of time: it ends at 5000000000"):
        credit("ann", 5, 5, 1)


BUCKET = 10


@pytest.mark.parametrize("seed", range(5))
def test_a_restart_changes_usage_by_less_than_a_bucket(seed: int) -> None:
    """Tasks start and end at random; at a restart, buckets of service are credited and the rest recovered."""
    drawn, half_life = random.Random(seed), 60.0
    kept = rm_with(seconds=half_life)
    service: dict[tuple[str, str, int], int] = {}
    ends: dict[str, int] = {}
    users: dict[str, str] = {}
    restart = 300
    for second in range(restart):
        if drawn.random() < 0.3:
            app_id, user = f"app-{second}", drawn.choice(["ann", "bob", "eve"])
            run(kept, app_id, drawn.choice(["root.c", "root.p.b"]), user, drawn.choice(["", "bio"]), vcore=1)
            ends[app_id], users[app_id] = second + drawn.randint(1, 100), user
        for app_id in [one for one, end in ends.items() if end == second]:
            kept.release(app_id)
            del ends[app_id]
        for app_id in ends:
            app = kept.find_app(app_id)
            assert app.queue is not None
            bucket = second - second % BUCKET
            key = app.queue.path, f"{users[app_id]}/{app.tags.get('account', '')}", bucket
            service[key] = service.get(key, 0) + 1000
        kept.pass_time(1)
    scheduler = scheduler_at(restart + 20)
    credits = []
    for (path, owner, bucket), amount in service.items():
        user, account = owner.split("/")
        span = bucket * SECOND, (bucket + BUCKET) * SECOND
        tags = {"account": account} if account else {}
        groups = ("staff", f"of-{user}")
        credits.append(UsageCredit("rm", "default", path, user, *span, {"vcore": amount}, groups, tags))
    scheduler.credit_usage(tuple(credits), restart * SECOND)
    again = RM(config(seconds=half_life), scheduler=scheduler)
    existing = []
    for app_id in ends:
        app = kept.find_app(app_id)
        assert app.queue is not None
        again.app(app_id, app.queue.path, user=app.user, groups=app.groups, **app.tags)
        tags = {"creationTime": app_id.removeprefix("app-")}
        existing.append(
            Allocation(f"task-{app_id}", app_id, "", "n1", Resource({"vcore": 1}), allocation_tags=tags)
        )
    again.node("n1", vcore=100, existing=existing)
    kept.pass_time(20)
    for later in (0, 15, 200):
        for rm in (kept, again):
            rm.pass_time(later)
        for kind, name in [("user", "ann"), ("user", "eve"), ("group", "staff"), ("tag:account", "bio")]:
            wanted = used(kept, kind, name)
            assert used(again, kind, name) == pytest.approx(wanted, rel=2 ** (BUCKET / half_life) - 1)
        for path in ("root", "root.c", "root.p"):
            wanted = used(kept, "queue", path)
            assert used(again, "queue", path) == pytest.approx(wanted, rel=2 ** (BUCKET / half_life) - 1)


# -- memory ------------------------------------------------------------------------------------------------


class Owner:
    """An application, as far as usage by owner reads it."""

    groups, tags, chain = (), dict[str, str](), ()

    def __init__(self, user: str) -> None:
        self.user = user
        self.allocated: dict[str, int] = {}


def test_owners_whose_usage_has_decayed_are_forgotten() -> None:
    clock = ManualClock()
    usage = OwnerUsage(clock.now)
    usage.use([(60.0, "user")], [])
    heavy: Any = Owner("heavy")
    usage.note(heavy)
    heavy.allocated["vcore"] = 5
    most = 0
    for number in range(20_000):
        one: Any = Owner(f"user-{number}")
        usage.note(one)
        one.allocated["vcore"] = 1
        clock.advance(0.2)
        usage.note(one)
        one.allocated.clear()
        most = max(most, usage.size)
    # A minute has 300 of them, and the first are forgotten when a dozen half-lives have passed.
    assert ROOMY < most < 10_000
    assert usage.recent((60.0, "user"), "user-1") == {}
    assert usage.recent((60.0, "user"), "user-19999")["vcore"] == pytest.approx(0.2, rel=1e-2)
    assert usage.recent((60.0, "user"), "heavy")["vcore"] == pytest.approx(5 * 60 / LN2)
