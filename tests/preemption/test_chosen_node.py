"""The node that a preempting ask reserves: which one, and for how long."""

from __future__ import annotations

from tests.core.kit import RM, configuration, queue
from yunikorn.interface.messages import Allocation
from yunikorn.resources import Resource

GUARANTEED = queue("a", resources={"guaranteed": {"memory": "4"}})


def victims(rm: RM) -> list[str]:
    """Return the keys of the allocations whose release was requested."""
    return sorted(uuid.partition("#")[0] for uuid in rm.evicted)


def kept(rm: RM) -> dict[str, list[str]]:
    """Return by node the asks for which it is reserved."""
    nodes = rm.at_work().partition.nodes.values()
    return {node.id: [ask.key for ask in node.reservations] for node in nodes if node.reservations}


def test_a_node_that_predicates_refuse_is_not_chosen() -> None:
    rm = RM(configuration(GUARANTEED, queue("b"), predicates=["taints"]))
    rm.app("big", "root.b")
    for name, taints in (("n1", {"taints": "only=gpu:NoSchedule"}), ("n2", {})):
        rm.node(name, taints, memory=2)
        tags = {"yunikorn.apache.org/tolerations": "only=gpu"} if taints else {}
        rm.ask("big", f"on-{name}", memory=2, tags=tags)
        assert [node for _, _, node in rm.schedule()] == [name]
    rm.app("late")
    rm.ask("late", "y", memory=1)
    rm.pass_time(31)
    rm.schedule()
    assert victims(rm) == ["on-n2"]


def test_reservation_moves_to_the_node_of_the_victims() -> None:
    rm = RM(configuration(GUARANTEED, queue("b")))
    rm.app("big", "root.b")
    rm.node("n1", memory=4)
    rm.ask("big", "small", 4, memory=1)
    rm.schedule()
    rm.app("late")
    rm.ask("late", "y", memory=2)
    rm.pass_time(3)
    rm.schedule()
    assert kept(rm) == {"n1": ["y"]}
    running = Allocation("large", "big", "r1", "n2", Resource(memory=2))
    rm.running["r1"] = running
    rm.node("n2", memory=2, existing=[running])
    rm.pass_time(31)
    rm.schedule()
    assert list(rm.evicted) == ["r1"], "one on the second node, two it would be on the first"
    assert kept(rm) == {"n2": ["y"]}
    rm.confirm()
    assert rm.schedule() == [("late", "y", "n2")]
    assert kept(rm) == {}


def test_older_victim_is_chosen_if_the_youngest_does_not_suffice() -> None:
    """Two may be preempted: after the youngest, of size one, no other could be, each being of size two."""
    rm = RM(configuration(GUARANTEED, queue("b", resources={"guaranteed": {"memory": "5"}})))
    rm.node("n1", memory=7)
    rm.app("big", "root.b")
    rm.ask("big", "wide", 3, memory=2)
    rm.ask("big", "young", memory=1)
    assert len(rm.schedule()) == 4
    rm.app("late")
    rm.ask("late", "y", memory=2)
    rm.pass_time(31)
    rm.schedule()
    assert victims(rm) == ["wide"]


def test_node_with_victims_is_kept_for_the_preempting_ask() -> None:
    rm = RM(configuration(GUARANTEED, queue("b"), queue("c", resources=GUARANTEED["resources"])))
    rm.node("n1", memory=4)
    rm.app("big", "root.b")
    rm.ask("big", "x", 4, memory=1)
    rm.schedule()
    rm.app("first")
    rm.ask("first", "y", memory=2)
    rm.pass_time(31)
    rm.schedule()
    assert len(victims(rm)) == 2
    rm.app("second", "root.c")
    rm.ask("second", "z", memory=1)
    rm.pass_time(31)
    rm.schedule()
    assert kept(rm) == {"n1": ["y"]}
    assert len(victims(rm)) == 2


def test_node_is_kept_for_the_ask_that_requires_it() -> None:
    rm = RM(configuration(GUARANTEED, queue("b")))
    rm.node("n1", memory=4)
    rm.app("big", "root.b")
    rm.ask("big", "x", 4, memory=1)
    rm.schedule()
    required = {"yunikorn.apache.org/requiredNode": "n1"}
    rm.ask("big", "daemon", memory=1, priority=-1, tags=required)
    rm.schedule()
    rm.app("late")
    rm.ask("late", "y", memory=1)
    rm.pass_time(31)
    rm.schedule()
    assert kept(rm) == {"n1": ["daemon"]}
    assert victims(rm) == []


def test_ask_over_a_user_limit_preempts_nothing() -> None:
    limit = {"limit": "small", "users": ["user"], "maxresources": {"memory": "1"}}
    rm = RM(configuration({**GUARANTEED, "limits": [limit]}, queue("b")))
    rm.node("n1", memory=4)
    rm.app("big", "root.b")
    rm.ask("big", "x", 4, memory=1)
    rm.schedule()
    rm.app("late")
    rm.ask("late", "y", memory=2)
    rm.pass_time(31)
    rm.schedule()
    assert victims(rm) == []


def test_queue_without_a_guarantee_of_the_type_is_protected_by_another_guarantee() -> None:
    """As in YuniKorn 1.9, a queue with any guarantee loses only types that it uses beyond its guarantee."""
    other = queue("b", resources={"guaranteed": {"gpu": "1"}})
    rm = RM(configuration(GUARANTEED, other))
    rm.node("n1", memory=4, gpu=3)
    rm.app("big", "root.b")
    rm.ask("big", "x", 3, memory=1)
    rm.ask("big", "with-gpu", memory=1, gpu=3)
    assert len(rm.schedule()) == 4
    rm.app("late")
    rm.ask("late", "y", memory=1)
    rm.pass_time(31)
    rm.schedule()
    assert victims(rm) == []
