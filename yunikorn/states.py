"""State machines of the scheduler, declared as tables with `transitions`; see `docs/states.md`.

A machine has no models: one machine serves all objects of its kind, and an object stores only the name of its
state. Machines of rare objects (`Lifecycle`) are driven by the library, those of asks, allocations and
applications (`TableLifecycle`) by a table that is read off the library's machine.
"""

from __future__ import annotations

import logging
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

import attrs

from yunikorn.errors import StateError

if TYPE_CHECKING:
    from transitions import EventData, Machine


Event = TypeVar("Event", bound=str)
"""Names of the events of a machine: a misspelt event is an error of the type checker."""
Table = tuple[tuple[Event, tuple[str, ...], str], ...]
"""Rows of an event, the states in which the event is allowed, and the resulting state."""


class Stateful(Protocol):
    """Object whose state a `Lifecycle` changes."""

    state: str

    @property
    def label(self) -> str:
        """Name of the object in errors, such as `application a1`."""
        ...

    def on_state_change(self, before: str, reason: str) -> None:
        """Handle a change from the state `before`; called after the change."""
        ...


class Lifecycle(Generic[Event]):
    """State machine for all objects of a kind, driven by `transitions`."""

    def __init__(self, name: str, initial: str, states: tuple[str, ...], table: Table[Event]) -> None:
        self.name = name
        self.initial = initial
        self.states = states
        self.table = table

    @cached_property
    def machine(self) -> Machine:
        """Machine of `transitions`, built on first use because the import of the library is slow."""
        from transitions import Machine

        log = logging.getLogger("transitions")
        if log.level == logging.NOTSET:
            # The library logs several lines at INFO for every change; objects log what matters of theirs.
            log.setLevel(logging.WARNING)
        return Machine(
            model=None,
            states=list(self.states),
            initial=self.initial,
            transitions=self._rows(),
            auto_transitions=False,
            send_event=True,
        )

    def _rows(self) -> list[dict[str, Any]]:
        # A row whose target is its source is an internal transition: no change, no callbacks.
        return [
            {"trigger": event, "source": source, "dest": None}
            if source == target
            else {"trigger": event, "source": source, "dest": target, "after": _report_change}
            for event, sources, target in self.table
            for source in sources
        ]

    @cached_property
    def moves(self) -> dict[tuple[str, str], str]:
        """Target state by (state, event), taken from `machine`."""
        found: dict[tuple[str, str], str] = {}
        for event in self.machine.events.values():
            for source, transitions in event.transitions.items():
                found[source, event.name] = transitions[0].dest or source
        return found

    def fire(self, thing: Stateful, event: Event, reason: str = "") -> bool:
        """Apply `event` to `thing`; return True if the state changed.

        Raises `StateError`, with the object, its state and the event, if the state does not allow the event.
        """
        before = thing.state
        if (before, event) not in self.moves:
            raise StateError(f"{thing.label} is {before}: event {event} is not possible")
        self.machine.events[event].trigger(thing, reason=reason)
        return self.moves[before, event] != before

    def allows(self, state: str, event: str) -> bool:
        """Return True if `state` allows `event`."""
        return (state, event) in self.moves

    def next(self, label: str, state: str, event: Event) -> str:
        """Return the state after `event` without callbacks. Raises `StateError` if it is not allowed."""
        target = self.moves.get((state, event))
        if target is None:
            raise StateError(f"{label} is {state}: event {event} is not possible")
        return target


def _report_change(event: EventData) -> None:
    """Pass a change on to the object; called by `transitions` after the change."""
    thing: Any = event.model
    assert event.transition is not None
    thing.on_state_change(event.transition.source, event.kwargs["reason"])


class TableLifecycle(Lifecycle[Event]):
    """State machine whose objects change their state often, driven by the table read off `machine`.

    A trigger of `transitions` takes about thirty times as long as a look-up, and every ask, allocation and
    application changes its state several times.
    """

    def fire(self, thing: Stateful, event: Event, reason: str = "") -> bool:
        """Apply `event` to `thing`; return True if the state changed. Raises like `Lifecycle.fire`."""
        before = thing.state
        target = self.moves.get((before, event))
        if target is None:
            raise StateError(f"{thing.label} is {before}: event {event} is not possible")
        if target == before:
            return False
        thing.state = target
        thing.on_state_change(before, reason)
        return True


# -- application ---------------------------------------------------------------------------------------

NEW, ACCEPTED, STARTING, RUNNING = "New", "Accepted", "Starting", "Running"
COMPLETING, COMPLETED, EXPIRED = "Completing", "Completed", "Expired"
FAILING, FAILED, REJECTED, RESUMING = "Failing", "Failed", "Rejected", "Resuming"

ApplicationEvent = Literal["reject", "accept", "start", "run", "complete", "fail", "resume", "expire"]

