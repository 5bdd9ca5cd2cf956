"""Reservation policy of a partition: the plugin's answers, checked, with its failures contained.

A request for which the plugin fails makes no reservation, and is asked about again after a while or after a
change (docs/decisions/archive/0079).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from yunikorn.api import ReservationPolicy
from yunikorn.clock import SECOND
from yunikorn.config.durations import describe_duration
from yunikorn.containment import contained, number_or_none, read_attribute, safe_repr
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
        """True if the policy need not be asked."""
        pause = None if self.unrestricted else read_seconds(plugin, "pause", origin, failures)
        self.pause = round(max(pause or 0.0, SHORTEST) * SECOND)
        """Time (ns) until requests of an ask class may reserve again after their reservation was given up."""
        self._reserves_after: Callable[[Ask, float | None], Any] = read_attribute(plugin, "reserves_after")
        self._most_in = _own(plugin, "most_in")
        self._most_of = _own(plugin, "most_of")
        self._lasts = _own(plugin, "lasts")
        self._rank_node = _own(plugin, "rank_node")

    @property
    def ranks_nodes(self) -> bool:
        """True if the policy chooses the node, and not the best fit."""
        return self._rank_node is not None

    # -- who ----------------------------------------------------------------------------------------

    def too_early(
        self, ask: Ask, delay: int | None, now: int, *, quiet: bool = False
    ) -> ReservationRefusal | None:
        """Return why `ask` may not reserve at its present age, or None; `delay` (ns) is the partition's."""
        seconds = None if delay is None else delay / SECOND
        try:
            age = self._reserves_after(ask, seconds)
            if age is None:
                text = f"reservation policy {self.name} reserves no node for it"
                return ReservationRefusal(text, text)
            number = number_or_none(age)
            if number is not None and abs(number) < LONGEST_SECONDS:
                due = ask.created + round(number * SECOND)
                if now >= due:
                    return None
                text = f"reservation policy {self.name} reserves a node for it later"
                return ReservationRefusal(text, f"{text}: in {describe_duration(due - now)}", due)
            what: BaseException | str = f"{safe_repr(age)} is neither None nor a number of seconds below 1e9"
        except contained() as error:
            what = error
        return self._failed("deciding whether to reserve for", what, ask.label, now, quiet=quiet)

    # -- how many -----------------------------------------------------------------------------------

    def most(
        self, owner: Queue | Application, now: int, *, quiet: bool = False
    ) -> int | ReservationRefusal | None:
        """Return the bound on the reservations of a queue or an application; None without a bound."""
        bound = self._most_in if isinstance(owner, Queue) else self._most_of
        if bound is None:
            return None
        try:
            most = bound(owner)
            if most is None:
                return None
            number = number_or_none(most)
            if isinstance(number, int) and number >= 0:
                return number
            what: BaseException | str = f"{safe_repr(most)} is neither None nor a whole number of 0 or more"
        except contained() as error:
            what = error
        return self._failed("bounding the reservations of", what, owner.label, now, quiet=quiet)

    # -- how long -----------------------------------------------------------------------------------

    def lasts(self, ask: Ask, now: int) -> int | ReservationRefusal | None:
        """Return the duration of a reservation for `ask` (ns); None without an end."""
        if self._lasts is None:
            return None
        try:
            duration = self._lasts(ask)
            if duration is None:
                return None
            number = number_or_none(duration)
            if number is not None and 0 < number < LONGEST_SECONDS:
                return round(max(number, SHORTEST) * SECOND)
            what: BaseException | str = (
                f"{safe_repr(duration)} is neither None nor a number of seconds between 0 and 1e9"
            )
        except contained() as error:
            what = error
        return self._failed("limiting the reservation of", what, ask.label, now)

    # -- where --------------------------------------------------------------------------------------

    def rank(self, ask: Ask, node: Node) -> float | None:
        """Return the rank of a node, the lowest is reserved; None if the policy fails."""
        assert self._rank_node is not None
        try:
            rank = self._rank_node(ask, node)
            number = number_or_none(rank)
            if number is not None:
                return number
            what: BaseException | str = f"{safe_repr(rank)} is not a number"
        except contained() as error:
            what = error
        self._failures.report(
            self._origin, "ranking nodes to reserve for", what, f"{ask.label}: {node.label}"
        )
        return None

    def _failed(
        self, operation: str, cause: BaseException | str, where: str, now: int, *, quiet: bool = False
    ) -> ReservationRefusal:
        if not quiet:
            self._failures.report(self._origin, operation, cause, where)
        text = f"reservation policy {self.name} failed"
        return ReservationRefusal(text, text, now + AFTER_FAILURE)


def _own(plugin: ReservationPolicy, method: str) -> Callable[..., Any] | None:
    """Return a method of the plugin; None if it is that of the base class."""
    if getattr(type(plugin), method) is getattr(ReservationPolicy, method):
        return None
    return read_attribute(plugin, method)
