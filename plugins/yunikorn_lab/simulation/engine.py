"""Discrete-event simulation: a virtual clock, an event queue, and the exchange of messages with the core.

The steps of one instant have this order:

1. Timers of the core that are due fire.
2. Configurations of this instant are loaded.
3. One message goes to the core, if there is anything to report. It releases tasks that end, submits
   applications that arrive and reports node changes. A further message follows where the order matters (see
   `SimulatedRM.gather`).
4. The core decides until it has nothing more to place.

Consequences at the same instant are handled by another round of these steps before the clock advances.
Examples are tasks without run time, which end at once, and tasks that lost their node and are asked for
again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import attrs

from yunikorn.clock import SECOND
from yunikorn.errors import ConfigError
from yunikorn.framework.plugin_code import CodeSource
from yunikorn.interface.messages import UpdateRequest
from yunikorn_lab.simulation.counters import Counters
from yunikorn_lab.simulation.event_queue import EventQueue
from yunikorn_lab.simulation.explain_requests import ExplainRequests, SimulatedClock
from yunikorn_lab.simulation.limit_waits import LimitReport, LimitWaits
from yunikorn_lab.simulation.recorder import Recorder, Recorders
from yunikorn_lab.simulation.report import Report, make_report
from yunikorn_lab.simulation.rm_state import RegisteringCore
from yunikorn_lab.simulation.simulated_rm import SimulatedRM
from yunikorn_lab.simulation.survey import survey
from yunikorn_lab.simulation.workload import RESTART, Reloaded, Workload

ROUND = 5_000
"""Number of decisions per call of the core; interrupts are noticed between the calls."""

PATIENCE = 24 * 3600 * SECOND
"""Time (ns) for which core timers are followed while no event is pending and nothing changes."""


MOST_IDLE = 100_000
"""Number of times at which only core timers are due and nothing changes, in a row, while no event is pending.

