"""One application of a core, as a simulated resource manager knows it in place of a real one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from yunikorn.interface.messages import Allocation, AllocationRelease
from yunikorn.model.gang import ATOMIC
from yunikorn.states import ACCEPTED, FAILING, NEW
from yunikorn_lab.simulation.rm_state import PLACEHOLDER, Running, SentAsk, Submitted, partition_name
from yunikorn_lab.simulation.workload import (
    FOREVER,
    WorkloadApplication,
    WorkloadTaskGroup,
)

if TYPE_CHECKING:
    from yunikorn.api import Task
    from yunikorn.model.allocation import Allocation as Placed
    from yunikorn.model.application import Application
    from yunikorn.resources import Resource
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler

_AGAIN = re.compile(r"~(\d{1,9})\Z")
"""End of the key of a task that was asked for again."""


class RunTimeSource(Protocol):
    """Source of run times, also of drawn ones."""

    def left(self, at: PartitionScheduler, task: Task, age: int) -> int:
        """Return how long (ns) a task goes on that has run for `age` (ns), or `FOREVER`.

        `task` is an allocation, or a request with `age` 0 whose tasks all run as long as it says. Allocations
        of one request that were placed together are asked about once.
        """
        ...


class AdoptingManager(Protocol):
    """The part of a resource manager that takes over an application."""

    def enter(self, record: Submitted) -> None:
        """Enter an application, before its tasks."""
        ...

    def enter_task(self, task: Running) -> None:
        """Enter a task that runs."""
        ...

    def enter_placeholder(self, one: Allocation, owner: Submitted, group: WorkloadTaskGroup) -> None:
        """Enter a placeholder that holds room."""
        ...

    def gather_gang(self, owner: Submitted, coming: list[WorkloadTaskGroup]) -> None:
        """Ask for these tasks of a gang once its placeholders are there."""
        ...

    def end(self, release: AllocationRelease) -> None:
        """End a task or placeholder that the core wants to end."""
        ...


def spelled(partition: str) -> str:
    """Return a partition's name as workloads spell it."""
    return "" if partition == partition_name("") else partition


