"""Random histories with policies of all kinds at once.

Quotas, permits, admission, reservations, predicates with books, weighted node scores, preemption and gangs
are drawn together, and every check of the machines of single kinds applies.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.core import test_everything, test_held_everything, test_quota_permits, test_reserving_everything
from tests.core.doorkeepers import admissions
from tests.core.everything import DEFAULTS, starting
from tests.core.gatekeepers import permits
from tests.core.reservers import reservings
from tests.core.test_quota_everything import limited
from tests.core.victim_choosers import victim_choosers

SCORES = [
    [{"name": "binpacking", "weight": 3}, {"name": "fair", "weight": 1}],
    [{"name": "sparse", "weight": 2}, {"name": "binpacking", "weight": 1}],
]
PREDICATES = ["zone", "crowd", "disk", "ledger", "few", "even", "alone", "witness", *DEFAULTS]


@st.composite
def all_policies(draw: Any) -> str:
    """Draw the text of a configuration that names policies of all kinds in most cases."""
    config = json.loads(draw(limited()))
    found = config["partitions"][0]
    found["permits"] = draw(permits(without=1))
    found["admission"] = draw(admissions(without=2))
    found["reservations"] = draw(reservings(without=1))
    found["predicates"] = [one for one in PREDICATES if draw(st.integers(0, 3)) == 0]
    found["preemption"] = {
        "enabled": draw(st.integers(0, 3)) > 0,
        "quotapreemptionenabled": draw(st.integers(0, 3)) > 0,
        "shrunknodes": draw(st.booleans()),
        "policy": draw(victim_choosers()),
    }
    if draw(st.booleans()):
        found["nodesortpolicy"] = {"type": "weighted", "scores": draw(st.sampled_from(SCORES))}
    return json.dumps(config)


class AllPolicies(
    test_quota_permits.QuotaPermits,
    test_reserving_everything.ReservingEverything,
    test_held_everything.HeldEverything,
):
    """The machines of quotas, permits, reservations and held applications in one."""

    start = starting(all_policies())

    @rule(config=all_policies())
    def reload(self, config: str) -> None:
        super().reload(config)


TestAllPolicies = AllPolicies.TestCase
TestAllPolicies.settings = settings(
    test_everything.TestEverything.settings, max_examples=max(test_everything.EXAMPLES // 4, 1)
)
