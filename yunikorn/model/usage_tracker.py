"""Usage trackers: usage and limit of one user or group in a queue and all queues below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from yunikorn.resources import NOTHING, Resource, Tally, above_zero

if TYPE_CHECKING:
    from yunikorn.config.queues_yaml import LimitConfig

USER, GROUP = "user", "group"


class UsageTracker:
    """Usage of a user or group at a queue, and the limit if there is one."""

    __slots__ = (
        "_applications",
        "_usage",
        "flush",
        "full",
        "full_since",
        "kind",
        "max_applications",
        "max_resources",
        "members",
        "name",
        "over_limit",
        "path",
        "pending_numbers",
        "times_full",
    )

    def __init__(self, kind: str, name: str, path: str, flush: Callable[[], None]) -> None:
        self.kind = kind
        self.name = name
        self.path = path
        self.flush = flush
        """Callback that adds usage not booked yet; without effect for limited users and groups."""
        self._usage: Tally = {}
        self._applications: dict[str, None] = {}
        self.members = 0
        """Number of applications of the user or group, with or without allocations."""
        self.max_resources: Resource | None = None
        self.max_applications = 0
        self.full = False
        """True if no further application may start; updated by `PendingClasses.count_changed`."""
        self.times_full = self.full_since = 0
        """Number of times that it became true, and the latest time (ns)."""
        self.pending_numbers: dict[int, None] = {}
        """Numbers of the pending classes under the limit, in order of creation."""
        self.over_limit: dict[int, None] = {}
        """Numbers of the pending classes that exceed the limit at present."""

    @property
    def label(self) -> str:
        """Name of the user or group and the queue in messages."""
        return f"{self.kind} {self.name} in queue {self.path}"

    @property
    def usage(self) -> Tally:
        """Allocated resources of the applications."""
        self.flush()
        return self._usage

    @property
    def applications(self) -> tuple[str, ...]:
        """Ids of the applications that count as running."""
        self.flush()
        return tuple(self._applications)

    @property
    def is_limited(self) -> bool:
        """True if there is a limit on resources or on running applications."""
        return self.max_resources is not None or self.max_applications > 0

    @property
    def count(self) -> int:
        """Number of applications that count as running."""
        return len(self._applications)

    @property
    def is_full(self) -> bool:
        """True if the maximum of running applications is reached."""
        return 0 < self.max_applications <= len(self._applications)

    def check_full(self, now: int) -> None:
        """Update `full` according to the number of applications."""
        full = self.is_full
        if full and not self.full:
            self.times_full += 1
            self.full_since = now
        self.full = full

    def set_limit(self, limit: LimitConfig | None) -> None:
        """Set or clear the limit; an amount with only zeros counts as unset."""
        amount = limit.max_resources if limit is not None else None
        self.max_resources = amount if amount is not None and above_zero(amount) else None
        self.max_applications = limit.max_applications if limit is not None else 0

    def start(self, app_id: str) -> bool:
        """Count an application as running; return True if it was not counted before."""
        if app_id in self._applications:
            return False
        self._applications[app_id] = None
        return True

    def stop(self, app_id: str) -> bool:
        """Stop counting an application; return True if it was counted before."""
        return self._applications.pop(app_id, app_id) is None

    def book(self, pairs: Iterable[tuple[str, int]]) -> None:
        """Add amounts, which may be negative, to the usage."""
        usage = self._usage
        for name, amount in pairs:
            usage[name] = usage.get(name, 0) + amount

    def has_room(self, pairs: Sequence[tuple[str, int]]) -> bool:
        """Return True if the limit on resources has room for an amount; types not listed are unlimited."""
        most = self.max_resources
        if most is not None:
            usage = self._usage
            for name, amount in pairs:
                limit = most.get(name)
                if limit is not None and usage.get(name, 0) + amount > limit:
                    return False
        return True

    @property
    def headroom(self) -> Resource:
        """Remaining limit for the listed types."""
        most: Resource = self.max_resources or NOTHING
        return Resource({name: limit - self.usage.get(name, 0) for name, limit in most.items()})