@attrs.define
class Adopted:
    """One application of a core, with the record that its resource manager has of it."""

    manager: AdoptingManager
    partition: str
    at: PartitionScheduler
    app: Application
    begin: int
    run_times: RunTimeSource
    _known: dict[tuple[str, int, Resource], WorkloadTaskGroup] = attrs.Factory(dict)
    """Groups of what runs, by key of the request, time of placement, and size."""

    def enter(self) -> None:
        """Enter the application with its tasks, unless nothing of it is left."""
        tasks, places, waiting = self._allocations()
        asks = {key: self._sent(task, count) for key, (task, count) in waiting.items()}
        real = {key: one for key, one in asks.items() if not waiting[key][0].placeholder}
        coming = self._coming([*places, *(waiting[key] for key in asks.keys() - real.keys())], real)
        running = [self._running_group(one) for one in tasks]
        count = len(tasks) + sum(one.waiting for one in real.values()) + sum(one.count for one in coming)
        if not count and not places and len(asks) == len(real):
            return
        groups = [
            *coming,
            *_counted([*running, *(attrs.evolve(one.group, count=one.waiting) for one in real.values())]),
        ]
        record = Submitted(self._plan(groups), count, real)
        record.places = {key: one for key, one in asks.items() if key not in real}
        self._date(record, bool(tasks), bool(places))
        self.manager.enter(record)
        for one, group in zip(tasks, running, strict=True):
            ask = SentAsk(one.key, group, 0, self._asked(one))
            self.manager.enter_task(Running(record, ask, self._message(one), one.placed - self.begin))
            self._see_end(one)
        for one, _ in places:
            self.manager.enter_placeholder(self._message(one), record, self._group(one, 1))
            self._see_end(one)
        if coming:
            self.manager.gather_gang(record, coming)

    # -- parts --------------------------------------------------------------------------------------

    def _allocations(self) -> tuple[list[Placed], list[tuple[Any, int]], dict[str, tuple[Any, int]]]:
        """Return the tasks that run, the placeholders, and what the resource manager takes as waiting."""
        app = self.app
        waiting: dict[str, tuple[Any, int]] = {
            key: (ask, ask.pending) for key, ask in app.asks.items() if ask.pending
        }
        tasks, places = [], []
        promised = [] if app.gang is None else [one for each in app.gang.promised.values() for one in each]
        for one in [*app.allocations.values(), *promised]:
            if one.hold is not None or one.replaces is not None:
                # The resource manager has not heard of it yet.
                waiting[one.key] = (one.ask or one, waiting.get(one.key, (one, 0))[1] + 1)
            elif one.placeholder:
                places.append((one, 1))
            else:
                tasks.append(one)
        return tasks, places, waiting

    def _coming(self, places: list[tuple[Any, int]], real: Mapping[str, SentAsk]) -> list[WorkloadTaskGroup]:
        """Return the tasks that a gang asks for when its placeholders are there."""
        if self.app.gang is None or self.app.state not in (NEW, ACCEPTED):
            return []
        groups: dict[str, WorkloadTaskGroup] = {}
        for task, count in places:
            group = groups.get(task.task_group)
            if group is None:
                groups[task.task_group] = self._group(task, count)
            else:
                groups[task.task_group] = attrs.evolve(group, count=group.count + count)
        for ask in real.values():
            group = groups.get(ask.group.task_group)
            if group is not None:
                groups[group.task_group] = attrs.evolve(group, count=group.count - ask.waiting)
        return [one for one in groups.values() if one.count > 0]

    def _sent(self, task: Any, count: int) -> SentAsk:
        return SentAsk(task.key, self._group(task, count), count, self._asked(task))

    def _asked(self, task: Any) -> int:
        ask = getattr(task, "ask", None)
        return int((task if ask is None else ask).created) - self.begin

    def _group(self, task: Any, count: int, runtime: int | None = None) -> WorkloadTaskGroup:
        """Return the group of a request or an allocation."""
        name = _AGAIN.sub("", task.key).removesuffix(PLACEHOLDER)
        if runtime is None:
            runtime = self.run_times.left(self.at, task, 0)
        return WorkloadTaskGroup(
            name,
            count,
            task.resource,
            runtime,
            task.priority,
            dict(task.tags),
            task.execution_timeout,
            0,
            task_group=task.task_group,
        )

    def _running_group(self, one: Placed) -> WorkloadTaskGroup:
        """Return the group of a task that runs, with the whole run time that it will have had."""
        place = (one.key, one.placed, one.resource)
        found = self._known.get(place)
        if found is None:
            age = max(self.at.partition.clock.now() - one.placed, 0)
            left = self.run_times.left(self.at, one, age)
            runtime = FOREVER if left >= FOREVER else self.begin - one.placed + left
            found = self._known[place] = self._group(one, 1, runtime)
        return found

    def _message(self, one: Placed) -> Allocation:
        return Allocation(
            one.key,
            self.app.id,
            one.uuid,
            one.node.id,
            one.resource,
            one.queue_name,
            self.partition,
            one.priority,
            dict(one.tags),
            one.task_group,
            one.placeholder,
            one.spec.originator,
        )

    def _see_end(self, one: Placed) -> None:
        if one.releasing is not None:
            self.manager.end(AllocationRelease(self.app.id, one.uuid, self.partition, one.releasing))

    def _plan(self, groups: list[WorkloadTaskGroup]) -> WorkloadApplication:
        app = self.app
        style = ATOMIC if app.gang_style == ATOMIC else "" if app.gang is None else app.gang.style
        needed = {} if app.atomic is None else app.atomic.needed
        if needed:
            groups = [attrs.evolve(one, at_least=needed.get(one.name, 0)) for one in groups]
        return WorkloadApplication(
            app.id,
            app.submitted - self.begin,
            tuple(groups),
            app.queue.path if app.queue is not None else app.queue_name,
            app.user,
            app.groups,
            spelled(self.partition),
            dict(app.tags),
            style,
            0 if app.gang is None else app.gang.timeout,
            0 if app.execution_timeout is None else app.execution_timeout.amount,
        )

    def _date(self, record: Submitted, has_tasks: bool, has_places: bool) -> None:
        app = self.app
        began = has_tasks or (app.lifetime is not None and app.lifetime.ended > 0)
        record.restarts = max(
            [0, *map(_restarts, app.asks), *(_restarts(one.key) for one in app.allocations.values())]
        )
        record.started = began or has_places
        record.failing = app.state == FAILING
        record.whole = began or (bool(record.plan.gang) and app.state not in (NEW, ACCEPTED))
        if began:
            record.queue = record.plan.queue
            record.first_start = min(
                (one.placed - self.begin for one in app.allocations.values() if not one.placeholder),
                default=0,
            )


def _restarts(key: str) -> int:
    """Return how often tasks of the application were asked for again when this one was."""
    found = _AGAIN.search(key)
    return int(found[1]) if found else 0


def _counted(groups: list[WorkloadTaskGroup]) -> list[WorkloadTaskGroup]:
    """Return one group for each name, with the sum of their counts."""
    found: dict[str, WorkloadTaskGroup] = {}
    counts: Counter[str] = Counter()
    for one in groups:
        found.setdefault(one.name, one)
        counts[one.name] += one.count
    return [attrs.evolve(one, count=counts[name]) for name, one in found.items()]
