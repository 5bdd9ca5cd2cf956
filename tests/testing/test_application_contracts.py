"""Contracts of submit, admission and permit policies and of placement rules detect invalid answers."""

from __future__ import annotations

import threading
from typing import Any

import attrs
import pytest

from tests.testing.test_contract_violations import broken_promises, odd, violation
from yunikorn.api import AdmissionPolicy, PermitPolicy, PlacementRule, Refused, SubmitPolicy, Wait
from yunikorn_testing import submission


@pytest.mark.parametrize(
    "answer",
    [7, "", attrs.evolve(submission("x"), user="root"), attrs.evolve(submission("x"), priority=2**31)],
)
def test_invalid_submissions_are_found(answer: Any) -> None:
    policy = odd(SubmitPolicy, lambda self, app: answer)()
    assert violation(policy, "test_answers_are_valid")


@pytest.mark.parametrize("answer", [7, "", Wait(0, "no time"), Wait(1, ""), Wait(float("nan"), "never")])
def test_invalid_admissions_are_found(answer: Any) -> None:
    policy = odd(AdmissionPolicy, lambda self, app: answer)()
    assert violation(policy, "test_answers_are_valid")


@pytest.mark.parametrize("answer", [7, "", Wait(0, "no time"), Wait(1, ""), Wait(float("nan"), "never")])
def test_invalid_permissions_are_found(answer: Any) -> None:
    policy = odd(PermitPolicy, lambda self, allocation: answer)()
    assert violation(policy, "test_answers_are_valid")


@pytest.mark.parametrize(
    ("member", "value"), [("timeout", 0), ("timeout", None), ("group", lambda self, one: 7)]
)
def test_invalid_members_of_permit_policies_are_found(member: str, value: Any) -> None:
    cls = odd(PermitPolicy, lambda self, allocation: None)
    setattr(cls, member, value)
    test = "test_timeout_is_a_number_of_seconds" if member == "timeout" else "test_answers_are_valid"
    assert violation(cls(), test)


@pytest.mark.parametrize("reason", ["", 7, None])
def test_refusals_without_a_reason_are_found(reason: Any) -> None:
    rule = odd(PlacementRule, lambda self, app: Refused(reason))()
    assert violation(rule, "test_answers_are_valid")


def test_permit_policy_that_blocks_and_keeps_books_is_found() -> None:
    cls = odd(PermitPolicy, lambda self, allocation: None)
    cls.blocking = True
    cls.placed = cls.released = lambda self, task, node: None
    assert violation(cls(), "test_policy_that_blocks_keeps_no_books")


def test_rule_that_blocks_and_takes_queues_is_found() -> None:
    cls = odd(PlacementRule, lambda self, app, queues: "root.default")
    cls.blocking = True
    assert violation(cls(), "test_rule_that_blocks_gets_no_queues")


def test_rule_that_answers_otherwise_in_another_thread_is_found() -> None:
    here = threading.get_ident()
    cls = odd(PlacementRule, lambda self, app: f"root.{threading.get_ident() == here}")
    cls.blocking = True
    assert violation(cls(), "test_answers_are_the_same_in_another_thread")


def test_rule_with_queues_and_a_refusal_passes_the_contract() -> None:
    def place(self: Any, app: Any, queues: Any) -> Any:
        return "root.other" if queues.get("root.other") is not None else Refused("there is no queue")

    assert broken_promises(odd(PlacementRule, place)()) == {}
