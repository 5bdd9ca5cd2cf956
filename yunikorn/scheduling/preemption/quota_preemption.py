"""Quota preemption: a queue whose max was lowered releases its excess after a delay.

Each change triggers one preemption down to the new max, independent of pending requests. As in YuniKorn 1.9,
except that allocations which opted out are no victims, and that a queue without a previous max counts as
lowered. The partition's preemption policy orders the victims, and may protect some.

The victims never exceed the excess of any resource type, and leave every queue its guarantee. The rules are
those of YuniKorn 1.9.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import attrs

from yunikorn.api import PreemptionCause
from yunikorn.quantities import in_words
from yunikorn.resources import NOTHING, Resource, Tally, shrink
from yunikorn.scheduling.preemption.candidates import total_of
from yunikorn.scheduling.preemption.snapshot import PreemptionSnapshot

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.clock import Timer
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.queue import Queue
    from yunikorn.scheduling.preemption.schedule import Evictor
    from yunikorn.scheduling.preemption.victim_policy import VictimPolicy


def select_for_quota(queue: Queue, amount: Mapping[str, int], policy: VictimPolicy) -> list[Allocation]:
    """Return victims in `queue` and its descendants whose sum is close to, and at most, `amount`.

    Children contribute in proportion to their usage above their guarantees. The remainder, left because
    allocations do not divide evenly, is then taken from any leaf.
    """
    snapshot = PreemptionSnapshot()
    victims = _share(queue, amount, snapshot, policy)
    rest: Tally = dict(amount)
    for victim in victims:
        _reduce(rest, victim)
    left = [one for leaf in queue.walk() if leaf.is_leaf for one in _running(leaf) if one not in victims]
    victims += _take(left, rest, queue, snapshot, policy)
    return victims


def _share(
    queue: Queue, amount: Mapping[str, int], snapshot: PreemptionSnapshot, policy: VictimPolicy
) -> list[Allocation]:
    if queue.is_leaf:
        return _take(_running(queue), dict(amount), queue, snapshot, policy)
    shares = [(child, _above_guarantee(child, snapshot)) for child in queue.children.values()]
    victims: list[Allocation] = []
    for child, own in shares:
        part: Tally = {}
        for name, wanted in amount.items():
            whole = sum(share.get(name, 0) for _, share in shares)
            if own.get(name, 0):
                part[name] = own[name] * wanted // whole
        if any(part.values()):
            victims += _share(child, part, snapshot, policy)
    return victims


def _above_guarantee(queue: Queue, snapshot: PreemptionSnapshot) -> Tally:
    guaranteed = queue.guaranteed
    return {
        name: used - guaranteed.get(name, 0)
        for name, used in snapshot.used(queue).items()
        if used > guaranteed.get(name, 0)
    }


def _running(leaf: Queue) -> list[Allocation]:
    return [one for app in leaf.applications.values() for one in app.allocations.values()]


def _take(
    running: Iterable[Allocation],
    amount: Tally,
    queue: Queue,
    snapshot: PreemptionSnapshot,
    policy: VictimPolicy,
) -> list[Allocation]:
    """Return the victims that fit into `amount`, in order; reduces `amount` accordingly."""
    taken: dict[Allocation, None] = {}
    wanted = {name: value for name, value in amount.items() if value > 0}
    types = [*wanted]
    cause = PreemptionCause("quota", queue, amount=MappingProxyType(wanted))
    for victim in policy.in_order(filter(policy.eligible(cause), running), cause):
        if victim in taken:
            continue
        together = [one for one in policy.unit_of(victim, cause) if one not in taken]
        resource = total_of(together)
        fits = all(resource.get(name, 0) <= amount.get(name, 0) for name in types)
        if fits and any(resource.get(name, 0) for name in types) and snapshot.let_go(together):
            for one in together:
                _reduce(amount, one)
                taken[one] = None
    return [*taken]


def _reduce(amount: Tally, victim: Allocation) -> None:
    shrink(amount, {name: value for name, value in victim.resource.items() if name in amount})


@attrs.frozen
class PreviousQuota:
    """Max and delay of a queue before a configuration change."""

    most: Resource | None
    delay: int


class QuotaPreemption:
    """Quota preemption for the configured queues of a partition."""

    def __init__(
        self, partition: Partition, evictor: Evictor, policy: VictimPolicy, *, enabled: bool
    ) -> None:
        self.policy = policy
        self._partition = partition
        self._evictor = evictor
        self._timers: dict[Queue, Timer] = {}
        self._unenforced: dict[Queue, None] = {}
        """Queues whose usage remained above their max after preemption."""
        self.enabled = enabled

    def before(self, *, enabled: bool) -> dict[Queue, PreviousQuota]:
        """Return the current quotas, to be passed to `after`; the root has no quota of its own.

        `enabled` is the future setting: if it is False, the previous quotas are not needed.
        """
        if not enabled:
            return {}
        return {
            queue: PreviousQuota(queue.max, queue.settings.quota_preemption_delay)
            for queue in self._partition.queues
            if queue.managed and queue.parent is not None
        }

    def after(self, before: Mapping[Queue, PreviousQuota], policy: VictimPolicy, *, enabled: bool) -> None:
        """Start, move or cancel delays after a configuration change, and use this preemption policy."""
        replaced, self.policy = policy.plugin is not self.policy.plugin, policy
        self.enabled = enabled
        if not enabled:
            for queue in list(self._timers):
                self._clear(queue)
            self._unenforced.clear()
            return
        present = set(self._partition.queues)
        for queue in [queue for queue in self._timers if queue not in present]:
            self._clear(queue)
        for queue in [queue for queue in self._unenforced if queue not in present]:
            del self._unenforced[queue]
        for queue in self._partition.queues:
            if queue.managed and queue.parent is not None:
                self._settle(queue, before.get(queue, PreviousQuota(None, 0)))
        if replaced:
            self._enforce_again(present)

    def _enforce_again(self, present: set[Queue]) -> None:
        """Start the delays of queues above their max whose work the previous preemption policy protected."""
        found, self._unenforced = self._unenforced, {}
        for queue in found:
            delay = queue.settings.quota_preemption_delay
            if queue in present and queue.managed and delay and queue not in self._timers and excess(queue):
                self._start(queue, self._partition.clock.now() + delay)

    def _settle(self, queue: Queue, old: PreviousQuota) -> None:
        delay, most = queue.settings.quota_preemption_delay, queue.max
        if not delay or most is None or not excess(queue):
            self._clear(queue)
            return
        lower, higher = _compare(old.most or NOTHING, most)
        timer = self._timers.get(queue)
        if timer is not None:
            if not (lower and higher) and delay != old.delay:
                self._start(queue, timer.due + delay - old.delay)
        elif (lower and not higher) or (not lower and not higher and not old.delay):
            self._start(queue, self._partition.clock.now() + delay)

    def changed(self, queue: Queue, before: Resource | None) -> None:
        """Start, move or cancel the delay after a quota policy has changed the max of a queue."""
        if self.enabled and queue.managed:
            self._settle(queue, PreviousQuota(before, queue.settings.quota_preemption_delay))

    def exceeded(self, queue: Queue) -> None:
        """Start the delay after usage grew without a quota check, as during recovery."""
        delay = queue.settings.quota_preemption_delay
        if not self.enabled or not delay or not queue.managed or queue.parent is None:
            return
        if queue not in self._timers and excess(queue):
            self._start(queue, self._partition.clock.now() + delay)

    def _start(self, queue: Queue, due: int, *, repeated: bool = False) -> None:
        self._clear(queue)
        due = max(due, self._partition.clock.now())
        self._timers[queue] = self._partition.timers.at(due, lambda: self._run(queue, repeated=repeated))

    def _clear(self, queue: Queue) -> None:
        timer = self._timers.pop(queue, None)
        if timer is not None:
            timer.cancel()

    def _run(self, queue: Queue, *, repeated: bool = False) -> None:
        """Preempt the excess at the end of the delay; again later if the policy's answers depend on time."""
        del self._timers[queue]
        self._unenforced.pop(queue, None)
        over = excess(queue)
        if not over:
            return
        chosen = select_for_quota(queue, over, self.policy)
        cause = PreemptionCause("quota", queue, amount=MappingProxyType(over))
        victims = self.policy.modes(chosen, cause) or {}
        path = queue.path
        if victims:
            message = f"preempting allocations to enforce new max quota for queue : {path}"
            event = f"Preempted by Quota change enforcement process in {path}"
            self._evictor.evict(victims, message, event)
        if excess(queue):
            self._unenforced[queue] = None
            self._repeat(queue)
        if repeated and not victims:
            return
        summary = (
            f"Quota Preemption results summary: preemptable resources: {in_words(over)}, "
            f"claimed resources: {in_words(total_of(victims))}, selected victims: {len(victims)}, "
            f"preempted victims: {len(victims)}"
        )
        self._partition.changes.quota_enforced(queue, summary)

    def _repeat(self, queue: Queue) -> None:
        """Try again after the refresh interval of the policy, if it has one."""
        if self.policy.refresh:
            self._start(queue, self._partition.clock.now() + self.policy.refresh, repeated=True)


def excess(queue: Queue) -> Tally:
    """Return the usage above the queue's max, not counting allocations that are being preempted."""
    most = queue.max or NOTHING
    found: Tally = {}
    for name, limit in most.items():
        over = queue.allocated.get(name, 0) - queue.preempting.get(name, 0) - limit
        if over > 0:
            found[name] = over
    return found


def _compare(old: Mapping[str, int], new: Mapping[str, int]) -> tuple[bool, bool]:
    """Return two flags: any type was lowered, any type was raised; a missing type is unlimited."""
    lower = any(name not in old or amount < old[name] for name, amount in new.items())
    higher = any(name not in new or amount < new[name] for name, amount in old.items())
    return lower, higher
