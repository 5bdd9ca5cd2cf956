"""The contract of quota policies detects invalid answers, and dependencies that are not declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from tests.testing.test_contract_violations import broken_promises, violation
from yunikorn.api import Context, Queue, Quota, QuotaPolicy
from yunikorn.clock import SECOND

Body = Callable[[int, Queue], Any]


def policy(body: Body, **members: Any) -> QuotaPolicy:
    """Return a policy that calls `body` with the time and the queue."""

    @attrs.define(eq=False)
    class Told(QuotaPolicy):
        """Answers as told."""

        name = "told"
        context: Any = attrs.field(default=None, init=False)

        def opened(self, context: Context) -> None:
            self.context = context

        def quota(self, queue: Queue) -> Any:
            return body(self.context.now(), queue)

    for name, value in members.items():
        setattr(Told, name, value)
    return Told()


def test_policy_that_blocks_and_watches_siblings_is_found() -> None:
    found = policy(lambda now, queue: None, blocking=True, watches_siblings=True)
    assert violation(found, "test_policy_that_blocks_watches_no_siblings")


@pytest.mark.parametrize(
    "answer",
    [
        {"vcore": 1},
        Quota({"vcore": -1}),
        Quota({"vcore": 1.0}),  # type: ignore[dict-item]
        Quota({"vcore": True}),
        Quota({"vcore": 2**63}),
        Quota({1: 1}),  # type: ignore[dict-item]
        Quota([]),  # type: ignore[arg-type]
        Quota({}, until=0),
        Quota({}, until=1.5),  # type: ignore[arg-type]
        Quota({}, why=None),  # type: ignore[arg-type]
    ],
    ids=repr,
)
def test_invalid_answers_are_found(answer: Any) -> None:
    assert violation(policy(lambda now, queue: answer), "test_answers_are_quotas_or_none")


def test_change_with_time_that_is_not_announced_is_found() -> None:
    def body(now: int, queue: Queue) -> Quota:
        return Quota({"vcore": now // SECOND % 7})

    assert violation(policy(body), "test_change_with_time_is_announced")
    assert broken_promises(policy(body, refresh_every=3600.0)) == {}


def test_change_before_the_time_that_an_answer_names_is_found() -> None:
    def body(now: int, queue: Queue) -> Quota:
        return Quota({"vcore": now // (10 * SECOND)}, now + 60 * SECOND)

    assert violation(policy(body), "test_answers_hold_until_the_time_they_name")


@pytest.mark.parametrize(
    ("attribute", "flag"), [("unused_by_siblings", "watches_siblings"), ("total", "watches_cluster")]
)
def test_dependency_that_is_not_declared_is_found(attribute: str, flag: str) -> None:
    def body(now: int, queue: Queue) -> Quota:
        return Quota({"vcore": getattr(queue, attribute).get("vcore", 0)})

    assert flag in violation(policy(body), "test_what_is_read_is_declared")
    assert broken_promises(policy(body, **{flag: True})) == {}
    assert violation(policy(body, **{flag: 1}), "test_declarations_are_valid")
