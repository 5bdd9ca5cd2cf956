"""Conditions of PodGroups: whether enough members have a node, and whether members were preempted.

The condition `PodGroupScheduled` is True exactly while as many members as the group needs have a node or have
ended. `DisruptionTarget` is True from a preemption that the group cannot do without until it is scheduled
again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

import attrs

from yunikorn.clock import Clock
from yunikorn_kubernetes.api_server.api_times import whole_seconds
from yunikorn_kubernetes.api_server.writes import QueuedWrites
from yunikorn_kubernetes.objects import Condition, Json
from yunikorn_kubernetes.workloads.pod_groups import POD_GROUPS, PodGroup
from yunikorn_service.background import BackgroundTasks

_log = logging.getLogger("yunikorn.kubernetes.workloads")

SCHEDULED, DISRUPTED = "PodGroupScheduled", "DisruptionTarget"
"""Types of conditions."""
SPACING = 5.0
"""Minimum seconds between two messages for one group; a change of the status is written at once."""


@attrs.define(eq=False)
class _GroupEntry:
    """Conditions of a group that are to be written."""

    wanted: dict[str, Condition] = attrs.Factory(dict)
    """Conditions by type."""
    written_at: float | None = None


class PodGroupConditions:
    """Writer of the conditions of PodGroups; `groups` has them as the watch reports, by `namespace/name`."""

    def __init__(self, groups: Mapping[str, PodGroup], writes: QueuedWrites, clock: Clock) -> None:
        self._groups, self._writes, self._clock = groups, writes, clock
        self._entries: dict[str, _GroupEntry] = {}
        self._writing = BackgroundTasks(_log)

    def close(self) -> None:
        """Write no more."""
        self._writing.cancel_all()

    def forget(self, group: str) -> None:
        """Drop a group without pods."""
        if self._entries.pop(group, None) is not None:
            self._writing.cancel(group)

    def scheduled(self, group: str, has_enough: bool, message: str) -> None:
        """Note whether enough members have a node, and the reason or the number for users."""
        reason = "Scheduled" if has_enough else "Unschedulable"
        self._want(group, Condition(SCHEDULED, str(has_enough), reason, message))
        if has_enough and self._status(group, DISRUPTED) == "True":
            self._want(group, Condition(DISRUPTED, "False", "Scheduled", "the group is scheduled again"))

    def waits(self, group: str, message: str) -> None:
        """Note why members wait, unless enough of them have a node."""
        if self._status(group, SCHEDULED) != "True":
            self.scheduled(group, False, message)

    def disrupted(self, group: str, message: str) -> None:
        """Note that members were preempted that the group needs."""
        self._want(group, Condition(DISRUPTED, "True", "PreemptionByScheduler", message))

    def _status(self, group: str, kind: str) -> str:
        """Return the status of a condition as wanted, or as it is; empty without one."""
        entry = self._entries.get(group)
        if entry is not None and kind in entry.wanted:
            return entry.wanted[kind].status
        found = self._groups.get(group)
        conditions = found.status.conditions if found is not None else ()
        return next((str(one.get("status")) for one in conditions if one.get("type") == kind), "")

    def _want(self, group: str, condition: Condition) -> None:
        entry = self._entries.setdefault(group, _GroupEntry())
        before = entry.wanted.get(condition.type)
        if before == condition:
            return
        is_urgent = self._status(group, condition.type) != condition.status
        entry.wanted[condition.type] = condition
        if is_urgent:
            # A message that waits for its turn is older than the change.
            self._writing.cancel(group)
        if group not in self._writing:
            now = asyncio.get_running_loop().time()
            earliest = now if entry.written_at is None else entry.written_at + SPACING
            self._writing.begin(
                self._write(group, entry, 0.0 if is_urgent else max(0.0, earliest - now)),
                f"the conditions of PodGroup {group}",
                key=group,
            )

    async def _write(self, group: str, entry: _GroupEntry, delay: float) -> None:
        namespace, _, name = group.partition("/")
        while self._body(group, entry) is not None:
            written = {**entry.wanted}
            await self._writes.update_status(
                POD_GROUPS, namespace, name, lambda: self._body(group, entry), delay=delay
            )
            entry.written_at, delay = asyncio.get_running_loop().time(), SPACING
            if entry.wanted == written:
                return

    def _body(self, group: str, entry: _GroupEntry) -> Json | None:
        """Return the patch that brings the wanted conditions; None if the group has them or is gone."""
        found = self._groups.get(group)
        if found is None or self._entries.get(group) is not entry:
            return None
        conditions, is_same = [], True
        wanted = {**entry.wanted}
        for one in found.status.conditions:
            condition = wanted.pop(str(one.get("type")), None)
            if condition is None:
                conditions.append(one)
            else:
                made = self._condition(condition, one)
                is_same = is_same and made == one
                conditions.append(made)
        conditions += [self._condition(condition, {}) for condition in wanted.values()]
        if is_same and not wanted:
            return None
        meta = {"resourceVersion": found.metadata.resource_version, "uid": found.metadata.uid}
        return {"metadata": meta, "status": {"conditions": conditions}}

    def _condition(self, wanted: Condition, before: Json) -> Json:
        """Return a condition as it is written; the time is that of the last change of its status."""
        is_change = before.get("status") != wanted.status
        return {
            "type": wanted.type,
            "status": wanted.status,
            "reason": wanted.reason,
            "message": wanted.message,
            "lastTransitionTime": whole_seconds(self._clock) if is_change else before["lastTransitionTime"],
        }
