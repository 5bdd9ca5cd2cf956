"""Contracts find wake-ups by answers, declarations without effect, and changes that are not permitted."""

from __future__ import annotations

import attrs
import pytest

from tests.testing.test_contract_violations import broken_promises, violation
from yunikorn.api import (
    Application,
    AppSortPolicy,
    Ask,
    AskSubmission,
    Context,
    Node,
    NodeSortPolicy,
    Predicate,
    Submission,
    SubmitPolicy,
)


@attrs.define(eq=False)
class WakesItself(Predicate):
    """Wakes predicates whenever it refuses a node."""

    name = "wakes-itself"
    _context: Context | None = attrs.field(init=False, default=None)

    def opened(self, context: Context) -> None:
        """Keep the context."""
        self._context = context

    def check(self, ask: Ask, node: Node) -> str | None:
        """Refuse, and ask to be asked again."""
        assert self._context is not None
        self._context.wake("predicate")
        return "not yet"


def test_answers_that_wake_policies_are_found() -> None:
    found = violation(WakesItself(), "test_answers_wake_no_policies")
    assert "calls context.wake('predicate')" in found


@attrs.frozen
class RangedAndNormalised(NodeSortPolicy):
    """Declares a range that has no effect."""

    name = "ranged-and-normalised"
    normalised = True
    score_range = (0.0, 1.0)

    def score(self, node: Node) -> float:
        """Return an equal score for all."""
        return 0.5


def test_a_range_without_effect_is_found() -> None:
    found = violation(RangedAndNormalised(), "test_normalised_scores_need_no_range")
    assert "remove score_range, or normalised" in found


@attrs.frozen
class RangedKeys(AppSortPolicy):
    """Declares a range of keys that is not theirs."""

    name = "ranged-keys"
    low: float = 0.0
    high: float = 1.0
    text: str = ""

    @property
    def key_range(self) -> tuple[float, float]:
        return self.low, self.high

    def key(self, app: Application) -> int | str:
        """Return the number of seconds since the start of time."""
        return self.text or 1000 + app.submitted


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (RangedKeys(), "all of them would count alike"),
        (RangedKeys(1.0, 0.0), "the lower first"),
        (RangedKeys(0.0, 2000.0, "text"), "return numbers, or no range"),
    ],
)
def test_untrue_ranges_of_keys_are_found(policy: RangedKeys, words: str) -> None:
    assert words in violation(policy, "test_key_range_is_two_numbers_or_none")


def test_true_ranges_of_keys_pass() -> None:
    assert broken_promises(RangedKeys(0.0, 2000.0)) == {}


class EnlargesAsks(SubmitPolicy):
    """Asks for more than the resource manager."""

    name = "enlarges-asks"

    def submit(self, app: Submission) -> None:
        """Leave applications as they are."""

    def submit_ask(self, ask: AskSubmission) -> AskSubmission:
        """Return the request with one allocation more."""
        return attrs.evolve(ask, count=ask.count + 1)


def test_changes_of_requests_other_than_of_their_priority_are_found() -> None:
    found = violation(EnlargesAsks(), "test_answers_are_valid")
    assert "only the priority can be changed" in found


@attrs.define(eq=False)
class SharesAnswers(Predicate):
    """Keeps the answer for one node as that for all."""

    name = "shares-answers"
    _context: Context | None = attrs.field(init=False, default=None)

    def opened(self, context: Context) -> None:
        """Keep the context."""
        self._context = context

    def check(self, ask: Ask, node: Node) -> str | None:
        """Return the id of the node as a reason."""
        assert self._context is not None
        answer: str = self._context.shared(ask).setdefault("answer", f"not {node.id}")
        return answer


def test_shared_states_that_depend_on_a_node_are_found() -> None:
    found = violation(SharesAnswers(), "test_shared_states_change_no_answer")
    assert "must follow from the task alone" in found
