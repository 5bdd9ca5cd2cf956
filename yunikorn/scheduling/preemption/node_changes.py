"""Nodes that changed between two searches for victims, as they report themselves.

A node that is asked to appends itself to a list at its next change, and does not report further changes until
it is asked again. Without preemption a change costs one test.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.model.node import Node

LOG = 4_096
"""Largest number of changes that a reader may lag behind without a list of its own."""


class ChangeReader:
    """Reader of `NodeChanges`; has the changes that were not read yet."""

    __slots__ = ("_missed", "_seen")

    def __init__(self) -> None:
        self._seen = 0
        """Number of entries of the log that were read."""
        self._missed: set[Node] = set()
        """Nodes that changed, and are no longer in the log."""

    def read(self, log: list[Node]) -> Iterable[Node]:
        """Return the nodes that changed since the last call; removed nodes may be among them."""
        found = log[self._seen :]
        self._seen = len(log)
        if self._missed:
            found.extend(self._missed)
            self._missed.clear()
        return found

    def clear(self, log: list[Node]) -> None:
        """Remember the changes of a log that will be empty."""
        self._missed.update(log[self._seen :])
        self._seen = 0


class NodeChanges:
    """The nodes of a partition, and those that changed since an earlier search."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._capacity_version = -1
        self._latest: list[Node] = []
        """Nodes that changed since `collect`; nodes append themselves."""
        self.log: list[Node] = []
        """Changed nodes, for `ChangeReader.read`."""
        self.nodes: list[Node] = []
        """All nodes in the order of their registration; another list whenever there are others."""

    def collect(self, readers: Iterable[ChangeReader]) -> None:
        """Take in the latest changes, for these readers."""
        version = self._partition.accounting.node_reservations.capacity_version
        if version != self._capacity_version:
            self._capacity_version = version
            self._list()
        latest = self._latest
        if latest:
            if len(self.log) > LOG:
                for reader in readers:
                    reader.clear(self.log)
                self.log.clear()
            self.log += latest
            for node in latest:
                node.change_log = latest
            latest.clear()

    def _list(self) -> None:
        present = list(self._partition.nodes.values())
        if present != self.nodes:
            self.nodes = present
            # Nodes that another configuration has asked are asked to report here.
            self._latest += [node for node in present if node.change_log is not self._latest]
