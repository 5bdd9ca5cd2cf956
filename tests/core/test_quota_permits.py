"""Random histories with quota and permit policies: held placements count against the max in force."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.core import test_everything, test_permit_everything
from tests.core.drawn_quotas import check_quotas, watch_placements
from tests.core.everything import starting
from tests.core.gatekeepers import permits
from tests.core.test_quota_everything import limited
from yunikorn.states import STOPPED


@st.composite
def both(draw: Any) -> str:
    """Draw the text of a configuration with quota policies, and permit policies in most cases."""
    config = json.loads(draw(limited()))
    config["partitions"][0]["permits"] = draw(permits(without=1))
    return json.dumps(config)


class QuotaPermits(test_permit_everything.PermitEverything):
    """The machine of permit policies, with quota policies."""

    start = starting(both())

    def begin(self, config: str, *, reserving: bool, eager: bool) -> None:
        super().begin(config, reserving=reserving, eager=eager)
        watch_placements(self.rm.at_work())

    @rule(config=both())
    def reload(self, config: str) -> None:
        super().reload(config)

    def _schedule(self, most: int | None) -> int:
        made = super()._schedule(most)
        if most is None and self.partition.state != STOPPED:
            check_quotas(self.rm.at_work(), settled=True)
        return made


TestQuotaPermits = QuotaPermits.TestCase
TestQuotaPermits.settings = settings(
    test_everything.TestEverything.settings, max_examples=max(test_everything.EXAMPLES // 4, 1)
)
