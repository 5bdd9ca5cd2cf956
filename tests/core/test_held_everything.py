"""Random histories with held applications in a small, crowded cluster where preemption is due early."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.core import test_everything
from tests.core.doorkeepers import admissions
from tests.core.everything import NODES, TASKS, starting, valid
from tests.core.kit import partition
from tests.core.machine import REQUIRED

CAPACITIES = st.fixed_dictionaries({"memory": st.sampled_from([4, 4, 6])})
PROPERTIES = st.fixed_dictionaries(
    {"preemption.delay": st.just("5s")},
    optional={
        "application.sort.policy": st.sampled_from(["fifo", "stateaware", "fair"]),
        "preemption.by.priority": st.just("enabled"),
        "preemption.within.queue": st.just("enabled"),
        "quota.preemption.delay": st.just("8s"),
        "application.unschedasks.backoff": st.just("2"),
        "application.unschedasks.backoff.delay": st.just("10s"),
    },
)


@st.composite
def _leaf(draw: Any, name: str) -> dict[str, Any]:
    config = {"name": name, "properties": draw(PROPERTIES)}
    if draw(st.integers(0, 3)):
        config["resources"] = {"guaranteed": {"memory": str(draw(st.integers(2, 4)))}}
    if draw(st.integers(0, 4)) == 0:
        config["maxapplications"] = draw(st.integers(1, 2))
    return config


@st.composite
def crowded(draw: Any) -> str:
    """Draw the text of a configuration with guarantees, preemption, and admission policies in most cases."""
    parent = {"name": "p", "parent": True, "queues": [draw(_leaf("c")), draw(_leaf("d"))]}
    config = partition(draw(_leaf("a")), draw(_leaf("b")), parent, draw(_leaf("e")))
    config["placementrules"] = [{"name": "provided", "create": True}]
    config["nodesortpolicies"] = [{"name": "packed", "type": "binpacking"}]
    config["preemption"] = {"enabled": True, "quotapreemptionenabled": draw(st.booleans())}
    config["admission"] = draw(admissions(without=1))
    config["predicates"] = [one for one in ["zone", "ledger"] if draw(st.booleans())]
    return valid(config)


class HeldEverything(test_everything.Everything):
    """The same machine; a reload draws the configurations of either machine."""

    start = starting(crowded(), capacities=CAPACITIES)

    @rule(config=crowded())
    def reload_crowded(self, config: str) -> None:
        self.reload(config)

    def _held(self) -> list[str]:
        return [app.id for app in self.partition.applications.values() if app.held is not None]

    @precondition(lambda self: self._held())
    @rule(data=st.data(), node_id=st.sampled_from(NODES[:2]), memory=st.integers(1, 3), gang=st.booleans())
    def tempt(self, data: st.DataObject, node_id: str, memory: int, gang: bool) -> None:
        """Give a held application a placeholder to replace, or an ask that requires a full node."""
        app_id = data.draw(st.sampled_from(self._held()))
        drawn: test_everything.Drawn = {"key": "k0", "amount": {"memory": memory}, "priority": 5}
        if gang:
            self._report(self._own(app_id, node_id, drawn["amount"], TASKS[0], "k1", placeholder=True))
            self._ask(app_id, {**drawn, "task": TASKS[0]})
        else:
            self._ask(app_id, {**drawn, "tags": {REQUIRED: node_id}})
        self._schedule(None)


TestHeldEverything = HeldEverything.TestCase
TestHeldEverything.settings = settings(
    test_everything.TestEverything.settings, max_examples=max(test_everything.EXAMPLES // 2, 1)
)
