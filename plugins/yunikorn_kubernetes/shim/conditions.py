"""Conditions of pending pods: why a pod waits, in the words of the core's explanations.

The core reports once that no node or no quota has room for a request. The text is that of `yunikorn explain`:
one explanation answers for all waiting pods of an application, and the number of explanations per second is
limited, because each looks at all nodes.

What stops a request may change later without a report of the core. Applications with waiting pods are
therefore explained again from time to time, and the conditions written again whose kinds of reasons differ,
or whose numbers are old. A core that is busy for long reports nothing; its waiting pods are explained in the
same way after a while. Members of a gang that collects room have no request yet: their conditions repeat
that of a placeholder. See docs/decisions/archive/0131-conditions-of-pending-pods.md.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping

from yunikorn.errors import CONTAINED, YunikornError
from yunikorn.interface.messages import (
    ContainerSchedulingState,
    UpdateContainerSchedulingStateRequest,
)
from yunikorn_kubernetes.api_server.pod_binding import PodRef
from yunikorn_kubernetes.api_server.pod_events import PodEvents
from yunikorn_kubernetes.api_server.writes import QueuedWrites
from yunikorn_kubernetes.names import APP_TAG_WORKLOAD, TAG_REQUIRED_NODE
from yunikorn_kubernetes.shim.shim_cluster import ShimCluster
from yunikorn_kubernetes.shim.shim_states import NEW, RESERVING, SCHEDULING
from yunikorn_kubernetes.shim.tasks import Shown, Task
from yunikorn_service.async_scheduler import AsyncScheduler
from yunikorn_service.waiting_requests import WaitingGroup, waiting_requests

_log = logging.getLogger("yunikorn.kubernetes.conditions")

Explained = tuple[str, tuple[str, ...]]
"""Message of a condition, and the kinds of the reasons in it."""

UNSCHEDULABLE, SKIPPED = "Unschedulable", "SchedulingSkipped"
"""Reasons of the condition; the first makes a cluster autoscaler add nodes."""
PAUSE = 0.1
"""Seconds between two explanations."""
LONGEST = 1000
"""Number of characters of a message."""
FIRST_REFRESH, LAST_REFRESH = 2.0, 60.0
"""Seconds until an application is explained again; each refresh doubles them, up to the second value."""
UNREPORTED = 10.0
"""Seconds after which a pod that waits is explained without a report of the core."""
OLD = 300.0
"""Seconds after which a message is written again although only its numbers have changed."""
REFRESHES_PER_SECOND = 20
"""Maximum number of conditions that are written again."""
AT_ONCE = 100
"""Conditions of one application that are written again before others have their turn."""
SHARE = 0.05
"""Share of the time that explanations of applications for a refresh may take."""
_REASONS = {
    ContainerSchedulingState.FAILED: UNSCHEDULABLE,
    ContainerSchedulingState.SKIPPED: SKIPPED,
    # No node has room now. A busy core may reserve a node before it reports that, and then never does.
    ContainerSchedulingState.RESERVED: UNSCHEDULABLE,
}


class Conditions:
    """Writes the condition `PodScheduled` of pending pods."""

    def __init__(
        self,
        cluster: ShimCluster,
        core: AsyncScheduler,
        writes: QueuedWrites,
        events: PodEvents,
        rm_id: str,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._cluster, self._core, self._writes, self._events = cluster, core, writes, events
        self._rm_id, self._sleep = rm_id, sleep
        self._waiting: dict[str, dict[str, tuple[str, str]]] = {}
        """Reason and short text by key, by application whose explanation is due."""
        self._wake = asyncio.Event()
        self._refreshes: list[tuple[float, float, str]] = []
        """Heap of the applications to explain again: time of the loop, interval until then, and id."""
        self._due: dict[str, float] = {}
        """Time of the loop of the next refresh by application; other entries of the heap do not count."""
        self._planned = asyncio.Event()

    def state_changed(self, request: UpdateContainerSchedulingStateRequest) -> None:
        """Plan the condition of a request whose state in the core has changed."""
        reason = _REASONS.get(request.state)
        waiting = self._waiting.get(request.application_id)
        if reason is not None:
            waiting = self._waiting.setdefault(request.application_id, {})
            waiting[request.allocation_key] = reason, request.reason
            self._wake.set()
        elif waiting is not None:
            waiting.pop(request.allocation_key, None)

    def submitted(self, task: Task) -> None:
        """Note that the request of a task was sent to the core."""
        task.submitted_at = asyncio.get_running_loop().time()
        self._plan(task.app_id, UNREPORTED)

    def reserving(self, app_id: str) -> None:
        """Note that the gang of an application begins to collect room."""
        self._plan(app_id, UNREPORTED)

    async def run(self) -> None:
        """Write conditions until this is cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._report())
            group.create_task(self._refresh())

    def _task(self, key: str) -> Task | None:
        task = self._cluster.tasks.get(key)
        return task if task is not None and task.state == SCHEDULING and not task.deleting else None

    async def _explain(self, app_id: str) -> dict[str, Explained]:
        """Return the explanation of each waiting request of an application by key, as far as there is one."""
        groups: tuple[WaitingGroup, ...] = ()
        try:
            groups = await self._core.read(waiting_requests(self._rm_id, app_id))
        except YunikornError as error:
            # The application has ended meanwhile, or the core is stopping.
            _log.debug("application %s is not explained: %s", app_id, error)
        except CONTAINED:
            _log.exception("bug: application %s is not explained", app_id)
        found: dict[str, Explained] = {}
        for group in groups:
            explained = text_of(group), group.kinds
            found.update((key, explained) for key in group.keys)
        return found

    def _write(self, task: Task, reason: str, message: str, kinds: tuple[str, ...]) -> None:
        terms = self._cluster.terms.get(task.app_id) if task.group else None
        if terms is not None and terms.gang is not None:
            message = shortened(f"{terms.tags[APP_TAG_WORKLOAD]}; {message}")
        self._cluster.watcher.waits(task.app_id, message, lacks_nodes=reason == UNSCHEDULABLE)
        now = asyncio.get_running_loop().time()
        is_new = task.shown is None or (task.shown.reason, task.shown.kinds) != (reason, kinds)
        if task.shown is not None and (task.shown.reason, task.shown.message) == (reason, message):
            task.shown = Shown(reason, message, kinds, now)
            return
        task.shown = Shown(reason, message, kinds, now)
        if reason == UNSCHEDULABLE and is_new:
            self._events.pod(task.pod, "PodUnschedulable", "PodUnschedulable", message, warning=True)
        self._writes.set_condition(PodRef.of(task.pod), reason, message)

    # -- first reports ------------------------------------------------------------------------------

    async def _report(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                app_id = next(iter(self._waiting))
                due = self._waiting.pop(app_id)
                if any(self._task(key) is not None for key in due):
                    explained = await self._explain(app_id)
                    for key, (reason, short) in due.items():
                        task = self._task(key)
                        if task is not None:
                            if task.tags.get(TAG_REQUIRED_NODE):
                                # As a pod of a DaemonSet, for which another node would not help.
                                reason = SKIPPED
                            self._write(task, reason, *explained.get(key, (short, ())))
                    self._plan(app_id, FIRST_REFRESH)
                    await self._sleep(PAUSE)

    # -- refreshes ----------------------------------------------------------------------------------

    def _plan(self, app_id: str, interval: float) -> None:
        due = asyncio.get_running_loop().time() + interval
        if due < self._due.get(app_id, math.inf):
            self._due[app_id] = due
            heapq.heappush(self._refreshes, (due, interval, app_id))
            self._planned.set()

    async def _refresh(self) -> None:
        """Explain applications again, the longest due first, as long as pods of theirs wait."""
        loop = asyncio.get_running_loop()
        while True:
            if not self._refreshes:
                self._planned.clear()
                await self._planned.wait()
            due, interval, app_id = self._refreshes[0]
            if due > loop.time():
                # An application that is planned meanwhile is due within the shortest interval.
                await asyncio.sleep(min(due - loop.time(), FIRST_REFRESH))
                continue
            heapq.heappop(self._refreshes)
            if self._due.get(app_id) != due:
                continue
            del self._due[app_id]
            if self._waiting_of(app_id):
                began = loop.time()
                explained = await self._explain(app_id)
                took = loop.time() - began
                is_complete = await self._write_again(app_id, explained)
                self._plan(app_id, min(interval * 2, LAST_REFRESH) if is_complete else FIRST_REFRESH)
                await asyncio.sleep(max(PAUSE, took / SHARE))

    def _waiting_of(self, app_id: str) -> list[Task]:
        """Return the waiting tasks of an application, also those that wait for the placeholders of a gang."""
        app = self._cluster.applications.get(app_id)
        tasks = app.tasks.values() if app is not None else ()
        return [task for task in tasks if self._waits(task)]

    def _waits(self, task: Task) -> bool:
        return self._task(task.uid) is task or self._waits_for_gang(task)

    def _waits_for_gang(self, task: Task) -> bool:
        """Return True for a member of a gang that collects room, of which the core has no request yet."""
        app = self._cluster.applications.get(task.app_id)
        return app is not None and app.state == RESERVING and task.state == NEW and not task.placeholder

    def _of_gang(self, app_id: str, explained: Mapping[str, Explained]) -> Explained:
        """Return the explanation for members that wait for the placeholders of their gang."""
        app = self._cluster.applications.get(app_id)
        placeholders = app.placeholders() if app is not None else []
        members = app.gang.members if app is not None and app.gang is not None else 0
        bound = sum(task.is_bound for task in placeholders)
        text = (
            f"the members of the gang start when all its placeholder pods are bound, {bound} of {members} are"
        )
        first = next((task for task in placeholders if task.uid in explained and self._waits(task)), None)
        if first is None:
            return text, ()
        message, kinds = explained[first.uid]
        return shortened(f"{text}; {first.name} waits: {message}"), kinds

    async def _write_again(self, app_id: str, explained: dict[str, Explained]) -> bool:
        """Write conditions that are missing or outdated, at a limited rate; return True if that was all."""
        now = asyncio.get_running_loop().time()
        number = 0
        waiting = self._waiting_of(app_id)
        of_gang = self._of_gang(app_id, explained)
        for task in waiting:
            found = of_gang if task.state == NEW else explained.get(task.uid)
            if found is None or not self._waits(task):
                # The pod was placed meanwhile, or its application has too many kinds of requests.
                continue
            message, kinds = found
            shown = task.shown
            if shown is None:
                # Without a report of the core it is unknown whether more nodes would help.
                is_due, reason = now - task.submitted_at >= UNREPORTED, SKIPPED
            else:
                is_old = kinds != shown.kinds or now - shown.at > OLD
                is_due, reason = message != shown.message and is_old, shown.reason
            if is_due:
                if number == AT_ONCE:
                    return False
                number += 1
                self._write(task, reason, message, kinds)
                await asyncio.sleep(1 / REFRESHES_PER_SECOND)
        return True


def text_of(group: WaitingGroup) -> str:
    """Return the message for requests that wait for the same reasons."""
    text = f"queue {group.queue}: " if group.queue else ""
    text += "; ".join(group.reasons) or "waiting for its turn"
    if group.fixes:
        text += f". Would help: {_joined(group.fixes)}"
    return shortened(text)


def shortened(text: str) -> str:
    """Return a text, or its beginning with dots if it is too long for a condition."""
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _joined(fixes: Iterable[str]) -> str:
    return "; ".join(fixes)
