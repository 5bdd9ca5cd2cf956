"""Differences between two continuations of a scheduler, by application, queue and user."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest

import attrs

from yunikorn.clock import SECOND
from yunikorn.config.durations import spell_duration
from yunikorn.text import number_of
from yunikorn_foresight.whatif_recorder import AppOwner, ContinuedRun, Start
from yunikorn_lab.reporting.decision_log import DivergenceReport
from yunikorn_lab.reporting.tables import Table

SHOWN = 20
"""Number of rows of a table."""
Pair = tuple[Start | None, Start | None]
"""Starts of a task without and with the changes; None if it does not start in that time."""


@attrs.frozen
class StartDifferences:
    """Differences of tasks that have something in common."""

    name: str
    """Application, queue or user."""
    earlier: int
    """Number of tasks that start earlier with the changes."""
    later: int
    mean: float
    """Mean difference of the tasks that start both times (s); positive if they start later."""
    largest: float
    """Largest difference of one task (s), with its sign."""
    gained: int
    """Number of tasks that start with the changes only."""
    lost: int
    """Number of tasks that start without the changes only."""
    elsewhere: int
    """Number of tasks that start at the same time on another node."""
    preempted: int
    """Number of preempted tasks with the changes, less that without."""
    user: str = ""
    """User of an application."""
    queue: str = ""
    """Queue of an application."""

    @property
    def is_affected(self) -> bool:
        """True if anything is different."""
        return bool(
            self.earlier or self.later or self.gained or self.lost or self.elsewhere or self.preempted
        )

    @property
    def weight(self) -> tuple[int, float]:
        """Sort key of the most affected first."""
        return -(self.gained + self.lost), -abs(self.mean) * (self.earlier + self.later)


@attrs.frozen
class WhatIfResult:
    """Answer to the question what would happen."""

    time: int
    """Time of the snapshot (ns)."""
    horizon: int
    """Time after it that was simulated (ns)."""
    changes: tuple[str, ...]
    """The changes, as texts."""
    placed: tuple[int, int]
    """Numbers of tasks that start, without and with the changes."""
    waiting: tuple[int, int]
    """Numbers of tasks that wait at the end."""
    preempted: tuple[int, int]
    applications: tuple[StartDifferences, ...]
    """Affected applications, the most affected first."""
    queues: tuple[StartDifferences, ...]
    users: tuple[StartDifferences, ...]
    first: DivergenceReport
    refusals: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def is_same(self) -> bool:
        """True if nothing is different."""
        return not self.applications and self.first.time is None

    def to_json(self) -> str:
        """Return JSON in one line; times are seconds."""
        found = attrs.asdict(self)
        found["time"], found["horizon"] = self.time / SECOND, self.horizon / SECOND
        return json.dumps(found) + "\n"

    def sentences(self) -> Iterator[str]:
        """Yield what is most important, in words."""
        span = spell_duration(self.horizon)
        if self.is_same:
            yield f"In {span}, nothing is different"
            return
        earlier = number_of(sum(one.earlier for one in self.applications), "task")
        later = number_of(sum(one.later for one in self.applications), "task")
        yield f"In {span}, with the changes {earlier} would start earlier, and {later} later"
        pairs = {
            "tasks that start": self.placed,
            "tasks that wait at the end": self.waiting,
            "preempted tasks": self.preempted,
        }
        for title, pair in pairs.items():
            yield f"{title}: {pair[1]:,} ({pair[1] - pair[0]:+,})"

    def tables(self) -> Iterator[Table]:
        """Yield the tables of queues, users and applications."""
        for title, rows in (
            ("Queues", self.queues),
            ("Users", self.users),
            ("Applications", self.applications),
        ):
            if rows:
                yield _table(title, rows)


def _table(title: str, rows: tuple[StartDifferences, ...]) -> Table:
    has_owner = any(one.queue for one in rows)
    names = ["user", "queue"] if has_owner else []
    columns = ["earlier", "later", "mean", "largest", "gained", "lost", "elsewhere", "preempted"]
    note = "" if len(rows) <= SHOWN else f"{len(rows) - SHOWN:,} more are affected; --json lists all."
    return Table(
        title,
        [title.lower()[:-1], *names, *columns],
        [[one.name, *([one.user, one.queue] if has_owner else []), *_cells(one)] for one in rows[:SHOWN]],
        note=note,
        texts=1 + len(names),
        is_ordered=True,
    )


def _cells(one: StartDifferences) -> list[str]:
    counts = [one.gained, one.lost, one.elsewhere]
    return [
        *(f"{count:,}" if count else "" for count in (one.earlier, one.later)),
        *(signed(time) for time in (one.mean, one.largest)),
        *(f"{count:,}" if count else "" for count in counts),
        f"{one.preempted:+,}" if one.preempted else "",
    ]


def signed(time: float) -> str:
    """Return a difference of times (s) as text; empty for none."""
    if not round(time):
        return ""
    return f"{'-' if time < 0 else '+'}{spell_duration(abs(round(time)) * SECOND)}"


def find_differences(
    without: ContinuedRun, with_changes: ContinuedRun
) -> tuple[list[StartDifferences], list[StartDifferences], list[StartDifferences]]:
    """Return the differences of affected applications, queues and users, the most affected first."""
    pairs: dict[str, list[Pair]] = {}
    for key in dict.fromkeys([*without.starts, *with_changes.starts]):
        found = zip_longest(without.starts.get(key, ()), with_changes.starts.get(key, ()))
        pairs.setdefault(key[0], []).extend(found)
    owners = {**with_changes.owners, **without.owners}
    preempted = {
        app: with_changes.preempted.get(app, 0) - without.preempted.get(app, 0)
        for app in {**without.preempted, **with_changes.preempted}
    }
    unknown = AppOwner("", "")

    def by(name_of: Callable[[str], str], *, are_apps: bool = False) -> list[StartDifferences]:
        groups: dict[str, list[str]] = {}
        for app in dict.fromkeys([*pairs, *preempted]):
            groups.setdefault(name_of(app), []).append(app)
        rows = []
        for name, apps in groups.items():
            own = (pair for app in apps for pair in pairs.get(app, ()))
            row = _differences(name, own, sum(preempted.get(app, 0) for app in apps))
            owner = owners.get(name, unknown) if are_apps else unknown
            rows.append(attrs.evolve(row, user=owner.user, queue=owner.queue))
        return sorted((one for one in rows if one.is_affected), key=lambda one: (one.weight, one.name))

    return (
        by(lambda app: app, are_apps=True),
        by(lambda app: owners.get(app, unknown).queue),
        by(lambda app: owners.get(app, unknown).user),
    )


def _differences(name: str, pairs: Iterable[Pair], preempted: int) -> StartDifferences:
    earlier = later = both = gained = lost = elsewhere = total = largest = 0
    for before, after in pairs:
        if before is None or after is None:
            gained += before is None
            lost += after is None
            continue
        difference = after[0] - before[0]
        both += 1
        total += difference
        earlier += difference < 0
        later += difference > 0
        elsewhere += not difference and after[1] != before[1]
        if abs(difference) > abs(largest):
            largest = difference
    mean = total / both / SECOND if both else 0.0
    return StartDifferences(
        name, earlier, later, round(mean, 3), largest / SECOND, gained, lost, elsewhere, preempted
    )
