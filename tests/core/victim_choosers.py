"""Preemption policies with drawn answers for random histories, and a check that they are obeyed."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import attrs
from hypothesis import strategies as st

from yunikorn import api
from yunikorn.model.allocation import Allocation
from yunikorn.scheduling.partition_scheduler import PartitionScheduler


def _drawn(values: list[int], name: str) -> int:
    return values[zlib.crc32(name.encode()) % len(values)]


@attrs.frozen(eq=False)
class Fateful(api.PreemptionPolicy):
    """Answers as drawn, from a position that depends on the allocation."""

    name = "fateful"
    protected: list[int]
    ranks: list[int]
    costs: list[int]

    def protects(self, victim: api.Allocation, cause: api.PreemptionCause) -> str | None:
        if _drawn(self.protected, victim.key + victim.app.id):
            return "protected by fate"
        return super().protects(victim, cause)

    def rank(self, victim: api.Allocation, cause: api.PreemptionCause) -> int:
        return _drawn(self.ranks, victim.uuid)


@attrs.frozen(eq=False)
class Costly(Fateful):
    """Another one, which chooses the node by cost."""

    name = "costly"
    refresh_every = 7.0

    def cost(self, victim: api.Allocation, cause: api.PreemptionCause) -> float:
        return _drawn(self.costs, victim.app.id + victim.key) / 3


VICTIM_CHOOSERS = [Fateful, Costly]
_NUMBERS = st.lists(st.integers(0, 3), min_size=1, max_size=4)


@st.composite
def victim_choosers(draw: Any) -> Any:
    """Draw the value of `preemption.policy`."""
    name = draw(st.sampled_from(["standard", "standard", "fateful", "costly"]))
    if name == "standard":
        return name
    protected = st.lists(st.sampled_from([0, 0, 0, 1]), min_size=1, max_size=5)
    return {"name": name, "protected": draw(protected), "ranks": draw(_NUMBERS), "costs": draw(_NUMBERS)}


def check_unprotected(at: PartitionScheduler, victims: Sequence[Allocation]) -> None:
    """Assert that the policy in force protects none of these victims."""
    name = at.config.preemption.policy.name
    for victim in victims if name in ("fateful", "costly") else ():
        protects = at.preemption.policy._protects
        assert protects is not None
        reason = protects(victim, api.PreemptionCause("quota"))
        assert reason in (None, "originators are protected"), f"{victim} is {reason}"
