"""Recovered allocations whose application has not been reported yet.

An RM that comes back may report its nodes, with what runs on them, before its applications. What it marks for
recovery (the tag `application.create.force`, as on an application) is not refused then: it takes its room on
its node, belongs to nobody, and is booked when its application comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from yunikorn.objects.foreign import ForeignAllocation
from yunikorn.objects.unknown_releases import UnknownRelease

if TYPE_CHECKING:
    from yunikorn.objects.node import Node
    from yunikorn.objects.partition import Partition
    from yunikorn.scheduling.existing import ExistingAllocation

MARK = "\0awaited "
"""Starts their keys among the foreign allocations: no RM can name such a key (no control characters)."""


class AwaitedAllocations:
    """Those of one partition, by application, then by uuid."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._waiting: dict[str, dict[str, ExistingAllocation]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def __contains__(self, app_id: str) -> bool:
        return app_id in self._waiting

    def put(self, one: ExistingAllocation, node: Node) -> None:
        """Keep its room until its application comes."""
        named = attrs.evolve(one, uuid=one.uuid or self._partition.accounting.new_uuid(one.key))
        self._waiting.setdefault(one.app_id, {})[named.uuid] = named
        self._partition.accounting.awaited.add(named.uuid)
        self._partition.foreign.put(ForeignAllocation(self._key(named), node, one.resource, fixed=False))

    def take(self, app_id: str) -> list[ExistingAllocation]:
        """The application has come: what waits for it, in the order of the reports; its room is free."""
        found = list(self._waiting.pop(app_id, {}).values())
        for one in found:
            self._end(one)
        return found

    def release(self, app_id: str, uuid: str, key: str, message: str) -> bool:
        """End one by uuid, those of a key, or all of an application; returns whether there were any.

        `message` confirms it to the RM; without one it confirmed itself.
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
        """A node goes, and all that runs on it."""
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