A policy that is asked again every second ends by `PATIENCE`; one that is asked more often ends by this."""


class SimulatedCore(RegisteringCore, Protocol):
    """The part of the scheduler interface that a simulation uses."""

    def update(self, request: UpdateRequest) -> None:
        """Send an update from a resource manager."""
        ...

    def schedule(self, max_decisions: int | None = None) -> int:
        """Schedule, and return the number of decisions."""
        ...

    def reload_configuration(self, rm_id: str, text: str, code: CodeSource) -> bool:
        """Replace the configuration; raises `ConfigError` if the core refuses the text."""
        ...

    def partition(self, rm_id: str, name: str) -> object | None:
        """Return the partition of that name, or None."""
        ...

    def next_timer(self) -> int | None:
        """Return the time at which the earliest timer is due (ns), or None."""
        ...

    def fire_timers(self) -> int:
        """Fire the timers that are due, and return their number."""
        ...


@attrs.frozen
class Progress:
    """Progress of a simulation."""

    moment: int
    """Simulated time (ns)."""
    applications: int
    """Number of applications of the workload."""
    submitted: int
    """Number of applications submitted so far."""
    ended: int
    """Number of applications that finished, failed or were rejected."""
    decisions: int


@attrs.frozen
class ManagerParts:
    """Parts of a simulation that its resource managers share."""

    counters: Counters
    recorder: Recorder
    clock: SimulatedClock
    limits: LimitWaits
    preempted: str
    """Setting for preempted tasks, one of `PREEMPTED`."""


class Simulation:
    """One run of a workload against a core that uses `clock`."""

    def __init__(
        self,
        workload: Workload,
        core: SimulatedCore,
        clock: SimulatedClock,
        *,
        config: str,
        until: int | None = None,
        recorder: Recorder | None = None,
        watch: Callable[[Progress], bool] | None = None,
        limits: LimitWaits | None = None,
        preempted: str = RESTART,
        explain_requests: ExplainRequests | None = None,
        before_decision: Callable[[int], bool] | None = None,
        managers: Callable[[ManagerParts], Sequence[SimulatedRM]] | None = None,
    ) -> None:
        """Prepare a run; `config` is the text of queues.yaml, `until` (ns) the last simulated instant.

        `watch` is called often with the progress, and the run ends early when the function returns False.
        `limits` measures waits caused by quotas and limits. `preempted`, one of `PREEMPTED`, applies to
        preempted tasks whose application has no such setting. `explain_requests` are answered at their
        moments. With `before_decision`, decisions are made one by one, and the function is called with the
        time before each of them; the run ends when it returns False. `managers` makes the resource managers,
        of which the first one has the events of the workload; without it there is one with nothing yet.
        """
        self._workload = workload
        self._core = core
        self._clock = clock
        self._config = config
        self._until = until
        self._watch = watch
        self._counters = Counters()
        self._recorder = recorder or Recorder()
        self._explain_requests = explain_requests or None
        self._before_decision = before_decision
        if explain_requests:
            self._recorder = Recorders(explain_requests, self._recorder)
        self._limits = limits or LimitWaits(lambda partition, application: None)
        parts = ManagerParts(self._counters, self._recorder, clock, self._limits, preempted)
        self._is_continued = managers is not None
        self._managers = managers(parts) if managers is not None else [_new_manager(workload, parts)]
        self._first = self._managers[0]
        if explain_requests is not None:
            explain_requests.manager = self._first
        self._total = len(workload.applications)
        self._last_change = clock.now()
        self._idle = 0
        """Number of rounds since the last change."""
        self._limit_report: LimitReport | None = None
        """Report on limits at the end of the last task; None while the simulation has further events."""

    def run(self) -> Report:
        """Simulate the workload to its end; raises `ConfigError` if the core refuses the configuration."""
        for manager in self._managers:
            manager.register(self._core, self._config)
        self._recorder.begin()
        for manager in self._managers:
            manager.record_begin()
        self._total += self._counters.applications.submitted
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
        for manager in self._managers:
            manager.closed = True
        return make_report(
            self._workload,
            survey(self._workload),
            self._counters,
            self._managers,
            self._limit_report or self._limits.report(self._clock.now()),
            self._clock.now(),
            outcome,
            has_yardstick=not self._is_continued,
        )

    def _see_the_end(self, moment: int) -> None:
        """Exclude the time after the last event from the waits caused by limits."""
        if any(one.running for one in self._managers) or self._next_event() is not None:
            self._limit_report = None
        elif self._limit_report is None:
            self._limit_report = self._limits.report(moment)

    def _answer_before(self, moment: int) -> None:
        if self._explain_requests is not None:
            self._explain_requests.answer_before(
                moment if self._until is None else min(moment, self._until + 1)
            )

    def _step(self, moment: int) -> bool:
        """Simulate one round at `moment`; returns False if `watch` ends the run."""
        try:
            return self._round(moment)
        finally:
            # The core catches exceptions of its callbacks; the simulation cannot continue after one.
            for manager in self._managers:
                if manager.failure is not None:
                    raise manager.failure

    def _round(self, moment: int) -> bool:
        changes = self._changes()
        fired = self._core.fire_timers()
        told = self._first.event_queue.has_reloads and self._reload(moment)
        for manager in self._managers:
            while (request := manager.gather(moment)) is not None:
                self._core.update(request)
                manager.nodes.apply()
                told = True
        busy = told
        most = ROUND if self._before_decision is None else 1
        going, decided = True, most
        while going and decided == most:
            if self._before_decision is not None and not self._before_decision(moment):
                return False
            decided = self._core.schedule(most)
            self._counters.decisions += decided
            busy = busy or decided > 0
            going = self._watch is None or self._watch(self._progress(moment))
        # A permit policy may hold a placement and lose it at its timeout, again and again: the core decides,
        # but the resource manager hears nothing, and nothing changes for the workload.
        if told or self._changes() != changes:
            self._last_change, self._idle = moment, 0
            busy = True
        else:
            self._idle += 1
        if busy:
            self._limits.review(moment)
        if busy or fired:
            self._recorder.idle(moment)
        return going

    def _reload(self, moment: int) -> bool:
        """Load the configurations of this moment; returns True if there were any."""
        manager = self._first
        rm_id, events = manager.rm_id, manager.event_queue.reloads(moment)
        for event in events:
            refused = ""
            try:
                self._core.reload_configuration(rm_id, event.text, event.code)
                manager.nodes.leave(lambda name: self._core.partition(rm_id, name) is None)
            except ConfigError as error:
                refused = "; ".join(map(str, error.problems))
            found = Reloaded(moment, event.file, event.text, refused)
            self._counters.reloads.append(found)
            self._recorder.reloaded(found)
            manager.limits_changed(moment)
        return bool(events)

    def _next(self) -> int | None:
        """Return the time of the next round: now if a message is pending, else the next event or timer."""
        now = self._clock.now()
        if any(one.has_to_answer for one in self._managers):
            return now
        event = self._next_event()
        timer = self._core.next_timer()
        if timer is not None:
            timer = max(timer, now)
        if event is not None:
            return event if timer is None else min(event, timer)
        if timer is None or not any(one.live for one in self._managers):
            return None
        return None if timer - self._last_change > PATIENCE or self._idle > MOST_IDLE else timer

    def _next_event(self) -> int | None:
        """Return the time of the next event of all resource managers (ns), or None."""
        if len(self._managers) == 1:
            return self._first.event_queue.next()
        found = [one.event_queue.next() for one in self._managers]
        return min((event for event in found if event is not None), default=None)

    def _changes(self) -> int:
        return sum(one.changes for one in self._managers)

    def _progress(self, moment: int) -> Progress:
        counts = self._counters.applications
        ended = counts.finished + counts.rejected + counts.failed
        return Progress(moment, self._total, counts.submitted, ended, self._counters.decisions)


def _new_manager(workload: Workload, parts: ManagerParts) -> SimulatedRM:
    return SimulatedRM(
        EventQueue(workload, survey(workload).dependents),
        parts.counters,
        parts.recorder,
        parts.clock,
        workload.nodes,
        parts.limits,
        parts.preempted,
        workload.startup,
    )
