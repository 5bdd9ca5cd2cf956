"""Queues: a tree of shares, with what runs and waits in each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from yunikorn.config.acl import NOBODY
from yunikorn.config.properties import QueueSettings
from yunikorn.objects.ask import INT32_MAX, INT32_MIN
from yunikorn.objects.pending_class import not_started_part
from yunikorn.objects.sorted_members import QueueMember, SortedMembers
from yunikorn.resources import NOTHING, Resource, Tally, above_zero, smaller_of
from yunikorn.states import QUEUE, STOPPED

if TYPE_CHECKING:
    from yunikorn.config.acl import Acl
    from yunikorn.config.schema import LimitConfig, TemplateConfig
    from yunikorn.objects.application import Application
    from yunikorn.objects.pending_class import PendingClass
    from yunikorn.objects.usage_history import UsageHistory

ROOT = "root"
RECOVERY = "root.@recovery@"
"""The queue of applications that must be taken although no rule places them (facts §5.1)."""


class ClusterSize:
    """The size of a partition, shared by its queues."""

    __slots__ = ("stop_starts", "times_full", "total", "version")

    def __init__(self) -> None:
        self.total: Resource = NOTHING
        """The capacities of all nodes; no zero entries."""
        self.version = 0
        """Counts the changes of the total."""
        self.times_full = 0
        """Counts how often a queue came to run as many applications as it may."""
        self.stop_starts = 0
        """Counts stops and starts of queues."""

    def set(self, total: Resource) -> None:
        """The cluster has another size now."""
        self.total = total
        self.version += 1


class Queue(QueueMember):
    """A queue: a leaf holds applications, a parent holds queues."""

    __slots__ = (
        "_levels",
        "_measured",
        "_measures",
        "_quota",
        "admin_acl",
        "applications",
        "capped",
        "chain",
        "children",
        "cluster",
        "dirty",
        "full",
        "guaranteed",
        "history",
        "is_leaf",
        "limits",
        "managed",
        "max_applications",
        "name",
        "order",
        "over_quota",
        "over_quota_bits",
        "parent",
        "path",
        "policy_excluded",
        "preempting",
        "properties",
        "running",
        "settings",
        "sorted_members",
        "start_blocked_bits",
        "state",
        "stopped_by_call",
        "submit_acl",
        "template",
        "waiting",
    )

    def __init__(
        self, name: str, parent: Queue | None, cluster: ClusterSize, *, is_leaf: bool, managed: bool
    ) -> None:
        super().__init__(name, INT32_MIN)
        self.name = name
        self.parent = parent
        self.path: str = f"{parent.path}.{name}" if parent is not None else name
        self.chain: tuple[Queue, ...] = (self,) if parent is None else (self, *parent.chain)
        """This queue and all above, root last."""
        self.cluster = cluster
        self.is_leaf = is_leaf
        self.managed = managed
        """Whether it comes from the configuration; others were made by placement."""
        self.state = QUEUE.initial
        self.stopped_by_call = False
        """Whether a call stopped it: then a configuration does not start it."""
        self.children: dict[str, Queue] = {}
        self.applications: dict[str, Application] = {}
        self.guaranteed: Resource = NOTHING
        self._quota: Resource | None = None
        self.capped: tuple[Queue, ...] = (self,) if parent is None else parent.capped
        """Those of this queue and all above that have a quota, leaf first: root, which is limited by the
        size of the cluster, is always the last."""
        self.max_applications = 0
        self.properties: Mapping[str, str] = {}
        self.settings = QueueSettings()
        self.admin_acl: Acl = NOBODY
        self.submit_acl: Acl = NOBODY
        self.template: TemplateConfig | None = None
        self.limits: Sequence[LimitConfig] = ()
        self.history: UsageHistory | None = None
        """What it used lately, if the policy of its parent looks at that; told before `allocated` changes."""
        self.preempting: Tally = {}
        """Of what is allocated, what has been told to go."""
        self.waiting = 0
        """Applications in it and below it that have an ask that waits."""
        self.running = 0
        """Applications below it that count as running."""
        self._levels: dict[int, int] = {}
        self._measures: tuple[Mapping[str, int], Mapping[str, int]] = (NOTHING, NOTHING)
        self._measured = -1
        # What the scheduling layer keeps here: the order of what is in it, and what is worth trying.
        self.sorted_members: SortedMembers[Any] = SortedMembers()
        self.dirty: list[Any] = []
        """Members that changed since the line was last put in order."""
        self.order: Any = None
        """Its policy, made ready by the scheduling layer."""
        # Root, which has no parent, has nowhere to be put in order.
        self.is_dirty = parent is None
        self.policy_excluded = 0
        """Bits of pending classes that only members wait for whom the policy keeps out for now."""
        self.over_quota: dict[int, PendingClass] = {}
        """By bit: pending classes that its quota has no room for now."""
        self.over_quota_bits = 0
        self.full = False
        """Whether as many applications run as may: none that has not started is worth trying."""
        self.start_blocked_bits = 0
        """Bits of pending classes that are not worth trying because it is full."""

    @property
    def label(self) -> str:
        """What a message calls it."""
        return f"queue {self.path}"

    def on_state_change(self, before: str, reason: str) -> None:
        """Called by the state machine: a queue that is started again may have much to try."""
        self.mark_dirty()
        if STOPPED in (before, self.state):
            self.cluster.stop_starts += 1
        if self.parent is not None and self.state != STOPPED:
            self.parent.activate(self.bits)

    def walk(self) -> Iterator[Queue]:
        """This queue and all below, parents first, in the order they were made."""
        yield self
        for child in self.children.values():
            yield from child.walk()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is in it."""
        return not self.applications and not self.children

    @property
    def is_cluttered(self) -> bool:
        """Whether most of the members that wait to be put in order have left."""
        return len(self.dirty) > 16 + 2 * (len(self.applications) + len(self.children))

    def waits(self) -> bool:
        """Whether anything is to be tried in it, as its parent sees it."""
        return self.waiting > 0 and self.state != STOPPED

    # -- quotas -------------------------------------------------------------------------------------

    @property
    def max(self) -> Resource | None:
        """The quota; for root the size of the cluster. A missing type is unlimited (facts §5.5)."""
        return self.cluster.total if self.parent is None else self._quota

    def set_quota(self, guaranteed: Resource | None, quota: Resource | None) -> None:
        """Set guarantee and quota; an amount that is nothing but zeros counts as unset (facts §5.5)."""
        self.guaranteed = guaranteed if guaranteed is not None and above_zero(guaranteed) else NOTHING
        self._quota = quota if quota is not None and above_zero(quota) else None
        # Shares in and below it are taken of something else now; elsewhere nothing changes.
        for queue in self.walk():
            queue._count_caps()
            queue._measured = -1
            queue.sorted_members.version = -1
            queue.mark_dirty()
        self.room_grew()

    def _count_caps(self) -> None:
        if self.parent is not None:
            above = self.parent.capped
            self.capped = above if self._quota is None else (self, *above)

    @property
    def headroom(self) -> Resource | None:
        """What may still be allocated here: the smallest on the way up; None is unlimited (facts §5.6)."""
        above = self.parent.headroom if self.parent is not None else None
        quota = self.max
        if quota is None:
            return above
        own = Resource({name: limit - self.allocated.get(name, 0) for name, limit in quota.items()})
        return own if above is None else smaller_of(own, above)

    def has_room(self, pairs: Sequence[tuple[str, int]]) -> bool:
        """Whether this queue's own quota has room for an amount."""
        allocated = self.allocated
        if self.parent is not None:
            quota = self._quota
            return quota is None or _fits(quota, allocated, pairs)
        total = self.cluster.total
        try:
            # Asked at every decision: nearly always the cluster has all types and runs something of each.
            for name, amount in pairs:
                if allocated[name] + amount > total[name]:
                    return False
        except KeyError:
            return _fits(total, allocated, pairs)
        return True

    def measures(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """`fair_max` and `fair_total`, worked out anew when the cluster or a quota has changed."""
        version = self.cluster.version
        if self._measured != version:
            parent = self.parent
            if parent is None:
                fair_max: Mapping[str, int] = self.cluster.total
            elif self._quota is None or not parent.fair_max:
                fair_max = parent.fair_max
            else:
                fair_max = {**parent.fair_max, **self._quota}
            self._measures = (fair_max, {**self.cluster.total, **self.guaranteed})
            self._measured = version
        return self._measures

    @property
    def fair_max(self) -> Mapping[str, int]:
        """The cluster's size, overlaid by the quotas on the way down (facts §2.6)."""
        return self.measures()[0]

    @property
    def fair_total(self) -> Mapping[str, int]:
        """What an application's share is taken of: guaranteed per type, else the cluster (decision 17)."""
        return self.measures()[1]

    @property
    def total(self) -> Mapping[str, int]:
        """The cluster's size."""
        return self.cluster.total

    @property
    def recent(self) -> Mapping[str, float]:
        """What it used lately: empty unless the policy of its parent has a half-life."""
        return {} if self.history is None else self.history.recent()

    # -- access -------------------------------------------------------------------------------------

    def submit_allowed(self, user: str, groups: Sequence[str]) -> bool:
        """Whether this user may submit here: by either ACL, here or further up (facts §1.9)."""
        if self.path == RECOVERY:
            return False
        return any(
            queue.submit_acl.allows(user, groups) or queue.admin_acl.allows(user, groups)
            for queue in self.chain
        )

    def admin_allowed(self, user: str, groups: Sequence[str]) -> bool:
        """Whether this user may administer it, by its admin ACL or one further up."""
        return any(queue.admin_acl.allows(user, groups) for queue in self.chain)

    # -- priority -----------------------------------------------------------------------------------

    def count_priority(self, old: int, new: int) -> None:
        """A member's priority went from `old` to `new`; the least int32 counts as none (facts §3.4)."""
        levels = self._levels
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
        if altered:
            self.publish_priority()

    def publish_priority(self) -> None:
        """Compute the priority that the parent sees, and tell it when it changed."""
        raw = max(self._levels, default=INT32_MIN)
        if raw == INT32_MIN:
            priority = raw
        elif self.settings.priority_fence:
            priority = self.settings.priority_offset
        else:
            priority = max(INT32_MIN + 1, min(INT32_MAX, raw + self.settings.priority_offset))
        if priority != self.priority:
            old, self.priority = self.priority, priority
            self.mark_dirty()
            if self.parent is not None:
                self.parent.count_priority(old, priority)

    # -- standing -----------------------------------------------------------------------------------

    def mark_dirty(self) -> None:
        """Something about it changed that its place in the parent's line may depend on."""
        parent = self.parent
        if parent is not None and not self.is_dirty:
            self.is_dirty = True
            parent.dirty.append(self)

    def activate(self, bits: int) -> None:
        """Requests of these pending classes are worth trying below, in this queue and all above."""
        # All the way up, also past a queue that has the bits: the one above may have dropped them, when
        # nothing waited here any more or while this one was stopped.
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

    def mark_over_quota(self, pending_class: PendingClass) -> None:
        """Its quota has no room for this pending class, until usage falls or the quota changes."""
        self.over_quota[pending_class.bit] = pending_class
        self.over_quota_bits |= pending_class.bits
        self.bits &= ~pending_class.bits

    def retry(self, pending_class: PendingClass) -> None:
        """Try a pending class again that its quota had no room for."""
        if self.over_quota.pop(pending_class.bit, None) is not None:
            self.over_quota_bits &= ~pending_class.bits
            self.activate(pending_class.bits)

    def count_running(self, difference: int) -> None:
        """So many more applications below count as running."""
        self.running += difference
        if self.max_applications or self.full:
            self.check_full()

    @property
    def count(self) -> int:
        """Applications below it that count as running."""
        return self.running

    def check_full(self) -> None:
        """Let applications start, or keep them from it, by how many run and may run (facts §5.8)."""
        full = 0 < self.max_applications <= self.running
        if full and not self.full:
            self.full = True
            self.cluster.times_full += 1
            not_started = not_started_part(self.bits)
            self.start_blocked_bits |= not_started
            self.bits ^= not_started
        elif self.full and not full:
            self.full = False
            lost, self.start_blocked_bits = self.start_blocked_bits, 0
            self.activate(lost)

    def room_grew(self) -> None:
        """Usage fell or the quota changed: try again what has room now."""
        if self.over_quota:
            for bit, pending_class in list(self.over_quota.items()):
                if self.has_room(pending_class.ask_class.pairs):
                    del self.over_quota[bit]
                    self.over_quota_bits &= ~pending_class.bits
                    self.activate(pending_class.bits)

    def reconsider(self) -> None:
        """Forget what its quota was too small for: it will be found out again."""
        self.over_quota.clear()
        self.over_quota_bits = 0
        self.check_full()
        self.mark_dirty()

    def forget_pending_classes(self, bits: int) -> None:
        """These pending classes are no more; their bits will serve for others."""
        self.start_blocked_bits &= ~bits
        if self.over_quota_bits & bits:
            self.over_quota = {
                bit: pending_class for bit, pending_class in self.over_quota.items() if not bit & bits
            }
            self.over_quota_bits &= ~bits

    def __repr__(self) -> str:
        return f"<Queue {self.path} {self.state}>"


def _fits(quota: Mapping[str, int], allocated: Mapping[str, int], pairs: Sequence[tuple[str, int]]) -> bool:
    for name, amount in pairs:
        limit = quota.get(name)
        if limit is not None and allocated.get(name, 0) + amount > limit:
            return False
    return True
