"""Series, causes of waits, nodes, configurations, audit and faults: what a recording samples."""

from __future__ import annotations

import asyncio
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import pytest
import sqlalchemy as sa

from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn.accounting.event_batch import EventBatch
from yunikorn.api import Ask, Node, Predicate
from yunikorn.clock import ManualClock
from yunikorn.framework.event_wants import EVERYTHING
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import NodeAction
from yunikorn.interface.scheduler import Scheduler
from yunikorn_history.core_sample import AT_ONCE, take_sample
from yunikorn_history.history_tables import (
    AUDIT,
    CONFIGS,
    DAY,
    FAULTS,
    LEVELS,
    METADATA,
    MINUTE,
    NODES,
    SERIES,
)
from yunikorn_history.open_rows import OpenApplication
from yunikorn_history.recorded_core import MOST_SAMPLES, KeptRows, RecordedCore
from yunikorn_history.recorded_parts import RecordingContext
from yunikorn_history.rows import Ids, RowBatch
from yunikorn_history.sampled_series import WAIT_BOUNDS, wait_bound

START = 20_000 * DAY // 1000 + 7 * 3600
"""Time of the first event (s)."""


class Reader:
    """Reader of a core without a thread."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler

    async def read(self, reading: Any) -> Any:
        slices = reading(self.scheduler)
        while True:
            try:
                next(slices)
            except StopIteration as end:
                return end.value


class Recording:
    """A core with a receiver, and the part of a recording, with a database in memory."""

    failures_seen = 0
    wanted = EVERYTHING

    def __init__(self, config: str = "", registry: Registry | None = None, rm_id: str = "rm") -> None:
        self.engine = sa.create_engine("sqlite://")
        METADATA.create_all(self.engine)
        self.names, self.shapes = Ids("names", {}), Ids("shapes", {})
        self.ids: dict[str, int] = defaultdict(int)
        self.apps: dict[tuple[str, str, str], OpenApplication] = {}
        clock = ManualClock(START * 10**9)
        registry = registry or Registry.load(third_party=False)
        self.scheduler = Scheduler(registry, clock, event_receiver=self)
        self.start()
        self.rm = RM(config, scheduler=self.scheduler, rm_id=rm_id)

    def start(self) -> None:
        """Begin, or continue after a restart of the recorder."""
        self.context = RecordingContext(
            self.names,
            self.shapes,
            self.new_id,
            lambda rm, partition, app_id: self.apps.get((rm, partition, app_id)),
            lambda app: None,
            frozenset(),
        )
        self.part = RecordedCore(self.context, KeptRows.read(self.find, self.scheduler.clock.now() // 10**6))

    def new_id(self, table: str) -> int:
        """Return the next id of a table."""
        self.ids[table] += 1
        return self.ids[table]

    def append(self, batch: EventBatch) -> None:
        """Receive events."""
        self.part.observe(batch.entries, batch.source)

    def configure(self, rm_id: str, settings: Mapping[str, str] | None) -> bool:
        """Accept settings."""
        return True

    def sample(self, seconds: float = 60) -> None:
        """Sample the core after some seconds, and write the rows."""
        self.rm.pass_time(seconds)
        asyncio.run(self.part.sample(Reader(self.scheduler)))
        self.commit()

    def commit(self) -> None:
        """Write the rows."""
        batch = RowBatch()
        for table, row in self.part.rows(self.scheduler.clock.now() // 10**6):
            batch.add(table, row)
        self.names.move_to(batch)
        self.shapes.move_to(batch)
        with self.engine.begin() as connection:
            for name, rows in batch.rows.items():
                kind = METADATA.tables[name]
                values = [dict(zip(kind.c.keys(), row, strict=True)) for row in rows]
                connection.execute(kind.insert().prefix_with("OR REPLACE"), values)

    def find(self, query: sa.Select[Any]) -> Sequence[Any]:
        """Return rows."""
        with self.engine.connect() as connection:
            return connection.execute(query).all()

    def texts(self) -> dict[int, str]:
        """Return the texts of names."""
        return {0: "", **{number: text for number, text in self.find(sa.select(METADATA.tables["names"]))}}

    def name(self, number: int) -> str:
        """Return the text of a name."""
        return self.texts()[number]

    def series(self, level: int, kind: int) -> dict[tuple[str, int], dict[str, Any]]:
        """Return the series of a level and a kind, by name and time."""
        found = self.find(sa.select(SERIES).where(SERIES.c.level == level, SERIES.c.kind == kind))
        texts = self.texts()
        return {(texts[row.name], row.time): json.loads(row.data) for row in found}

    def cause(self, app_id: str = "app") -> str:
        """Return the cause for which an application waits at present."""
        sample = asyncio.run(Reader(self.scheduler).read(take_sample))
        return next((one.cause for one in sample.waits if one.app_id == app_id), "")


QUEUES, USERS, SERIES_OF_NODES, PARTITION = 1, 2, 3, 4
TREE = configuration(
    {
        "name": "a",
        "queues": [
            queue("x", resources={"max": {"memory": "8"}}),
            queue("y", resources={"guaranteed": {"memory": "4"}}),
        ],
    },
    queue("b"),
)


def test_use_and_waits_of_queues_users_and_the_partition() -> None:
    one = Recording(TREE)
    one.rm.node("n1", memory=10, vcore=10)
    one.rm.node("n2", memory=10)
    one.rm.app("app", "root.a.x", user="ann")
    one.rm.ask("app", "k", 5, memory=2, vcore=1)
    one.rm.pass_time(3)
    one.rm.schedule()
    one.sample()
    time = (START + 63) * 1000 // MINUTE * MINUTE
    waits = {wait_bound(3000): 4}
    found = one.series(1, QUEUES)
    leaf = {
        "n": 1,
        "used": {"memory": 8, "vcore": 4},
        "pending": {"memory": 2, "vcore": 1},
        "running": 1.0,
        "waiting": 1.0,
        "started": 4,
        "waits": waits,
    }
    assert found == {
        ("root.a.x", time): {**leaf, "max": {"memory": 8}},
        ("root.a", time): leaf,
        ("root", time): leaf,
    }
    del leaf["pending"]
    assert one.series(1, USERS) == {("ann", time): leaf}
    [whole] = one.series(1, PARTITION).values()
    # The queue has no quota left, while the cluster has memory.
    assert whole["idle"] == {"quota": {"memory": 2 * MINUTE, "vcore": MINUTE}}
    assert whole["capacity"] == {"memory": 20, "vcore": 10}
    assert whole["nodes"] == 2
    assert one.series(1, SERIES_OF_NODES) == {}


def test_nodes_have_hours_and_days_in_which_something_runs_or_they_are_drained() -> None:
    one = Recording(TREE)
    for number in range(3):
        one.rm.node(f"n{number}", memory=10)
    one.rm.app("app", "root.b")
    one.rm.ask("app", "k", 1, memory=4)
    one.rm.schedule()
    one.rm.change_node("n2", NodeAction.DRAIN_NODE)
    for _ in range(10):
        one.sample()
    one.rm.change_node("n2", NodeAction.DRAIN_TO_SCHEDULABLE)
    for _ in range(10):
        one.sample()
    found = {name: data for (name, _), data in one.series(2, SERIES_OF_NODES).items()}
    [running] = {one.node_id for one in one.rm.running.values()}
    assert sorted(found) == sorted({running, "n2"})
    assert found[running]["used"] == {"memory": 4}
    assert found[running]["schedulable"] == 1
    assert 0 < found["n2"]["schedulable"] < 1
    assert found["n2"]["capacity"] == {"memory": 10}


def samples_of(one: Recording) -> dict[int, int]:
    """Return the number of samples in each hour of the partition."""
    return {time // LEVELS[2] % 24: data["n"] for (_, time), data in one.series(2, PARTITION).items()}


def test_an_hour_that_comes_again_because_the_clock_was_set_back_before_the_start_continues_its_rows() -> (
    None
):
    first = Recording(TREE)
    for _ in range(130):
        first.sample()
    again = Recording(TREE)
    again.engine, again.names, again.shapes = first.engine, first.names, first.shapes
    again.start()
    before = samples_of(first)
    for _ in range(100):
        again.sample()
    assert sum(samples_of(again).values()) == 230
    assert all(number >= before[hour] for hour, number in samples_of(again).items())


def drawn(one: Recording, rng: random.Random) -> Iterator[None]:
    """Run random work, and stop at each sample."""
    queues = ["root.a.x", "root.a.y", "root.b"]
    for number in range(6):
        one.rm.node(f"n{number}", memory=20, vcore=10)
    for number in range(50):
        app = f"app-{number}"
        one.rm.app(app, rng.choice(queues), user=rng.choice(["ann", "bob", "ann.smith"]))
        one.rm.ask(app, "k", rng.randrange(1, 9), memory=rng.randrange(1, 9), vcore=rng.randrange(3))
        one.rm.pass_time(rng.choice((0.3, 5, 100)))
        one.rm.schedule()
        for running in [*one.rm.running.values()][: rng.randrange(9)]:
            one.rm.release(running.application_id, running.uuid)
        yield


@pytest.mark.parametrize("seed", range(4))
def test_sums_over_leaves_and_over_users_are_those_of_the_partition_and_hours_follow_from_minutes(
    seed: int,
) -> None:
    one, rng = Recording(TREE), random.Random(seed)
    for _ in drawn(one, rng):
        one.sample(rng.choice((20, 60, 60, 200)))
        if rng.random() < 0.2:
            one.start()
    leaves = {"root.a.x", "root.a.y", "root.b"}
    minutes = {kind: one.series(1, kind) for kind in (QUEUES, USERS, PARTITION)}
    assert len(minutes[PARTITION]) > 30
    for (_, time), whole in minutes[PARTITION].items():
        of_queues = [data for (name, at), data in minutes[QUEUES].items() if at == time and name in leaves]
        of_users = [data for (_, at), data in minutes[USERS].items() if at == time]
        for parts in (of_queues, of_users):
            assert added(parts, "used") == pytest.approx(whole.get("used", {}), abs=0.01)
            assert added(parts, "waits") == whole.get("waits", {})
            for field in ("running", "waiting", "started"):
                total = sum(one.get(field, 0) for one in parts)
                assert total == pytest.approx(whole.get(field, 0), abs=0.01)
        assert added(of_queues, "pending") == pytest.approx(whole.get("pending", {}), abs=0.01)
    for level, kind in product((2, 3), minutes):
        for (name, time), longer in one.series(level, kind).items():
            within = [
                data
                for (other, at), data in minutes[kind].items()
                if other == name and time <= at < time + LEVELS[level]
            ]
            assert added(within, "waits") == longer.get("waits", {})
            assert sum(data.get("started", 0) for data in within) == longer.get("started", 0)
            total = sum(data["n"] * data.get("running", 0) for data in within)
            assert total / longer["n"] == pytest.approx(longer.get("running", 0), abs=0.01)
            memory = sum(data["n"] * data.get("used", {}).get("memory", 0) for data in within)
            assert memory / longer["n"] == pytest.approx(longer.get("used", {}).get("memory", 0), abs=0.01)


def added(parts: Sequence[Mapping[str, Any]], field: str) -> dict[str, int]:
    """Return sums by key."""
    found: dict[str, int] = defaultdict(int)
    for part in parts:
        for key, value in part.get(field, {}).items():
            found[key] += value
    return {key: value for key, value in found.items() if value}


def test_a_sample_lets_the_core_work_on_after_a_few_objects() -> None:
    one = Recording(TREE)
    for number in range(120):
        one.rm.node(f"n{number}", memory=1)
        one.rm.app(f"app-{number}", "root.b")
    assert len([*take_sample(one.scheduler)]) >= 240 // AT_ONCE


@pytest.mark.parametrize("wait", [0, 1, 2, 3, 1000, 10**9, 10**30])
def test_a_wait_is_within_its_bucket(wait: int) -> None:
    bound = int(wait_bound(wait))
    assert bound == WAIT_BOUNDS[-1] or wait <= bound <= max(2, 1.5 * wait)


def test_the_idle_part_is_divided_among_the_causes_without_a_rest() -> None:
    one = Recording(TREE)
    one.rm.node("n", memory=100)
    one.rm.app("app", "root.a.x")
    one.rm.ask("app", "k", 1, memory=9)
    one.rm.app("big", "root.b")
    one.rm.ask("big", "k", 1, memory=101)
    one.rm.schedule()
    one.sample()
    [whole] = one.series(1, PARTITION).values()
    assert set(whole["idle"]) == {"quota", "nodes"}
    assert sum(amounts["memory"] for amounts in whole["idle"].values()) == 100 * MINUTE


def test_each_partition_of_each_resource_manager_has_series_of_its_own() -> None:
    one = Recording(TREE)
    other = RM(TREE, scheduler=one.scheduler, rm_id="other")
    for rm, memory in ((one.rm, 10), (other, 20)):
        rm.node("n", memory=memory)
        rm.app("app", "root.a.x", user="ann")
        rm.ask("app", "k", 1, memory=memory // 5)
        rm.schedule()
    for _ in range(11):
        one.sample()
    rows = one.find(sa.select(SERIES).where(SERIES.c.level == 3))
    names = ("root", "root.a", "root.a.x", "ann", "n", "")
    for rm_id, memory in (("rm", 10), ("other", 20)):
        mine = {one.name(row.name): json.loads(row.data) for row in rows if one.name(row.rm) == rm_id}
        assert set(mine) == set(names)
        assert {data["used"]["memory"] for data in mine.values()} == {memory // 5}
        assert (mine[""]["capacity"], mine[""]["nodes"]) == ({"memory": memory}, 1)
    assert {one.name(row.partition) for row in rows} == {"default"}


# -- causes ------------------------------------------------------------------------------------------------


def test_the_cause_of_a_quota_of_a_limit_and_of_a_full_cluster() -> None:
    limits = [{"limit": "", "users": ["ann"], "maxresources": {"memory": "2"}}]
    one = Recording(
        configuration(queue("a", resources={"max": {"memory": "5"}}), queue("b", limits=limits), queue("c"))
    )
    one.rm.node("n", memory=10)
    for app, path in (("quota", "a"), ("limit", "b"), ("nodes", "c")):
        one.rm.app(app, f"root.{path}", user="ann")
    one.rm.ask("quota", "k", 1, memory=6)
    one.rm.ask("limit", "k", 1, memory=3)
    one.rm.ask("nodes", "k", 1, memory=11)
    one.rm.schedule()
    assert [one.cause(app) for app in ("quota", "limit", "nodes")] == ["quota", "limit", "nodes"]


def test_the_cause_of_a_maximum_of_applications_and_of_a_stopped_queue() -> None:
    one = Recording(configuration(queue("a", maxapplications=1), queue("b")))
    one.rm.node("n", memory=10)
    for app in ("first", "second"):
        one.rm.app(app, "root.a")
        one.rm.ask(app, "k", 1, memory=1)
    one.rm.schedule()
    assert one.cause("second") == "application limit"
    one.scheduler.stop_queue("rm", "default", "root.a")
    assert one.cause("second") == "stopped"


def test_the_cause_of_predicates() -> None:
    class Never(Predicate):
        name = "never"

        def check(self, ask: Ask, node: Node) -> str | None:
            return "no"

    one = Recording(configuration(predicates=["never"]), with_plugins(predicates=[Never]))
    one.rm.node("n", memory=10)
    one.rm.app("app", "root.a")
    one.rm.ask("app", "k", 1, memory=1)
    one.rm.schedule()
    assert one.cause() == "predicates"


def test_waits_are_added_up_for_each_application() -> None:
    one = Recording(TREE)
    app = one.apps["rm", "default", "app"] = OpenApplication(1, "rm", "default", "app", 0, 0)
    one.rm.node("n", memory=100)
    one.rm.app("app", "root.a.x")
    one.rm.ask("app", "k", 1, memory=9)
    one.rm.schedule()
    one.sample(20)
    assert app.waits == {"quota": 20_000}
    for _ in range(3):
        one.sample()
    one.sample(1000)
    one.rm.change_node("n", memory=5)
    one.rm.reload(configuration({"name": "a", "queues": [queue("x")]}))
    one.rm.schedule()
    one.sample()
    assert app.waits == {"quota": 20_000 + 3 * MINUTE + 2 * MINUTE, "nodes": MINUTE}
    assert one.name(app.longest_wait) == "quota"


# -- nodes -------------------------------------------------------------------------------------------------


def nodes_of(one: Recording) -> dict[str, dict[str, Any]]:
    """Return the rows of nodes by name."""
    rows = [row._asdict() for row in one.find(sa.select(NODES))]
    return {one.name(row["name"]): row for row in rows}


def test_nodes_join_change_and_leave() -> None:
    one = Recording()
    one.rm.node("n", {"zone": "z"}, memory=10)
    one.rm.pass_time(5)
    one.rm.change_node("n", memory=12)
    one.rm.change_node("n", NodeAction.DRAIN_NODE)
    one.rm.pass_time(5)
    one.rm.change_node("n", NodeAction.DRAIN_TO_SCHEDULABLE)
    one.sample()
    one.scheduler.drain_node("rm", "default", "n")
    one.rm.change_node("n", NodeAction.DECOMMISSION)
    one.commit()
    row = nodes_of(one)["n"]
    assert (row["joined"], row["left"]) == (START * 1000, (START + 70) * 1000)
    assert json.loads(row["attributes"]) == {"zone": "z"}
    assert [change[1:] for change in json.loads(row["changes"])] == [
        ["capacity", '{"memory":10}'],
        ["drain", ""],
        ["resume", ""],
        ["drain", "node drained by an operator"],
    ]


def test_only_a_change_of_the_state_gets_the_message_of_an_operator() -> None:
    one = Recording()
    one.rm.node("n", memory=10)
    one.rm.change_node("n", NodeAction.DRAIN_NODE)
    one.rm.pass_time(5)
    one.scheduler.drain_node("rm", "default", "n")
    one.rm.change_node("n", memory=12)
    one.scheduler.undrain_node("rm", "default", "n")
    one.commit()
    changes = json.loads(nodes_of(one)["n"]["changes"])
    assert [change[1:] for change in changes] == [["drain", ""], ["capacity", '{"memory":10}']]


def test_nodes_of_several_resource_managers_with_the_same_name_have_rows_of_their_own() -> None:
    one = Recording()
    one.rm.node("n", memory=10)
    other = RM(configuration(), scheduler=one.scheduler, rm_id="other")
    other.node("n", memory=20)
    for _ in range(3):
        one.sample()
    other.change_node("n", NodeAction.DECOMMISSION)
    one.sample()
    rows = [row._asdict() for row in one.find(sa.select(NODES))]
    assert [(one.name(row["rm"]), row["left"] is None) for row in rows] == [("rm", True), ("other", False)]
    assert all(kind != "capacity" for row in rows for _, kind, _ in json.loads(row["changes"]))


def test_a_node_continues_its_row_after_a_restart_and_has_left_if_it_does_not_come_again() -> None:
    one = Recording()
    one.rm.node("stays", memory=10)
    one.rm.node("goes", memory=10)
    one.sample()
    one.start()
    one.rm = RM(scheduler=one.scheduler)
    one.rm.node("stays", memory=11)
    for _ in range(4):
        one.sample()
    rows = nodes_of(one)
    assert len(rows) == one.ids["nodes"] == 2
    assert rows["stays"]["left"] is None
    assert [kind for _, kind, _ in json.loads(rows["stays"]["changes"])] == ["capacity"]
    assert rows["goes"]["left"] is not None


# -- configurations, audit, faults -------------------------------------------------------------------------


def configs_of(one: Recording) -> list[tuple[str, str, str, str]]:
    """Return text, resource manager, source and changer of each configuration."""
    rows = one.find(sa.select(CONFIGS).order_by(CONFIGS.c.id))
    return [(row.text, one.name(row.rm), one.name(row.source), one.name(row.by)) for row in rows]


def test_a_configuration_is_kept_when_another_one_is_in_use() -> None:
    first, second = configuration(queue("a")), configuration(queue("b"))
    one = Recording(first)
    one.sample()
    one.sample()
    one.rm.reload(second)
    one.sample()
    one.start()
    one.sample()
    assert configs_of(one) == [
        (first, "rm", "resource manager", "rm"),
        (second, "rm", "resource manager", "rm"),
    ]


def entry(outcome: str, **more: Any) -> dict[str, Any]:
    """Return an entry of the audit log."""
    who = {"name": "ops", "role": "admin", "address": "127.0.0.1"}
    return {"who": who, "what": "apply configuration", "outcome": outcome, **more}


def test_the_operator_who_applied_a_configuration_is_named() -> None:
    one = Recording(configuration(queue("a")))
    one.sample()
    one.context.audited.append((one.scheduler.clock.now(), entry("begun", id=1)))
    one.rm.reload(configuration(queue("b")))
    one.sample(10)
    assert configs_of(one)[1][2:] == ("REST", "ops")
    assert one.find(sa.select(AUDIT)) == []
    one.context.audited.append(
        (one.scheduler.clock.now(), entry("done", before={"checksum": "a"}, after="\ud800"))
    )
    one.commit()
    [row] = one.find(sa.select(AUDIT))
    assert (one.name(row.operator), one.name(row.role), row.address) == ("ops", "admin", "127.0.0.1")
    assert (one.name(row.outcome), row.before, row.target) == ("done", '{"checksum":"a"}', "{}")


def test_faults_are_counted_over_restarts() -> None:
    class Broken(Predicate):
        name = "broken"

        def check(self, ask: Ask, node: Node) -> str | None:
            raise RuntimeError("broken")

    one = Recording(configuration(predicates=["broken"]), with_plugins(predicates=[Broken]))
    one.rm.node("n", memory=10)
    one.rm.app("app", "root.a")
    for number in range(3):
        one.rm.ask("app", f"k{number}", 1, memory=number + 1)
        one.rm.schedule()
    one.sample()
    one.sample()
    [row] = one.find(sa.select(FAULTS))
    assert row.count >= 1
    assert row.first == row.latest == (START + 60) * 1000
    assert "broken" in row.message
    one.start()
    one.sample()
    [again] = one.find(sa.select(FAULTS))
    assert (again.id, again.first, again.count) == (row.id, row.first, 2 * row.count)


def test_names_of_any_kind_do_no_harm() -> None:
    one = Recording(TREE)
    wild = '"; DROP TABLE names; -- \u00e9' * 3
    one.rm.node(wild, {wild: wild}, memory=2**62)
    one.rm.app(wild, "root.b", user="ann@example.org")
    one.rm.ask(wild, wild, 1, memory=2**61)
    one.rm.schedule()
    for _ in range(12):
        one.sample()
    assert len(one.series(2, USERS)) == len(one.series(2, SERIES_OF_NODES)) == 1
    assert len(nodes_of(one)) == 1


def test_half_an_hour_of_samples_waits_for_a_database() -> None:
    recording = Recording(configuration(queue("a")))
    for _ in range(MOST_SAMPLES + 20):
        recording.rm.pass_time(60)
        asyncio.run(recording.part.sample(Reader(recording.scheduler)))
    recording.commit()
    minutes = [one for one in recording.find(sa.select(SERIES)) if one[2] == 1]
    assert len(minutes) == MOST_SAMPLES
