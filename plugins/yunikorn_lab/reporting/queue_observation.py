"""Observations of queues over time: usage, waiting requests, and fulfilment of their guarantees.

Use and waiting requests of users over time, in bounded memory: the top users, and all others together.

Each user has counters. Only `FOLLOWED` users have series of their own; the rest share one. A user that used
twice as much as the least one with series takes its place, whose series are then added to those of the
others. So the sums over all users are exact at all times, and a user's series are exact from the moment on
that its series began. Up to `FOLLOWED` users, all is exact from the start.

The factor of two bounds the number of replacements by the logarithm of the use, also if thousands of users
use the same. A user is compared at each change and at the end, so that no user without series has used more
than twice as much as the least one with series. Its series begin at its last change before the replacement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from yunikorn.resources import Resource, Tally, grow
from yunikorn_lab.reporting.core_view import CoreView, QueueQuota
from yunikorn_lab.reporting.observations import RUNNING, WAITING, LoadObservation
from yunikorn_lab.reporting.run_history import QuotaStep, UserHistory
from yunikorn_lab.reporting.time_series import Timeline
from yunikorn_lab.simulation.statistics import DIGITS, seconds


@attrs.frozen
class Guarantee:
    """Fulfilment of a guarantee of one resource type."""

    guaranteed: int
    """Guarantee at the end of the simulation, in the type's base unit."""
    used: float | None
    """Mean usage divided by the mean guarantee; above 1 the queue borrowed more than it lent."""
    kept: float | None
    """Part of the owed amount that the queue used; None if no amount was owed at any time.

    The amount owed at each moment is the guarantee, or the sum of used and waiting amounts if that is less.
    """


class QueueObservation(LoadObservation):
    """A queue, leaf or parent, including its descendants."""

    def __init__(self, timeline: Timeline, parent: QueueObservation | None) -> None:
        self.parent = parent
        self.chain: tuple[QueueObservation, ...] = (self, *parent.chain) if parent is not None else (self,)
        """The queue and its ancestors."""
        super().__init__(timeline, *self.chain[1:])
        self.is_leaf = True
        self.pending: Tally = {}
        """Total amounts of waiting requests."""
        self.steps: list[QuotaStep] = []
        self.wanted = timeline.series()
        self._quota = QueueQuota()
        self._types: list[str] = []
        """Resource types that have had a guarantee."""
        self._guaranteed = timeline.series()
        self._owed = timeline.series()
        self._kept = timeline.series()

    def ask(self, size: Mapping[str, int], requests: int) -> None:
        """Add waiting requests of this size to the queue and its ancestors."""
        for queue in self.chain:
            grow(queue.pending, size, requests)
            queue.dirty = True

    def set_quota(self, moment: int, quota: QueueQuota) -> None:
        """Set the quota from `moment` on."""
        if self.steps and quota == self._quota:
            return
        self._quota = quota
        self.steps.append(QuotaStep(seconds(moment), dict(quota.guaranteed), dict(quota.max)))
        self._guaranteed.record(moment, quota.guaranteed)
        self._types = self._guaranteed.names
        self.record(moment)

    def record(self, moment: int) -> None:
        """Record the current state; called after all changes of `moment`."""
        super().record(moment)
        self.wanted.record(moment, self.pending)
        if self._types:
            allocated, pending, guaranteed = self.allocated, self.pending, self._quota.guaranteed
            owed, kept = {}, {}
            for name in self._types:
                used = allocated.get(name, 0)
                owed[name] = due = min(guaranteed.get(name, 0), used + pending.get(name, 0))
                kept[name] = min(used, due)
            self._owed.record(moment, owed)
            self._kept.record(moment, kept)

    def close(self, moment: int) -> None:
        """Complete all series at the end of the simulation."""
        self.record(moment)
        self.wind(moment, self.wanted, self._guaranteed, self._owed, self._kept)

    def guarantees(self) -> dict[str, Guarantee]:
        """Return the fulfilment of the guarantees, by resource type. Call `close` before."""
        return {
            name: Guarantee(
                guaranteed=self._quota.guaranteed.get(name, 0),
                used=_ratio(self.used.total(name), self._guaranteed.total(name)),
                kept=_ratio(self._kept.total(name), self._owed.total(name)),
            )
            for name in self._types
        }


def _ratio(part: int, whole: int) -> float | None:
    return round(part / whole, DIGITS) if whole else None


