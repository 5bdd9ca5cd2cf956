"""Decayed usage of the users, groups, queues and tags of a partition, for sort policies with `usage_by`.

A change of an application is booked on its owners when usage is read next, or before the application changes
again: booking from an earlier time on is exact. So a decision notes one time, and nothing else. What was used
before the start of the scheduler is credited, up to a time; what still runs then counts from that time on.
Where the credit comes late, what runs counts from the start on at first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from yunikorn.api import UsageView
from yunikorn.clock import MILLISECOND
from yunikorn.model.usage_history import UsageHistory
from yunikorn.resources import Tally, grow

if TYPE_CHECKING:
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application

KINDS = ("user", "group", "queue")
TAG = "tag:"
"""Prefix of kinds that are values of a tag of applications, such as `tag:account`."""
ROOMY = 1000
"""Number of accounts, and of changes, above which they are looked through."""
NEGLIGIBLE = 1e-3
"""Part of the mean usage of an account below which that of one without allocations is forgotten."""

UsageKey = tuple[str, str]
"""Resource manager and partition, as its configuration spells it."""
WantedUsage = tuple[float, str]
"""Half-life in seconds, and kind of owner."""


@attrs.frozen
class UsageCredit:
    """Usage before the start of the scheduler, spread evenly over a span of time."""

    rm: str
    partition: str
    queue: str
    """Path of the leaf queue."""
    user: str
    since: int
    """Begin of the span (ns); `until` is its end."""
    until: int = attrs.field(validator=lambda credit, _, until: _check_span(credit.since, until))
    service: Mapping[str, int]
    """Amounts times milliseconds by resource type."""
    groups: tuple[str, ...] = ()
    tags: Mapping[str, str] = attrs.field(factory=dict)


def _check_span(since: int, until: int) -> None:
    if until <= since:
        raise ValueError(f"usage needs a span of time: it ends at {until}, and begins at {since}")


class _Account(UsageHistory):
    """Usage of one owner."""

    __slots__ = ("held",)

    def __init__(self, half_life: float, now: Callable[[], int]) -> None:
        self.held: Tally = {}
        super().__init__(half_life, now, self.held)

    def change(self, amounts: Mapping[str, int], since: int) -> None:
        """Add amounts that are held since an earlier time; negative ones are held no more."""
        self.credit(amounts, since)
        grow(self.held, amounts)

    def credit_span(self, credit: UsageCredit) -> None:
        """Add usage that was spread over a span of time."""
        span = (credit.until - credit.since) / MILLISECOND
        rates = {name: service / span for name, service in credit.service.items()}
        self.credit(rates, credit.since)
        self.credit({name: -rate for name, rate in rates.items()}, credit.until)


@attrs.define
class KeptUsage:
    """Usage by owner of all partitions, which outlasts their sessions."""

    now: Callable[[], int]
    start: int = 0
    """Time (ns) before which usage is credited later; 0 if it is credited before the first registration."""
    by_partition: dict[UsageKey, OwnerUsage] = attrs.field(factory=dict)

    def of(self, rm: str, partition: str) -> OwnerUsage:
        """Return the usage of a partition, which may be new."""
        found = self.by_partition.get((rm, partition))
        if found is None:
            found = self.by_partition[rm, partition] = OwnerUsage(self.now, self.start)
        return found

    def enter(self, rm: str, partition: str) -> OwnerUsage:
        """Return the usage for the partition of a session, which leaves when it ends."""
        found = self.of(rm, partition)
        found.sessions += 1
        return found

    def leave(self, rm: str, partition: str, *, was_open: bool) -> None:
        """Pause the usage of a partition that is removed, and forget it if none is kept."""
        found = self.of(rm, partition)
        found.sessions -= 1
        if was_open:
            found.pause()
        if not (found.sessions or found.is_kept):
            del self.by_partition[rm, partition]


class PolicyUsage(UsageView):
    """Usage by owner as one policy sees it."""

    __slots__ = ("_half_life", "_kinds", "_usage")

    def __init__(self, usage: OwnerUsage, half_life: float, kinds: Sequence[str]) -> None:
        self._usage, self._half_life, self._kinds = usage, half_life, kinds

    @property
    def wanted(self) -> Iterable[WantedUsage]:
        """Usage that is to be kept for the policy."""
        return ((self._half_life, kind) for kind in self._kinds)

    def recent(self, kind: str, name: str) -> Mapping[str, float]:
        """Return the decayed usage of an owner by type."""
        if kind not in self._kinds:
            raise ValueError(f"usage_by of the policy does not name {kind!r}")
        return self._usage.recent((self._half_life, kind), name)


class OwnerUsage:
    """Usage of the owners of one partition; kept from one session of a resource manager to the next."""

    def __init__(self, now: Callable[[], int], start: int = 0) -> None:
        """Create without usage; usage before `start` (ns) is credited later, if that is not 0."""
        self._now, self._start = now, start
        self.sessions = 0
        """Number of sessions that have the partition: more than one while one replaces another."""
        self._books: dict[WantedUsage, dict[str, _Account]] = {}
        self._holders: dict[Application, tuple[list[_Account], Tally]] = {}
        """Accounts of applications with allocations, and the amounts that they contain."""
        self._changed: dict[Application, int] = {}
        """Time from which the latest change of an application is to be booked."""
        self._roomy = ROOMY
        self._credits: list[UsageCredit] = []
        self._known = start
        """Time until which the usage of what has run before is known."""

    @property
    def is_kept(self) -> bool:
        """True if there is usage, or may be."""
        return bool(self._books or self._credits)

    @property
    def wanted(self) -> frozenset[WantedUsage]:
        """Usage that is kept."""
        return frozenset(self._books)

    @property
    def size(self) -> int:
        """Number of accounts."""
        return sum(map(len, self._books.values()))

    def recent(self, wanted: WantedUsage, name: str) -> Mapping[str, float]:
        """Return the decayed usage of an owner by type, in amounts times seconds."""
        if self._changed:
            self.flush()
        account = self._books[wanted].get(name)
        # What was subtracted again may leave a tiny remainder.
        return {} if account is None else {one: max(0.0, usage) for one, usage in account.recent().items()}

    # -- changes --------------------------------------------------------------------------------------

    def note(self, app: Application) -> None:
        """Note an application whose allocated amount is about to change."""
        now, since = self._now(), self._changed.get(app)
        if since != now:
            if since is not None:
                self._book(app, since)
            elif len(self._changed) >= ROOMY:
                self.flush()
            self._changed[app] = now

    def flush(self) -> None:
        """Book all changes."""
        if self.size > self._roomy:
            self._forget()
        changed, self._changed = self._changed, {}
        for app, since in changed.items():
            self._book(app, since)

    def _book(self, app: Application, since: int) -> None:
        accounts, booked = self._holders.get(app) or ([], {})
        allocated = app.allocated
        change = {name: allocated.get(name, 0) - booked.get(name, 0) for name in {**booked, **allocated}}
        if any(change.values()):
            # An application with allocations is in its queue, so that these are its owners.
            accounts = accounts or [*self._accounts(self._books, app, [queue.path for queue in app.chain])]
            for account in accounts:
                account.change(change, since)
            grow(booked, change)
            self._holders[app] = accounts, booked
            if not booked:
                del self._holders[app]

    def recovered(self, allocation: Allocation) -> None:
        """Add the usage of a recovered allocation until now, as far as it is not known."""
        self._credit_allocation(allocation, self._books)

    def _credit_allocation(self, allocation: Allocation, wanted: Iterable[WantedUsage]) -> None:
        app = allocation.app
        for account in self._accounts(wanted, app, [queue.path for queue in app.chain]):
            account.credit(allocation.resource, max(allocation.placed, self._known))

    def _accounts(
        self, wanted: Iterable[WantedUsage], owner: Application | UsageCredit, paths: Sequence[str]
    ) -> Iterator[_Account]:
        """Yield the accounts of an application or of usage before the start, in queues with these paths."""
        for half_life, kind in wanted:
            accounts, tag = self._books[half_life, kind], owner.tags.get(kind.removeprefix(TAG))
            names = {"user": (owner.user,), "group": owner.groups, "queue": paths}
            for name in names.get(kind, (tag,) if tag else ()):
                account = accounts.get(name)
                if account is None:
                    account = accounts[name] = _Account(half_life, self._now)
                yield account

    def _forget(self) -> None:
        """Remove accounts whose usage has decayed to nothing; those that are left may double before that."""
        for accounts in self._books.values():
            recent = {name: account.recent() for name, account in accounts.items()}
            least: dict[str, float] = {}
            for usage in recent.values():
                for one, amount in usage.items():
                    least[one] = least.get(one, 0.0) + amount * NEGLIGIBLE / len(recent)
            for name, usage in recent.items():
                if not accounts[name].held and all(amount <= least[one] for one, amount in usage.items()):
                    del accounts[name]
        self._roomy = max(ROOMY, 2 * self.size)

    # -- configurations and sessions ------------------------------------------------------------------

    def use(self, wanted: Iterable[WantedUsage], apps: Iterable[Application]) -> None:
        """Keep the usage that policies read now; `apps` are those of the partition."""
        self.flush()
        before, self._books = self._books, {one: self._books.get(one, {}) for one in sorted(wanted)}
        new = [one for one in self._books if one not in before]
        for credit in self._credits if new else ():
            self._credit_before(credit, new)
        self._holders = {}
        for app in apps if self._books else ():
            paths = [queue.path for queue in app.chain]
            for allocation in app.allocations.values():
                self._credit_allocation(allocation, new)
            for account in self._accounts(new, app, paths):
                grow(account.held, app.allocated)
            if app.allocated:
                self._holders[app] = [*self._accounts(self._books, app, paths)], dict(app.allocated)

    def credit(self, credit: UsageCredit, known: int) -> None:
        """Add usage before the start, of which all is known until a time; it may come after recovery."""
        if self._start:
            self.flush()
            self._fill(known, self._start)
            self._start = 0
        if not self._books:
            self._known = known
        self._credits.append(credit)
        self._credit_before(credit, self._books)

    def _fill(self, since: int, until: int) -> None:
        """Add what now runs and ran between two times, which was not counted."""
        for app in self._holders:
            paths = [queue.path for queue in app.chain]
            for allocation in app.allocations.values():
                if allocation.placed < until:
                    lost = {name: -amount for name, amount in allocation.resource.items()}
                    for account in self._accounts(self._books, app, paths):
                        account.credit(allocation.resource, max(allocation.placed, since))
                        account.credit(lost, until)

    def _credit_before(self, credit: UsageCredit, wanted: Iterable[WantedUsage]) -> None:
        names = credit.queue.split(".")
        paths = [".".join(names[: length + 1]) for length in range(len(names))]
        for account in self._accounts(wanted, credit, paths):
            account.credit_span(credit)

    def pause(self) -> None:
        """Let what still runs count from now on when the next session recovers it."""
        self.flush()
        if self._books:
            self._known = self._now()
