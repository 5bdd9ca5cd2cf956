"""The simulation itself: a virtual clock, the agenda, and the conversation with the core.

At one instant things happen in this order:

1. timers of the core that are due fire;
2. another configuration comes into use, if one is to;
3. one message goes to the core: tasks that end are released, applications that arrive are submitted,
   nodes change (in a further message what must come after it, see `SimulatedRM.gather`);
4. the core decides until it has nothing more to place.

What that leads to at the same instant (a task with no run time ends, a task that lost its node is
asked for again) is another round of the same steps before the clock moves on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import attrs

from yunikorn.clock import SECOND, ManualClock
from yunikorn.errors import ConfigError
from yunikorn.interface.messages import (
    RegisterResourceManagerRequest,
    RegisterResourceManagerResponse,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn.simulation.counters import Counters
from yunikorn.simulation.event_queue import EventQueue
from yunikorn.simulation.explain_requests import ExplainRequests
from yunikorn.simulation.limit_waits import LimitReport, LimitWaits
from yunikorn.simulation.oversized import find_oversized
from yunikorn.simulation.recorder import Recorder
from yunikorn.simulation.reloads import Reloaded
from yunikorn.simulation.report import Report, make_report
from yunikorn.simulation.rm_state import Running
from yunikorn.simulation.simulated_rm import RM_ID, SimulatedRM
from yunikorn.simulation.workload import RESTART, Workload

ROUND = 5_000
"""Decisions the core is asked for at a time, so that an interrupt is noticed in between."""

PATIENCE = 24 * 3600 * SECOND
"""How long the core's timers are followed when nothing else is to come and nothing changes (ns)."""