class QueueObservations:
    """Observations by partition and path, without root, which equals the partition itself."""

    def __init__(self, timeline: Timeline, view: CoreView) -> None:
        self._timeline = timeline
        self._view = view
        self._observations: dict[tuple[str, str], QueueObservation] = {}
        self._changed: dict[QueueObservation, None] = {}
        self._configured = 0
        """Time of the last change of the configuration (ns)."""

    def at(self, partition: str, path: str) -> QueueObservation:
        """Return the queue of this path for a change; creates missing queues, including ancestors."""
        observation = self._observations.get((partition, path))
        if observation is None:
            observation = self._make(partition, path)
        self._changed[observation] = None
        return observation

    def _make(self, partition: str, path: str) -> QueueObservation:
        parent_path = path.rpartition(".")[0]
        parent: QueueObservation | None = None
        if "." in parent_path:
            parent = self._observations.get((partition, parent_path)) or self._make(partition, parent_path)
            parent.is_leaf = False
        observation = QueueObservation(self._timeline, parent)
        # The queue may have existed without applications since that time.
        observation.set_quota(self._configured, self._view.quota(partition, path))
        self._observations[partition, path] = observation
        return observation

    def read_quotas(self, moment: int) -> None:
        """Read all quotas again after a reload of the configuration."""
        self._configured = moment
        for (partition, path), observation in self._observations.items():
            observation.set_quota(moment, self._view.quota(partition, path))

    def record(self, moment: int) -> None:
        """Record the state of changed queues and their ancestors; called after all changes of `moment`."""
        for queue in self._changed:
            for level in queue.chain:
                if level.dirty:
                    level.record(moment)
        self._changed.clear()

    def close(self, moment: int) -> None:
        """Complete all series at the end of the simulation."""
        for observation in self._observations.values():
            observation.close(moment)

    def __iter__(self) -> Iterator[tuple[str, str, QueueObservation]]:
        """Yield partition, path and observation, sorted by path, so that parents precede their children."""
        for (partition, path), observation in sorted(self._observations.items(), key=_by_path):
            yield partition, path, observation


def _by_path(item: tuple[tuple[str, str], QueueObservation]) -> tuple[str, list[str]]:
    (partition, path), _ = item
    return partition, path.split(".")


FOLLOWED = 64
"""Maximum number of users with series of their own."""
REPLACES = 2
"""A user without series takes the place of another that used this many times less."""


class UserSeries:
    """Series of one user, or of all others together."""

    def __init__(self, timeline: Timeline, since: int | None = None) -> None:
        self.since = since
        """Time (ns) at which the series of this user began; None if at the start of the simulation."""
        self.used, self.wanted, self.tasks = timeline.series(), timeline.series(), timeline.series()

    def grow(self, moment: int, change: UserState, sign: int) -> None:
        """Add the state of a user from `moment` on (`sign` 1), or subtract it (-1)."""
        self.used.grow(moment, change.used, sign)
        self.wanted.grow(moment, change.wanted, sign)
        self.tasks.grow(moment, {RUNNING: change.running, WAITING: change.waiting}, sign)

    def record(self, moment: int, state: UserState) -> None:
        """Set the state of the user from `moment` on."""
        self.used.record(moment, state.used)
        self.wanted.record(moment, state.wanted)
        self.tasks.record(moment, {RUNNING: state.running, WAITING: state.waiting})

    def absorb(self, other: UserSeries, moment: int) -> None:
        """Add `other` for all times; `other` must not be used afterwards."""
        self.used.absorb(other.used, moment)
        self.wanted.absorb(other.wanted, moment)
        self.tasks.absorb(other.tasks, moment)

    def wind(self, moment: int) -> None:
        """Complete the series at the end of the simulation."""
        for series in (self.used, self.wanted, self.tasks):
            series.wind(moment)

    def history(self, name: str, users: int, lengths: list[int]) -> UserHistory:
        """Return the means over each interval; `users` is the number of users that they stand for."""
        return UserHistory(
            user=name,
            users=users,
            since=None if self.since is None else seconds(self.since),
            used=self.used.means(lengths),
            wanted=self.wanted.means(lengths),
            waiting=self.tasks.means_of(WAITING, lengths),
            running=self.tasks.means_of(RUNNING, lengths),
        )


@attrs.define(eq=False)
class UserState:
    """Current state of one user."""

    used: Tally = attrs.Factory(dict)
    """Amounts of the running tasks."""
    wanted: Tally = attrs.Factory(dict)
    """Amounts of the waiting requests."""
    running: int = 0
    waiting: int = 0
    spent: Tally = attrs.Factory(dict)
    """Amounts of the tasks integrated over time, until `at`."""
    at: int = 0
    recorded: UserState | None = None
    """State that the series of the others have; only of users without series of their own."""
    changed: int = 0
    """Time from which on the others have that state."""

    def advance(self, moment: int) -> None:
        """Integrate the use until `moment`; called before each change of `used`."""
        if moment > self.at:
            if self.used:
                grow(self.spent, self.used, moment - self.at)
            self.at = moment

    def copy(self) -> UserState:
        """Return the amounts and numbers of this state."""
        return UserState(dict(self.used), dict(self.wanted), self.running, self.waiting)

    def share(self, capacity: Mapping[str, int]) -> float:
        """Return the largest part of the capacity, over all types, that was used."""
        return max(
            (spent / capacity[name] for name, spent in self.spent.items() if capacity.get(name)), default=0.0
        )


