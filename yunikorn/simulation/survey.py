"""Survey of a workload before its simulation: what does not fit, the offered load, and the predecessors.

A survey reads all applications once, and once more if there are dependencies. A workload keeps the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import attrs

from yunikorn.simulation.event_queue import EventQueue
from yunikorn.simulation.offered_load import LoadTally, OfferedLoad
from yunikorn.simulation.oversized import Oversized, OversizedFinder
from yunikorn.simulation.workload import FOREVER, Workload, WorkloadApplication


@attrs.frozen
class Survey:
    """Properties of a workload that need no simulation."""

    oversized: Oversized
    offered_load: OfferedLoad
    dependents: Mapping[str, int]
    """Number of direct dependents per predecessor."""
    applications_with_predecessors: int
    never_submitted: int
    """Applications that follow, directly or not, an application that never ends."""
    notes: list[str]
    warnings: list[str]

    @property
    def remarks(self) -> list[str]:
        """Notes and warnings for the report, which has the offered load as a figure."""
        return [*self.notes, *self.warnings]


def survey(workload: Workload) -> Survey:
    """Return the survey of a workload, which must not change afterwards."""
    found: Survey | None = workload.surveyed
    if found is None:
        found = workload.surveyed = _survey(workload)
    return found


def _survey(workload: Workload) -> Survey:
    finder, tally = OversizedFinder(workload), LoadTally()
    dependents: Counter[str] = Counter()
    following = 0
    for application in workload.applications:
        finder.add(application)
        tally.add(application)
        if application.after:
            following += 1
            dependents.update(set(application.after))
    never = 0
    if following:
        tally = LoadTally()
        queue: EventQueue[str] = EventQueue(attrs.evolve(workload, events=[], reloads=[]), dependents)
        for application in _submissions(queue, dependents):
            tally.add(application)
        never = queue.still_to_arrive
    oversized, load = finder.result(), tally.relate_to(workload)
    notes = [*oversized.remarks(), _note_on_ends(never)]
    return Survey(
        oversized,
        load,
        dependents,
        following,
        never,
        notes=list(filter(None, notes)),
        warnings=list(filter(None, [load.warning()])),
    )


def _submissions(queue: EventQueue[str], dependents: Mapping[str, int]) -> Iterator[WorkloadApplication]:
    """Yield the applications as they would be submitted if none ever waited for room."""
    while (moment := queue.next()) is not None:
        for name in queue.ends(moment):
            queue.dependencies.ended(name, moment, True)
        for application in queue.arrivals(moment):
            yield application
            longest = max(group.own_time for group in application.tasks)
            if application.id in dependents and longest != FOREVER:
                queue.add_end(moment + longest, application.id)


def _note_on_ends(never: int) -> str:
    if not never:
        return ""
    return (
        f"{never} applications will never be submitted, because an application before them never ends "
        "(by --hold, or a run time of forever)"
    )
