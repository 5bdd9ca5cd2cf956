"""Default quota policies: `time-of-day` and `borrowing`.

A queue names its policy in its properties, and options are properties, too:

    queues:
      - name: batch
        resources:
          max: {vcore: 40, memory: 160Gi}
        properties:
          quota.policy: time-of-day
          quota.policy.windows: mon-fri 08:00-18:00=25%, sat-sun 00:00-00:00=vcore:60 memory:240Gi
          quota.policy.zone: Europe/Berlin
      - name: research
        resources:
          max: {vcore: 10}
        properties:
          quota.policy: borrowing
          quota.policy.most: 50%
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import Any

import attrs

from yunikorn.api import Context, Queue, Quota, QuotaPolicy, hookimpl, parse_quantity
from yunikorn_plugins.daily_windows import DailyWindow, zone_of

LARGEST = 2**63 - 1
MOST_PERCENT = 10_000


@attrs.frozen
class Share:
    """Amounts, or a percentage of the configured max."""

    percent: int | None
    amounts: Mapping[str, int]

    @classmethod
    def read(cls, text: str) -> Share:
        """Return the share in a text such as `25%` or `vcore:10 memory:20Gi`. Raises `ValueError`."""
        if text.endswith("%"):
            digits = text.removesuffix("%").strip()
            if not digits.isdecimal() or len(digits) > 5 or int(digits) > MOST_PERCENT:
                raise ValueError(f"{text!r} is not a percentage from 0% to {MOST_PERCENT}%")
            return cls(int(digits), {})
        amounts: dict[str, int] = {}
        for part in text.split():
            name, colon, quantity = part.rpartition(":")
            if not colon or not name or name in amounts:
                raise ValueError(f"{text!r} is neither a percentage such as 25% nor amounts such as vcore:10")
            amounts[name] = parse_quantity(name, quantity)
        if not amounts:
            raise ValueError("the amounts are missing: expected a percentage such as 25%, or vcore:10")
        return cls(None, amounts)

    def of(self, whole: Mapping[str, int]) -> dict[str, int]:
        """Return the amounts; a percentage relates to `whole`."""
        if self.percent is None:
            return dict(self.amounts)
        return {name: min(amount * self.percent // 100, LARGEST) for name, amount in whole.items()}


def _check(read: Any) -> Any:
    """Return a validator that calls `read` with the value of an option."""

    def check(_: Any, option: Any, value: Any) -> None:
        try:
            read(value)
        except ValueError as error:
            raise ValueError(f"'{option.name}': {error}") from None

    return check


def _read_windows(texts: Mapping[str, str]) -> list[tuple[str, DailyWindow, Share]]:
    if not texts:
        raise ValueError("no window is given")
    return [(text, DailyWindow.read(text), Share.read(share)) for text, share in texts.items()]


@attrs.frozen
class _Period:
    """Time in which no window opens or closes."""

    start: int
    end: int
    at: int | None
    """Position of the window that applies; None outside of all windows."""


@attrs.define
class TimeOfDay(QuotaPolicy):
    """Another max within weekly windows; the configured max outside of them."""

    name = "time-of-day"
    windows: Mapping[str, str] = attrs.field(validator=_check(_read_windows))
    """Max by window, as in `mon-fri 08:00-18:00=25%, 22:00-06:00=vcore:10 memory:20Gi`.

    The first window that is open applies. A percentage relates to the configured max.
    """
    zone: str = attrs.field(default="UTC", validator=_check(zone_of))
    """Time zone of the windows, by its name in the IANA database."""
    _context: Context | None = attrs.field(init=False, default=None, eq=False, repr=False)
    _read: list[tuple[str, DailyWindow, Share]] = attrs.field(init=False, factory=list, eq=False, repr=False)
    _period: _Period | None = attrs.field(init=False, default=None, eq=False, repr=False)
    """Period of the latest question, because most questions of many queues are about the same time."""

    def opened(self, context: Context) -> None:
        """Keep the context, for its clock."""
        self._context = context
        self._read = _read_windows(self.windows)

    def quota(self, queue: Queue) -> Quota | None:
        """Return the max of the window that is open, until the next window opens or closes."""
        assert self._context is not None
        now = self._context.now()
        period = self._period
        if period is None or not period.start <= now < period.end:
            period = self._period = self._period_at(now, zone_of(self.zone))
        if period.at is None:
            return Quota(None, period.end, "outside of its windows")
        text, _, share = self._read[period.at]
        if share.percent is not None and queue.configured_max is None:
            self._context.report(
                "taking a percentage of the max", f"queue {queue.path} has no max: give amounts instead"
            )
        return Quota(share.of(queue.configured_max or {}), period.end, f"{text} {self.zone}")

    def _period_at(self, now: int, zone: tzinfo) -> _Period:
        at, start, end = None, now, None
        for number, (_, window, _) in enumerate(self._read):
            for opens, closes in window.periods(now, zone):
                if opens <= now < closes and at is None:
                    at = number
                for change in (opens, closes):
                    if change > now and (end is None or change < end):
                        end = change
        assert end is not None  # every window opens at least once a week
        return _Period(start, end, at)


def _read_most(text: str) -> Share | None:
    return Share.read(text) if text else None


@attrs.frozen
class Borrowing(QuotaPolicy):
    """The configured max, and what the siblings neither use nor request of theirs."""

    name = "borrowing"
    watches_siblings = True
    most: str = attrs.field(default="", validator=_check(_read_most))
    """The most to borrow: a percentage of the configured max such as `50%`, or amounts such as `vcore:10`.

    A type without an amount is not borrowed. Without this option there is no bound.
    """

    def quota(self, queue: Queue) -> Quota | None:
        """Return the configured max and what can be borrowed; None if nothing can."""
        configured = queue.configured_max
        if not configured:
            return None
        unused, most = queue.unused_by_siblings, _read_most(self.most)
        bound = None if most is None else most.of(configured)
        found: dict[str, int] = {}
        for name, amount in configured.items():
            borrowed = unused.get(name, 0)
            if bound is not None:
                borrowed = min(borrowed, bound.get(name, 0))
            if borrowed > 0:
                found[name] = min(amount + borrowed, LARGEST)
        return Quota(found, why="with what its siblings leave unused") if found else None


@hookimpl
def yunikorn_quota_policies() -> list[type[QuotaPolicy]]:
    """Return the default policies."""
    return [TimeOfDay, Borrowing]
