"""The resource manager's own books: what it submitted, what it waits for, what runs."""

from __future__ import annotations

import attrs

from yunikorn.errors import YunikornError
from yunikorn.interface.messages import Allocation
from yunikorn.simulation.workload import WorkloadApplication, WorkloadTaskGroup


class ProtocolError(YunikornError):
    """The core answered what cannot be: an allocation nobody asked for, or one identifier twice."""


@attrs.define(eq=False)
class SentAsk:
    """A request for tasks of one group, as it was sent."""

    key: str
    group: WorkloadTaskGroup
    waiting: int
    """How many of its tasks, or placeholders, have no place yet."""
    asked: int
    """When it was sent (ns)."""


@attrs.define(eq=False)
class Submitted:
    """An application that was submitted and has not come to its end."""

    plan: WorkloadApplication
    unfinished: int
    """Tasks that have neither ended nor been refused."""
    asks: dict[str, SentAsk] = attrs.Factory(dict)
    places: dict[str, SentAsk] = attrs.Factory(dict)
    """Asks for the placeholders of a gang."""
    running: int = 0
    kept: int = 0
    """Placeholders that have their place."""
    ended: int = 0
    failed: int = 0
    """Tasks that were preempted and do not start again."""
    restarts: int = 0
    places_lost: int = 0
    """Placeholders that lost their place and were asked for again."""
    whole: bool = False
    """Whether all of a gang has had a place at once, or the core gave up on that."""
    started: bool = False
    """Whether something of it, if only a placeholder, has or had a place."""
    first_start: int | None = None
    """When its first task started (ns)."""
    failing: bool = False
    """The core lets it fail: what it loses is not asked for again."""
    queue: str = ""
    """Where the core put it; known with its first allocation."""

    @property
    def waiting(self) -> int:
        """How many tasks have no place."""
        return self.unfinished - self.running

    def ask(self, key: str, group: WorkloadTaskGroup, count: int, moment: int) -> SentAsk:
        """Note a request for `count` tasks of `group`."""
        self.asks[key] = SentAsk(key, group, count, moment)
        return self.asks[key]


@attrs.define(eq=False)
class Running:
    """A task that has its place."""

    owner: Submitted
    ask: SentAsk
    allocation: Allocation
    started: int

    @property
    def end(self) -> int:
        """When it will have run for its time (ns)."""
        return self.started + self.ask.group.runtime
