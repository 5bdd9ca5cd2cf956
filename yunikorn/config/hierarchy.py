"""Check that a queue name has the same path in all partitions; see `docs/decisions/0008`."""

from __future__ import annotations

import attrs

from yunikorn.config.queues import QueueDraft
from yunikorn.config.reading import Findings

KEY = "samehierarchy"
NAMED = 3
"""Maximum number of other paths in a message; the remaining paths are only counted."""


@attrs.define(eq=False)
class _Places:
    """Paths of the queues with the same name, in the partitions visited so far."""

    partitions: int = 0
    """Number of partitions with a queue of this name."""
    last: int = -1
    """Index of the last such partition."""
    at: dict[str, tuple[int, int]] = attrs.field(factory=dict)
    """By path, the number of partitions with a queue there, and the index of the last one."""

    def lacking(self, path: str, number: int) -> bool:
        """Return True if a partition before `number` has the name, but not at `path`."""
        with_name = self.partitions - (self.last == number)
        holders, last = self.at.get(path, (0, -1))
        return with_name > holders - (last == number)

    def elsewhere(self, path: str) -> str:
        """Return the other paths as text for a message; empty if there are none."""
        others = len(self.at) - (path in self.at)
        some: list[str] = []
        for other in self.at:
            if other != path:
                some.append(other)
            if len(some) == NAMED:
                break
        rest = f" and {others - len(some)} more" if others > len(some) else ""
        return f"{', '.join(sorted(some))}{rest}"

    def add(self, path: str, number: int) -> None:
        """Record a queue at `path` in partition `number`."""
        if self.last != number:
            self.partitions, self.last = self.partitions + 1, number
        holders, last = self.at.get(path, (0, -1))
        self.at[path] = (holders + (last != number), number)


def check_hierarchy(roots: list[QueueDraft], enforced: bool, findings: Findings) -> None:
    """Check that each queue name has a single path, within each partition and across partitions.

    A queue may be missing in a partition. If the check is not `enforced`, the only finding is a warning
    about a queue name that another partition has at other paths only.
    """
    if len(roots) < 2 and not enforced:
        return
    known: dict[str, _Places] = {}
    for number, root in enumerate(roots):
        for queue in root.walk():
            if queue is root:
                continue
            places = known.get(queue.name)
            if places is None:
                places = known[queue.name] = _Places()
            if enforced or places.lacking(queue.path, number):
                _report(queue, places, enforced, findings)
            places.add(queue.path, number)


def _report(queue: QueueDraft, places: _Places, enforced: bool, findings: Findings) -> None:
    elsewhere = places.elsewhere(queue.path)
    if not elsewhere:
        return
    spot = queue.table.spot("name")
    text = f"queue '{queue.name}' already has another path: {elsewhere}"
    if enforced:
        findings.problem(spot, f"{text} ({KEY} is true)")
    else:
        findings.warning(spot, f"{text}; partitions should share one hierarchy ({KEY}: true enforces it)")
