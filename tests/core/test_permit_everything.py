"""Random histories with permit policies: held placements meet everything else, and books equal a recount."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from tests.core import test_everything
from tests.core.everything import ASKS, configurations, starting
from tests.core.gatekeepers import check_permits, permits
from tests.core.test_held_everything import crowded


@st.composite
def permitting(draw: Any) -> str:
    """Draw the text of a configuration of either machine, with permit policies in most cases."""
    config = json.loads(draw(st.one_of(configurations(), crowded())))
    config["partitions"][0]["permits"] = draw(permits(without=1))
    config["partitions"][0]["admission"] = []
    return json.dumps(config)


class PermitEverything(test_everything.Everything):
    """The same machine with permit policies."""

    start = starting(permitting())

    @rule(config=permitting())
    def reload(self, config: str) -> None:
        before = self.rm.at_work().config
        super().reload(config)
        if self.rm.at_work().config is not before:
            self.config = config

    def _with_held(self) -> list[str]:
        return [hold.app.id for hold in self.partition.held_placements]

    @precondition(lambda self: self._with_held())
    @rule(data=st.data(), key=st.booleans())
    def withdraw(self, data: st.DataObject, key: bool) -> None:
        """Withdraw the requests of an application with a held placement."""
        app_id = data.draw(st.sampled_from(self._with_held()))
        asks = list(self.partition.applications[app_id].asks) if key else [""]
        self.rm.release_ask(app_id, data.draw(st.sampled_from(asks)))

    @precondition(lambda self: self._with_held())
    @rule(data=st.data(), ask=ASKS)
    def ask_again(self, data: st.DataObject, ask: test_everything.Drawn) -> None:
        self._ask(data.draw(st.sampled_from(self._with_held())), ask)

    @invariant()
    def holds_hold(self) -> None:
        if hasattr(self, "rm") and hasattr(self, "submitted"):
            check_permits(self.rm.at_work())

    def _becomes_idle(self) -> None:
        """Assert the same after the policies have been removed, which permits what they hold."""
        config = json.loads(self.config)
        config["partitions"][0]["permits"] = []
        self.rm.reload(json.dumps(config))
        assert not self._with_held()
        super()._becomes_idle()


TestPermitEverything = PermitEverything.TestCase
TestPermitEverything.settings = settings(
    test_everything.TestEverything.settings, max_examples=max(test_everything.EXAMPLES // 2, 1)
)
