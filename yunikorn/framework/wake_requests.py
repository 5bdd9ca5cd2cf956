"""Requests of plugins to be asked again, from any thread (`docs/decisions/archive/0200`).

A plugin whose answers depend on something outside calls `context.wake(kind)` when that has changed. The
requests wait here until the core applies them as commands. Equal ones are one request, so their number is
bounded by those of partitions and kinds, however often plugins call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from yunikorn.containment import safe_repr
from yunikorn.framework.kinds import ASKED_AGAIN

Wanted = tuple[str, str, str]
"""Id of a resource manager, name of one of its partitions, kind of policy."""


class WakeRequests:
    """Requests that the core has not applied yet; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._notify: Callable[[], object] = lambda: None
        self.pending: dict[Wanted, None] = {}
        """Requests in the order in which they were made; empty most of the time."""

    def connect(self, notify: Callable[[], object]) -> None:
        """Call `notify` from now on when the first request arrives since the last `take`."""
        self._notify = notify

    def add(self, rm_id: str, partition: str, kind: str) -> None:
        """Add a request; raise `ValueError` if policies of this kind are not asked again."""
        # The text is ours, so that nothing of the plugin is kept.
        known = next((one.id for one in ASKED_AGAIN if one.id == kind), None)
        if known is None:
            kinds = ", ".join(one.id for one in ASKED_AGAIN)
            raise ValueError(f"no policies of kind {safe_repr(kind)} are asked again; kinds: {kinds}")
        with self._lock:
            is_first = not self.pending
            self.pending[rm_id, partition, known] = None
        if is_first:
            self._notify()

    def take(self) -> list[Wanted]:
        """Return the requests since the last call."""
        with self._lock:
            taken, self.pending = list(self.pending), {}
        return taken


class NoWakeRequests(WakeRequests):
    """Requests in a replay, in which the recording has those that were applied."""

    def add(self, rm_id: str, partition: str, kind: str) -> None:
        """Ignore a request."""