class CoreCallback(Protocol):
    """What the core answers to."""

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Take in what the core says."""
        ...


class Core(Protocol):
    """The scheduler interface, as far as a simulation needs it."""

    def register_resource_manager(
        self, request: RegisterResourceManagerRequest, callback: CoreCallback
    ) -> RegisterResourceManagerResponse:
        """A resource manager introduces itself."""
        ...

    def update(self, request: UpdateRequest) -> None:
        """A resource manager says what changed."""
        ...

    def schedule(self, max_decisions: int | None = None) -> int:
        """Decide; how many decisions were taken."""
        ...

    def reload_configuration(self, rm_id: str, text: str) -> bool:
        """Use another configuration from now on; raises `ConfigError` with the reasons against it."""
        ...

    def partition(self, rm_id: str, name: str) -> object | None:
        """The partition of that name; None when there is none."""
        ...

    def next_timer(self) -> int | None:
        """When the earliest timer is due (ns)."""
        ...

    def fire_timers(self) -> int:
        """Fire the timers that are due; how many there were."""
        ...


@attrs.frozen
class Progress:
    """How far a simulation is."""

    moment: int
    """Simulated time (ns)."""
    applications: int
    """How many the workload has."""
    submitted: int
    """How many of them have arrived."""
    settled: int
    """How many of them came to their end."""
    decisions: int


class Simulation:
    """One run of a workload against a core whose time is `clock`."""

    def __init__(
        self,
        workload: Workload,
        core: Core,
        clock: ManualClock,
        *,
        config: str,
        until: int | None = None,
        recorder: Recorder | None = None,
        watch: Callable[[Progress], bool] | None = None,
        limits: LimitWaits | None = None,
        preempted: str = RESTART,
        explain_requests: ExplainRequests | None = None,
    ) -> None:
        """`config` is the text of queues.yaml. `until` ends the run at that moment (ns), itself included.

        `watch` is told how far it is, often; the run ends early when it answers False. `limits` watches what
        quotas and limits hold. `preempted`, one of `PREEMPTED`, says what becomes of preempted tasks whose
        application says nothing of it. `explain_requests` are answered at their moments.
        """
        self._workload = workload
        self._core = core
        self._clock = clock
        self._config = config
        self._until = until
        self._watch = watch or (lambda progress: True)
        self._event_queue: EventQueue[Running] = EventQueue(workload)
        self._counters = Counters()
        self._recorder = recorder or Recorder()
        self._explain_requests = explain_requests
        if explain_requests is not None:
            self._recorder = explain_requests.witness(self._recorder)
        self._limits = limits or LimitWaits(lambda partition, application: None)
        self._manager = SimulatedRM(
            self._event_queue, self._counters, self._recorder, clock, workload.nodes, self._limits, preempted
        )
        if explain_requests is not None:
            explain_requests.books = self._manager
        self._total = len(workload.applications)
        self._last_change = clock.now()
        self._held: LimitReport | None = None
        """What limits held up to the end of the last task, if nothing follows it."""

    def run(self) -> Report:
        """Play the workload to its end; raises `ConfigError` when the core refuses the configuration."""
        oversized = find_oversized(self._workload)
        self._core.register_resource_manager(
            RegisterResourceManagerRequest(RM_ID, config=self._config), self._manager
        )
        self._recorder.begin()
        outcome = "complete"
        moment: int | None = self._clock.now()
        while moment is not None:
            self._answer_before(moment)
            if self._until is not None and moment > self._until:
                self._clock.set(self._until)
                outcome = "until"
                break
            self._clock.set(moment)
            if not self._step(moment):
                outcome = "interrupted"
                break
            self._see_the_end(moment)
            moment = self._next()
        self._manager.closed = True
        return make_report(
            self._workload,
            oversized,
            self._counters,
            self._manager,
            self._event_queue,
            self._held or self._limits.report(self._clock.now()),
            self._clock.now(),
            outcome,
        )

    def _see_the_end(self, moment: int) -> None:
        """When nothing runs and nothing is to come, what may yet be held by limits is not counted."""
        if self._manager.running or self._event_queue.next() is not None:
            self._held = None
        elif self._held is None:
            self._held = self._limits.report(moment)

    def _answer_before(self, moment: int) -> None:
        if self._explain_requests is not None:
            self._explain_requests.answer_before(
                moment if self._until is None else min(moment, self._until + 1)
            )

    def _step(self, moment: int) -> bool:
        """One round at `moment`; False when the watcher wants no more."""
        try:
            return self._round(moment)
        finally:
            # A core survives what its callbacks raise. A simulation must not: its books would be wrong.
            if self._manager.failure is not None:
                raise self._manager.failure

    def _round(self, moment: int) -> bool:
        changes = self._manager.changes
        self._core.fire_timers()
        busy = self._reload(moment)
        while (request := self._manager.gather(moment)) is not None:
            self._core.update(request)
            self._manager.nodes.settle()
            busy = True
        going, decided = True, ROUND
        while going and decided == ROUND:
            decided = self._core.schedule(ROUND)
            self._counters.decisions += decided
            busy = busy or decided > 0
            going = self._watch(self._progress(moment))
        if busy or self._manager.changes != changes:
            self._last_change = moment
            self._limits.review(moment)
            self._recorder.settled(moment)
        return going

    def _reload(self, moment: int) -> bool:
        """Bring in the configurations of this moment; whether there were any."""
        events = self._event_queue.reloads(moment)
        for event in events:
            refused = ""
            try:
                self._core.reload_configuration(RM_ID, event.text)
                self._manager.nodes.leave(lambda name: self._core.partition(RM_ID, name) is None)
            except ConfigError as error:
                refused = "; ".join(map(str, error.problems))
            found = Reloaded(moment, event.file, event.text, refused)
            self._counters.reloads.append(found)
            self._recorder.reloaded(found)
            self._manager.limits_changed(moment)
        return bool(events)

    def _next(self) -> int | None:
        """When the next round is due: with something to say, now; else at the next event or timer."""
        now = self._clock.now()
        if self._manager.has_to_answer:
            return now
        event = self._event_queue.next()
        timer = self._core.next_timer()
        if timer is not None:
            timer = max(timer, now)
        if event is not None:
            return event if timer is None else min(event, timer)
        if timer is None or not self._manager.live or timer - self._last_change > PATIENCE:
            return None
        return timer

    def _progress(self, moment: int) -> Progress:
        counters = self._counters
        settled = counters.finished + counters.rejected + counters.failed
        return Progress(moment, self._total, counters.submitted, settled, counters.decisions)
