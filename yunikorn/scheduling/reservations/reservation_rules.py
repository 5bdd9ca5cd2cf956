"""Reservation policy of a partition: the plugin's answers, checked, with its failures contained.

A request for which the plugin fails makes no reservation, and is asked about again after a while or after a
change (docs/decisions/archive/0079).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, Union

import attrs

from yunikorn.api import ReservationPolicy
from yunikorn.clock import SECOND
from yunikorn.config.durations import describe_duration
from yunikorn.containment import (
    WrongAnswer,
    contained,
    number_of,
    number_or_none,
    read_attribute,
    safe_repr,
    text_or_none,
)
from yunikorn.framework.plugin_failures import LONGEST_SECONDS, read_flag, read_seconds
from yunikorn.model.queue import Queue

if TYPE_CHECKING:
    from collections.abc import Callable

    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask
    from yunikorn.model.node import Node

SHORTEST = 0.1
"""Shortest duration of a reservation, and shortest pause after it (s); shorter ones are extended to it."""
AFTER_FAILURE = 60 * SECOND
"""Time (ns) until a policy that failed is asked again."""

Owner = Union[Queue, "Application"]
"""Queue or application that the policy may give a bound."""
_T = TypeVar("_T")


@attrs.frozen(slots=True)
class ReservationRefusal:
    """Reason why a request makes no reservation now."""

    summary: str
    """Reason without numbers that change with time."""
    detail: str
    until: int | None = None
    """Time of the next question without a change (ns); None if only a change can alter the answer."""


class ReservationRules:
    """The reservation policy of one partition."""

    def __init__(self, plugin: ReservationPolicy, name: str, origin: str, failures: PluginFailures) -> None:
        self.name = name
        self._origin = origin
        self._failures = failures
        self.unrestricted = read_flag(plugin, "unrestricted", origin, failures)
        """True if the policy need not be asked: every request reserves after the delay of the partition."""
        pause = None if self.unrestricted else read_seconds(plugin, "pause", origin, failures)
        self.pause = round(max(pause or 0.0, SHORTEST) * SECOND)
        """Time (ns) until requests of an ask class may reserve again after their reservation was given up."""
        self._reserves_after: Callable[..., Any] = read_attribute(plugin, "reserves_after")
        self._most_in = _own(plugin, "most_in")
        self._most_of = _own(plugin, "most_of")
        self._lasts = _own(plugin, "lasts")
        self._rank_node = _own(plugin, "rank_node")
        self._reason = _own(plugin, "reason")

    def too_early(
        self, ask: Ask, delay: int | None, now: int, *, quiet: bool = False
    ) -> ReservationRefusal | None:
        """Return why `ask` may not reserve at its present age, or None; `delay` (ns) is the partition's."""
        if self.unrestricted:
            if delay is not None and now >= ask.created + delay:
                return None
            return ReservationRefusal("", "", None if delay is None else ask.created + delay)
        operation, wanted = "deciding whether to reserve for", "a number of seconds below 1e9"
        asked = ask, None if delay is None else delay / SECOND
        age = self._ask(self._reserves_after, asked, _age, wanted, operation, ask.label, now, quiet=quiet)
        if isinstance(age, ReservationRefusal):
            return age
        if age is None:
            text = f"reservation policy {self.name} reserves no node for it"
            operation, wanted = "explaining", "a text"
            if quiet:
                found = self._ask(self._reason, (ask,), text_or_none, wanted, operation, ask.label, now)
                text = found if isinstance(found, str) else text
            return ReservationRefusal(text, text)
        due = ask.created + age
        if now >= due:
            return None
        text = f"reservation policy {self.name} reserves a node for it later"
        return ReservationRefusal(text, f"{text}: in {describe_duration(due - now)}", due)

    def most(self, owner: Owner, now: int, *, quiet: bool = False) -> int | ReservationRefusal | None:
        """Return the bound on the reservations of a queue or an application; None without a bound."""
        bound = self._most_in if isinstance(owner, Queue) else self._most_of
        operation, wanted = "bounding the reservations of", "a whole number of 0 or more"
        return self._ask(bound, (owner,), _count, wanted, operation, owner.label, now, quiet=quiet)

    def lasts(self, ask: Ask, now: int) -> int | ReservationRefusal | None:
        """Return the duration of a reservation for `ask` (ns); None without an end."""
        operation, wanted = "limiting the reservation of", "a number of seconds between 0 and 1e9"
        return self._ask(self._lasts, (ask,), _duration, wanted, operation, ask.label, now)

    @property
    def rank(self) -> Callable[[Ask, Node], float | None] | None:
        """Function that ranks a node, the lowest is reserved; it returns None if the policy fails.

        None if the best fit is reserved.
        """
        return None if self._rank_node is None else self._rank

    def _rank(self, ask: Ask, node: Node) -> float | None:
        assert self._rank_node is not None
        try:
            return number_of(self._rank_node(ask, node))
        except contained() as error:
            where = f"{ask.label}: {node.label}"
            self._failures.report(self._origin, "ranking nodes to reserve for", error, where)
            return None

    def _ask(
        self,
        method: Callable[..., Any] | None,
        arguments: tuple[Any, ...],
        read: Callable[[Any], _T | None],
        wanted: str,
        operation: str,
        where: str,
        now: int,
        *,
        quiet: bool = False,
    ) -> _T | ReservationRefusal | None:
        """Return the answer of a method of the policy, or a refusal if it fails; None if there is no method.

        `read` returns None for an answer that is not `wanted`. With `quiet`, the failure is not reported.
        """
        if method is None:
            return None
        try:
            answer = method(*arguments)
            if answer is None:
                return None
            value = read(answer)
            if value is None:
                raise WrongAnswer(f"{safe_repr(answer)} is neither None nor {wanted}")
            return value
        except contained() as error:
            if not quiet:
                self._failures.report(self._origin, operation, error, where)
            text = f"reservation policy {self.name} failed"
            return ReservationRefusal(text, text, now + AFTER_FAILURE)


def _age(answer: Any) -> int | None:
    number = number_or_none(answer)
    return round(number * SECOND) if number is not None and abs(number) < LONGEST_SECONDS else None


def _count(answer: Any) -> int | None:
    number = number_or_none(answer)
    return number if isinstance(number, int) and number >= 0 else None


def _duration(answer: Any) -> int | None:
    number = number_or_none(answer)
    if number is None or not 0 < number < LONGEST_SECONDS:
        return None
    return round(max(number, SHORTEST) * SECOND)


def _own(plugin: ReservationPolicy, method: str) -> Callable[..., Any] | None:
    """Return a method of the plugin; None if it is that of the base class."""
    if getattr(type(plugin), method) is getattr(ReservationPolicy, method):
        return None
    return read_attribute(plugin, method)
