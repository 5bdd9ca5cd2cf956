"""The contract of application sort policies finds mistakes in `ask_key`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from tests.testing.test_contract_violations import broken_promises, violation
from yunikorn.api import Application, AppSortPolicy, Ask, Context

COUNTER = count()


class OrdersRequests(AppSortPolicy):
    """Orders applications by submission, and requests by a function."""

    name = "orders-requests"

    def key(self, app: Application) -> int:
        """Return the time of submission."""
        return app.submitted


def ordering(by: Callable[[Any, Ask], Any]) -> AppSortPolicy:
    """Return a policy with this `ask_key`."""
    cls: Any = type("Ordering", (OrdersRequests,), {"ask_key": by, "__doc__": "Orders requests."})
    found: AppSortPolicy = cls()
    return found


def opened(self: Any, context: Context) -> None:
    """Keep the clock."""
    self.now = context.now


COMPARE = "test_answers_are_valid"
REPEATABLE = "test_keys_of_requests_are_repeatable"
STATE = "test_keys_of_requests_do_not_depend_on_the_state"


@pytest.mark.parametrize(
    ("by", "test", "words"),
    [
        (lambda self, ask: [ask.priority], COMPARE, "instead of a number"),
        (lambda self, ask: float("nan"), COMPARE, "instead of a number"),
        (lambda self, ask: ask.task_group or 0, COMPARE, "text does not compare with number"),
        (lambda self, ask: next(COUNTER), REPEATABLE, "must depend on the request alone"),
        (lambda self, ask: ask.app.allocated.get("vcore", 0), STATE, "when its application has allocations"),
        (lambda self, ask: ask.app.past.ended, STATE, "when its application has ended tasks"),
        (lambda self, ask: ask.app.priority, STATE, "when its application requests more"),
    ],
)
def test_bad_keys_of_requests_are_found(by: Callable[[Any, Ask], Any], test: str, words: str) -> None:
    assert words in violation(ordering(by), test)


def test_keys_that_depend_on_the_time_are_found() -> None:
    policy = ordering(lambda self, ask: self.now() - ask.created)
    type(policy).opened = opened  # type: ignore[method-assign]
    assert violation(policy, REPEATABLE)


def test_tags_that_are_no_numbers_are_found() -> None:
    policy = ordering(lambda self, ask: int(ask.tags.get("stage", "0")))
    found = violation(policy, "test_odd_texts_in_tags_are_answered")
    assert "Ask.tags['stage']" in found


@pytest.mark.parametrize(
    "by",
    [
        lambda self, ask: (-ask.resource.get("vcore", 0), ask.tags.get("stage", "")),
        lambda self, ask: None,
        lambda self, ask: ask.app.tags.get("team", "") == ask.tags.get("team", ""),
    ],
)
def test_orders_of_requests_pass(by: Callable[[Any, Ask], Any]) -> None:
    assert broken_promises(ordering(by)) == {}
