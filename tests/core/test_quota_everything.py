"""Random histories with quota policies: no placement exceeds the max in force, and no question is missed."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from tests.core import test_everything
from tests.core.drawn_quotas import QUOTA_PROPERTIES, check_quotas, watch_placements
from tests.core.everything import PROPERTIES, starting, valid
from tests.core.kit import partition
from tests.core.reservers import reservings
from yunikorn.states import STOPPED

SIZES = st.integers(1, 8)


@st.composite
def _queues(draw: Any, name: str, *children: str) -> dict[str, Any]:
    config: dict[str, Any] = {"name": name, "properties": draw(PROPERTIES) | draw(QUOTA_PROPERTIES)}
    if children:
        config |= {"parent": True, "queues": [draw(_queues(child)) for child in children]}
        template: dict[str, Any] = {"properties": draw(QUOTA_PROPERTIES)}
        if draw(st.booleans()):
            template["resources"] = {"max": {"memory": str(draw(SIZES))}}
        config["childtemplate"] = template
    resources = {}
    if draw(st.integers(0, 3)):
        resources["max"] = {"memory": str(draw(SIZES))}
        if draw(st.integers(0, 3)) == 0:
            resources["max"]["vcore"] = f"{draw(SIZES)}m"
    if draw(st.integers(0, 2)) == 0:
        resources["guaranteed"] = {"memory": str(draw(SIZES))}
    if resources:
        config["resources"] = resources
    return config


@st.composite
def limited(draw: Any) -> str:
    """Draw the text of a configuration with quota policies in most queues."""
    names = (("a",), ("b",), ("p", "c", "d"), ("e",))
    config = partition(*[draw(_queues(*each)) for each in names])
    config["placementrules"] = [{"name": "provided", "create": True}]
    config["nodesortpolicies"] = [{"name": "packed", "type": "binpacking"}]
    config["reservations"] = draw(reservings(without=4))
    config["preemption"] = {"quotapreemptionenabled": draw(st.booleans())}
    return valid(config)


class QuotaEverything(test_everything.Everything):
    """The same machine; a reload draws the configurations of either machine."""

    start = starting(limited())

    def begin(self, config: str, *, reserving: bool, eager: bool) -> None:
        super().begin(config, reserving=reserving, eager=eager)
        watch_placements(self.rm.at_work())

    @rule(config=limited())
    def reload_limited(self, config: str) -> None:
        self.reload(config)

    def _schedule(self, most: int | None) -> int:
        made = super()._schedule(most)
        if most is None and self.partition.state != STOPPED:
            check_quotas(self.rm.at_work(), settled=True)
        return made

    @invariant()
    def quotas_are_in_force(self) -> None:
        if hasattr(self, "rm") and hasattr(self, "submitted"):
            check_quotas(self.rm.at_work(), settled=False)


TestQuotaEverything = QuotaEverything.TestCase
TestQuotaEverything.settings = settings(
    test_everything.TestEverything.settings, max_examples=max(test_everything.EXAMPLES // 2, 1)
)
