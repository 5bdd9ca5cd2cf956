"""Quota policies with drawn answers, and checks of the quotas in force for random histories."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import attrs
from hypothesis import strategies as st

from yunikorn import api
from yunikorn.clock import SECOND
from yunikorn.model.allocation import Allocation
from yunikorn.model.ask import Ask
from yunikorn.model.queue import Queue
from yunikorn.resources import NOTHING
from yunikorn.scheduling.partition_scheduler import PartitionScheduler

CONFIGURED = -1
"""Answer of a shift plan for the configured max; any other number is an amount of memory."""


@attrs.define(eq=False)
class ShiftPlan(api.QuotaPolicy):
    """Another amount of memory in each period, and the configured max at the end."""

    name = "shift-plan"
    amounts: tuple[int, ...] = ()
    period: int = 10
    context: Any = attrs.field(default=None, init=False)

    def opened(self, context: api.Context) -> None:
        self.context = context

    def quota(self, queue: api.Queue) -> api.Quota | None:
        amount, until = self.at(self.context.now())
        return api.Quota(None if amount == CONFIGURED else {"memory": amount}, until, "drawn")

    def at(self, now: int) -> tuple[int, int | None]:
        """Return the amount at a time, and the end of its period."""
        number = now // SECOND // self.period
        if number >= len(self.amounts):
            return CONFIGURED, None
        return self.amounts[number], (number + 1) * self.period * SECOND


@attrs.define(eq=False)
class ClusterPart(api.QuotaPolicy):
    """A part of the memory of the cluster."""

    name = "cluster-part"
    watches_cluster = True

    def quota(self, queue: api.Queue) -> api.Quota:
        return api.Quota({"memory": queue.total.get("memory", 0) // 2})


QUOTAS = [ShiftPlan, ClusterPart]
PLANS = st.fixed_dictionaries(
    {
        "quota.policy.amounts": st.lists(
            st.sampled_from([0, 0, 1, 2, 4, 8, CONFIGURED]), min_size=1, max_size=6
        ).map(lambda amounts: ", ".join(map(str, amounts))),
        "quota.policy.period": st.sampled_from(["5", "12", "40"]),
    }
).map(lambda options: {"quota.policy": "shift-plan", **options})
QUOTA_PROPERTIES: st.SearchStrategy[dict[str, str]] = st.one_of(
    st.just({}),
    PLANS,
    st.just({"quota.policy": "borrowing"}),
    st.sampled_from(["50%", "memory:2", "0%"]).map(
        lambda most: {"quota.policy": "borrowing", "quota.policy.most": most}
    ),
    st.just({"quota.policy": "cluster-part"}),
)


def spare(queue: Queue) -> dict[str, int]:
    """Return what a queue leaves of its configured max; negative is its usage above that max."""
    found = {}
    for name, most in (queue.configured_max or {}).items():
        used, wanted = queue.allocated.get(name, 0), queue.demand.get(name, 0)
        found[name] = most - wanted if wanted <= most else -max(used - most, 0)
    return found


def borrowed_max(queue: Queue, policy: Any) -> Mapping[str, int] | None:
    """Return the max of a queue that borrows, computed from scratch."""
    configured = queue.configured_max
    if configured is None or queue.parent is None:
        return None
    found = dict(configured)
    for name, most in configured.items():
        others = [each for each in queue.parent.children.values() if each is not queue]
        unused = max(sum(spare(each).get(name, 0) for each in others), 0)
        if policy.most.endswith("%"):
            unused = min(unused, most * int(policy.most[:-1]) // 100)
        elif policy.most:
            unused = min(unused, 2 if name == "memory" else 0)
        found[name] = most + unused
    return found


def check_quotas(at: PartitionScheduler, *, settled: bool) -> None:
    """Assert that the quota in force of each queue is what its policy answers; `settled` after scheduling."""
    quotas, now = at.quotas, at.partition.clock.now()
    policies = {queue.settings.quota_policy for queue in at.partition.queues if queue.parent is not None}
    assert bool(policies - {""}) == bool(quotas._bound)
    for queue in at.partition.queues:
        known = quotas._bound.get(queue)
        named = queue.settings.quota_policy if queue.parent is not None else ""
        assert (known[0].name if known is not None else "") == named, queue
        assert queue.policy_quota is (known[1] if known is not None else None), queue
        if known is None:
            assert queue.parent is None or queue.max == queue.configured_max, queue
            continue
        policy, quota = known[0].plugin, known[1]
        expected: Mapping[str, int] | None = queue.configured_max
        if isinstance(policy, ShiftPlan):
            amount, until = policy.at(now)
            assert quota.until == until, queue
            if amount >= 0:
                expected = {**(expected or NOTHING), "memory": amount}
        elif isinstance(policy, ClusterPart):
            expected = {**(expected or NOTHING), "memory": queue.total.get("memory", 0) // 2}
        elif any(queue.demand.values()):
            expected = borrowed_max(queue, policy)
        else:
            # The policy is not asked about idle queues.
            expected = queue.max
        if settled or isinstance(policy, ShiftPlan):
            assert queue.max == expected, queue
    for due, found in quotas._questions._exact.items():
        assert found.items, due
        assert found.timer is not None, due
        assert found.timer.call is not None, due
        assert all(quotas._questions._due[each] is found for each in found.items), due


def _assert_room(at: PartitionScheduler, ask: Ask) -> None:
    for queue in ask.app.chain[:-1]:
        known = at.quotas._bound.get(queue)
        most: Mapping[str, int] | None = queue.max
        if known is not None and known[0].watches_siblings:
            most = borrowed_max(queue, known[0].plugin)
        for name, amount in ask.resource.items():
            if amount and most is not None and name in most:
                assert queue.allocated.get(name, 0) + amount <= most[name], f"{ask} exceeds {queue}"


def watch_placements(at: PartitionScheduler) -> None:
    """Assert of every later placement by the scheduler that the quotas at that time have room for it."""
    accounting = at.partition.accounting

    def watch(place: Callable[..., Allocation]) -> Callable[..., Allocation]:
        def watched(ask: Ask, node: Any, now: int) -> Allocation:
            _assert_room(at, ask)
            return place(ask, node, now)

        return watched

    # An object of a compiled class refuses another method, and is not watched.
    with suppress(AttributeError):
        allocate = watch(accounting.allocate)
        if at.cycle.allocator.allocate == accounting.allocate:
            at.cycle.allocator.allocate = allocate
        accounting.allocate = allocate  # type: ignore[method-assign]
        # Placements that permit policies decide about.
        accounting.place_unannounced = watch(accounting.place_unannounced)  # type: ignore[method-assign]
