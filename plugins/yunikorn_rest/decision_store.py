"""Store of the latest decisions of all resource managers, for readers in any thread.

The core appends the entries of each event batch that contain a decision, and makes nothing of them. A reader
makes the decisions that it wants, newest first. Entries are in blocks of about a thousand; the first reader
notes which applications, queues and nodes a block mentions, and later readers skip blocks without what they
want. So a question about one application looks at few of a hundred thousand decisions.

Placements and their usual ends are the most, and the first to be forgotten. Refusals, preemptions, holds and
failures remain for longer, because someone who asks why something waits looks for these
(`docs/decisions/archive/0100`).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs

from yunikorn.accounting.event_batch import Entry, EventBatch, Source
from yunikorn_rest.decision_records import COMPACT, Decision, concerns, decisions_in, is_usual

CAPACITY = 100_000
"""Number of decisions of all kinds that a store keeps by default."""
BLOCK = 1_000
"""Number of decisions in a block."""


@attrs.frozen
class Wish:
    """Selection of decisions; an empty field selects all."""

    source: Source
    """Resource manager and partition."""
    application: str = ""
    queue: str = ""
    """Path of a queue, which includes the queues below."""
    node: str = ""

    def takes(self, one: Decision) -> bool:
        """Return True for a decision of this selection."""
        return (
            one.source == self.source
            and self.application in ("", one.application)
            and self.node in ("", one.node)
            and (not self.queue or is_below(one.queue, self.queue))
        )


def is_below(path: str, queue: str) -> bool:
    """Return True if a path is that of a queue, or of one below."""
    return path == queue or path.startswith(f"{queue}.")


@attrs.frozen
class _Mentions:
    """Everything that the decisions of a block mention."""

    applications: frozenset[str]
    queues: frozenset[str]
    nodes: frozenset[str]

    @classmethod
    def of(cls, decisions: Iterable[Decision]) -> _Mentions:
        applications, queues, nodes = set(), set(), set()
        for one in decisions:
            applications.add(one.application)
            queues.add(one.queue)
            nodes.add(one.node)
        return cls(frozenset(applications), frozenset(queues), frozenset(nodes))

    def may_have(self, wish: Wish) -> bool:
        return (
            (not wish.application or wish.application in self.applications)
            and (not wish.node or wish.node in self.nodes)
            and (not wish.queue or any(is_below(path, wish.queue) for path in self.queues))
        )


Part = tuple[Source, Sequence[Entry | Decision]]
"""Successive entries of one partition."""


@attrs.define(eq=False)
class _Block:
    """Successive decisions."""

    parts: list[Part] = attrs.field(factory=list)
    size: int = 0
    mentions: _Mentions | None = None
    """None before the first reader; no decisions are added to a block that has it."""


class _Ring:
    """Blocks of decisions, of which the oldest are forgotten beyond a number of decisions."""

    def __init__(self, capacity: int, on_forget: Callable[[_Block], None] | None = None) -> None:
        self.capacity = capacity
        self.size = 0
        self.blocks: deque[_Block] = deque([_Block()])
        self._on_forget = on_forget

    def append(self, source: Source, entries: Sequence[Entry | Decision]) -> None:
        for start in range(0, len(entries), BLOCK):
            part = entries[start : start + BLOCK]
            block = self.blocks[-1]
            if block.size >= BLOCK:
                block = _Block()
                self.blocks.append(block)
            block.parts.append((source, part))
            block.size += len(part)
            self.size += len(part)
        self.trim()

    def trim(self) -> None:
        """Forget the oldest blocks, as long as the others have as many decisions as the capacity."""
        while len(self.blocks) > 1 and self.size - self.blocks[0].size >= self.capacity:
            oldest = self.blocks.popleft()
            self.size -= oldest.size
            if self._on_forget is not None:
                self._on_forget(oldest)


class DecisionStore:
    """The latest decisions. `append` is called in the core's thread, everything else in any thread."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        """Create an empty store, which keeps `capacity` decisions and up to four blocks more.

        A fifth of the capacity is for decisions that are not usual.
        """
        if capacity < 1:
            raise ValueError(f"the capacity of the store must be at least 1 decision, got {capacity}")
        self._lock = threading.Lock()
        self._kept = _Ring(capacity // 5)
        """Decisions that are not usual, from forgotten blocks."""
        self._latest = _Ring(capacity - capacity // 5, self._keep)

    def __len__(self) -> int:
        with self._lock:
            return self._latest.size + self._kept.size

    def append(self, batch: EventBatch) -> None:
        """Add the decisions of a batch; never waits for a reader."""
        # Written out for the many entries that are tuples: this is on the path of every decision.
        entries = [
            entry
            for entry in batch.entries
            if (entry[0] in COMPACT if type(entry) is tuple else concerns(entry))
        ]
        if entries:
            with self._lock:
                self._latest.append(batch.source, entries)

    def resize(self, capacity: int) -> None:
        """Keep another number of decisions from now on."""
        with self._lock:
            self._kept.capacity = capacity // 5
            self._latest.capacity = capacity - capacity // 5
            self._latest.trim()
            self._kept.trim()

    def _keep(self, block: _Block) -> None:
        """Keep the unusual decisions of a forgotten block, without the objects of the core."""
        for source, entries in block.parts:
            unusual = [one for one in entries if not isinstance(one, Decision) and not is_usual(one)]
            if unusual:
                self._kept.append(source, decisions_in(unusual, source))

    def search(self, wish: Wish) -> Iterator[Decision | None]:
        """Yield the wanted decisions, newest first; a None after each block is an opportunity to pause."""
        blocks: list[_Block] = []
        with self._lock:
            for ring in (self._kept, self._latest):
                blocks += ring.blocks
                # Only the last block of a ring changes.
                blocks[-1] = _Block(list(ring.blocks[-1].parts))
        for block in reversed(blocks):
            if block.mentions is not None and not block.mentions.may_have(wish):
                continue
            decisions = _made_of(block.parts)
            block.mentions = _Mentions.of(decisions)
            yield from (one for one in reversed(decisions) if wish.takes(one))
            yield None


def _made_of(parts: Iterable[Part]) -> list[Decision]:
    found: list[Decision] = []
    for source, entries in parts:
        if entries and isinstance(entries[0], Decision):
            found += [one for one in entries if isinstance(one, Decision)]
        else:
            found += decisions_in([one for one in entries if not isinstance(one, Decision)], source)
    return found
