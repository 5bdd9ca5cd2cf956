"""Watches a simulation and keeps the figures of the full report; changes nothing.

What it keeps grows with what is live, with the number of queues, users and nodes, and by eight bytes per
application and figure; everything over time has a bounded number of intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from yunikorn.interface.messages import Allocation
from yunikorn.reporting.application_course import RUNNING, WAITING, ApplicationCourse, ApplicationRow
from yunikorn.reporting.cluster_course import ClusterCourse
from yunikorn.reporting.groups import Group
from yunikorn.reporting.intervals import Timeline
from yunikorn.reporting.queue_courses import QueueCourses
from yunikorn.reporting.size_classes import size_class
from yunikorn.reporting.standings import Standings
from yunikorn.resources import Resource
from yunikorn.simulation.books import Running, Submitted
from yunikorn.simulation.oversized import partition_name
from yunikorn.simulation.recorder import Recorder
from yunikorn.simulation.reloads import Reloaded
from yunikorn.simulation.workload import NodeEvent

Write = Callable[[ApplicationRow], None]


class Observer(Recorder):
    """The figures of one simulation, while it runs."""

    def __init__(self, standings: Standings, write: Write | None = None) -> None:
        """`write` takes the row of each application that comes to its end, or is left at the end."""
        self.timeline = Timeline()
        self.cluster = ClusterCourse(self.timeline)
        self.queues = QueueCourses(self.timeline, standings)
        self.everything = Group()
        self.by_queue: dict[tuple[str, str], Group] = {}
        """By partition and path."""
        self.by_user: dict[str, Group] = {}
        self.by_size: dict[str, Group] = {}
        self.last = 0
        """When something happened last (ns)."""
        self._standings = standings
        self._write: Write = write or (lambda row: None)
        self._live: dict[str, ApplicationCourse] = {}
        self._unsized: dict[ApplicationCourse, None] = {}
        """Those that came at this moment. The nodes that come with them are heard of later."""
        self._unwritten: list[tuple[ApplicationCourse, int, str, str]] = []
        """Of those the ones that came to their end already: moment, outcome and reason."""
        self._touched: dict[ApplicationCourse, None] = {}
        self._running: dict[Running, ApplicationCourse] = {}

    # -- the cluster ----------------------------------------------------------------------------------

    def node_changed(self, event: NodeEvent) -> None:
        """A node joined, changed or left."""
        self.last = event.at
        self.cluster.change(event)

    def reloaded(self, event: Reloaded) -> None:
        """The core was given another configuration."""
        self.last = event.at
        self.queues.look_again(event.at)

    def allocated(self, moment: int, allocation: Allocation) -> None:
        """A task, or a placeholder, got its place."""
        self._hold(moment, allocation, 1)

    def released(self, moment: int, allocation: Allocation, reason: str) -> None:
        """A task, or a placeholder, gave its place back."""
        self._hold(moment, allocation, -1)

    def _hold(self, moment: int, allocation: Allocation, sign: int) -> None:
        self.last = moment
        course = self._live.get(allocation.application_id)
        if course is not None:
            self._touched[course] = None
        partition = partition_name(allocation.partition_name)
        self.queues.at(partition, allocation.queue_name).hold(allocation.resource_per_alloc, sign)
        self.cluster.hold(allocation, sign, moment)

    # -- applications ---------------------------------------------------------------------------------

    def submitted(self, moment: int, record: Submitted) -> None:
        """An application arrived."""
        self.last = moment
        self.timeline.begin(moment)
        plan = record.plan
        course = ApplicationCourse(record, partition_name(plan.partition), missing=plan.size)
        self._live[plan.id] = course
        self._touched[course] = None
        self._unsized[course] = None
        self.by_user.setdefault(plan.user, Group())
        for group in self._groups(course):
            group.applications += 1

    def _measure(self) -> None:
        """The nodes of this moment are known: so are the sizes of those that came with them."""
        for course in self._unsized:
            plan = course.record.plan
            course.size = size_class(plan, self.cluster.partition(plan.partition).capacity)
            self.by_size.setdefault(course.size, Group()).applications += 1
        self._unsized.clear()
        for course, moment, outcome, reason in self._unwritten:
            self._write(course.row(moment, outcome, reason))
        self._unwritten.clear()

    def refused(self, moment: int, record: Submitted, tasks: int, reason: str) -> None:
        """Some tasks of an application will never have a place."""
        course = self._live[record.plan.id]
        self._touched[course] = None
        if course.give_up(tasks, moment):
            self._see_whole(course, moment)

    def application_ended(self, moment: int, record: Submitted, outcome: str, reason: str) -> None:
        """An application came to its end."""
        self.last = moment
        course = self._live.pop(record.plan.id)
        self._touched.pop(course, None)
        self._lack(course, {}, 0)
        if outcome == "finished":
            for group in self._groups(course):
                group.finish(course, moment)
        if course in self._unsized:
            self._unwritten.append((course, moment, outcome, reason))
        else:
            self._write(course.row(moment, outcome, reason))

    def _groups(self, course: ApplicationCourse) -> list[Group]:
        found = [self.everything, self.by_user[course.record.plan.user]]
        if course.size:
            found.append(self.by_size[course.size])
        if course.queue:
            found.append(self.by_queue[course.partition, course.queue])
        return found

    def _see_whole(self, course: ApplicationCourse, moment: int) -> None:
        for group in self._groups(course):
            group.whole(course, moment)

    # -- tasks ----------------------------------------------------------------------------------------

    def started(self, moment: int, task: Running) -> None:
        """A task began to run."""
        if self._unsized:
            self._measure()
        course = self._live[task.owner.plan.id]
        self._running[task] = course
        if not course.queue:
            self._join(course, task.allocation.queue_name)
        self._run(course, 1)
        if not course.has_run:
            course.has_run = True
            for group in self._groups(course):
                group.started(course, moment)
        if course.first_start(task.allocation.allocation_key, moment):
            self._see_whole(course, moment)

    def left(self, moment: int, task: Running, reason: str) -> None:
        """A task runs no more."""
        course = self._running.pop(task)
        self._run(course, -1)
        self._spend(course, task, moment)

    def _run(self, course: ApplicationCourse, tasks: int) -> None:
        self.queues.at(course.partition, course.queue).run(tasks)
        partition = self.cluster.partition(course.partition)
        partition.running += tasks
        partition.touched = True

    def _spend(self, course: ApplicationCourse, task: Running, moment: int) -> None:
        amount, duration = task.allocation.resource_per_alloc, max(moment - task.started, 0)
        for group in self._groups(course):
            group.spend(course.partition, amount, duration)

    # -- what waits -----------------------------------------------------------------------------------

    def settled(self, moment: int) -> None:
        """The core has decided all that it could: enter where everything stands."""
        if self._unsized:
            self._measure()
        for course in self._touched:
            if not course.queue:
                found = self._standings.queue_of(course.partition, course.record.plan.id)
                if found:
                    self._join(course, found)
            self._lack(course, course.wants(), course.record.waiting)
        self._touched.clear()
        self.queues.settle(moment)
        self.cluster.settle(moment)

    def _join(self, course: ApplicationCourse, path: str) -> None:
        """It is known now which queue an application is in."""
        course.queue = path
        self.by_queue.setdefault((course.partition, path), Group()).applications += 1
        queue = self.queues.at(course.partition, path)
        for size, requests in course.lacking.items():
            queue.lack(size, requests)
        queue.wait(course.waiting)

    def _lack(self, course: ApplicationCourse, wants: Mapping[Resource, int], waiting: int) -> None:
        """From now on these requests and so many tasks of an application wait."""
        before, course.lacking = course.lacking, dict(wants)
        more, course.waiting = waiting - course.waiting, waiting
        changed = {size: wants.get(size, 0) - before.get(size, 0) for size in {**before, **wants}}
        partition = self.cluster.partition(course.partition)
        queue = self.queues.at(course.partition, course.queue) if course.queue else None
        for size, requests in changed.items():
            if requests:
                partition.lack(size, requests)
                if queue is not None:
                    queue.lack(size, requests)
        if more:
            partition.wait(more)
            if queue is not None:
                queue.wait(more)

    def close(self, moment: int) -> None:
        """The simulation ended at `moment`: enter what still runs and waits."""
        self.settled(max(moment, self.last))
        for task, course in self._running.items():
            self._spend(course, task, moment)
        for course in self._live.values():
            self._write(course.row(None, RUNNING if course.record.running else WAITING))
        self.last = max(moment, self.last)
        self.timeline.reach(self.last)
        self.queues.close(self.last)
        self.cluster.close(self.last)