class UserObservations:
    """All users of a simulation."""

    def __init__(self, timeline: Timeline, followed: int = FOLLOWED) -> None:
        self._timeline = timeline
        self._followed = followed
        self._states: dict[str, UserState] = {}
        self._series: dict[str, UserSeries] = {}
        self._others = UserSeries(timeline)
        self._dirty: dict[str, None] = {}
        self._least = 0.0
        """Share of the user with series that used least, when it was last determined; shares only grow."""
        self._capacity: dict[str, int] = {}
        self._end = 0

    def __len__(self) -> int:
        return len(self._states)

    def run(self, moment: int, user: str, amount: Resource, sign: int) -> None:
        """Note the start of a task (`sign` 1), or its end (-1)."""
        state = self._change(user)
        state.advance(moment)
        grow(state.used, amount, sign)
        state.running += sign

    def ask(self, user: str, changed: Mapping[Resource, int], waiting: int) -> None:
        """Add waiting requests by size, and waiting tasks; negative numbers remove them."""
        state = self._change(user)
        for size, requests in changed.items():
            grow(state.wanted, size, requests)
        state.waiting += waiting

    def _change(self, user: str) -> UserState:
        state = self._states.get(user)
        if state is None:
            state = self._states[user] = UserState()
            if len(self._series) < self._followed:
                self._series[user] = UserSeries(self._timeline)
            else:
                state.recorded = UserState()
        self._dirty[user] = None
        return state

    def record(self, moment: int, capacity: Mapping[str, int]) -> None:
        """Record the state of changed users; called after all changes of `moment`."""
        others = []
        for user in self._dirty:
            if user in self._series:
                self._series[user].record(moment, self._states[user])
            else:
                others.append(user)
        self._dirty.clear()
        if others:
            self._compare(moment, others, capacity)
        for user in others:
            state = self._states[user]
            if state.recorded is not None:
                self._others.grow(moment, state.recorded, -1)
                self._others.grow(moment, state, 1)
                state.recorded, state.changed = state.copy(), moment

    def _compare(self, moment: int, users: Sequence[str], capacity: Mapping[str, int]) -> None:
        """Replace users with series by those of `users`, which have none, that used much more."""
        if self._capacity != capacity:
            self._capacity, self._least = dict(capacity), 0.0
        for user in users:
            state = self._states[user]
            state.advance(moment)
            share = state.share(capacity)
            if share > REPLACES * self._least:
                least = self._find_least(moment, capacity)
                if share > REPLACES * self._least:
                    self._replace(moment, least, user)

    def _find_least(self, moment: int, capacity: Mapping[str, int]) -> str:
        shares = {}
        for user in self._series:
            state = self._states[user]
            state.advance(moment)
            shares[user] = state.share(capacity)
        found = min(shares, key=lambda user: (shares[user], user))
        self._least = shares[found]
        return found

    def _replace(self, moment: int, old: str, new: str) -> None:
        """Add the series of `old` to those of the others, and begin series of `new` at its last change."""
        self._others.absorb(self._series.pop(old), moment)
        before, state = self._states[old], self._states[new]
        before.recorded, before.changed = before.copy(), moment
        assert state.recorded is not None
        self._series[new] = UserSeries(self._timeline, state.changed)
        removed = UserSeries(self._timeline)
        self._series[new].grow(state.changed, state.recorded, 1)
        removed.grow(state.changed, state.recorded, -1)
        self._others.absorb(removed, moment)
        state.recorded = None
        # Another user may replace this one in the same instant.
        self._series[new].record(moment, state)

    def close(self, moment: int, capacity: Mapping[str, int]) -> None:
        """Complete all series at the end of the simulation."""
        self.record(moment, capacity)
        others = [user for user in self._states if user not in self._series]
        self._compare(moment, others, capacity)
        for series in (*self._series.values(), self._others):
            series.wind(moment)
        self._end = moment

    def histories(self, ranked: Sequence[str], most: int, lengths: list[int]) -> list[UserHistory]:
        """Return the first `most` of the ranked users that have series, and all others together.

        Others are last, and have no name. May be called once, after `close`.
        """
        shown = [user for user in ranked if user in self._series][:most]
        found = [self._series[user].history(user, 1, lengths) for user in shown]
        for user, series in self._series.items():
            if user not in shown:
                self._others.absorb(series, self._end)
        more = len(self._states) - len(shown)
        return [*found, self._others.history("", more, lengths)] if more else found
