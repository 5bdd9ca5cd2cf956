"""The node reserved for a preempting ask: other asks get it neither too early nor too late."""

from __future__ import annotations

from tests.core.kit import RM, configuration, queue, with_plugins
from tests.preemption.test_across_queues import guaranteed
from yunikorn import api
from yunikorn.interface.messages import Allocation, NodeAction
from yunikorn.resources import Resource


class Calibration(api.Predicate):
    """Permits reservations at any time; the ask `y` is placed only after calibration."""

    name = "calibration"
    done = False

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        return "not calibrated" if ask.key == "y" and not type(self).done else None

    def check_reservation(self, ask: api.Ask, node: api.Node) -> str | None:
        return None


def test_ask_with_a_reserved_node_does_not_preempt_again_while_a_predicate_delays_it() -> None:
    class NotYet(Calibration):
        """A class of its own, so that `done` is not kept from test to test."""

    config = configuration(guaranteed("a", memory=4), queue("b"), predicates=["calibration"])
    rm = RM(config, with_plugins(predicates=[NotYet]))
    rm.node("n1", memory=2)
    rm.node("n2", memory=2)
    rm.app("big", "root.b")
    rm.ask("big", "x", 2, memory=2)
    assert len(rm.schedule()) == 2
    rm.app("late")
    rm.ask("late", "y", memory=2)
    rm.pass_time(31)
    rm.schedule()
    (victim,) = rm.evicted.values()
    rm.confirm()
    assert rm.schedule() == []
    for number in range(3):
        rm.pass_time(16)
        rm.node(f"change{number}", memory=1)
        assert rm.schedule() == []
        assert not rm.evicted, "the first victim made enough room"
    NotYet.done = True
    node_id = "n1" if victim.uuid == "x#1" else "n2"
    rm.change_node(node_id, attributes={"calibrated": "yes"})
    assert rm.schedule() == [("late", "y", node_id)]


def test_earlier_ask_does_not_use_resources_preempted_for_another() -> None:
    rm = RM(configuration(guaranteed("a", memory=4), queue("b"), guaranteed("c", memory=8)))
    rm.node("n1", memory=8)
    rm.app("here", "root.a")
    rm.ask("here", "w", memory=1)
    rm.app("big", "root.b")
    rm.ask("big", "x", 7, memory=1)
    assert len(rm.schedule()) == 8
    rm.app("late", "root.a")
    rm.ask("late", "y", memory=2)
    rm.pass_time(31)
    rm.schedule()
    assert len(rm.evicted) == 2
    # Root.c has no allocations: its asks precede those of root.a.
    rm.app("quick", "root.c")
    rm.ask("quick", "z", memory=1)
    assert rm.schedule() == []
    rm.confirm()
    assert rm.schedule() == [("late", "y", "n1")]


def test_drained_node_has_no_victims() -> None:
    rm = RM(configuration(guaranteed("a", memory=4), queue("b")))
    rm.node("n1", memory=2)
    rm.app("big", "root.b")
    rm.ask("big", "large", memory=2)
    rm.schedule()
    rm.node("n2", memory=2)
    rm.ask("big", "small", 2, memory=1)
    assert len(rm.schedule()) == 2
    rm.change_node("n1", NodeAction.DRAIN_NODE)
    rm.app("late")
    rm.ask("late", "y", memory=2)
    rm.pass_time(31)
    rm.schedule()
    assert {rm.running[uuid].node_id for uuid in rm.evicted} == {"n2"}, "one victim on n1 would be fewer"
    rm.confirm()
    assert rm.schedule() == [("late", "y", "n2")]


def awaiting_quota() -> tuple[RM, list[str], list[str]]:
    """Return an RM where `y` has reserved n2 and waits for two victims there, and one on n1 (quota)."""
    parent = queue("p", guaranteed("a", memory=3), queue("c"), resources={"max": {"memory": "6"}})
    rm = RM(configuration(parent, queue("b")))
    rm.node("n1", memory=4)
    rm.app("in", "root.p.c")
    rm.ask("in", "z", 6, memory=1)
    rm.schedule()
    rm.node("n2", memory=4)
    rm.app("out", "root.b")
    rm.ask("out", "x", memory=1)
    rm.schedule()
    rm.app("late", "root.p.a")
    rm.ask("late", "y", memory=3)
    rm.pass_time(31)
    rm.schedule()
    assert [ask.key for ask in rm.find_node("n2").reservations] == ["y"]
    here = [uuid for uuid in rm.evicted if rm.running[uuid].node_id == "n2"]
    elsewhere = [uuid for uuid in rm.evicted if uuid not in here]
    assert (len(here), len(elsewhere)) == (2, 1)
    return rm, here, elsewhere


def test_ask_outside_the_quota_does_not_use_resources_preempted_for_another() -> None:
    rm, here, elsewhere = awaiting_quota()
    rm.ask("out", "more", memory=1)
    assert rm.schedule() == []
    rm.confirm(*here)
    assert rm.schedule() == [], "root.p has no room for `y` yet, and n2 is reserved for it"
    rm.confirm(*elsewhere)
    assert rm.schedule() == [("late", "y", "n2"), ("out", "more", "n1")]


def test_a_request_that_awaits_a_quota_is_served_after_another_node_was_awarded() -> None:
    """Both reserved nodes gain room in one update: one ask is placed, the other waits for its quota."""
    rm, here, elsewhere = awaiting_quota()
    running = Allocation("r", "out", "r1", "n3", Resource(memory=6))
    rm.running["r1"] = running
    rm.node("n3", memory=6, existing=[running])
    rm.ask("out", "wide", memory=6)
    rm.pass_time(3)
    rm.schedule()
    assert [ask.key for ask in rm.find_node("n3").reservations] == ["wide"]
    rm.release("out", "r1")
    rm.confirm(*here)
    assert rm.schedule() == [("out", "wide", "n3")]
    rm.confirm(*elsewhere)
    assert rm.schedule() == [("late", "y", "n2")]
