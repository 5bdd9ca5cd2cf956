"""Queues: a tree with guarantees and quotas, and the usage and demand of each queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from yunikorn.api.views import NO_USAGE
from yunikorn.config.acl import NOBODY
from yunikorn.config.properties import QueueSettings
from yunikorn.index.sorted_members import QueueMember, SortedMembers
from yunikorn.model.ask_class import not_started_part, pending_numbers
from yunikorn.model.attempt_log import OVER_QUOTA, AttemptLog
from yunikorn.resources import INT32_MAX, INT32_MIN, NOTHING, Resource, Tally, above_zero, smaller_of
from yunikorn.states import QUEUE, STOPPED

if TYPE_CHECKING:
    from yunikorn.api import UsageView
    from yunikorn.config.acl import Acl
    from yunikorn.config.queues_yaml import LimitConfig, TemplateConfig
    from yunikorn.model.application import Application
    from yunikorn.model.ask_class import PendingClass
    from yunikorn.model.policy_quota import PolicyQuota
    from yunikorn.model.sibling_usage import Lender
    from yunikorn.model.usage_history import UsageHistory

ROOT = "root"
RECOVERY = "root.@recovery@"
"""Queue for applications that must be accepted even if no placement rule matches, as in YuniKorn 1.9."""


class UsageObserver(Protocol):
    """Observer of the usage of a queue."""

    def note(self, app: Application) -> None:
        """Handle a change of the allocated amount, which an application is about to make."""
        ...


class _Observers:
    """Several observers of one queue."""

    __slots__ = ("_observers",)

    def __init__(self, observers: Sequence[UsageObserver]) -> None:
        self._observers = observers

    def note(self, app: Application) -> None:
        """Notify all observers."""
        for observer in self._observers:
            observer.note(app)


class ClusterSize:
    """The size of a partition, and the clock and the version counters that its queues share."""

    __slots__ = ("now", "owner_usage", "stop_starts", "times_full", "total", "version")

    def __init__(self, now: Callable[[], int]) -> None:
        self.now = now
        """Clock of the partition (ns)."""
        self.total: Resource = NOTHING
        self.owner_usage: Any = None
        """`OwnerUsage` of the partition; None unless a policy reads usage by owner."""
        """Sum of the capacities of all nodes, without zero entries."""
        self.version = 0
        """Incremented whenever the total changes or the partition is reconfigured."""
        self.times_full = 0
        """Incremented whenever a queue reaches its maximum of running applications."""
        self.stop_starts = 0
        """Incremented whenever a queue or the partition is stopped or started."""

    def set(self, total: Resource) -> None:
        """Set a new total."""
        self.total = total
        self.version += 1


class Queue(QueueMember):
    """A queue: a leaf contains applications, a parent contains queues."""

    __slots__ = (
        "_levels", "_measured", "_measures", "_quota", "admin_acl", "app_usage", "applications",
        "attempts", "capped", "chain", "children", "cluster", "configured_max", "dirty", "full",
        "full_since", "guaranteed", "history", "is_leaf", "lender", "limits", "managed",
        "max_applications", "name", "observer", "order", "over_quota", "over_quota_bits", "parent",
        "path", "policy_excluded", "policy_quota", "preempting", "properties", "running",
        "settings", "sorted_members", "start_blocked_bits", "state", "state_since",
        "stopped_by_call", "submit_acl", "template", "times_full", "waiting",
    )  # fmt: skip

    def __init__(
        self, name: str, parent: Queue | None, cluster: ClusterSize, *, is_leaf: bool, managed: bool
    ) -> None:
        super().__init__(name, INT32_MIN)
        self.name = name
        self.parent = parent
        self.path: str = f"{parent.path}.{name}" if parent is not None else name
        self.chain: tuple[Queue, ...] = (self,) if parent is None else (self, *parent.chain)
        """This queue and its parents, up to and including root."""
        self.cluster = cluster
        self.is_leaf = is_leaf
        self.managed = managed
        """True for configured queues; False for dynamic queues created by placement."""
        self.state = QUEUE.initial
        self.state_since = cluster.now()
        """Time of the latest change of the state (ns)."""
        self.stopped_by_call = False
        """True if the queue was stopped by a call (see `scheduling.queue_admin`); a configuration does not
        start it."""
        self.children: dict[str, Queue] = {}
        self.applications: dict[str, Application] = {}
        self.guaranteed: Resource = NOTHING
        self.configured_max: Resource | None = None
        """Quota from the configuration, a template or a tag; None for root."""
        self._quota: Resource | None = None
        """Quota in force; None as well if `policy_quota` has to be asked for it each time."""
        self.policy_quota: PolicyQuota | None = None
        """Quota set by the quota policy of the queue; None without a policy."""
        self.capped: tuple[Queue, ...] = (self,) if parent is None else parent.capped
        """Queues in `chain` that have a quota or a quota policy, leaf first.

        Root is always the last entry, because it is limited by the size of the cluster."""
        self.max_applications = 0
        self.properties: Mapping[str, str] = {}
        self.settings = QueueSettings()
        self.admin_acl: Acl = NOBODY
        self.submit_acl: Acl = NOBODY
        self.template: TemplateConfig | None = None
        self.limits: Sequence[LimitConfig] = ()
        self.history: UsageHistory | None = None
        """Usage history, if the policy of the parent needs one."""
        self.lender: Lender | None = None
        """Part of the queue in what its siblings may borrow; None if no quota policy depends on it."""
        self.app_usage: UsageObserver | None = None
        """Keeps the usage histories of the applications; None unless the policy of the queue needs them."""
        self.observer: UsageObserver | None = None
        """Notified before `allocated` changes; None if there is nothing to notify (see `observe`)."""
        self.preempting: Tally = {}
        """Allocated resources of victims that have not ended yet."""
        self.waiting = 0
        """Number of applications in and below the queue that have a waiting ask."""
        self.running = 0
        """Number of applications in and below the queue that count as running."""
        self._levels: dict[int, int] = {}
        self._measures: tuple[Mapping[str, int], Mapping[str, int]] = (NOTHING, NOTHING)
        self._measured = -1
        # Order of the members and schedulable pending classes, maintained by the scheduling layer.
        self.sorted_members: SortedMembers[Any] = SortedMembers()
        self.dirty: list[Any] = []
        """Members that changed since their order was last updated."""
        self.order: Any = None
        """The sorting policy, prepared by the scheduling layer."""
        # Root has no parent to be sorted in. The permanent flag keeps it out of every list of changed
        # members.
        self.is_dirty = parent is None
        self.policy_excluded = 0
        """Bits of pending classes requested only by applications that the policy excludes at present."""
        self.over_quota: dict[int, PendingClass] = {}
        """Pending classes that exceed the quota at present, by number."""
        self.attempts: dict[int, AttemptLog] = {}
        """Attempts that the quota stopped, by number of the pending class."""
        self.over_quota_bits = 0
        self.full = False
        """True if the maximum of running applications is reached, so that no further application may
        start."""
        self.times_full = self.full_since = 0
        """Number of times that it was reached, and the latest time (ns)."""
        self.start_blocked_bits = 0
        """Bits of pending classes withheld while the queue is `full`."""

    @property
    def label(self) -> str:
        """Name of the queue in messages."""
        return f"queue {self.path}"

    def on_state_change(self, before: str, reason: str) -> None:
        """Count stops and starts, and propagate the schedulable requests of a restarted queue."""
        self.state_since = self.cluster.now()
        self.mark_dirty()
        if STOPPED in (before, self.state):
            self.cluster.stop_starts += 1
        if self.parent is not None and self.state != STOPPED:
            self.parent.activate(self.bits)

    def walk(self) -> Iterator[Queue]:
        """Yield this queue and all queues below, parents first, in order of creation."""
        yield self
        for child in self.children.values():
            yield from child.walk()

    @property
    def is_empty(self) -> bool:
        """True if the queue has no applications and no children."""
        return not self.applications and not self.children

    @property
    def is_cluttered(self) -> bool:
        """True if most of the members in `dirty` have left the queue."""
        return len(self.dirty) > 16 + 2 * (len(self.applications) + len(self.children))

    def is_schedulable(self) -> bool:
        """Return True if the parent may schedule requests of this queue."""
        return self.waiting > 0 and self.state != STOPPED

    # -- quotas -------------------------------------------------------------------------------------

    @property
    def max(self) -> Resource | None:
        """Quota in force; for root the size of the cluster. Types that are not listed are unlimited."""
        if self.parent is None:
            return self.cluster.total
        return self._quota if self.policy_quota is None else self.policy_quota.amount

    def set_quota(self, guaranteed: Resource | None, quota: Resource | None) -> None:
        """Set guarantee and configured quota; amounts with only zeros count as unset, as in YuniKorn 1.9.

        A quota policy has to be asked again afterwards.
        """
        self.guaranteed = guaranteed if guaranteed is not None and above_zero(guaranteed) else NOTHING
        self.configured_max = quota if quota is not None and above_zero(quota) else None
        if self.policy_quota is None:
            self._quota = self.configured_max
        if self.lender is not None:
            self.lender.note()
        self._quota_changed()

    def use_policy_quota(self, policy_quota: PolicyQuota | None) -> None:
        """Put the quota of a policy in force; None puts the configured quota in force."""
        self.policy_quota = policy_quota
        self._quota = self.configured_max if policy_quota is None else policy_quota.lasting_amount
        self._quota_changed()

    def apply_policy_quota(self) -> None:
        """Apply a changed amount of `policy_quota`."""
        policy_quota = self.policy_quota
        assert policy_quota is not None
        if policy_quota.siblings is None:
            self._quota = policy_quota.amount
            self._quota_changed()
        else:
            # Shares depend on the configured quota, so that a decision need not sort the members again.
            self.mark_dirty()
            self.room_grew()

    def _quota_changed(self) -> None:
        # Shares in and below this queue are relative to other amounts now; other queues are not affected.
        for queue in self.walk():
            queue._count_caps()
            queue._measured = -1
            queue.sorted_members.version = -1
            queue.mark_dirty()
        self.room_grew()

    def _count_caps(self) -> None:
        if self.parent is not None:
            above = self.parent.capped
            self.capped = above if self._quota is None and self.policy_quota is None else (self, *above)

    @property
    def headroom(self) -> Resource | None:
        """Remaining quota of this queue and its parents, the minimum per type; None means unlimited."""
        above = self.parent.headroom if self.parent is not None else None
        quota = self.max
        if quota is None:
            return above
        own = Resource({name: limit - self.allocated.get(name, 0) for name, limit in quota.items()})
        return own if above is None else smaller_of(own, above)

    def has_room(self, pairs: Sequence[tuple[str, int]]) -> bool:
        """Return True if this queue's own quota has room for an amount."""
        allocated = self.allocated
        if self.parent is not None:
            quota = self._quota
            if quota is None:
                if self.policy_quota is None:
                    return True
                quota = self.policy_quota.current()
                if quota is None:
                    return True
            return _fits(quota, allocated, pairs)
        total = self.cluster.total
        try:
            # Fast path, because every decision calls this: the cluster usually has all types and runs
            # something of each.
            for name, amount in pairs:
                if allocated[name] + amount > total[name]:
                    return False
        except KeyError:
            return _fits(total, allocated, pairs)
        return True

    def measures(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Return `fair_max` and `fair_total`, recomputed when the cluster or a quota has changed."""
        version = self.cluster.version
        if self._measured != version:
            parent = self.parent
            if parent is None:
                fair_max: Mapping[str, int] = self.cluster.total
            else:
                quota = self._share_max()
                fair_max = parent.measures()[0]
                if quota is not None and fair_max:
                    fair_max = {**fair_max, **self._bounded(quota)}
            self._measures = (fair_max, {**self.cluster.total, **self.guaranteed})
            self._measured = version
        return self._measures

    def _share_max(self) -> Resource | None:
        """Return the quota to which shares relate: what is borrowed from siblings does not count."""
        policy_quota = self.policy_quota
        if policy_quota is None:
            return self._quota
        return policy_quota.amount if policy_quota.siblings is None else self.configured_max

    def _bounded(self, quota: Resource) -> Resource:
        """Return `quota`, reduced to the quotas above if a policy sets one of these quotas."""
        if not any([queue.policy_quota is not None for queue in self.chain]):
            return quota
        for queue in self.chain[1:-1]:
            most = queue._share_max() or NOTHING
            quota = Resource({name: min(amount, most.get(name, amount)) for name, amount in quota.items()})
        return quota

    @property
    def unused_by_siblings(self) -> Mapping[str, int]:
        """Amounts that the siblings leave of their configured quotas; empty if no policy depends on them."""
        return NOTHING if self.lender is None else self.lender.unused_by_others()

    def observe(self) -> None:
        """Update `observer` after a change of what observes: `history`, `app_usage` and others."""
        by_owner: UsageObserver | None = self.cluster.owner_usage if self.is_leaf else None
        kept: tuple[UsageObserver | None, ...] = (self.history, self.app_usage, by_owner, self.lender)
        found = [one for one in kept if one is not None]
        self.observer = found[0] if len(found) == 1 else _Observers(found) if found else None

    @property
    def fair_max(self) -> Mapping[str, int]:
        """Size of the cluster, overridden per type by the quotas from root down to this queue."""
        return (self._measures if self._measured == self.cluster.version else self.measures())[0]

    @property
    def fair_total(self) -> Mapping[str, int]:
        """Amount that shares of applications relate to: per type the guarantee, else the cluster size."""
        return self.measures()[1]

    @property
    def total(self) -> Mapping[str, int]:
        """Size of the cluster."""
        return self.cluster.total

    @property
    def recent(self) -> Mapping[str, float]:
        """Decayed usage; empty unless the policy of the parent has a half-life."""
        return {} if self.history is None else self.history.recent()

    @property
    def usage(self) -> UsageView:
        """Usage by owner that the policy of the parent reads."""
        return NO_USAGE if self.parent is None else self.parent.order.usage

    # -- access -------------------------------------------------------------------------------------

    def submit_allowed(self, user: str, groups: Sequence[str]) -> bool:
        """Return True if the submit or admin ACL of this queue or a parent permits the user to submit."""
        if self.path == RECOVERY:
            return False
        return any(
            queue.submit_acl.allows(user, groups) or queue.admin_acl.allows(user, groups)
            for queue in self.chain
        )

    def admin_allowed(self, user: str, groups: Sequence[str]) -> bool:
        """Return True if the admin ACL of this queue or a parent permits the user."""
        return any(queue.admin_acl.allows(user, groups) for queue in self.chain)

    # -- priority -----------------------------------------------------------------------------------

    def may_preempt(self) -> bool:
        """Return True if requests of this leaf may preempt, by a guarantee or by the properties."""
        # Called for each new request.
        settings = self.settings
        if settings.preempts_by_priority or settings.preempts_within:
            return True
        for queue in self.chain:
            if queue.guaranteed:
                return True
        return False

    def count_priority(self, old: int, new: int) -> None:
        """Update the priority after a member's priority changed; -2^31 means that no request waits.

        A change of the priority visible to the parent is propagated.
        """
        queue: Queue | None = self
        while queue is not None:
            levels = queue._levels
            altered = False
            if old != INT32_MIN:
                left = levels[old] - 1
                if left:
                    levels[old] = left
                else:
                    del levels[old]
                    altered = True
            if new != INT32_MIN:
                alike = levels.get(new, 0)
                levels[new] = alike + 1
                altered = altered or not alike
            if not altered:
                return
            old = queue.priority
            # Nothing waits there: that is known without the call.
            new = queue._visible_priority() if levels else INT32_MIN
            if new == old:
                return
            queue.priority = new
            if not queue.is_dirty:
                queue.mark_dirty()
            queue = queue.parent

    def publish_priority(self) -> None:
        """Recompute the priority visible to the parent, and propagate a change."""
        old, new = self.priority, self._visible_priority()
        if new != old:
            self.priority = new
            self.mark_dirty()
            if self.parent is not None:
                self.parent.count_priority(old, new)

    def _visible_priority(self) -> int:
        """Return the priority that the parent sees; -2^31 if no request waits."""
        levels, settings = self._levels, self.settings
        if not levels:
            return INT32_MIN
        if settings.priority_fence:
            return settings.priority_offset
        priority = max(levels) + settings.priority_offset
        if not INT32_MIN < priority <= INT32_MAX:
            priority = INT32_MAX if priority > 0 else INT32_MIN + 1
        return priority

    # -- position in the parent, and schedulable requests -------------------------------------------

    def mark_dirty(self) -> None:
        """Mark the queue as changed, so that the parent updates its position."""
        parent = self.parent
        if parent is not None and not self.is_dirty:
            self.is_dirty = True
            parent.dirty.append(self)

    def activate(self, bits: int) -> None:
        """Make requests of these pending classes schedulable in this queue and all parents."""
        # The loop does not stop at a queue that has the bits already: a parent may have dropped them while
        # nothing waited here or while this queue was stopped.
        queue: Queue | None = self
        while queue is not None:
            bits &= ~queue.over_quota_bits
            if queue.full:
                not_started = not_started_part(bits)
                queue.start_blocked_bits |= not_started
                bits ^= not_started
            if not bits:
                return
            queue.bits |= bits
            if queue.block is not None:
                queue.block.bits |= bits
            queue = queue.parent

    def mark_over_quota(self, pending_class: PendingClass, now: int) -> None:
        """Record that the quota has no room for this pending class, until usage or the quota changes."""
        number = pending_class.number
        self.over_quota[number] = pending_class
        log = self.attempts.get(number)
        if log is None:
            log = self.attempts[number] = AttemptLog()
        log.note({OVER_QUOTA: 1}, now)
        self.over_quota_bits |= pending_class.bits
        self.bits &= ~pending_class.bits

    def retry(self, pending_class: PendingClass) -> None:
        """Make a pending class schedulable again that exceeded the quota."""
        if self.over_quota.pop(pending_class.number, None) is not None:
            self.over_quota_bits &= ~pending_class.bits
            self.activate(pending_class.bits)

    def count_running(self, difference: int) -> None:
        """Add `difference` to the number of running applications."""
        self.running += difference
        if self.max_applications or self.full:
            self.check_full()

    @property
    def count(self) -> int:
        """Number of applications in and below the queue that count as running."""
        return self.running

    def check_full(self) -> None:
        """Permit or prevent starts according to `running` and `max_applications`."""
        full = 0 < self.max_applications <= self.running
        if full and not self.full:
            self.full = True
            self.times_full += 1
            self.full_since = self.cluster.now()
            self.cluster.times_full += 1
            not_started = not_started_part(self.bits)
            self.start_blocked_bits |= not_started
            self.bits ^= not_started
        elif self.full and not full:
            self.full = False
            lost, self.start_blocked_bits = self.start_blocked_bits, 0
            self.activate(lost)

    def room_grew(self) -> None:
        """Make the pending classes schedulable that have room after usage fell or the quota changed."""
        if self.over_quota:
            if self.policy_quota is not None:
                # A question calls this method if the quota has changed, so it must not come in the loop.
                self.policy_quota.current()
            for number, pending_class in list(self.over_quota.items()):
                if self.has_room(pending_class.ask_class.pairs):
                    del self.over_quota[number]
                    self.over_quota_bits &= ~pending_class.bits
                    self.activate(pending_class.bits)

    def reconsider(self) -> None:
        """Forget the pending classes that exceeded the quota; the next attempts will find them again."""
        self.over_quota.clear()
        self.over_quota_bits = 0
        self.check_full()
        self.mark_dirty()

    def forget_pending_classes(self, bits: int) -> None:
        """Forget dropped pending classes, whose bits will be reused."""
        self.start_blocked_bits &= ~bits
        self.over_quota_bits &= ~bits
        if self.attempts:
            # A class that exceeded the quota has a log.
            for number in pending_numbers(bits):
                self.over_quota.pop(number, None)
                self.attempts.pop(number, None)

    def __repr__(self) -> str:
        return f"<Queue {self.path} {self.state}>"


def _fits(quota: Mapping[str, int], allocated: Mapping[str, int], pairs: Sequence[tuple[str, int]]) -> bool:
    for name, amount in pairs:
        limit = quota.get(name)
        if limit is not None and allocated.get(name, 0) + amount > limit:
            return False
    return True
