"""A thousand gangs that each need a rack alone."""

from __future__ import annotations

import pytest

from tests.topology.racks import domains, gang, racks


@pytest.mark.slow
def test_a_thousand_gangs_have_racks_alone_one_after_the_other() -> None:
    rm = racks(blocks=5, per_block=20, nodes=2)
    for number in range(1000):
        gang(rm, f"g{number}", 4, {"required": "rack", "exclusive": True})
    waiting = 1000
    while waiting:
        rm.schedule()
        of: dict[str, set[str]] = {}
        for one in rm.running.values():
            of.setdefault(one.application_id, set()).update(domains([one.node_id]))
        assert len(of) == min(100, waiting)
        assert len({rack for inside in of.values() for rack in inside}) == len(of)
        for app_id in of:
            rm.remove_app(app_id)
        waiting -= len(of)
    assert rm.at_work().cycle.atomic.domains.owners == {}
    assert rm.at_work().partition.accounting.node_reservations.nodes == {}
