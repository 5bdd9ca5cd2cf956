"""Usage of a recorded core: equal to what the rows of its allocations say, also after kills."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from tests.core.kit import configuration, queue
from tests.history.recorded_core import RecordedCore
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
