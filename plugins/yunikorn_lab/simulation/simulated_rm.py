"""Simulated resource manager, which exchanges messages with the core and uses no other source of information.

An application is submitted together with all its asks. A task that loses its allocation (its node left, or it
was preempted) is asked for again and starts from its beginning, unless preempted tasks fail by setting. The
core may say otherwise: a task that is requeued never fails, and one that is suspended continues where it
stopped. Placeholders are asked for again while their gang waits for all of them. Confirmations that the core
expects are sent at once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import attrs

from yunikorn.clock import Clock
from yunikorn.interface.messages import (
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    PreemptionMode,
    RegisterResourceManagerRequest,
    RejectedAllocationAsk,
    TerminationType,
    UpdatedApplication,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn.model.gang import ATOMIC
from yunikorn_lab.simulation.counters import Counters
from yunikorn_lab.simulation.event_queue import EventQueue
from yunikorn_lab.simulation.limit_waits import LimitWaits
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.rm_state import (
    PREEMPTED,
    REQUEUED,
    SUSPENDED,
    LateRequest,
    ProtocolError,
    RegisteringCore,
    Running,
    SentAsk,
    Submitted,
    add_application,
    ask_for,
    ask_for_place,
    ask_for_tasks,
    submission,
)
from yunikorn_lab.simulation.simulated_nodes import SimulatedNodes
from yunikorn_lab.simulation.workload import (
    FAIL,
    FOREVER,
    StartUp,
    WorkloadApplication,
    WorkloadNode,
    WorkloadTaskGroup,
)

RM_ID = "simulation"

FAILED = "application failed"

_WHY = {
    TerminationType.UNKNOWN: "taken away",
    TerminationType.STOPPED_BY_RM: "node left",
    TerminationType.TIMEOUT: "timed out",
    TerminationType.PREEMPTED_BY_SCHEDULER: PREEMPTED,
    TerminationType.PLACEHOLDER_REPLACED: "replaced",
    TerminationType.SCHEDULING_FAILED_ON_RM: "not started",
}
_MODES = {PreemptionMode.REQUEUE: REQUEUED, PreemptionMode.SUSPEND: SUSPENDED}
PREEMPTION_MODES = [*_MODES]
"""Modes of preemption that the resource manager declares at its registration."""

_RESTARTED = (TerminationType.STOPPED_BY_RM, TerminationType.PREEMPTED_BY_SCHEDULER)
"""Termination types after which placeholders are asked for again."""


class SimulatedRM:
    """A resource manager and its state; the engine transports its messages."""

    def __init__(
        self,
        event_queue: EventQueue[Running | LateRequest],
        counters: Counters,
        recorder: Recorder,
        clock: Clock,
        nodes: list[WorkloadNode],
        limits: LimitWaits,
        preempted: str,
        startup: StartUp,
        rm_id: str = RM_ID,
    ) -> None:
        """Create the resource manager; `preempted` applies to applications without a setting of their own."""
        self.rm_id = rm_id
        self.event_queue = event_queue
        """Events of this resource manager."""
        self.nodes = SimulatedNodes(nodes, counters, recorder, clock)
        """Exchange of node messages with the core."""
        self.live: dict[str, Submitted] = {}
        """Submitted applications that have not ended, by id."""
        self.running: dict[tuple[str, str], Running] = {}
        """Running tasks by partition and uuid of the allocation; a uuid is unique within its partition."""
        self.changes = 0
        """Counter of changes reported by the core."""
        self.closed = False
        """True once the simulation is over; responses during shutdown are ignored."""
        self.failure: Exception | None = None
        """First exception in a callback; kept because the core catches exceptions of callbacks."""
        self._counters = counters
        self._recorder = recorder
        self._clock = clock
        self._limits = limits
        self._preempted = preempted
        self._startup = startup
        self._placeholders: dict[tuple[str, str], tuple[Allocation, Submitted, WorkloadTaskGroup]] = {}
        self._gathering: dict[str, Submitted] = {}
        """Gangs that wait for their placeholders before they ask for real tasks, by application id."""
        self._asks: list[AllocationAsk] = []
        self._confirmations: list[AllocationRelease] = []

    # -- beginning ---------------------------------------------------------------------------------

    def register(self, core: RegisteringCore, config: str) -> None:
        """Register with the core; raises `ConfigError` if it refuses the configuration."""
        core.register_resource_manager(
            RegisterResourceManagerRequest(self.rm_id, config=config, preemption_modes=PREEMPTION_MODES), self
        )

    def record_begin(self) -> None:
        """Record what is there at the beginning, after the recorder has begun: nothing."""

    # -- outgoing messages -------------------------------------------------------------------------

    def gather(self, moment: int) -> UpdateRequest | None:
        """Return a message with everything to report at `moment`, or None if there is nothing.

        The engine calls this method until it returns None: changes that must not share a message, such as a
        node that leaves and rejoins at one instant, follow in further messages.
        """
        due = self.event_queue.next()
        if (due is None or due > moment) and not (self._asks or self._confirmations or self.nodes.is_behind):
            return None
        request = UpdateRequest(self.rm_id)
        releases = request.releases.allocations_to_release
        releases.extend(self._confirmations)
        request.asks.extend(self._asks)
        self._confirmations.clear()
        self._asks.clear()
        for ready in self.event_queue.ends(moment):
            if isinstance(ready, LateRequest):
                self._request_late(ready, moment, request)
            else:
                releases.append(self._end(ready, moment))
        for application in self.event_queue.arrivals(moment):
            self._submit(application, moment, request)
        self.nodes.report(self.event_queue.node_events(moment), request)
        has_more = releases or request.asks or request.new_applications
        return request if has_more or request.new_schedulable_nodes or request.updated_nodes else None

    def missing_predecessors(self, application_id: str) -> Collection[str]:
        """Return the predecessors that an application waits for before it is submitted."""
        return self.event_queue.dependencies.missing(application_id) or ()

    @property
    def has_to_answer(self) -> bool:
        """True if asks or confirmations wait to be sent."""
        return bool(self._asks or self._confirmations)

    def limits_changed(self, moment: int) -> None:
        """Note that another configuration is in use, so that other limits may apply to waiting requests."""
        self.changes += 1
        for record in self.live.values():
            self._limits.moved(record, moment)

    def _submit(self, plan: WorkloadApplication, moment: int, request: UpdateRequest) -> None:
        record = self.live[plan.id] = Submitted(plan, sum(group.count for group in plan.first_tasks))
        add_application(request, record, moment)
        for group in plan.tasks:
            if group.delay:
                due = moment + group.delay
                if due not in record.late:
                    record.late[due] = LateRequest(record)
                    self.event_queue.add_end(due, record.late[due])
                record.late[due].groups.append(group)
        if plan.has_placeholders:
            self._gathering[plan.id] = record
        self._counters.arrived(record, moment)
        self._recorder.submitted(moment, record)
        self._limits.moved(record, moment)

    def _request_late(self, late: LateRequest, moment: int, request: UpdateRequest) -> None:
        """Request tasks of an application after its submission; an application that completed comes again."""
        owner = late.owner
        del owner.late[moment]
        count = sum(group.count for group in late.groups)
        owner.unfinished += count
        self._counters.tasks.asked += count
        if owner.completed:
            # A gang was placed before; its style and its placeholders are those of the first tasks.
            request.new_applications.append(submission(attrs.evolve(owner.plan, gang="")))
            owner.completed = False
        request.asks.extend(ask_for_tasks(owner, late.groups, moment))
        self._recorder.requested(moment, owner)
        self._limits.moved(owner, moment)

    def _end(self, task: Running, moment: int) -> AllocationRelease:
        allocation, owner = task.allocation, task.owner
        del self.running[allocation.partition_name, allocation.uuid]
        owner.members.pop(allocation.uuid, None)
        owner.running -= 1
        owner.ended += 1
        owner.unfinished -= 1
        self._counters.left(task, moment)
        self._recorder.released(moment, allocation, "ended")
        self._recorder.left(moment, task, "ended")
        self._close_if_done(owner)
        return AllocationRelease(allocation.application_id, allocation.uuid, allocation.partition_name)

    # -- incoming messages -------------------------------------------------------------------------

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Process a response of the core; raises `ProtocolError` for an impossible response."""
        if self.closed:
            return
        try:
            self._process(response)
        except Exception as error:
            self.failure = self.failure or error
            raise

    def _process(self, response: UpdateResponse) -> None:
        moment = self._clock.now()
        for rejected in response.rejected_applications:
            self._turned_away(rejected.application_id, rejected.reason)
        for update in response.updated_applications:
            self._changed_state(update)
        for allocation in response.new_allocations:
            if allocation.placeholder:
                self._kept(allocation, moment)
            else:
                self._placed(allocation, moment)
        for release in response.released_allocations:
            if not self._given_up(release, moment):
                self._taken_back(release, moment)
        for refused in response.rejected_allocations:
            self._refused(refused)
        for dropped in response.released_allocation_asks:
            self._dropped(dropped)
        if response.rejected_nodes or response.failed_node_updates:
            self.nodes.note_refusals(response)

    def _placed(self, allocation: Allocation, moment: int) -> None:
        owner = self.live.get(allocation.application_id)
        ask = owner.asks.get(allocation.allocation_key) if owner else None
        if owner is None or ask is None or not ask.waiting:
            raise ProtocolError(
                f"the core placed '{allocation.allocation_key}' of application "
                f"'{allocation.application_id}', which is not pending"
            )
        key = (allocation.partition_name, allocation.uuid)
        if key in self.running:
            raise ProtocolError(f"the core gave the identifier '{allocation.uuid}' to two allocations")
        group = ask.group
        delay = group.startup
        if delay is None:
            delay = self._startup.draw(owner.plan.id, group.name, owner.startups)
        task = Running(owner, ask, allocation, moment, self.nodes.speed(allocation.node_id), delay)
        self.running[key] = task
        self._served(owner, ask, owner.asks, moment)
        owner.running += 1
        self._counters.placed(task, moment)
        self._recorder.allocated(moment, allocation)
        self._recorder.started(moment, task)
        self._see_gang(owner, moment)
        if owner.plan.gang == ATOMIC and self.nodes.speeds_differ:
            self._keep_pace(task)
        if task.ask.group.runtime != FOREVER:
            self.event_queue.add_end(task.end, task)

    def _keep_pace(self, task: Running) -> None:
        """Let all running tasks of a rigid job have the speed of its slowest node."""
        others = task.owner.members
        slowest = min([task.speed, *(one.speed for one in others.values())])
        for one in others.values():
            if one.speed > slowest and one.ask.group.runtime != FOREVER:
                self.event_queue.drop_end(one.end, one)
                one.speed = slowest
                self.event_queue.add_end(one.end, one)
        task.speed = slowest
        others[task.allocation.uuid] = task

    def _served(self, owner: Submitted, ask: SentAsk, of: dict[str, SentAsk], moment: int) -> None:
        """Note that one request of an ask was allocated."""
        ask.waiting -= 1
        self._limits.placed(ask, moment)
        if not ask.waiting:
            del of[ask.key]
        if not owner.started:
            owner.started = True
            self._limits.started(owner, moment)
            self._limits.moved(owner, moment)

    def _see_gang(self, owner: Submitted, moment: int) -> None:
        if owner.plan.gang and not owner.whole and owner.running + owner.kept >= owner.plan.least:
            owner.whole = True
            self._counters.gangs.waits.add(moment - owner.plan.submit)

    def _kept(self, placeholder: Allocation, moment: int) -> None:
        owner = self.live.get(placeholder.application_id)
        ask = owner.places.get(placeholder.allocation_key) if owner else None
        if owner is None or ask is None:
            raise ProtocolError(
                f"the core placed placeholder '{placeholder.allocation_key}' of application "
                f"'{placeholder.application_id}', which is not pending"
            )
        self.changes += 1
        self._placeholders[placeholder.partition_name, placeholder.uuid] = (placeholder, owner, ask.group)
        self._served(owner, ask, owner.places, moment)
        owner.kept += 1
        self._recorder.allocated(moment, placeholder)
        self._see_gang(owner, moment)

    def _given_up(self, release: AllocationRelease, moment: int) -> bool:
        """Release and confirm a placeholder; returns False if the allocation is not a placeholder."""
        found = self._placeholders.pop((release.partition_name, release.uuid), None)
        if found is None:
            return False
        placeholder, owner, group = found
        self.changes += 1
        owner.kept -= 1
        kind = release.termination_type
        self._counters.lost_work.preempted_places += kind is TerminationType.PREEMPTED_BY_SCHEDULER
        self._recorder.released(moment, placeholder, _WHY[kind])
        self._confirm(release)
        if kind in _RESTARTED and owner.plan.id in self._gathering and not owner.failing:
            owner.places_lost += 1
            self._asks.append(ask_for_place(owner, group, 1, moment))
            self._limits.moved(owner, moment)
        return True

    def _confirm(self, release: AllocationRelease) -> None:
        kind = release.termination_type
        if kind not in (TerminationType.STOPPED_BY_RM, TerminationType.UNKNOWN):
            self._confirmations.append(
                AllocationRelease(release.application_id, release.uuid, release.partition_name, kind)
            )

    def _taken_back(self, release: AllocationRelease, moment: int) -> None:
        task = self.running.pop((release.partition_name, release.uuid), None)
        if task is None:
            return  # response to a release that was sent from here
        self.changes += 1
        self.event_queue.drop_end(task.end, task)
        owner = task.owner
        owner.members.pop(release.uuid, None)
        owner.running -= 1
        kind = release.termination_type
        why = _MODES.get(release.preemption_mode, _WHY[kind])
        self._recorder.released(moment, task.allocation, why)
        self._recorder.left(moment, task, why)
        self._confirm(release)
        timed_out = kind is TerminationType.TIMEOUT and not owner.failing
        self._counters.left(task, moment, "" if timed_out else FAILED if owner.failing else why)
        if timed_out:
            owner.unfinished -= 1
            owner.ended += 1
            self._counters.tasks.timed_out += 1
            self._close_if_done(owner)
        elif owner.failing:
            owner.unfinished -= 1
            self._counters.tasks.dropped += 1
        elif why == PREEMPTED and (owner.plan.preempted or self._preempted) == FAIL:
            owner.unfinished -= 1
            owner.failed += 1
            self._counters.tasks.failed += 1
            self._close_if_done(owner)
        else:
            self._ask_again(owner, task.rest(moment) if why == SUSPENDED else task.ask.group, moment)

    def _ask_again(self, owner: Submitted, group: WorkloadTaskGroup, moment: int) -> None:
        owner.restarts += 1
        self._counters.tasks.restarted += 1
        ask = owner.ask(f"{group.name}~{owner.restarts}", group, 1, moment)
        self._asks.append(ask_for(owner.plan, ask.key, group, 1))
        self._limits.moved(owner, moment)

    def _refused(self, refused: RejectedAllocationAsk) -> None:
        owner = self.live.get(refused.application_id)
        ask = owner.asks.pop(refused.allocation_key, None) if owner else None
        if owner is not None and ask is not None:
            self._give_up(owner, ask, refused.reason)
        elif owner is not None:
            self._drop_place(owner, refused.allocation_key)

    def _dropped(self, dropped: AllocationAskRelease) -> None:
        owner = self.live.get(dropped.application_id)
        if owner is None:
            return
        keys = [dropped.allocation_key] if dropped.allocation_key else [*owner.asks, *owner.places]
        for key in keys:
            self._drop_place(owner, key)
            ask = owner.asks.pop(key, None)
            if ask is not None:
                self._give_up(owner, ask, dropped.message or "the core dropped the ask")

    def _drop_place(self, owner: Submitted, key: str) -> None:
        place = owner.places.pop(key, None)
        if place is not None:
            self.changes += 1
            self._limits.gone(place, self._clock.now())

    def _give_up(self, owner: Submitted, ask: SentAsk, reason: str) -> None:
        self.changes += 1
        owner.unfinished -= ask.waiting
        self._limits.gone(ask, self._clock.now())
        if owner.failing:
            self._counters.tasks.dropped += ask.waiting
            return
        self._counters.refused(owner, ask.waiting, reason)
        self._recorder.refused(self._clock.now(), owner, ask.waiting, reason)
        if not (owner.unfinished or owner.ended or owner.failed or owner.late):
            self._turned_away(owner.plan.id, f"all its tasks were refused: {reason}")
        else:
            self._close_if_done(owner)

    def _close_if_done(self, owner: Submitted) -> None:
        if owner.unfinished or owner.failing or owner.late:
            return
        self._close(owner, has_finished=owner.ended > 0)
        if owner.ended:
            self._counters.done(owner)
            self._recorder.application_ended(self._clock.now(), owner, "finished", "")
        else:
            reason = "all its tasks were preempted"
            self._counters.broke(owner, reason)
            self._recorder.application_ended(self._clock.now(), owner, "failed", reason)

    def _close(self, owner: Submitted, *, has_finished: bool = False) -> None:
        """Remove an application that ended; `has_finished` is False if it failed or was rejected."""
        del self.live[owner.plan.id]
        for due, late in owner.late.items():
            self.event_queue.drop_end(due, late)
        self.event_queue.dependencies.ended(owner.plan.id, self._clock.now(), has_finished)
        self._gathering.pop(owner.plan.id, None)
        self._limits.closed(owner, self._clock.now())
        self._give_up_gang(owner)

    def _gathered_tasks(self, owner: Submitted) -> Sequence[WorkloadTaskGroup]:
        """Return the tasks that a gang asks for when its placeholders are there."""
        return owner.plan.first_tasks

    def _give_up_gang(self, owner: Submitted) -> None:
        if owner.plan.gang and not owner.whole:
            owner.whole = True
            self._counters.gangs.given_up += 1

    def _turned_away(self, application_id: str, reason: str) -> None:
        owner = self.live.get(application_id)
        if owner is not None:
            self.changes += 1
            self._close(owner)
            self._counters.turned_away(owner, reason)
            self._recorder.application_ended(self._clock.now(), owner, "rejected", reason)

    def _changed_state(self, update: UpdatedApplication) -> None:
        self.changes += 1
        owner = self.live.get(update.application_id)
        gathered = update.state in ("Starting", "Running", "Resuming")
        moment = self._clock.now()
        if owner is None:
            return
        if update.state == "Resuming":
            self._give_up_gang(owner)
        if gathered and self._gathering.pop(update.application_id, None) is not None:
            self._asks.extend(ask_for_tasks(owner, self._gathered_tasks(owner), moment))
        self._limits.moved(owner, moment)
        owner.completed = owner.completed or update.state == "Completed"
        if update.state not in ("Failing", "Failed"):
            return
        owner.failing = True
        if update.state == "Failed":
            self._close(owner)
            self._counters.broke(owner, update.message)
            self._recorder.application_ended(self._clock.now(), owner, "failed", update.message)
