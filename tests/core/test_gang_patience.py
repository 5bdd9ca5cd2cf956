"""The patience of Atomic gangs: each gang counts its own wait, from its first possible attempt."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.event_collector import EventCollector
from tests.core.gangs import GangRM
from tests.core.kit import document, partition, queue, with_plugins
from tests.core.test_atomic_gangs import PATIENCE, ClassedZone, cluster, end, fill, gang
from yunikorn import api
from yunikorn.clock import SECOND
from yunikorn.model.context import Timeouts
from yunikorn.model.node import Node

PERIODS = Timeouts(gang_patience=PATIENCE * SECOND, reservation=None)
LIMITS = [{"limit": "all", "users": ["*"], "maxresources": {"vcore": "8m"}}]


def crowded(nodes: int = 2, **keys: Any) -> GangRM:
    """Return an RM with two gangs of 8 vcore that wait behind 8 tasks and before many small asks."""
    rm = cluster(queue("a", **keys), queue("b"), nodes=nodes, timeouts=PERIODS)
    fill(rm, 8, "root.a")
    gang(rm, "first", 8)
    gang(rm, "second", 8)
    assert rm.schedule() == []
    rm.app("crowd", "root.a")
    rm.ask("crowd", "c", 100, vcore=1)
    return rm


@pytest.mark.parametrize(
    ("nodes", "keys"),
    [(2, {}), (4, {"resources": {"max": {"vcore": "8m"}}}), (4, {"limits": LIMITS})],
    ids=["nodes", "queue", "user"],
)
def test_gangs_of_one_size_wait_at_the_same_time(nodes: int, keys: dict[str, Any]) -> None:
    rm = crowded(nodes, **keys)
    rm.pass_time(PATIENCE)
    end(rm, "filler", 8)
    assert [app for app, _, _ in rm.schedule(1)] == ["first"] * 8
    # The patience of the second gang is over as well: it starts with the wait, not when the first is placed.
    end(rm, "first", 7)
    assert rm.schedule() == []
    end(rm, "first")
    assert [app for app, _, _ in rm.schedule(1)] == ["second"] * 8
    end(rm, "second", 2)
    assert [app for app, _, _ in rm.schedule()] == ["crowd"] * 2


@pytest.mark.parametrize("size", [8, 7])
def test_patience_of_a_later_gang_starts_at_its_arrival_whatever_its_size(size: int) -> None:
    rm = crowded()
    rm.remove_app("second")
    rm.pass_time(PATIENCE / 2)
    gang(rm, "late", size)
    assert rm.schedule() == []
    rm.remove_app("crowd")
    rm.app("crowd", "root.a")
    rm.ask("crowd", "c", 100, vcore=1)
    rm.pass_time(PATIENCE / 2)
    end(rm, "filler")
    assert rm.schedule() == []
    rm.remove_app("first")
    # A gang of equal size ahead of it does not change its wait.
    assert [app for app, _, _ in rm.schedule()] == ["crowd"]
    rm.pass_time(PATIENCE / 2)
    end(rm, "filler", 6)
    assert rm.schedule() == []


@pytest.mark.parametrize("hold", ["applications", "stopped", "order"])
def test_patience_does_not_start_before_a_gang_may_run(hold: str) -> None:
    keys: dict[str, Any] = {"maxapplications": 1} if hold == "applications" else {}
    if hold == "order":
        keys = {"properties": {"application.sort.policy": "stateaware"}}
    rm = cluster(queue("a", **keys), queue("b"), timeouts=PERIODS)
    rm.app("starting", "root.a")
    rm.ask("starting", "s", vcore=1)
    assert len(rm.schedule(1)) == 1
    fill(rm, 7)
    if hold == "stopped":
        rm.scheduler.stop_queue("rm", "default", "root.a")
    gang(rm, "app", 8)
    rm.pass_time(250)
    assert rm.schedule() == []
    rm.pass_time(30 if hold == "order" else PATIENCE)
    if hold == "stopped":
        rm.scheduler.start_queue("rm", "default", "root.a")
    rm.remove_app("starting")
    rm.app("crowd", "root.b")
    rm.ask("crowd", "c", 100, vcore=1)
    # This is the first attempt, and the gang is skipped.
    assert [app for app, _, _ in rm.schedule()] == ["crowd"]
    rm.pass_time(PATIENCE - 1)
    end(rm, "filler")
    assert [app for app, _, _ in rm.schedule()] == ["crowd"]
    rm.pass_time(1)
    end(rm, "filler")
    assert rm.schedule() == []


def test_patience_restarts_after_a_gang_was_incomplete() -> None:
    rm = crowded()
    rm.remove_app("second")
    rm.remove_app("crowd")
    rm.gang("third", "Atomic", vcore=8)
    rm.task("third", "most", "members", 7, vcore=1)
    rm.task("third", "last", "members", vcore=1)
    assert rm.schedule() == []
    rm.release_ask("third", "last")
    rm.pass_time(PATIENCE / 2)
    rm.task("third", "last", "members", vcore=1)
    assert rm.schedule() == []
    rm.pass_time(PATIENCE / 2)
    rm.remove_app("first")
    rm.app("crowd", "root.a")
    rm.ask("crowd", "c", 100, vcore=1)
    end(rm, "filler")
    assert [app for app, _, _ in rm.schedule()] == ["crowd"]
    rm.pass_time(PATIENCE / 2)
    end(rm, "filler")
    assert rm.schedule() == []


def test_each_waiting_gang_is_reported_and_one_of_each_size_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    collector = EventCollector()
    text = collector.text(partition(queue("a"), queue("b")))
    rm = GangRM(scheduler=collector.rm(partition(queue("a"))).scheduler, config=text, rm_id="gangs")
    for name in ("n1", "n2", "n3"):
        rm.node(name, vcore=3)
    tried: list[str] = []
    lend = Node.lend

    def note(node: Node, *amount: Any) -> None:
        tried.append(node.id)
        lend(node, *amount)

    monkeypatch.setattr(Node, "lend", note)
    for number in range(30):
        rm.gang(f"g{number}", "Atomic", vcore=9)
        rm.task(f"g{number}", "large", "members", 3, vcore=2)
        rm.task(f"g{number}", "wide", "members", vcore=3, priority=2)
    assert rm.schedule() == []
    # There is room for the wide member and two large ones, not for the third large one. They are tried in
    # their order and then the scarcest first; with 30 gangs, once.
    assert len(tried) == 6
    reason = (
        "the free resources are too fragmented; "
        "with the current quotas and nodes (vcore 9m in total) it cannot run at all"
    )
    for number in range(30):
        assert collector.messages(f"gang of g{number}") == [
            f"Gang of application 'g{number}' (4 members, vcore 9m) has no room: {reason}"
        ]


class Shy(api.Predicate):
    """Refuses members by a tag of each."""

    name = "shy"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        """Return a reason if the tag of the member says no."""
        return "shunned" if ask.tags.get("not") == node.id else None


def test_gangs_refused_individually_by_a_predicate_wait_at_the_same_time() -> None:
    text = document(partition(queue("a"), queue("b"), predicates=[{"name": "shy"}]))
    rm = GangRM(text, with_plugins(predicates=[Shy]), timeouts=PERIODS)
    rm.node("n1", vcore=4)
    rm.node("n2", vcore=4)
    fill(rm, 2)
    for app in ("first", "second"):
        rm.gang(app, "Atomic", vcore=4)
        rm.task(app, "m", "members", 4, vcore=1, tags={"not": "n2"})
    assert rm.schedule() == []
    rm.pass_time(PATIENCE)
    rm.app("crowd", "root.a")
    rm.ask("crowd", "c", 100, vcore=1)
    end(rm, "filler", 2)
    assert [app for app, _, _ in rm.schedule(1)] == ["first"] * 4
    end(rm, "first", 2)
    assert rm.schedule() == []


@pytest.mark.parametrize(
    ("size", "tags", "holds_back"),
    [
        (5, {"zone": "x"}, False),
        (4, {"zone": "x"}, True),
        (5, {}, True),
        (5, {"yunikorn.apache.org/requiredNode": "x1"}, False),
        (4, {"yunikorn.apache.org/requiredNode": "x1"}, True),
    ],
    ids=["zone too small", "zone", "no zone", "node too small", "node"],
)
def test_gang_refused_by_predicates_on_empty_nodes_holds_back_no_others(
    size: int, tags: dict[str, str], holds_back: bool
) -> None:
    text = document(partition(queue("a"), queue("b"), predicates=[{"name": "classed"}]))
    rm = GangRM(text, with_plugins(predicates=[ClassedZone]), timeouts=PERIODS)
    rm.node("x1", {"zone": "x"}, vcore=4)
    rm.node("y1", {"zone": "y"}, vcore=4)
    fill(rm, 6)
    rm.gang("app", "Atomic", vcore=size)
    rm.task("app", "m", "members", size, vcore=1, tags=tags)
    assert rm.schedule() == []
    rm.pass_time(PATIENCE)
    rm.app("crowd", "root.a")
    rm.ask("crowd", "c", vcore=1)
    assert [app for app, _, _ in rm.schedule()] == ([] if holds_back else ["crowd"])
