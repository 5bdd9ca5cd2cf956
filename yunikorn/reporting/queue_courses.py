"""All queues of a simulation that ever had something in them, over time."""

from __future__ import annotations

from collections.abc import Iterator

from yunikorn.reporting.intervals import Timeline
from yunikorn.reporting.queue_course import QueueCourse
from yunikorn.reporting.standings import Standings


class QueueCourses:
    """By partition and path; root is left out, since it is the partition itself."""

    def __init__(self, timeline: Timeline, standings: Standings) -> None:
        self._timeline = timeline
        self._standings = standings
        self._courses: dict[tuple[str, str], QueueCourse] = {}
        self._unsettled: dict[QueueCourse, None] = {}
        self._configured = 0
        """Since when the configuration is as it is now (ns)."""

    def at(self, partition: str, path: str) -> QueueCourse:
        """The queue of this path, about to be changed; made with those above it if it is new."""
        course = self._courses.get((partition, path))
        if course is None:
            course = self._make(partition, path)
        self._unsettled[course] = None
        return course

    def _make(self, partition: str, path: str) -> QueueCourse:
        above_path = path.rpartition(".")[0]
        above: QueueCourse | None = None
        if "." in above_path:
            above = self._courses.get((partition, above_path)) or self._make(partition, above_path)
            above.is_leaf = False
        course = QueueCourse(self._timeline, above)
        # It may have been there, and empty, for long.
        course.take_quota(self._configured, self._standings.quota(partition, path))
        self._courses[partition, path] = course
        return course

    def look_again(self, moment: int) -> None:
        """The configuration is another one: quotas may be, too."""
        self._configured = moment
        for (partition, path), course in self._courses.items():
            course.take_quota(moment, self._standings.quota(partition, path))
            self._unsettled[course] = None

    def settle(self, moment: int) -> None:
        """All changes of `moment` are in: enter where what changed stands."""
        for queue in self._unsettled:
            course: QueueCourse | None = queue
            while course is not None:
                course.settle(moment)
                course = course.above
        self._unsettled.clear()

    def close(self, moment: int) -> None:
        """The simulation ended: enter what is open."""
        for course in self._courses.values():
            course.close(moment)

    def __iter__(self) -> Iterator[tuple[str, str, QueueCourse]]:
        """Partition, path and course, in the order of the paths: each parent before its children."""
        for (partition, path), course in sorted(self._courses.items(), key=_by_path):
            yield partition, path, course


def _by_path(item: tuple[tuple[str, str], QueueCourse]) -> tuple[str, list[str]]:
    (partition, path), _ = item
    return partition, path.split(".")
