"""One call of `schedule` makes all decisions that are possible: a second call at the same time finds none."""

from __future__ import annotations

from tests.core.kit import queue
from tests.core.test_atomic_gangs import PATIENCE, cluster, fill, gang
from yunikorn.clock import SECOND
from yunikorn.model.context import Timeouts

TIMEOUTS = Timeouts(gang_patience=PATIENCE * SECOND, reservation=2 * SECOND)


def test_overdue_gang_takes_the_node_of_a_reservation_that_ends() -> None:
    rm = cluster(queue("a"), timeouts=TIMEOUTS)
    fill(rm, 7, "root.a")
    rm.app("large", "root.a")
    rm.ask("large", "l", vcore=3)
    rm.schedule()
    rm.pass_time(3)
    rm.schedule()
    (reserved,) = [node for node in rm.at_work().partition.nodes.values() if node.reservations]
    assert reserved.available == {"vcore": 1}
    gang(rm, "gang", 1)
    assert rm.schedule() == []
    rm.pass_time(PATIENCE)
    for one in [one for one in rm.running.values() if one.node_id != reserved.id][:3]:
        rm.release("filler", one.uuid)
    # The large request runs on the other node, so that its reservation ends.
    assert rm.schedule() == [("large", "l", "n1"), ("gang", "gang-m", reserved.id)]
    assert rm.schedule() == []