APPLICATION: TableLifecycle[ApplicationEvent] = TableLifecycle(
    "application",
    NEW,
    (NEW, ACCEPTED, STARTING, RUNNING, COMPLETING, COMPLETED, EXPIRED, FAILING, FAILED, REJECTED, RESUMING),
    (
        ("reject", (NEW,), REJECTED),
        ("accept", (NEW, RESUMING), ACCEPTED),
        ("start", (ACCEPTED,), STARTING),
        ("run", (STARTING, RUNNING, COMPLETING), RUNNING),
        ("complete", (ACCEPTED, STARTING, RUNNING), COMPLETING),
        ("complete", (COMPLETING,), COMPLETED),
        ("fail", (NEW, ACCEPTED, STARTING, RUNNING, COMPLETING, RESUMING), FAILING),
        ("fail", (FAILING,), FAILED),
        ("resume", (NEW, ACCEPTED), RESUMING),
        ("expire", (COMPLETED,), EXPIRED),
    ),
)

ADVANCE: dict[str, ApplicationEvent] = {NEW: "accept", RESUMING: "accept", ACCEPTED: "start"}
"""Event that moves an application to its next active state, by state; `run` in all other states."""

FINAL_STATES = frozenset({COMPLETED, EXPIRED, FAILED, REJECTED})
"""States of applications that have neither allocations nor asks and never will have."""


def compatible_state(state: str) -> str:
    """Return the state of an application that YuniKorn 1.9 would report, which has no Starting."""
    return RUNNING if state == STARTING else state


# -- queue and partition -------------------------------------------------------------------------------

ACTIVE, STOPPED, DRAINING = "Active", "Stopped", "Draining"

ObjectEvent = Literal["remove", "start", "stop"]
QueueEvent = Literal["remove", "start", "stop", "return"]

_OBJECT_ROWS: Table[ObjectEvent] = (
    ("remove", (ACTIVE, STOPPED, DRAINING), DRAINING),
    ("start", (ACTIVE, STOPPED), ACTIVE),
    ("stop", (ACTIVE, STOPPED), STOPPED),
)
PARTITION: Lifecycle[ObjectEvent] = Lifecycle("partition", ACTIVE, (ACTIVE, STOPPED, DRAINING), _OBJECT_ROWS)
QUEUE: Lifecycle[QueueEvent] = Lifecycle(
    "queue",
    ACTIVE,
    (ACTIVE, STOPPED, DRAINING),
    # A queue that returns in a later configuration is active again. It needs its own event, because "start"
    # must not revive a draining object.
    (*_OBJECT_ROWS, ("return", (ACTIVE, STOPPED, DRAINING), ACTIVE)),
)

# -- node ----------------------------------------------------------------------------------------------

SCHEDULABLE, NODE_DRAINING, REMOVED = "Schedulable", "Draining", "Removed"

NodeEvent = Literal["drain", "schedule", "decommission"]

NODE: Lifecycle[NodeEvent] = Lifecycle(
    "node",
    SCHEDULABLE,
    (SCHEDULABLE, NODE_DRAINING, REMOVED),
    (
        ("drain", (SCHEDULABLE, NODE_DRAINING), NODE_DRAINING),
        ("schedule", (NODE_DRAINING,), SCHEDULABLE),
        ("decommission", (SCHEDULABLE, NODE_DRAINING), REMOVED),
    ),
)

# -- ask and allocation --------------------------------------------------------------------------------

INITIAL, PENDING, ALLOCATED = "Initial", "Pending", "Allocated"

ASK: TableLifecycle[Literal["ask", "allocate", "reject"]] = TableLifecycle(
    "ask",
    INITIAL,
    (INITIAL, PENDING, ALLOCATED, REJECTED),
    (
        ("ask", (INITIAL, PENDING, ALLOCATED), PENDING),
        ("allocate", (PENDING,), ALLOCATED),
        ("reject", (INITIAL, PENDING), REJECTED),
    ),
)

PREEMPTED = "Preempted"

AllocationEvent = Literal["stop", "preempt", "timeout"]

ALLOCATION: TableLifecycle[AllocationEvent] = TableLifecycle(
    "allocation",
    ALLOCATED,
    (ALLOCATED, COMPLETED, PREEMPTED, EXPIRED),
    (
        ("stop", (ALLOCATED,), COMPLETED),
        ("preempt", (ALLOCATED,), PREEMPTED),
        ("timeout", (ALLOCATED,), EXPIRED),
    ),
)

# -- resource manager session --------------------------------------------------------------------------

INIT, PAUSED = "Init", "Paused"

SessionEvent = Literal["register", "lose", "resync", "timeout", "shutdown"]

SESSION: Lifecycle[SessionEvent] = Lifecycle(
    "resource manager",
    INIT,
    (INIT, RUNNING, PAUSED, STOPPED),
    (
        # An RM that registers again gets a new session and the old one is shut down. Hence no transition
        # leads from Paused to Running.
        ("register", (INIT,), RUNNING),
        ("lose", (RUNNING, PAUSED), PAUSED),
        ("resync", (RUNNING, PAUSED), PAUSED),
        ("timeout", (PAUSED,), STOPPED),
        ("shutdown", (RUNNING, PAUSED), STOPPED),
    ),
)

LIFECYCLES: tuple[Lifecycle[Any], ...] = (APPLICATION, QUEUE, PARTITION, NODE, ASK, ALLOCATION, SESSION)


@attrs.define(slots=True)
class StateLogEntry:
    """A state, the time of its entry (ns), and the reason."""

    state: str
    time: int
    reason: str
