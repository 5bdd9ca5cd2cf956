"""Policies that may answer later: each is asked in the core's thread, or by a worker if it may block.

Whatever asks policies is a generator of `Steps`: it yields where a worker has to be asked, receives the
answer, and returns the result. So a sequence of policies is written once, with and without workers
(`docs/decisions/archive/0183`). An answer is plain data in both cases.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from yunikorn.api import Wait
from yunikorn.clock import SECOND
from yunikorn.containment import (
    contained,
    describe_error,
    number_or_none,
    read_attribute,
    safe_repr,
    text_or_none,
)
from yunikorn.framework.plugin_failures import LONGEST_SECONDS
from yunikorn.framework.policy_calls import PolicyAnswer, calls_at_once, may_block, safe

if TYPE_CHECKING:
    from yunikorn.clock import Timer
    from yunikorn.framework.instances import PluginInstance
    from yunikorn.framework.plugin_failures import PluginFailures

SHORTEST = SECOND // 10
"""Shortest time (ns) between two questions about an item; shorter waits are extended to it."""
AFTER_FAILURE = 60 * SECOND
"""Time (ns) until a policy that failed is asked again."""

R = TypeVar("R")


def read_verdict(argument: object, answer: Any) -> PolicyAnswer:
    """Return the reason or the wait that a policy answers. Raises `TypeError` or `ValueError`."""
    reason = text_or_none(answer)
    if reason is not None:
        return PolicyAnswer(reason=safe(reason))
    if not issubclass(type(answer), Wait):
        raise TypeError(f"it returned {safe_repr(answer)} instead of None, a reason or Wait")
    seconds, why = number_or_none(answer.seconds), text_or_none(answer.why)
    if seconds is None or not 0 <= seconds < LONGEST_SECONDS:
        given = safe_repr(answer.seconds)
        raise ValueError(f"it returned a wait of {given} seconds instead of a number from 0 to below 1e9")
    if why is None:
        raise TypeError(f"it returned the reason {safe_repr(answer.why)} instead of text")
    return PolicyAnswer(wait=max(round(seconds * SECOND), SHORTEST), why=safe(why))


@attrs.frozen
class PolicyMethod:
    """A method of policies: its words in messages, and what it may answer."""

    kind: str
    """Kind of policy, as in `submit policy`."""
    name: str
    operation: str
    """Words for a failure, as in `checking`."""
    label: str
    """Name of a subject in messages, as a format."""
    read: Callable[[Any, Any], PolicyAnswer] = read_verdict
    """Returns what an answer about an argument means. Raises `TypeError` or `ValueError` for a wrong one."""
    copy: Callable[[Any], Any] = lambda subject: subject
    """Returns the argument that a policy which may block gets."""


class AskedPolicy:
    """A policy in use: who is asked, how, and about what."""

    def __init__(
        self, plugin: object, name: str, origin: str, method: PolicyMethod, failures: PluginFailures
    ) -> None:
        """Create without calls; `bind` follows after the policy was opened."""
        self.plugin, self.name, self.origin, self.failures = plugin, name, origin, failures
        self.method = method
        self.call: Callable[[Any], Any] = read_attribute(plugin, method.name)
        self.blocks = False
        """True if the policy may block."""
        self.at_once = 0
        """Maximum number of simultaneous calls by workers; 0 if the core's thread calls the policy."""

    @classmethod
    def of(cls, made: PluginInstance, method: PolicyMethod, failures: PluginFailures) -> AskedPolicy:
        """Return the policy of an instance."""
        return cls(made.plugin, made.name, made.origin, method, failures)

    @property
    def title(self) -> str:
        """Kind and name, as in `submit policy site-rules`."""
        return f"{self.method.kind} {self.name}".rstrip()

    def bind(self, *, workers: bool) -> None:
        """Read whether the policy may block; `workers` then call it. Called after opening."""
        self.blocks = may_block(self.plugin, self.origin, self.failures)
        if self.blocks and workers:
            self.at_once = calls_at_once(self.plugin, self.origin, self.failures)

    def ask(self, subject: Any, key: Hashable = None) -> Steps[PolicyAnswer]:
        """Return the answer about a subject; questions to workers with the same key share one call."""
        if self.at_once:
            return (yield PolicyQuestion(self, subject, key))
        return self.answer(subject)

    def answer(self, subject: Any) -> PolicyAnswer:
        """Call the policy in the core's thread; its failure is reported, and is the answer."""
        try:
            argument = self.prepare(subject)
            answer = self.call(argument)
            return NO_OBJECTION if answer is None else self.method.read(argument, answer)
        except contained() as error:
            return self._failed(subject, error)

    def understand(self, subject: Any, answer: PolicyAnswer) -> PolicyAnswer:
        """Return the answer of a worker; a failure is reported."""
        return answer if answer.failed is None else self._failed(subject, answer.failed)

    def refusal(self, answer: PolicyAnswer, objects: str) -> str:
        """Return the reason for a rejection, or ""; `objects` are words such as `rejects ask a`."""
        if answer.failed is not None:
            return answer.failed
        return "" if answer.reason is None else f"{self.title} {objects}: {answer.reason}"

    def prepare(self, subject: Any) -> Any:
        """Return the argument of a call that starts now."""
        return self.method.copy(subject) if self.blocks else subject

    def work(self, argument: Any) -> PolicyAnswer:
        """Call the policy in a worker; all code of the plugin runs there."""
        try:
            answer = self.call(argument)
            return NO_OBJECTION if answer is None else self.method.read(argument, answer)
        except contained() as error:
            return PolicyAnswer(failed=safe(describe_error(error)))

    def _failed(self, subject: Any, cause: BaseException | str) -> PolicyAnswer:
        label = self.method.label.format(subject)
        return PolicyAnswer(
            failed=str(self.failures.report(self.origin, self.method.operation, cause, label))
        )


NO_OBJECTION = PolicyAnswer()
"""Answer of a policy that returned None."""


@attrs.define(eq=False)
class PolicyQuestion:
    """A question to a policy that workers call, and the functions that wait for the answer."""

    policy: AskedPolicy
    subject: Any
    key: Hashable
    waiters: dict[Callable[[PolicyAnswer], object], None] = attrs.field(factory=dict)
    timer: Timer | None = None


Steps = Generator[PolicyQuestion, PolicyAnswer, R]


def waiting_for(answer: PolicyAnswer) -> PolicyAnswer:
    """Return an answer in which a failure is a wait: it may pass, and neither permits nor rejects."""
    return answer if answer.failed is None else PolicyAnswer(wait=AFTER_FAILURE, why=answer.failed)
