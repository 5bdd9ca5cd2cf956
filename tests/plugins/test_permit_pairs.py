"""Permit policies together with reservations, execution timeouts and other mechanisms."""

from __future__ import annotations

import pytest

from tests.core.kit import RM, configuration, queue
from tests.core.predicates import plugins
from yunikorn.clock import SECOND
from yunikorn.interface.messages import NodeAction
from yunikorn.model.context import Timeouts


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
