"""A predicate for YuniKorn: requests wait until the services that they need are up.

partitions:
  - name: default
    predicates:
      - name: service-health
        path: /run/health/services.json

The file is written by a monitoring system, for example `{"scratch": "up", "matlab": "restarts at 9:00"}`. A
task names what it needs in the tag `needs` of its request or its application, as in `scratch,matlab`. A
thread reads the file now and then, and wakes the scheduler when it has changed.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import attrs

from yunikorn.api import Ask, Context, Node, Predicate, hookimpl

UP = "up"


def read_states(path: Path) -> dict[str, str]:
    """Return the states of the services in a file. Raises `OSError` or `ValueError`."""
    found = json.loads(path.read_text("utf-8"))
    if not isinstance(found, dict) or not all(isinstance(state, str) for state in found.values()):
        raise ValueError(f"{path} is no object of texts")
    return found


@attrs.define(eq=False)
class ServiceHealth(Predicate):
    """Only while the services that the request needs are up."""

    name = "service-health"
    path: Path
    """File with the state of each service; it must be readable when the scheduler starts."""
    tag: str = "needs"
    """Tag with the services that a task needs, separated by commas."""
    every: float = attrs.field(default=5.0, validator=attrs.validators.gt(0))
    """Seconds between two looks at the file."""
    _states: dict[str, str] = attrs.field(init=False, factory=dict)
    _context: Context | None = attrs.field(init=False, default=None)
    _over: threading.Event = attrs.field(init=False, factory=threading.Event)
    _watching: Callable[[], None] = attrs.field(init=False, default=lambda: None)
    """Waits for the end of the thread."""

    def opened(self, context: Context) -> None:
        """Read the file, and begin to watch it."""
        self._context = context
        self._states = read_states(self.path)
        thread = threading.Thread(target=self._watch, name="service-health", daemon=True)
        thread.start()
        self._watching = thread.join

    def closed(self) -> None:
        """End the thread."""
        self._over.set()
        self._watching()

    def _watch(self) -> None:
        while not self._over.wait(self.every):
            self.look()

    def look(self) -> None:
        """Read the file again; wake the scheduler if a state has changed. Called by the thread."""
        context = self._context
        assert context is not None
        try:
            states = read_states(self.path)
        except (OSError, ValueError) as error:
            context.report("reading the states again; the previous ones apply", error)
            return
        if states != self._states:
            # One assignment: the scheduler sees all states before, or all after it.
            self._states = states
            context.wake("predicate")

    # Both classes are declared, so that the answers are kept, and cost nothing, until the wake-up.

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return None if all services are up, else the state of the first that is not."""
        for service in self._needed(ask):
            state = self._states.get(service, "unknown")
            if state != UP:
                return f"service {service}: {state}"
        return None

    def ask_class(self, ask: Ask) -> tuple[str, ...]:
        """Return the services."""
        return self._needed(ask)

    def node_class(self, node: Node) -> None:
        """Return the same class for all nodes."""

    def _needed(self, ask: Ask) -> tuple[str, ...]:
        text = ask.tags.get(self.tag) or ask.app.tags.get(self.tag, "")
        return tuple(sorted({name for part in text.split(",") if (name := part.strip())}))


@hookimpl
def yunikorn_predicates() -> list[type[Predicate]]:
    """Return the predicate."""
    return [ServiceHealth]
