"""Simulations that begin with a scheduler as it is, such as one that is restored from a snapshot.

    scheduler = restored(Path("monday.snapshot"), registry)
    report = continued(scheduler, EstimatedRunTimes())

Simulated resource managers take the place of the real ones, and know what the scheduler knows: each has the
applications, tasks, placeholders and nodes of its partitions (`continued_rm`). From then on everything is as
in any other simulation, with the same engine. Simulated time is 0 at the moment of the snapshot: new arrivals
of a workload are counted from it, and what happened before has negative times.

Given the run times that the tasks really have left, and the arrivals that follow, the decisions are those
that the original makes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from yunikorn.clock import ManualClock
from yunikorn.errors import UsageError
from yunikorn.text import suggest
from yunikorn_commands.input_source import InputChecks
from yunikorn_lab.simulation.adopted_application import RunTimeSource, spelled
from yunikorn_lab.simulation.continued_rm import ContinuedRM, nodes_of
from yunikorn_lab.simulation.engine import ManagerParts, Progress, Simulation
from yunikorn_lab.simulation.explain_requests import ExplainRequest, ExplainRequests
from yunikorn_lab.simulation.limit_waits import LimitWaits
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.report import Report
from yunikorn_lab.simulation.run import with_checked_reloads, with_findings
from yunikorn_lab.simulation.survey import survey
from yunikorn_lab.simulation.workload import (
    RESTART,
    ConfigEvent,
    NodeEvent,
    NodeEventKind,
    Workload,
    WorkloadApplication,
    WorkloadNode,
)
from yunikorn_snapshots.process_parts import sessions_of, workers_of
from yunikorn_snapshots.restored_snapshot import read_header, restored_scheduler

if TYPE_CHECKING:
    from yunikorn.framework.plugin_code import CodeSource
    from yunikorn.framework.policy_calls import PolicyAnswer
    from yunikorn.framework.registry import Registry
    from yunikorn.interface.messages import UpdateRequest
    from yunikorn.interface.scheduler import Scheduler
    from yunikorn.interface.session import Session
    from yunikorn.model.application import Application


@attrs.frozen
class FirstChanges:
    """Changes that are made before the first decision, in this order: configuration, nodes, applications."""

    rm: str = ""
    """Id of the resource manager whose cluster is changed; empty for the first one."""
    config: ConfigEvent | None = None
    """Another configuration; its time does not matter. If the core refuses it, the report says so."""
    remove: tuple[str, ...] = ()
    """Names of nodes that leave, with what runs on them."""
    drain: tuple[str, ...] = ()
    """Names of nodes that take nothing new."""
    add: tuple[WorkloadNode, ...] = ()
    submit: tuple[WorkloadApplication, ...] = ()
    """Applications that are submitted, whatever their times say."""


NO_CHANGES = FirstChanges()


def restored(path: Path, registry: Registry) -> Scheduler:
    """Return the scheduler of a snapshot at its moment, for `continued`; raises as `restored_scheduler`."""
    clock = ManualClock(read_header(path).time)
    return restored_scheduler(path, registry, clock, workers=ImmediateWorkers())


def continued(
    scheduler: Scheduler,
    run_times: RunTimeSource,
    *,
    changes: FirstChanges = NO_CHANGES,
    workload: Workload | None = None,
    until: int | None = None,
    recorder: Recorder | None = None,
    watch: Callable[[Progress], bool] | None = None,
    preempted: str = RESTART,
    questions: Sequence[ExplainRequest] = (),
    meet: Callable[[Scheduler], None] | None = None,
    limits: LimitWaits | None = None,
    before_decision: Callable[[int], bool] | None = None,
    brief: bool = False,
    are_new: bool = False,
) -> Report:
    """Let a scheduler go on with simulated resource managers, and return the report from this moment on.

    The clock of the scheduler is a `ManualClock` at the present, which goes on with the simulation; the
    scheduler and its resource managers are used up. `run_times` says how long each task goes on. `changes`
    are made before the first decision, in the cluster of the first resource manager or of the one that they
    name, which also gets the `workload`: what arrives later, with times from now on, without its nodes.
    `until` (ns) counts from now on, as do the times that a recorder gets; for what is there at the beginning
    it is called after its `begin`. With `are_new`, the applications of the workload have new names and no
    predecessors, and are not looked at before they arrive. The other parameters are those of `simulate`. With
    `brief`, the report is without the reasons why tasks wait at the end, and the core is not closed: for a
    process that ends then.

    Raises `UsageError` with all changes that do not apply and for what no simulation can go on with, and
    `InputError` for configurations that cannot be read.
    """
    begin = scheduler.clock.now()
    sessions = _sessions(scheduler, changes.rm)
    planned = with_changes(scheduler, changes, workload or _no_arrivals(), are_new=are_new)
    planned = with_checked_reloads(
        planned, scheduler.configuration(sessions[0].rm_id).text, sessions[0].registry
    )
    clock = ClockSince(scheduler.clock, begin)
    if meet is not None:
        meet(scheduler)
    explain_requests = ExplainRequests(questions, scheduler, clock, sessions[0].rm_id)
    simulation = Simulation(
        planned,
        CoreSince(scheduler, begin),
        clock,
        config="",
        until=until,
        recorder=recorder,
        watch=watch,
        limits=limits or LimitWaits(partial(_find, sessions)),
        preempted=preempted,
        explain_requests=explain_requests,
        before_decision=before_decision,
        managers=partial(_managers, sessions, begin, run_times, planned, are_new),
    )
    report = simulation.run()
    if brief:
        return attrs.evolve(report, explanations=explain_requests.answer_rest())
    return with_findings(report, scheduler, sessions[0].rm_id, explain_requests)


class ClockSince:
    """Clock of a simulation that shows the time since a moment of the core's clock, and sets that one."""

    def __init__(self, clock: Any, begin: int) -> None:
        """Count from `begin` (ns); `clock` is the `ManualClock` of a core."""
        self._clock, self._begin = clock, begin

    def now(self) -> int:
        """Return the time since the beginning, in nanoseconds."""
        return int(self._clock.now()) - self._begin

    def set(self, moment: int) -> None:
        """Set the time to `moment` (ns) after the beginning."""
        self._clock.set(self._begin + moment)


