"""Series: means of capacity and guarantee that change, and tasks that are counted without a sample."""

from __future__ import annotations

import asyncio
import json

from tests.history.test_recorded_core import PARTITION, QUEUES, TREE, USERS, Reader, Recording
from yunikorn_history.history_tables import LEVELS
from yunikorn_history.sampled_series import merged_data


def test_an_hour_has_the_mean_of_capacity_and_guarantee_beside_the_latest() -> None:
    one = Recording(TREE)
    one.rm.node("n", memory=100)
    one.rm.app("app", "root.a.y")
    one.rm.ask("app", "k", 1, memory=1)
    one.rm.schedule()
    for _ in range(9):
        one.sample()
    one.start()
    one.rm.change_node("n", memory=20)
    one.rm.reload(TREE.replace('{"memory": "4"}', '{"memory": "14"}'))
    one.sample()
    [whole] = one.series(2, PARTITION).values()
    assert (whole["n"], whole["capacity"]) == (10, {"memory": 20})
    assert whole["mean"] == {"capacity": {"memory": 92}}
    [leaf] = [data for (name, _), data in one.series(2, QUEUES).items() if name == "root.a.y"]
    assert (leaf["guaranteed"], leaf["mean"]) == ({"memory": 14}, {"guaranteed": {"memory": 5}})
    both = json.loads(merged_data(PARTITION, [json.dumps(whole)] * 2))
    assert (both["capacity"], both["mean"]["capacity"]) == ({"memory": 40}, {"memory": 184})


def test_what_was_placed_after_the_latest_sample_is_counted_with_the_rows_of_the_allocations() -> None:
    one = Recording(TREE)
    one.rm.node("n", memory=100)
    one.rm.app("app", "root.a.y", user="ann")
    one.sample()
    one.rm.ask("app", "k", 5, memory=1)
    one.rm.pass_time(70)
    one.rm.schedule()
    one.commit()
    for kind in (QUEUES, USERS, PARTITION):
        for level in LEVELS:
            rows = [data for data in one.series(level, kind).values() if data.get("started")]
            assert {data["started"] for data in rows} == {5}
            assert {sum(data["waits"].values()) for data in rows} == {5}
    [leaf] = [data for (name, _), data in one.series(2, QUEUES).items() if name == "root.a.y"]
    assert leaf["guaranteed"] == {"memory": 4}
    one.start()
    one.sample(10)
    [minute] = [data for data in one.series(1, PARTITION).values() if data.get("started")]
    assert (minute["n"], minute["used"], minute["started"]) == (1, {"memory": 5}, 5)


def test_a_sample_that_is_read_after_the_next_minute_has_begun_belongs_to_its_own() -> None:
    one = Recording(TREE)
    one.rm.node("n", memory=100)
    one.rm.app("app", "root.b")
    asyncio.run(one.part.sample(Reader(one.scheduler)))
    late = one.part._samples.pop()
    for number in range(2):
        one.rm.ask("app", f"k-{number}", 1, memory=1)
        one.rm.schedule()
        one.commit()
        one.rm.pass_time(60)
    one.part._samples.append(late)
    one.commit()
    found = [data for _, data in sorted(one.series(1, PARTITION).items())]
    assert [(data["n"], data["started"]) for data in found] == [(1, 1), (0, 1)]
