"""Order of the requests of an application by the sort policy of its queue: its method `ask_key`.

A key depends on the ask alone, so it is computed when the ask is taken in or changed, and again when a reload
gives the queue another policy. Pending requests are sorted by their keys within every change of the accounts,
where a comparison that raises would leave the change incomplete. Therefore only numbers, texts and tuples of
them are keys, and the keys of a queue have one form: these always compare. The form is a part of the key, so
that keys of different policies compare as well, as after a reload. See docs/decisions/archive/0203.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from yunikorn.api import AppSortPolicy
from yunikorn.containment import (
    LONGEST_NAME,
    contained,
    exact_text,
    is_plugin_of,
    number_or_none,
    read_attribute,
    safe_repr,
)
from yunikorn.model.ask import BY_ARRIVAL

if TYPE_CHECKING:
    from yunikorn.framework.plugin_failures import PluginFailures
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask, AskKey

DEEPEST = 100
"""Largest number of levels of tuples in a key."""
LAST: AskKey = (1,)
"""Key of a request without a valid key: behind the others of its priority, in order of arrival."""
FORM = "a number, a text, a tuple of them, or None"


class AskOrder:
    """Computes the sort keys of the requests of one queue."""

    __slots__ = ("_failures", "_form", "_key", "_origin", "_shown", "policy")

    def __init__(self, policy: AppSortPolicy, origin: str, failures: PluginFailures) -> None:
        self.policy = policy
        self._key: Callable[[Any], Any] = read_attribute(policy, "ask_key")
        self._origin = origin
        self._failures = failures
        self._form = ""
        """Form of the first valid key; keys of another form do not compare with it."""
        self._shown = ""
        """The first valid key as text."""

    @classmethod
    def of(cls, policy: object, origin: str, failures: PluginFailures) -> AskOrder | None:
        """Return the order of a policy; None if the policy leaves requests in order of arrival."""
        if is_plugin_of(policy, AppSortPolicy) and type(policy).ask_key is not AppSortPolicy.ask_key:
            return cls(policy, origin, failures)
        return None

    def set_keys(self, asks: Iterable[Ask]) -> None:
        """Compute the keys of asks that are not in order yet."""
        for ask in asks:
            ask.sort_key = self.key_of(ask)

    def key_of(self, ask: Ask) -> AskKey:
        """Return the sort key of an ask; failures of the policy are reported."""
        try:
            answer = self._key(ask)
            form, key = plain_ask_key(answer)
        except contained() as error:
            self._failures.report(self._origin, "computing the key of", error, ask.label)
            return LAST
        if not self._form:
            self._form, self._shown = form, safe_repr(answer)
        elif form != self._form:
            cause = f"{safe_repr(answer)} does not compare with {self._shown}, the first key of its queue"
            self._failures.report(self._origin, "comparing keys of", cause, ask.label)
            return LAST
        return (0, self._form, key)


def plain_ask_key(value: Any, levels: int = DEEPEST) -> tuple[str, Any]:
    """Return the form of a key, and the key without objects of subclasses; raises `TypeError`.

    Keys of one form compare with each other.
    """
    if value is None:
        return "none", ()
    number = number_or_none(value)
    if number is not None:
        return "number", number
    if issubclass(type(value), str):
        return "text", exact_text(value)[:LONGEST_NAME]
    if issubclass(type(value), tuple) and levels:
        parts = [plain_ask_key(part, levels - 1) for part in tuple.__iter__(value)]
        return f"({', '.join([form for form, _ in parts])})", tuple([key for _, key in parts])
    raise TypeError(f"ask_key returned {safe_repr(value)} instead of {FORM}")


def order_again(app: Application, order: AskOrder | None) -> None:
    """Sort the requests of an application by another order; None is that of arrival."""
    for ask in app.asks.values():
        ask.sort_key = BY_ARRIVAL if order is None else order.key_of(ask)
    app.sort_asks_again()