class ImmediateWorkers:
    """Workers of a simulation, which call policies that may block at once; their answers are given later."""

    def __init__(self) -> None:
        self.answers: deque[tuple[int, PolicyAnswer]] = deque()
        """Numbers of calls, and answers that the core has not got yet."""

    def start(self, number: int, work: Callable[[], PolicyAnswer]) -> None:
        """Call a policy."""
        self.answers.append((number, work()))

    def abandon(self, number: int) -> str:
        """Return no place: the call has returned."""
        return ""


class CoreSince:
    """Core as a simulation sees it: the time of its timers is counted from a moment on."""

    def __init__(self, scheduler: Scheduler, begin: int) -> None:
        self._begin = begin
        self._next_timer = scheduler.next_timer
        self.register_resource_manager = scheduler.register_resource_manager
        self.fire_timers = scheduler.fire_timers
        self.partition = scheduler.partition
        self._scheduler = scheduler
        workers = workers_of(scheduler)
        self._answers = workers.answers if isinstance(workers, ImmediateWorkers) else deque()

    def update(self, request: UpdateRequest) -> None:
        """Send an update of a resource manager."""
        self._scheduler.update(request)

    def schedule(self, max_decisions: int | None = None) -> int:
        """Schedule, also what waits for the answers of policies, and return the number of decisions."""
        decided = self._scheduler.schedule(max_decisions)
        while self._answers and (max_decisions is None or decided < max_decisions):
            while self._answers:
                self._scheduler.take_policy_answer(*self._answers.popleft())
            decided += self._scheduler.schedule(None if max_decisions is None else max_decisions - decided)
        return decided

    def reload_configuration(self, rm_id: str, text: str, code: CodeSource) -> bool:
        """Replace the configuration."""
        return self._scheduler.reload_configuration(rm_id, text, code)

    def next_timer(self) -> int | None:
        """Return when the earliest timer is due (ns), or None."""
        due = self._next_timer()
        return None if due is None else due - self._begin


