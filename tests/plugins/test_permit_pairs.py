"""Permit policies together with reservations, execution timeouts and other mechanisms."""

from __future__ import annotations

import attrs
import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from tests.core.predicates import plugins
from tests.plugins.permit_kit import Gate, Second, clear
from yunikorn.api import Wait
from yunikorn.clock import SECOND
from yunikorn.interface.messages import AllocationAsk, NodeAction
from yunikorn.model.context import Timeouts
from yunikorn.resources import Resource


@pytest.mark.parametrize("reservations", [{}, {"total": 3}])
def test_refused_request_keeps_no_reservation(reservations: dict[str, int]) -> None:
    alone = {"name": "turnstile", "needed": 3, "timeout": 40}
    config = configuration(queue("a"), queue("b"), permits=[alone], reservations=reservations)
    rm = RM(config, plugins(), timeouts=Timeouts(reservation=2 * SECOND))
    for name, memory in (("n1", 2), ("n2", 4), ("n3", 1)):
        rm.node(name, memory=memory)
    rm.app()
    rm.ask(count=2, memory=3)
    rm.pass_time(3)
    rm.schedule()
    assert [ask.key for ask in rm.find_node("n2").reservations] == ["ask"]
    rm.pass_time(40)
    rm.schedule()
    assert not rm.find_node("n2").reservations
    rm.change_node("n3", NodeAction.DECOMMISSION)
    rm.schedule()
    assert rm.find_app().unannounced == 1
    rm.remove_app("app")
    rm.app("other", "root.b")
    rm.ask("other", count=3, memory=1)
    assert len(rm.schedule()) == 3


def timed(rm: RM, key: str, **amounts: int) -> None:
    """Send an ask whose task may run for 20 seconds."""
    rm.update(asks=[AllocationAsk(key, "app", resource_ask=Resource(amounts), execution_timeout_ms=20_000)])


def test_task_that_ended_is_not_released_again_by_its_execution_timeout() -> None:
    clear()
    rm = RM(configuration(queue("a"), permits=["gate"]), with_plugins(permit_policies=[Gate]))
    rm.node(vcore=8)
    rm.app()
    timed(rm, "ended", vcore=1)
    timed(rm, "runs", vcore=1)
    rm.schedule()
    ended, runs = rm.running
    rm.release(uuid=ended)
    rm.responses.clear()
    rm.pass_time(25)
    assert [one.uuid for one in rm.entries("released_allocations")] == [runs]


def test_placement_taken_back_by_its_group_has_no_execution_timeout() -> None:
    clear()
    Gate.answers["new"] = None
    Gate.answers["old"] = Wait(50, "waits at the first gate")
    Second.answers["new"] = Wait(50, "waits at the second gate")
    config = configuration(queue("a"), permits=["gate", "second"])
    rm = RM(config, with_plugins(permit_policies=[Gate, Second]))
    rm.node(vcore=8)
    rm.app()
    together = {"group": "g"}
    rm.ask("app", "old", vcore=1, tags=together)
    rm.schedule()

    def open_gates(allocation: object) -> None:
        # The second gate lets the old one pass, and refuses the new one when it is asked again.
        Second.answers["new"] = "refused"

    Gate.answers["old"] = None
    Second.answers["old"] = open_gates
    ask = AllocationAsk("new", "app", resource_ask=Resource(vcore=1), tags=together)
    rm.update(asks=[attrs.evolve(ask, execution_timeout_ms=20_000)])
    rm.schedule()
    assert [one.allocation_key for one in rm.running.values()] == ["old"]
    assert Second.asked == ["new", "old", "new"]
    rm.pass_time(25)
    assert rm.entries("released_allocations") == []
