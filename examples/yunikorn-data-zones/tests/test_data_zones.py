"""Tests that tasks run where their data is, and that what a task needs is looked up once per decision."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import yunikorn_data_zones
from yunikorn_data_zones import CopySlots, DataZones

from yunikorn_testing import (
    AskSample,
    MakeScheduler,
    PermitPolicyContract,
    PredicateContract,
    application,
    ask,
    assert_pending_because,
    node,
)

CATALOGUE = Path(__file__).with_name("data.json")


class TestDataZones(PredicateContract):
    """Contract test of predicates."""

    predicate = DataZones(CATALOGUE)

    def asks(self) -> Sequence[AskSample]:
        """Return requests for known and unknown datasets."""
        return [ask(f"data {one}", vcore=1, tags={"data": one}) for one in ("genome", "images", "x", "")]


class TestCopySlots(PermitPolicyContract):
    """Contract test of permit policies."""

    policy = CopySlots(CATALOGUE, 1)


def configuration(slots: int = 1) -> str:
    """Return a configuration with both plugins."""
    root = {"name": "root", "submitacl": "*", "queues": [{"name": "default"}]}
    catalogue = {"catalogue": str(CATALOGUE)}
    partition = {
        "name": "default",
        "predicates": [{"name": "data-zones", **catalogue}],
        "permits": [{"name": "copy-slots", **catalogue, "slots": slots}],
        "queues": [root],
    }
    return json.dumps({"partitions": [partition]})


def test_tasks_run_where_all_of_their_data_is(scheduler: MakeScheduler) -> None:
    nodes = [node(zone, {"zone": zone}, vcore=4) for zone in "abc"]
    cluster = scheduler(configuration(9), *nodes, plugins=[yunikorn_data_zones])
    cluster.submit(application("both"), ask("task", vcore=1, tags={"data": "images, genome"}))
    cluster.submit(application("lost"), ask("task", vcore=1, tags={"data": "notes"}))
    assert [(one.application, one.node) for one in cluster.run()] == [("both", "b")]
    assert_pending_because(cluster, "lost", "its zone has not all of notes")


def test_only_so_many_tasks_copy_a_dataset(scheduler: MakeScheduler) -> None:
    cluster = scheduler(configuration(2), node("b", {"zone": "b"}, vcore=9), plugins=[yunikorn_data_zones])
    cluster.submit(
        application("app"), *(ask(f"t{one}", vcore=1, tags={"data": "images"}) for one in range(3))
    )
    assert len(cluster.run()) == 2
    cluster.finish("app", "t0")
    cluster.run()
    cluster.advance(60)
    cluster.run()
    assert [one.ask for one in cluster.running("app")] == ["t1", "t2"]


def test_what_a_task_needs_is_looked_up_once_per_decision(
    scheduler: MakeScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[str] = []
    real = yunikorn_data_zones.wanted

    def counting(task: AskSample, catalogue: yunikorn_data_zones.Catalogue) -> yunikorn_data_zones.Wanted:
        looked_up.append(task.key)
        return real(task, catalogue)

    monkeypatch.setattr(yunikorn_data_zones, "wanted", counting)
    nodes = [node(f"n{number}", {"zone": "ab"[number == 7]}, vcore=4) for number in range(8)]
    cluster = scheduler(configuration(9), *nodes, plugins=[yunikorn_data_zones])
    cluster.submit(application("app"), ask("task", vcore=1, tags={"data": "images"}))
    assert [one.node for one in cluster.run()] == ["n7"]
    # Once for eight nodes and the permit policy, and once for its books.
    assert looked_up == ["task", "task"]