def _sessions(scheduler: Scheduler, first: str) -> list[Session]:
    """Return the sessions, the one with the given id first; raise `UsageError` for what cannot go on."""
    found: list[Session] = list(sessions_of(scheduler).by_rm.values())
    if not found:
        raise UsageError("the scheduler has no resource manager, and so nothing that could go on")
    if first and first not in [one.rm_id for one in found]:
        known = ", ".join(one.rm_id for one in found)
        raise UsageError(f"there is no resource manager {first!r}, but {known}")
    for session in found:
        seen: dict[str, str] = {}
        for name, at in session.partitions.by_name.items():
            for app in at.partition.applications:
                if app in seen:
                    raise UsageError(
                        f"application {app} of {session.label} is in the partitions {seen[app]} and {name}: a"
                        " simulation needs a name of its own for each application"
                    )
                seen[app] = name
    return sorted(found, key=lambda one: one.rm_id != first) if first else found


def with_changes(
    scheduler: Scheduler, changes: FirstChanges, workload: Workload, *, are_new: bool = False
) -> Workload:
    """Return a workload whose events begin with the changes, and which has the nodes of the scheduler.

    Raises `UsageError` with all changes that do not apply. `are_new` is as for `continued`.
    """
    session = _sessions(scheduler, changes.rm)[0]
    nodes = {
        event.node.name: event.node
        for name, at in session.partitions.by_name.items()
        for event in nodes_of(name, at.partition.nodes.values())
    }
    apps = {app for at in session.partitions for app in at.partition.applications}
    checks = InputChecks()
    for name in [*changes.remove, *changes.drain]:
        with checks.part():
            if name not in nodes:
                raise UsageError(f"there is no node {name!r}{suggest(name, nodes)}")
    for one in changes.add:
        with checks.part():
            if one.name in nodes and one.name not in changes.remove:
                raise UsageError(f"node {one.name} is there already: give the new one another name")
    for submitted in [*changes.submit, *(() if are_new else workload.applications)]:
        with checks.part():
            if submitted.id in apps:
                raise UsageError(f"application {submitted.id} is there already: rename the new one")
    checks.check()
    events = [
        *(NodeEvent(0, NodeEventKind.REMOVE, nodes[name]) for name in changes.remove),
        *(NodeEvent(0, NodeEventKind.DRAIN, nodes[name]) for name in changes.drain),
        *(NodeEvent(0, NodeEventKind.ADD, node) for node in changes.add),
    ]
    submitted_now = [attrs.evolve(one, submit=0) for one in changes.submit]
    made: Workload = attrs.evolve(
        workload,
        nodes=list(nodes.values()),
        events=[*events, *workload.events],
        applications=[*submitted_now, *workload.applications] if submitted_now else workload.applications,
        reloads=[*([attrs.evolve(changes.config, at=0)] if changes.config else []), *workload.reloads],
    )
    return made


def waiting_and_running(scheduler: Scheduler) -> Iterator[WorkloadApplication]:
    """Yield the applications of the first resource manager, with their times and without their tasks."""
    begin = scheduler.clock.now()
    for name, at in _sessions(scheduler, "")[0].partitions.by_name.items():
        for app in at.partition.applications.values():
            yield WorkloadApplication(
                app.id, app.submitted - begin, (), app.queue_name, app.user, app.groups, spelled(name)
            )


def _no_arrivals() -> Workload:
    return Workload("snapshot", "snapshot", [], [])


def _managers(
    sessions: Sequence[Session],
    begin: int,
    run_times: RunTimeSource,
    workload: Workload,
    are_new: bool,
    parts: ManagerParts,
) -> list[ContinuedRM]:
    dependents: Mapping[str, int] = {} if are_new else survey(workload).dependents
    rest = _no_arrivals()
    return [
        ContinuedRM(
            session, begin, run_times, rest if number else workload, {} if number else dependents, parts
        )
        for number, session in enumerate(sessions)
    ]


def _find(sessions: Sequence[Session], partition: str, application: str) -> Application | None:
    found: Iterator[Application | None] = (
        at.partition.applications.get(application)
        for session in sessions
        if (at := session.partitions.find(partition)) is not None
    )
    return next(filter(None, found), None)
