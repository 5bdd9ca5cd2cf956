"""Recovered allocations whose application has not been reported yet.

A restarting RM may report its nodes, with the allocations on them, before its applications. An allocation
marked for recovery (tag `application.create.force`, as for an application) is then not rejected. It occupies
its node without an owner, and is added to its application when that is submitted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from yunikorn.accounting.outbox import UnknownRelease
from yunikorn.model.node import ForeignAllocation

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.model.node import Node
    from yunikorn.scheduling.existing_allocations import ExistingAllocation

MARK = "\0awaited "
"""Prefix of the keys of such allocations among the foreign ones; RMs cannot use control characters."""


class AwaitedAllocations:
    """Awaited allocations of one partition, by application and uuid."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._waiting: dict[str, dict[str, ExistingAllocation]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def __contains__(self, app_id: str) -> bool:
        return app_id in self._waiting

    def put(self, one: ExistingAllocation, node: Node) -> None:
        """Occupy the resources of `one` on `node` until its application is submitted."""
        named = attrs.evolve(one, uuid=one.uuid or self._partition.accounting.new_uuid(one.key))
        self._waiting.setdefault(one.app_id, {})[named.uuid] = named
        self._partition.accounting.awaited.add(named.uuid)
        self._partition.foreign.put(ForeignAllocation(self._key(named), node, one.resource, fixed=False))

    def take(self, app_id: str) -> list[ExistingAllocation]:
        """Remove and return an application's awaited allocations in report order; their room is freed."""
        found = list(self._waiting.pop(app_id, {}).values())
        for one in found:
            self._end(one)
        return found

    def release(self, app_id: str, uuid: str, key: str, message: str) -> bool:
        """End awaited allocations by uuid, by key, or all of an application; returns True if there were any.

        `message` confirms the release to the RM; it is empty if the RM itself confirmed the release.
        """
        waiting = self._waiting.get(app_id, {})
        ended = [one for one in waiting.values() if (one.uuid == uuid if uuid else not key or one.key == key)]
        for one in ended:
            del waiting[one.uuid]
            self._end(one)
            if message:
                self._tell(one, message)
        if not waiting:
            self._waiting.pop(app_id, None)
        return bool(ended)

    def forget(self, node: Node) -> None:
        """End the awaited allocations on a node that is being removed."""
        for app_id, waiting in list(self._waiting.items()):
            for one in [one for one in waiting.values() if one.node_id == node.id]:
                del waiting[one.uuid]
                self._end(one)
                self._tell(one, f"Node {node.id} Removed")
            if not waiting:
                del self._waiting[app_id]

    def _tell(self, one: ExistingAllocation, message: str) -> None:
        self._partition.outbox.unknown_releases.append(UnknownRelease(one.app_id, one.uuid, one.key, message))

    def _end(self, one: ExistingAllocation) -> None:
        self._partition.accounting.awaited.discard(one.uuid)
        self._partition.foreign.release(self._key(one))

    @staticmethod
    def _key(one: ExistingAllocation) -> str:
        return f"{MARK}{one.app_id} {one.uuid}"
