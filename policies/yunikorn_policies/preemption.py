"""Default preemption policy: `standard`, the order of YuniKorn 1.9.

A partition selects a policy in its preemption settings:

    partitions:
      - name: default
        preemption:
          policy: {name: standard, originators: protect, mode: requeue}

With `originators: protect`, originators (drivers) are never victims; by default they are, after all others.
With `mode: requeue` victims start again from their beginning, with `mode: suspend` they continue later; by
default they end, and what follows is up to the resource manager.

A policy ranks the allocations that may be preempted; the smallest rank is preempted first. It may also
protect allocations, and give each a cost, by which the node is chosen. To write a policy, copy this class
into a module with the hook at the end of this file.
"""

from __future__ import annotations

from typing import Literal

import attrs

from yunikorn.api import Allocation, PreemptionCause, PreemptionPolicy, hookimpl

HOUR = 3600 * 1_000_000_000


@attrs.frozen
class StandardPreemption(PreemptionPolicy):
    """The youngest allocation, or that of lowest priority, is preempted first."""

    name = "standard"
    is_constant = True
    originators: Literal["last", "protect"] = "last"
    """Victims after all others (`last`), or never victims (`protect`)."""
    mode: Literal["end", "requeue", "suspend"] = "end"
    """Way in which victims make room: `end`, `requeue` or `suspend`."""

    def rank(self, victim: Allocation, cause: PreemptionCause) -> tuple[float, ...]:
        """Return the order of YuniKorn 1.9 for the cause.

        For a guarantee the youngest request is first, else the one of lowest priority, then the youngest.
        On a required node the smaller of equals is first.
        """
        if cause.kind == "guarantee":
            return (-victim.created, _tie(victim))
        if cause.kind == "quota":
            return _rank_for_quota(victim, cause)
        rank = (victim.priority, -victim.created, _tie(victim))
        return (*rank, sum(victim.resource.values())) if cause.kind == "required-node" else rank


def _tie(victim: Allocation) -> int:
    """Return the rank of victims of one age without a reported creation: the latest arrival first.

    With a reported creation, all are equal here, because a recovery would change the arrival; the core then
    decides by their keys.
    """
    return 0 if "creationTime" in victim.tags else -victim.app.arrival


def _rank_for_quota(victim: Allocation, cause: PreemptionCause) -> tuple[float, ...]:
    """Return the rank of a victim of a lowered quota.

    In this order: the largest share of resource types to free, the lowest priority, the youngest by the hour,
    and the smallest amount of these types.
    """
    most = (cause.queue.max if cause.queue is not None else None) or {}
    held = [name for name, amount in victim.resource.items() if amount]
    wanted = [name for name in held if name in cause.amount]
    size = sum(victim.resource[name] / (most.get(name) or 1) for name in wanted)
    match = len(wanted) / len(held) if held else 0.0
    return (-match, victim.priority, -(victim.created // HOUR), size)


@hookimpl
def yunikorn_preemption_policies() -> list[type[PreemptionPolicy]]:
    """Return the default policies."""
    return [StandardPreemption]
