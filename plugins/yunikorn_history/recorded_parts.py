"""Parts of a recording beside applications and allocations: series, usage, nodes, configurations, faults.

Apart from `sample`, all methods are called in the thread of the recorder.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import attrs

from yunikorn.accounting.event_batch import Entry, Source
from yunikorn_history.open_rows import OpenApplication
from yunikorn_history.rows import Ids, Row
from yunikorn_service.runtime.sliced_reads import CoreReader


class RecordedPart(Protocol):
    """A part of a recording, with rows of its own."""

    def observe(self, entries: Sequence[Entry], source: Source) -> None:
        """Take entries of the events of a partition, oldest first, after the recorder."""
        ...

    def rows(self, now: int) -> Iterable[tuple[str, Row]]:
        """Return the rows that have changed since the previous call, with the names of their tables.

        They are committed together with the row of the run, whose `seen` is `now`.
        """
        ...

    def repeat(self) -> None:
        """Return all rows that may still change again, because another database has none of them."""
        ...

    async def sample(self, core: CoreReader) -> None:
        """Sample the core by reading it in slices.

        Called in the event loop each minute, and when another configuration is in use.
        """
        ...


@attrs.define
class RecordingContext:
    """Names, ids and open rows that the recorder shares with its parts."""

    names: Ids
    shapes: Ids
    new_id: Callable[[str], int]
    """Returns the next id of a row of a table."""
    application: Callable[[str, str, str], OpenApplication | None]
    """Returns the open application of a resource manager, a partition and an application id."""
    changed: Callable[[OpenApplication], None]
    """Marks an application as changed, so that its row is written again; for its `waits`."""
    tags: frozenset[str]
    """Tags of applications that are kept."""
    config_source: Callable[[], str] = lambda: ""
    """Returns the place of the configuration, if a door reads it itself; else an empty text."""
    audited: deque[tuple[int, Mapping[str, Any]]] = attrs.Factory(deque)
    """Entries of the audit log with their times (ns), added in the event loop."""
