"""Random histories in a small, crowded cluster whose reservation policy restricts reservations."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from tests.core import test_everything
from tests.core.doorkeepers import admissions
from tests.core.everything import KEYS, NODES, QUEUES, starting, valid
from tests.core.kit import partition
from tests.core.reservers import check_none_forgotten, check_reserving, reservings

CAPACITIES = st.fixed_dictionaries({"memory": st.sampled_from([4, 4, 6])})
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        "application.sort.policy": st.sampled_from(["fifo", "stateaware", "fair"]),
        "preemption.delay": st.sampled_from(["5s", "10s"]),
        "preemption.by.priority": st.just("enabled"),
        "application.unschedasks.backoff": st.just("2"),
        "application.unschedasks.backoff.delay": st.just("10s"),
    },
)


@st.composite
def _leaf(draw: Any, name: str) -> dict[str, Any]:
    config: dict[str, Any] = {"name": name, "properties": draw(PROPERTIES), "resources": {}}
    if draw(st.integers(0, 3)) == 0:
        config["resources"]["guaranteed"] = {"memory": str(draw(st.integers(2, 4)))}
    if draw(st.integers(0, 3)) == 0:
        config["resources"]["max"] = {"memory": str(draw(st.integers(4, 9)))}
    if draw(st.integers(0, 4)) == 0:
        config["maxapplications"] = draw(st.integers(1, 3))
    return config


@st.composite
def crowded(draw: Any) -> str:
    """Draw the text of a configuration that restricts reservations in most cases."""
    parent = {"name": "p", "parent": True, "queues": [draw(_leaf("c")), draw(_leaf("d"))]}
    config = partition(draw(_leaf("a")), draw(_leaf("b")), parent, draw(_leaf("e")))
    config["placementrules"] = [{"name": "provided", "create": True}]
    config["nodesortpolicies"] = [{"name": "packed", "type": "binpacking"}]
    config["preemption"] = {"enabled": draw(st.booleans())}
    config["admission"] = draw(admissions(without=4))
    config["reservations"] = draw(reservings(without=0))
    config["predicates"] = [one for one in ["zone", "disk"] if draw(st.integers(0, 3)) == 0]
    return valid(config)


class ReservingEverything(test_everything.Everything):
    """The same machine; a reload draws the configurations of either machine."""

    start = starting(crowded(), capacities=CAPACITIES, nodes=(2, 4), apps=(3, 6), asks=3)

    @rule(config=crowded())
    def reload_crowded(self, config: str) -> None:
        self.reload(config)

    @precondition(lambda self: self._reserving())
    @rule(data=st.data())
    def release_on_reserved(self, data: st.DataObject) -> None:
        """End a task on a node that is reserved, so that reservations are served."""
        running = [one for one in self.rm.running.values() if one.node_id in self._reserving()]
        if running:
            one = data.draw(st.sampled_from(running))
            self.rm.release(one.application_id, one.uuid)
            self._schedule(data.draw(st.sampled_from([None, 1])))

    @rule(
        queue=st.sampled_from(QUEUES),
        sizes=st.lists(st.sampled_from([2, 3, 4]), min_size=2, max_size=4),
        seconds=st.sampled_from([0, 3, 12]),
        most=st.sampled_from([None, None, 1]),
    )
    def press(self, queue: str, sizes: list[int], seconds: int, most: int | None) -> None:
        """Fill the nodes with small tasks, and ask for more than any of them has left."""
        app = {"queue": queue, "user": "u3", "style": "", "size": 2, "each": 1, "limit": 0, "forced": False}
        for node_id in NODES[:2]:
            if node_id not in self.rm.nodes:
                self.add_node(node_id, {"memory": 4}, {})
        filler, large = self._submit(app), self._submit(app)
        self._ask(filler, {"key": "k0", "amount": {"memory": 1}, "count": 3})
        self._schedule(None)
        for number, size in enumerate(sizes):
            self._ask(large, {"key": KEYS[number], "amount": {"memory": size}})
        self._schedule(None)
        self.rm.pass_time(seconds)
        self._schedule(most)

    def _reserving(self) -> list[str]:
        return [node.id for node in self.partition.nodes.values() if node.reservations]

    @invariant()
    def reservations_hold(self) -> None:
        if hasattr(self, "rm") and hasattr(self, "submitted"):
            check_reserving(self.rm.at_work())

    def no_placeable_ask_is_pending(self) -> None:
        super().no_placeable_ask_is_pending()
        check_none_forgotten(self.rm.at_work())


TestReservingEverything = ReservingEverything.TestCase
TestReservingEverything.settings = settings(
    test_everything.TestEverything.settings, max_examples=max(test_everything.EXAMPLES // 2, 1)
)
