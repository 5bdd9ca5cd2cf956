"""Base of all kinds of plugins: `hookimpl`, a name, options, a life cycle and its context."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import attrs
import pluggy

from yunikorn.api.views import Ask, Node, ResourceManager, Task

hookimpl = pluggy.HookimplMarker("yunikorn")
"""Decorator that marks a function of a plugin as the implementation of a hook; see
`yunikorn.framework.kinds`."""


def _discard_report(operation: str, cause: BaseException | str) -> None:
    """Ignore a report; the default where there is no scheduler, as in a unit test of a plugin."""


def _share_nothing(task: Task) -> dict[Any, Any]:
    """Return an empty state; the default where there is no scheduler."""
    return {}


def _wake_nobody(kind: str) -> None:
    """Ignore a wake-up; the default where there is no scheduler."""


@attrs.frozen(slots=True)
class RunTime:
    """Estimated run time of a task, in seconds from its placement to its end.

    One task in ten ends before `low`, half of them before `median`, and one in ten after `high`. All three
    are equal if the time is known, or if only a limit is.
    """

    low: float
    median: float
    high: float


def _estimate_nothing(task: Task, age: float = 0.0) -> RunTime | None:
    """Return None; the default where there is no scheduler."""
    return None


def _allow_all(ask: Ask | None, node: Node) -> bool:
    """Return True; the default where there is no scheduler."""
    return True


def _list_nothing() -> Iterator[Sequence[tuple[Ask, int]]]:
    """Return an empty iterator; the default where there is no scheduler."""
    return iter(())


@attrs.frozen(slots=True)
class Context:
    """Environment of a plugin object, passed to `opened` and `reloaded`."""

    partition: str
    """Name of the partition in the configuration; empty for plugins that serve no single partition."""
    now: Callable[[], int]
    """Clock of the core (ns). Plugins must not read any other clock, or replays and simulations differ."""
    rm: ResourceManager | None = None
    """Resource manager of the partition; None if there is none, as in a unit test of a plugin."""
    report: Callable[[str, BaseException | str], None] = _discard_report
    """Reports a failure that the plugin has handled, as in `report("reading the file again", error)`.

    Every call is counted under the name of the plugin, like an exception. The failure is logged when it
    differs from the previous one, and the first one is also sent as an event. Thread-safe.
    """
    wake: Callable[[str], None] = _wake_nobody
    """Makes the core ask the policies of a kind again, as in `wake("predicate")`, because something outside
    has changed: the core forgets what they answered in this partition.

    For kinds whose answers are kept or asked for again: `app-sort`, `queue-sort`, `node-sort`, `predicate`,
    `preemption`, `admission`, `quota`, `reservation` and `permit`; raises `ValueError` for others. Returns at
    once. Many calls are one wake-up, and there is at most one per second and kind. Thread-safe. A method that
    answers the core must not call it.
    """
    shared: Callable[[Task], dict[Any, Any]] = _share_nothing
    """Returns a state that the plugins of one package share while the core decides about a request.

    The state is empty at first, and is discarded when the next search for a node begins, and after permit
    policies were asked. It may be empty at any time: what is missing is computed again. Only for methods that
    the core's thread calls.
    """
    run_time: Callable[[Task, float], RunTime | None] = _estimate_nothing
    """Returns the estimated run time of a task that has run for a number of seconds, by the estimators of the
    partition; None if none of them knows the task. Only for methods that the core's thread calls."""
    waiting: Callable[[], Iterator[Sequence[tuple[Ask, int]]]] = _list_nothing
    """Returns what waits for room within its quotas and limits, in the present order of queues and
    applications: the members of an Atomic gang with their numbers, or one request of each class of an
    application. Only for methods that the core's thread calls."""
    usable: Callable[[Ask | None, Node], bool] = _allow_all
    """Returns False if a node is drained, or if a predicate refuses the request there whatever runs. Only for
    methods that the core's thread calls."""
    hypothetical: Callable[[], bool] = bool
    """Returns True during an explanation or a what-if, which have no influence on later answers."""


@attrs.frozen(slots=True)
class Wait:
    """Answer of a plugin that cannot decide yet: the core asks again later."""

    seconds: float
    """Time until the core asks again; it may ask earlier, after a change."""
    why: str
    """Reason for the wait, as shown to users."""


class Plugin:
    """Base class of all kinds of plugins: a name, options as attributes, and an optional life cycle."""

    name: ClassVar[str]
    """Name in the configuration."""
    close_before_open: ClassVar[bool] = False
    """True if a reload must close an object of the class before the next one is opened, for example because
    both would use the same file or port. Event sinks are always closed first."""

    def opened(self, context: Context) -> None:
        """Prepare for use; called once, before any other call."""

    def reloaded(self, context: Context) -> None:
        """Handle a configuration reload in which this object and its options stay in use."""

    def closed(self) -> None:
        """Release resources; called once, after the last use."""

    def saved(self) -> Any:
        """Return the state for a snapshot of the scheduler, as plain values of JSON; None for no state.

        Books of running tasks need not be in it: they are filled again by `placed`, unless there is a state.
        """

    def restored(self, state: Any) -> None:
        """Take over a state that `saved` has returned; called after `opened`. Raises for a useless state."""


def dotless(name: str) -> str:
    """Return `name` as one level of a queue path: every dot becomes `_dot_`."""
    return name.replace(".", "_dot_")
