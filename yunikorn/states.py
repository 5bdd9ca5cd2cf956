"""Every state machine of the scheduler, each one table, declared with `transitions`.

A machine here is a rulebook: it has no models, so an object costs it no memory, and one table serves
all objects of its kind. Sources: the object-states seed as read in decisions "States", and the
scheduler-interface seed for nodes, asks, allocations and resource managers.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from yunikorn.errors import StateError

if TYPE_CHECKING:
    from transitions import Machine

Table = tuple[tuple[str, tuple[str, ...], str], ...]
"""Rows of event, the states it may come in, and the state it leads to."""


class Stateful(Protocol):
    """An object whose state a `Lifecycle` moves."""

    state: str

    @property
    def label(self) -> str:
        """What an error calls it, such as `application a1`."""
        ...

    def on_state_change(self, before: str, reason: str) -> None:
        """Called after a change, with the state that was, and why it changed."""
        ...


class Lifecycle:
    """A state machine for all objects of a kind."""

    def __init__(self, name: str, initial: str, states: tuple[str, ...], table: Table) -> None:
        self.name = name
        self.initial = initial
        self.states = states
        self.table = table

    @cached_property
    def machine(self) -> Machine:
        """The declared machine; built on first use, because importing `transitions` takes time."""
        from transitions import Machine

        return Machine(
            model=None,
            states=list(self.states),
            initial=self.initial,
            transitions=self._rows(),
            auto_transitions=False,
        )

    def _rows(self) -> list[dict[str, Any]]:
        # A row that leads where it comes from is an internal transition: no change, no callbacks.
        return [
            {"trigger": event, "source": source, "dest": None if source == target else target}
            for event, sources, target in self.table
            for source in sources
        ]

    @cached_property
    def moves(self) -> dict[tuple[str, str], str]:
        """Where (state, event) leads, read off the declared machine.

        Objects are driven by this alone: a trigger of `transitions` costs some thirty times as much as
        a look-up, and every application has a handful of changes.
        """
        found: dict[tuple[str, str], str] = {}
        for event in self.machine.events.values():
            for source, transitions in event.transitions.items():
                found[source, event.name] = transitions[0].dest or source
        return found

    def fire(self, thing: Stateful, event: str, reason: str = "") -> bool:
        """Take `thing` through `event`; returns whether its state changed.

        Raises `StateError`, which names the thing, its state and the event, when the state does not
        allow it.
        """
        before = thing.state
        target = self.moves.get((before, event))
        if target is None:
            raise StateError(f"{thing.label} is {before}: event {event} is not possible")
        if target == before:
            return False
        thing.state = target
        thing.on_state_change(before, reason)
        return True

    def allows(self, state: str, event: str) -> bool:
        """Whether `event` may come in `state`."""
        return (state, event) in self.moves

    def next(self, label: str, state: str, event: str) -> str:
        """The state after `event`, by look-up alone (no callbacks); raises `StateError`."""
        target = self.moves.get((state, event))
        if target is None:
            raise StateError(f"{label} is {state}: event {event} is not possible")
        return target

    def mermaid(self) -> str:
        """The machine as a Mermaid state diagram, drawn by `transitions` itself."""
        from transitions.extensions import GraphMachine

        # A machine without models cannot draw itself in transitions 0.9.3, so a throw-away one does.
        class Subject:
            """Has a state."""

        drawing = GraphMachine(
            model=Subject(),
            states=list(self.states),
            initial=self.initial,
            transitions=[
                {"trigger": event, "source": source, "dest": target}
                for event, sources, target in self.table
                for source in sources
            ],
            auto_transitions=False,
            graph_engine="mermaid",
            title=self.name,
        )
        graph: Any = drawing.get_combined_graph()
        return str(graph.source)


# -- application ---------------------------------------------------------------------------------------

NEW, ACCEPTED, STARTING, RUNNING = "New", "Accepted", "Starting", "Running"
COMPLETING, COMPLETED, EXPIRED = "Completing", "Completed", "Expired"
FAILING, FAILED, REJECTED, RESUMING = "Failing", "Failed", "Rejected", "Resuming"

APPLICATION = Lifecycle(
    "application",
    NEW,
    (NEW, ACCEPTED, STARTING, RUNNING, COMPLETING, COMPLETED, EXPIRED, FAILING, FAILED, REJECTED, RESUMING),
    (
        ("reject", (NEW,), REJECTED),
        ("run", (NEW, RESUMING), ACCEPTED),
        ("run", (ACCEPTED,), STARTING),
        ("run", (STARTING, RUNNING, COMPLETING), RUNNING),
        ("complete", (ACCEPTED, STARTING, RUNNING), COMPLETING),
        ("complete", (COMPLETING,), COMPLETED),
        ("fail", (NEW, ACCEPTED, STARTING, RUNNING, COMPLETING, RESUMING), FAILING),
        ("fail", (FAILING,), FAILED),
        ("resume", (NEW, ACCEPTED), RESUMING),
        ("expire", (COMPLETED,), EXPIRED),
    ),
)

FINAL_STATES = frozenset({COMPLETED, EXPIRED, FAILED, REJECTED})
"""States in which an application holds nothing and asks for nothing any more."""

# -- queue and partition -------------------------------------------------------------------------------

ACTIVE, STOPPED, DRAINING = "Active", "Stopped", "Draining"

_OBJECT_ROWS: Table = (
    ("remove", (ACTIVE, STOPPED, DRAINING), DRAINING),
    ("start", (ACTIVE, STOPPED), ACTIVE),
    ("stop", (ACTIVE, STOPPED), STOPPED),
)
PARTITION = Lifecycle("partition", ACTIVE, (ACTIVE, STOPPED, DRAINING), _OBJECT_ROWS)
QUEUE = Lifecycle(
    "queue",
    ACTIVE,
    (ACTIVE, STOPPED, DRAINING),
    # A queue that returns in a later configuration is used again; its own event, because a plain start
    # never revives a draining object.
    (*_OBJECT_ROWS, ("return", (ACTIVE, STOPPED, DRAINING), ACTIVE)),
)

# -- node ----------------------------------------------------------------------------------------------

SCHEDULABLE, NODE_DRAINING, REMOVED = "Schedulable", "Draining", "Removed"

NODE = Lifecycle(
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

ASK = Lifecycle(
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

ALLOCATION = Lifecycle(
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

SESSION = Lifecycle(
    "resource manager",
    INIT,
    (INIT, RUNNING, PAUSED, STOPPED),
    (
        # An RM that registers again gets a session of its own; the one it had is shut down. So nothing leads
        # from Paused to Running, as in the interface seed's picture.
        ("register", (INIT,), RUNNING),
        ("lose", (RUNNING, PAUSED), PAUSED),
        ("resync", (RUNNING, PAUSED), PAUSED),
        ("timeout", (PAUSED,), STOPPED),
        ("shutdown", (RUNNING, PAUSED), STOPPED),
    ),
)

LIFECYCLES = (APPLICATION, QUEUE, PARTITION, NODE, ASK, ALLOCATION, SESSION)
