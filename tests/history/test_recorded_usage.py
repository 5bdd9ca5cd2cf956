"""Usage of a recorded core: equal to what the rows of its allocations say, also after kills."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from typing import Any

import pytest

from tests.core.kit import configuration, queue
from tests.history.recorded_core import RecordedCore
from tests.history.test_recording import BEGIN, end_recovery, report
from tests.history.test_recording import restarted as killed
from tests.history.test_recording import work as start
from yunikorn.clock import MILLISECOND, SECOND
from yunikorn.interface.messages import Allocation
from yunikorn.resources import Resource
from yunikorn_history.history_tables import LEVELS, PREEMPTED
from yunikorn_history.session_recovery import QUIET

CONFIG = configuration(queue("a"), queue("b"))
NODE = {"vcore": 1_000_000}


def work(core: RecordedCore, rng: random.Random, number: int) -> None:
    """Submit, resize or release something."""
    core.rm.pass_time(rng.choice((0.007, 1.5, 40, 200, 4_000)))
    running = [*core.rm.running.values()]
    chance = rng.random()
    if chance < 0.4 or not running:
        name = f"app-{number}"
        core.rm.app(name, f"root.{rng.choice('ab')}", user=rng.choice(("ann", "bob")))
        core.rm.ask(name, name, rng.randrange(1, 4), vcore=rng.randrange(1, 9))
    else:
        one = rng.choice(running)
        if chance < 0.55:
            size = Resource(vcore=rng.randrange(1, 9))
            found = Allocation(one.allocation_key, one.application_id, one.uuid, "n", size)
            core.rm.update(allocations=[found])
        else:
            core.rm.release(one.application_id, one.uuid)
    core.rm.schedule()


def restarted(core: RecordedCore, rng: random.Random) -> RecordedCore:
    """Kill a core, and report most of what ran to another one after a while."""
    core.close()
    partition = core.scheduler.all_partitions()[0][1].partition
    new = RecordedCore(core.location, CONFIG, now=core.clock.now() + rng.choice((1, 9_000)) * SECOND)
    existing = []
    for app in partition.applications.values():
        new.rm.app(app.id, app.queue_name or app.chain[0].path, user=app.user)
        for one in app.allocations.values():
            if rng.random() < 0.8:
                existing.append(Allocation(one.key, app.id, one.uuid, "n", one.resource))
    new.rm.node("n", existing=existing, capacity=NODE)
    new.rm.running.update({one.uuid: one for one in existing})
    new.rm.schedule()
    return new


def parts_of_allocations(core: RecordedCore, until: int) -> Counter[Any]:
    """Return service and tasks that follow from the rows of allocations."""
    found: Counter[Any] = Counter()
    apps = {app["id"]: (app["queue"], app["user"]) for app in core.rows("applications")}
    for row in core.rows("allocations"):
        owner, preempted = apps[row["app"]], row["flags"] & PREEMPTED
        ended = until if row["ended"] is None else row["ended"]
        for level, length in [*LEVELS.items()][1:]:
            times = {"started": row["placed"], "ended": row["ended"]}
            for name, time in times.items():
                if time is not None:
                    found[level, time - time % length, owner, name] += 1
            since = row["placed"]
            for end, size in [*(row["sizes"] or []), (ended, row["shape"])]:
                for begin in range(since - since % length, end, length):
                    part = max(0, min(end, begin + length) - max(since, begin))
                    found[level, begin, owner, "service"] += part * size.get("vcore", 0)
                since = end
        assert not preempted
    return +found


@pytest.mark.parametrize("seed", range(3))
def test_usage_follows_from_the_rows_of_allocations(location: str, seed: int) -> None:
    rng = random.Random(seed)
    core = RecordedCore(location, CONFIG)
    core.rm.node("n", capacity=NODE)
    for number in range(60):
        work(core, rng, number)
        if rng.random() < 0.7:
            core.write()
        if rng.random() < 0.1:
            core = restarted(core, rng)
    core.write()
    core.rm.pass_time(2 * QUIET / 1000)
    core.write(ends=True)
    found: Counter[Any] = Counter()
    for row in core.rows("usage"):
        at = row["level"], row["time"], (row["queue"], row["user"])
        found[*at, "service"] += row["data"]["service"].get("vcore", 0)
        for name in ("started", "ended"):
            found[*at, name] += row["data"].get(name, 0)
    assert len(found) > 50
    assert +found == parts_of_allocations(core, core.clock.now() // MILLISECOND)
    core.close()


def test_an_estimated_end_that_is_taken_back_counts_once(location: str) -> None:
    core = RecordedCore(location)
    start(core, 1)
    core.write()
    (kept,) = core.rm.running
    after = killed(core)
    after.rm.node("n2", vcore=1000)
    after.rm.schedule(0)
    end_recovery(after)
    after.write(ends=True)
    report(after, kept)
    after.write(ends=True)
    usage = [one["data"] for one in after.rows("usage") if one["level"] == 3]
    assert "ended" not in usage[-1]
    after.clock.set(after.clock.now() + 5 * SECOND)
    after.rm.release("etl-2026-11-27", kept)
    after.rm.schedule(0)
    after.write(ends=True)
    (day,) = [one["data"] for one in after.rows("usage") if one["level"] == 3]
    ran = after.clock.now() // MILLISECOND - BEGIN
    assert day == {"started": 1, "ended": 1, "service": {"vcore": 1000 * ran}}
    after.close()


def total_usage(core: RecordedCore) -> dict[str, int]:
    """Return service and tasks of all days."""
    found: Counter[str] = Counter()
    for row in core.rows("usage"):
        if row["level"] == 3:
            found["service"] += row["data"]["service"].get("vcore", 0)
            found.update({name: row["data"].get(name, 0) for name in ("started", "ended")})
    return +found


def resize(core: RecordedCore, rng: random.Random, *, is_recorded: bool = False) -> None:
    """Change the size of the only task after a while."""
    (one,) = core.rm.running.values()
    core.rm.pass_time(rng.choice((0, 0.001, 0.9, 3, 61)))
    size = Resource(vcore=rng.randrange(1, 9))
    core.rm.update(allocations=[Allocation("key", "app", one.uuid, "n", size)])
    core.rm.schedule(0)
    if is_recorded:
        core.record()


@pytest.mark.parametrize("seed", range(3))
def test_a_resize_beside_a_checkpoint(location: str, seed: int) -> None:
    """Resizes that are recorded late, while a checkpoint is counted, or lost with a kill right after it."""
    rng = random.Random(seed)
    core = RecordedCore(location, CONFIG)
    core.rm.node("n", capacity=NODE)
    core.rm.app("app", "root.a")
    core.rm.ask("app", "key", vcore=1)
    core.rm.schedule()
    for _ in range(12):
        core.rm.pass_time(rng.choice((0.5, 2, 70)))
        chance = rng.random()
        if chance < 0.6:
            # With half of them, the checkpoint is later than the resize, which waits in the buffer.
            core.write(meanwhile=partial(resize, core, rng, is_recorded=chance < 0.3))
        else:
            resize(core, rng)
            core.write(ends=rng.random() < 0.5)
        if rng.random() < 0.3:
            (one,) = core.rm.running.values()
            core.close()
            core = RecordedCore(location, CONFIG, now=core.clock.now() + rng.choice((0, 1, 100)) * SECOND)
            core.rm.app("app", "root.a")
            size = Resource(vcore=rng.randrange(1, 9))
            existing = [Allocation("key", "app", one.uuid, "n", size)]
            core.rm.node("n", existing=existing, capacity=NODE)
            core.rm.running.update({one.uuid: existing[0]})
            core.rm.schedule(0)
    core.write()
    core.rm.pass_time(2 * QUIET / 1000)
    core.write(ends=True)
    now = core.clock.now() // MILLISECOND
    (row,) = core.rows("allocations")
    since, service = row["placed"], 0
    for until, size in [*(row["sizes"] or []), (now, row["shape"])]:
        assert until >= since
        service += (until - since) * size["vcore"]
        since = until
    assert row["flags"] == 0
    assert total_usage(core) == {"started": 1, "service": service}
    core.close()


def test_an_end_after_a_resize_is_not_before_it_though_the_clock_was_set_back(location: str) -> None:
    core = RecordedCore(location)
    start(core, 1)
    (uuid,) = core.rm.running
    core.rm.pass_time(10)
    core.rm.update(allocations=[Allocation("task", "etl-2026-11-27", uuid, "n1", Resource(vcore=4000))])
    core.rm.schedule(0)
    core.write(ends=True)
    after = killed(core, -5)
    after.rm.app("etl-2026-11-27", user="ann", groups=["dev", "all"], team="blue")
    existing = [Allocation("task", "etl-2026-11-27", uuid, "n1", Resource(vcore=4000))]
    after.rm.node("n1", vcore=10_000, existing=existing)
    after.rm.release("etl-2026-11-27", uuid)
    after.rm.schedule(0)
    after.write(ends=True)
    (row,) = after.rows("allocations")
    assert row["ended"] == BEGIN + 10_000
    assert after.rows("applications")[0]["service"] == {"vcore": 10_000_000}
    assert total_usage(after) == {"started": 1, "ended": 1, "service": 10_000_000}
    after.close()
