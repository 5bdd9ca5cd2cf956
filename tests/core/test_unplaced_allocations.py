"""In the newer layout an allocation without a node is an ask with a single replica."""

from __future__ import annotations

from tests.core.kit import RM
from yunikorn.interface.messages import Allocation
from yunikorn.resources import Resource


def unplaced(key: str = "ask", app_id: str = "app", **amounts: int) -> Allocation:
    """Return an allocation without a node."""
    return Allocation(key, app_id, resource_per_alloc=Resource(amounts))


def test_an_allocation_without_a_node_is_an_ask() -> None:
    rm = RM()
    rm.node(memory=4)
    rm.app()
    rm.update(allocations=[unplaced(memory=1)])
    assert rm.schedule() == [("app", "ask", "n1")]


def test_repeated_key_of_a_pending_ask_updates_the_ask() -> None:
    rm = RM()
    rm.node(memory=4)
    rm.app()
    rm.update(allocations=[unplaced(memory=5)])
    rm.update(allocations=[unplaced(memory=3)])
    assert rm.schedule() == [("app", "ask", "n1")]
    assert rm.find_app().allocated == {"memory": 3}


def test_repeated_key_of_an_allocation_resizes_it() -> None:
    rm = RM()
    rm.node(memory=4)
    rm.app()
    rm.update(allocations=[unplaced(memory=1)])
    rm.schedule()
    rm.update(allocations=[unplaced(memory=2)])
    assert rm.schedule() == []
    assert rm.find_app().allocated == {"memory": 2}
    assert len(rm.find_app().allocations) == 1


def test_unplaced_allocation_of_an_unknown_application_is_rejected() -> None:
    rm = RM()
    rm.update(allocations=[unplaced(app_id="nobody", memory=1)])
    (refused,) = rm.entries("rejected_allocations")
    assert (refused.allocation_key, refused.reason) == ("ask", "failed to find application nobody")
