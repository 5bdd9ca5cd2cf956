"""Explaining why asks wait has no effect: decisions are equal with and without explain calls before each."""

from __future__ import annotations

import random
from typing import Any

import attrs
import pytest

from tests.core.gangs import GangRM
from tests.core.kit import configuration, queue, with_plugins
from tests.core.predicates import Crowd, Disk, Zone
from tests.example_counts import examples
from yunikorn import api
from yunikorn.interface.messages import NodeAction, UpdateResponse
from yunikorn.model.context import Timeouts

STEPS = 60
LEAVES = ["root.a", "root.b", "root.p.c", "root.p.d"]


@attrs.frozen
class Impatient(api.AppSortPolicy):
    """Orders applications by waiting time in steps; keys change with time alone."""

    name = "impatient"
    refresh_every = 7

    def opened(self, context: api.Context) -> None:
        object.__setattr__(self, "_context", context)

    def key(self, app: api.Application) -> Any:
        age = self._context.now() - app.waiting_since  # type: ignore[attr-defined]
        return (-(age // 5_000_000_000) % 3, app.submitted)


REGISTRY = with_plugins(app_sort_policies=[Impatient], predicates=[Zone, Crowd, Disk])


def tree(draw: random.Random) -> str:
    """Return a queue tree with every feature that can stop an ask."""

    def leaf(name: str) -> dict[str, Any]:
        policy = draw.choice(["fifo", "fair", "stateaware", "impatient"])
        keys: dict[str, Any] = {
            "properties": {
                "application.sort.policy": policy,
                "preemption.delay": "5s",
                "preemption.within.queue": draw.choice(["enabled", "disabled"]),
                "application.unschedasks.backoff": draw.choice(["0", "0", "2"]),
                "application.unschedasks.backoff.delay": "8s",
            }
        }
        resources: dict[str, Any] = {}
        if draw.random() < 0.4:
            resources["max"] = {"memory": str(draw.randint(5, 12))}
        if draw.random() < 0.5:
            resources["guaranteed"] = {"memory": str(draw.randint(1, 5))}
        if resources:
            keys["resources"] = resources
        if draw.random() < 0.3:
            keys["maxapplications"] = draw.randint(1, 3)
        if draw.random() < 0.3:
            keys["limits"] = [{"limit": "each", "users": ["*"], "maxresources": {"memory": "5"}}]
        return queue(name, **keys)

    predicates = ["zone", "crowd", "disk"]
    return configuration(
        leaf("a"), leaf("b"), queue("p", leaf("c"), leaf("d")), predicates=predicates[: draw.randint(0, 3)]
    )


class History:
    """Random history from a seed. Two RMs with equal seeds receive equal messages."""

    def __init__(self, seed: int, *, curious: bool) -> None:
        self.random = random.Random(seed)
        self.curious = curious
        self.answers = 0
        self.rm = GangRM(tree(self.random), REGISTRY, timeouts=Timeouts(reservation=3_000_000_000))
        self.apps: list[str] = []
        self.reported: list[UpdateResponse] = []
        for number in range(3):
            self.rm.node(f"n{number}", {"zone": "ab"[number % 2]}, memory=self.random.randint(4, 9))

    def step(self) -> None:
        """Apply one random change, then take decisions one by one."""
        things = ["submit", "submit", "gang", "ask", "release", "release", "node", "time", "time", "confirm"]
        for _ in range(self.random.randint(1, 4)):
            getattr(self, f"_{self.random.choice(things)}")()
        self._decide()
        self.reported.append(self.rm.take_response())

    def _decide(self) -> None:
        self._ask_why()
        while self.rm.scheduler.schedule(1):
            self._ask_why()

    def _ask_why(self) -> None:
        if self.curious:
            scheduler = self.rm.scheduler
            for app_id in list(self.rm.at_work().partition.applications):
                self.answers += len(scheduler.explain("rm", "default", app_id))
            list(scheduler.first_reasons("rm"))

    def _submit(self) -> None:
        app_id = f"app{len(self.apps)}"
        self.apps.append(app_id)
        self.rm.app(app_id, self.random.choice(LEAVES), user=self.random.choice(["u1", "u2"]))
        self._ask()

    def _gang(self) -> None:
        app_id = f"app{len(self.apps)}"
        self.apps.append(app_id)
        count, style = self.random.randint(2, 5), self.random.choice(["Atomic", "Soft"])
        self.rm.gang(app_id, style, self.random.choice(LEAVES), seconds=20, memory=count)
        if style == "Soft":
            self.rm.task(app_id, "ph", "g", count, placeholder=True, memory=1)
        self.rm.task(app_id, "t", "g", count, memory=1)

    def _ask(self) -> None:
        if not self.apps:
            return
        draw = self.random
        tags = {}
        if draw.random() < 0.3:
            tags = draw.choice([{"zone": "a"}, {"shy": "yes"}, {"disk": "ssd"}])
        if draw.random() < 0.1:
            tags = {"yunikorn.apache.org/requiredNode": f"n{draw.randint(0, 3)}"}
        key = f"k{draw.randint(0, 3)}"
        count, priority, memory = draw.randint(1, 4), draw.randint(0, 2), draw.randint(1, 5)
        self.rm.ask(draw.choice(self.apps), key, count, priority=priority, tags=tags, memory=memory)

    def _release(self) -> None:
        if self.rm.running:
            uuid = self.random.choice(sorted(self.rm.running))
            self.rm.release(self.rm.running[uuid].application_id, uuid)

    def _node(self) -> None:
        node_id = f"n{self.random.randint(0, 2)}"
        change = self.random.randint(0, 3)
        if change == 0:
            self.rm.change_node(node_id, memory=self.random.randint(4, 9))
        elif change == 1:
            self.rm.change_node(node_id, attributes={"zone": self.random.choice("ab")})
        else:
            action = NodeAction.DRAIN_NODE if change == 2 else NodeAction.DRAIN_TO_SCHEDULABLE
            self.rm.change_node(node_id, action)

    def _time(self) -> None:
        self.rm.pass_time(self.random.randint(1, 9))

    def _confirm(self) -> None:
        if self.rm.evicted:
            self.rm.confirm()


@pytest.mark.parametrize("seed", range(examples(8)))
def test_explaining_between_decisions_changes_no_later_decision(seed: int) -> None:
    quiet, curious = History(seed, curious=False), History(seed, curious=True)
    for _ in range(STEPS):
        quiet.step()
        curious.step()
        assert curious.reported[-1] == quiet.reported[-1]
    assert curious.answers > STEPS // 3
    assert list(curious.rm.scheduler.failures) == list(quiet.rm.scheduler.failures) == []
