"""Calls of policies that may block, made by worker threads, and their answers.

See `docs/decisions/archive/0076`.

The core starts a call, continues, and receives the answer as an input like any other. An answer therefore is
plain data that a recording can contain. All code of the plugin runs in the worker: the call, the checks of
what it returns, and the text of an exception.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Protocol

import attrs

from yunikorn.containment import contained, safe_repr
from yunikorn.framework.plugin_failures import PluginFailures

MOST_AT_ONCE = 64
"""Upper bound of `calls_at_once` of a policy."""


@attrs.frozen
class ApplicationChange:
    """Changes of an application by a submit policy."""

    queue_name: str
    tags: dict[str, str]
    priority: int | None = None


@attrs.frozen
class PolicyAnswer:
    """Answer of a policy; without any attribute set, the answer is None."""

    groups: list[str] | None = None
    change: ApplicationChange | None = None
    ask_priority: int | None = None
    """Priority that a submit policy gives to a request."""
    reason: str | None = None
    """Reason for a rejection."""
    wait: int | None = None
    """Time for which an application is held (ns)."""
    why: str = ""
    """Reason of the wait or of the amounts."""
    failed: str | None = None
    """Description of the exception that the policy raised, or of a wrong answer."""
    queue: str | None = None
    """Queue that a placement rule names."""
    max: dict[str, int] | None = None
    """Amounts that a quota policy sets."""
    until: int | None = None
    """Time (ns) at which a quota policy has to be asked again."""


class Workers(Protocol):
    """Threads that make calls for a core; both methods return at once."""

    def start(self, number: int, work: Callable[[], PolicyAnswer]) -> None:
        """Run `work` in a thread, and pass its result to `Scheduler.take_policy_answer` with this number."""
        ...

    def abandon(self, number: int) -> str:
        """Replace the thread of a call that takes too long; return the place where it is, or ""."""
        ...


class NoWorkers:
    """Workers of a replay, in which the recording has the answers."""

    def start(self, number: int, work: Callable[[], PolicyAnswer]) -> None:
        """Leave the call to the recording."""

    def abandon(self, number: int) -> str:
        """Return no place."""
        return ""


Taker = Callable[[int, PolicyAnswer], None]
"""Function that takes the answer of a call with this number."""


class PolicyCalls:
    """Calls of one scheduler that have not returned."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._numbers = itertools.count(1)
        self._takers: dict[int, Taker] = {}

    def __len__(self) -> int:
        return len(self._takers)

    def start(self, work: Callable[[], PolicyAnswer], taker: Taker) -> int:
        """Start a call, and return its number; `taker` receives the answer later."""
        number = next(self._numbers)
        self._takers[number] = taker
        self._workers.start(number, work)
        return number

    def abandon(self, number: int) -> str:
        """Give a call up, whose answer is still taken; return where its thread is, or ""."""
        return self._workers.abandon(number)

    def forget(self, number: int) -> None:
        """Ignore the answer of a call."""
        self._takers.pop(number, None)

    def take(self, number: int, answer: PolicyAnswer) -> bool:
        """Pass an answer on; return False if the call is unknown or forgotten."""
        taker = self._takers.pop(number, None)
        if taker is None:
            return False
        taker(number, answer)
        return True


def may_block(plugin: object, origin: str, failures: PluginFailures) -> bool:
    """Return False for a policy that declares that it never blocks."""
    try:
        return getattr(plugin, "blocking", True) is not False
    except contained() as error:
        failures.report(origin, "reading its blocking", error)
        return True


def calls_at_once(plugin: object, origin: str, failures: PluginFailures) -> int:
    """Return the number of worker threads that may call a policy at the same time; 1 for a wrong one."""
    operation = "reading its calls_at_once"
    try:
        number: Any = getattr(plugin, "calls_at_once", 1)
    except contained() as error:
        failures.report(origin, operation, error)
        return 1
    if type(number) is not int or number < 1:
        failures.report(origin, operation, f"{safe_repr(number)} is not a whole number from 1 on; 1 applies")
        return 1
    return min(number, MOST_AT_ONCE)


def safe(text: str) -> str:
    """Return a text without characters that UTF-8 cannot express, which a recording would change."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
