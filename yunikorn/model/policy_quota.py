"""Quota of one queue that a quota policy sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from yunikorn.config.durations import describe_duration
from yunikorn.quantities import in_words

if TYPE_CHECKING:
    from yunikorn.model.sibling_usage import Lender
    from yunikorn.resources import Resource


class PolicyQuota:
    """Quota of one queue that a policy sets, as of the latest answer of the policy."""

    __slots__ = (
        "_ask",
        "amount",
        "answer",
        "failure",
        "policy",
        "reported",
        "siblings",
        "until",
        "version",
        "why",
    )

    def __init__(
        self, configured: Resource | None, policy: str, siblings: Lender | None, ask: Callable[[], object]
    ) -> None:
        """Start with the configured quota; `ask` asks the policy called `policy` and updates this object.

        With `siblings` the policy watches them, and is asked whenever they have changed.
        """
        self.policy = policy
        self.siblings = siblings
        self.amount = configured
        """Quota in force; missing types are unlimited, None is no quota."""
        self.answer: Mapping[str, int] | None = None
        """Amounts of the latest answer; None for the configured quota."""
        self.reported = configured
        """Quota that events and quota preemption know of."""
        self.until: int | None = None
        """Time (ns) until which the answer holds; None if the policy has not said any."""
        self.why = ""
        """Reason that the policy has given."""
        self.failure = ""
        """Failure of the policy; the configured quota is then in force."""
        self.version: int | None = None
        """Version of `siblings` for which the policy was asked."""
        self._ask = ask

    @property
    def lasting_amount(self) -> Resource | None:
        """Quota in force until the next question; None if siblings may change it at any time."""
        return self.amount if self.siblings is None else None

    def current(self) -> Resource | None:
        """Return the quota, after a question if siblings have changed."""
        if self.siblings is not None and self.version != self.siblings.version and not self.failure:
            self._ask()
        return self.amount

    def describe(self, now: int, configured: Resource | None) -> str:
        """Return the quota in force with its reason and the configured quota, for messages."""
        if self.failure:
            return f"quota policy {self.policy} failed, so that the configured max applies: {self.failure}"
        amount, without = (in_words(one) if one else "no max" for one in (self.amount, configured))
        why = f" ({self.why})" if self.why else ""
        left = "" if self.until is None else f", for {describe_duration(max(self.until - now, 0))} from now"
        return f"max in force {amount} of quota policy {self.policy}{why}{left}; configured {without}"
