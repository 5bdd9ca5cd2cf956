"""Placement of recent submissions under two configurations, asked one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from yunikorn.framework.registry import Registry
from yunikorn.interface.scheduler import Scheduler
from yunikorn.text import number_of
from yunikorn_lab.placement_dry_run import PlacementAnswer, PlacementDryRun
from yunikorn_lab.simulation.workload import Workload

Key = tuple[str, str, str, str]
"""Partition, queues before and after, and the reason of a rejection."""
NAMED = 3
"""Number of users that are named for a change."""


@attrs.frozen
class Submission:
    """An application as it was submitted."""

    id: str
    partition: str
    queue: str
    """Requested queue; the queue it was placed in where that is not known."""
    user: str
    groups: tuple[str, ...]
    tags: Mapping[str, str]


@attrs.frozen
class PlacementChange:
    """Submissions that another configuration treats in another way."""

    partition: str
    before: str
    """Queue before; empty if they were rejected."""
    after: str
    """Queue after; empty if they are rejected."""
    reason: str
    """Reason of the rejection; else empty."""
    count: int
    users: tuple[str, ...]
    """Some of their users."""

    @property
    def text(self) -> str:
        """Sentence about them."""
        what = f"{number_of(self.count, 'submission')} (of {', '.join(self.users)})"
        if not self.after:
            return f"{what} to {self.before}: rejected: {self.reason}"
        if not self.before:
            return f"{what}: rejected before, placed in {self.after}"
        return f"{what}: placed in {self.after} instead of {self.before}"


def live_submissions(scheduler: Scheduler) -> Iterator[Submission]:
    """Yield the applications of a scheduler as if they were submitted to the queues they are in."""
    for _, at in scheduler.all_partitions():
        for app in at.partition.applications.values():
            name = at.partition.config_name
            yield Submission(app.id, name, app.queue_name, app.user, tuple(app.groups), app.tags)


def past_submissions(workload: Workload) -> Iterator[Submission]:
    """Yield the applications of a workload, such as a history or a trace."""
    for app in workload.applications:
        yield Submission(app.id, app.partition, app.queue, app.user, tuple(app.groups), app.tags)


def placement_changes(
    before: tuple[str, Registry], after: tuple[str, Registry], submissions: Iterable[Submission]
) -> tuple[list[PlacementChange], int]:
    """Return what both configurations treat differently, and the number of submissions.

    Configurations are texts with the registries of their plugins; both are valid.
    """
    old, new = PlacementDryRun(*before), PlacementDryRun(*after)
    counts: dict[Key, int] = {}
    users: dict[Key, dict[str, None]] = {}
    answers: dict[Any, Key | None] = {}
    total = 0
    for one in submissions:
        total += 1
        # A history has many equal submissions, whose answers are equal as well.
        alike = (one.partition, one.queue, one.user, one.groups, tuple(sorted(one.tags.items())))
        if alike not in answers:
            was, now = _ask(old, one), _ask(new, one)
            same = was.queue == now.queue
            # Reasons name the application, and those of others are the same ones.
            reason = now.reason.replace(f"application {one.id}", "it")
            answers[alike] = None if same else (one.partition, was.queue, now.queue, reason)
        key = answers[alike]
        if key is not None:
            counts[key] = counts.get(key, 0) + 1
            users.setdefault(key, {})[one.user] = None
    found = [PlacementChange(*key, count, tuple(list(users[key])[:NAMED])) for key, count in counts.items()]
    return sorted(found, key=lambda one: (-one.count, one.partition, one.before, one.after)), total


def _ask(dry_run: PlacementDryRun, one: Submission) -> PlacementAnswer:
    return dry_run.ask(one.id, one.user, one.groups, one.queue, one.tags, one.partition)
