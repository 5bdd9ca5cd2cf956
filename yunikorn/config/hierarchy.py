"""One place for each queue name in all partitions. Source: the core design document, decision 8."""

from __future__ import annotations

import attrs

from yunikorn.config.queues import QueueDraft
from yunikorn.config.reading import Findings

KEY = "samehierarchy"
NAMED = 3
"""Other places that a message names; of the rest it gives the number."""


@attrs.define(eq=False)
class _Places:
    """Where queues of one name stand, in the partitions looked at so far."""

    partitions: int = 0
    """Partitions that have the name."""
    last: int = -1
    """The last of them."""
    at: dict[str, tuple[int, int]] = attrs.field(factory=dict)
    """By path: how many partitions have it, and the last of them."""

    def lacking(self, path: str, number: int) -> bool:
        """Whether a partition before `number` has the name, but not at `path`."""
        with_name = self.partitions - (self.last == number)
        holders, last = self.at.get(path, (0, -1))
        return with_name > holders - (last == number)

    def elsewhere(self, path: str) -> str:
        """The other places as a message lists them; empty if there is none."""
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
        """A queue of the name stands at `path` in partition `number`."""
        if self.last != number:
            self.partitions, self.last = self.partitions + 1, number
        holders, last = self.at.get(path, (0, -1))
        self.at[path] = (holders + (last != number), number)


def check_hierarchy(roots: list[QueueDraft], enforced: bool, findings: Findings) -> None:
    """Each queue name has one place: in all partitions, and in each of them.

    A queue may be missing in a partition. Not enforced, only a name whose places in two partitions have
    nothing in common is reported, as a warning.
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
    text = f"queue '{queue.name}' has another place already: {elsewhere}"
    if enforced:
        findings.problem(spot, f"{text} ({KEY} is true)")
    else:
        findings.warning(spot, f"{text}; partitions should share one hierarchy ({KEY}: true enforces it)")
