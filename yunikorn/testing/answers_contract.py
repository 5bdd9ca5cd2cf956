"""Contract test of plugins that return answers, that is, of all kinds except event sinks.

An answer must be a pure, deterministic function of the question and the options. An answer must not depend on
earlier questions, on the plugin object, or on the hash seed of Python. The cost of an answer must not grow
with the number of earlier questions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import pytest

from yunikorn.testing.hash_seeds import different_answers
from yunikorn.testing.nondeterminism import without_clock_and_random_numbers
from yunikorn.testing.operations import count_operations
from yunikorn.testing.plugin_contract import PluginContract

SLACK = 100
"""Tolerance in operations, for negligible differences."""
ASKED_BEFORE = 3_000
"""Number of earlier questions after which the cost of a question must not have grown."""


@attrs.frozen
class Question:
    """Call of a plugin with a sample."""

    text: str
    """Description in messages, such as `the key of app-1`."""
    put: Callable[[Any], Any]
    """Calls a plugin object and returns the answer."""


class AnswersContract(PluginContract):
    """Tests of all kinds with answers; derive from the contract of the plugin's kind."""

    uses_external_state = False
    """True if the plugin may use external state, including the system clock and random numbers."""

    def questions(self) -> Sequence[Question]:
        """Return all questions to the plugin."""
        raise NotImplementedError

    def comparable(self, answers: Sequence[Any]) -> Mapping[str, str]:
        """Return all answers as text, which can be compared between processes."""
        found: dict[str, str] = {}
        for question, answer in zip(self.questions(), answers, strict=True):
            again = question.text in found
            found[f"{question.text} ({len(found)})" if again else question.text] = repr(answer)
        return found

    def _answers(self, plugin: Any) -> list[Any]:
        return [question.put(plugin) for question in self.questions()]

    def _compare(self, first: Sequence[Any], second: Sequence[Any], when: str) -> None:
        """Raise `AssertionError` for the first question with different answers."""
        for question, one, other in zip(self.questions(), first, second, strict=True):
            if not _same(one, other):
                raise AssertionError(f"{question.text} is {one!r}, but {other!r} {when}")

    def test_repeated_calls_return_equal_answers(self) -> None:
        """Check that answers do not depend on earlier questions."""
        plugin = self.fresh()
        forth = self._answers(plugin)
        back = [question.put(plugin) for question in self.questions()[::-1]][::-1]
        self._compare(
            forth,
            back,
            "when asked again after other questions: an answer must depend only on the arguments and the "
            "options; do not keep state between calls, and do not change the arguments",
        )

    def test_equal_options_give_equal_answers(self) -> None:
        """Check that answers depend only on the question and the options."""
        first, second = self._answers(self.fresh()), self._answers(self.fresh())
        self._compare(
            first,
            second,
            "from another object with the same options: an answer must depend only on the arguments and the "
            "options; do not use class attributes, globals or id()",
        )

    def test_reload_changes_no_answer(self) -> None:
        """Check that `reloaded` does not change answers."""
        plugin = self.fresh()
        before = self._answers(plugin)
        plugin.reloaded(self.context())
        self._compare(
            before,
            self._answers(plugin),
            "after a reload that does not change the plugin's options: keep the plugin's state in reloaded()",
        )

    def test_answers_depend_on_neither_clock_nor_randomness(self) -> None:
        """Check that the plugin uses no clock other than `context.now()`, and no random numbers."""
        if self.uses_external_state:
            return
        plugin = self.fresh()
        with without_clock_and_random_numbers(type(plugin)):
            self._answers(plugin)

    def test_cost_of_an_answer_is_independent_of_earlier_calls(self) -> None:
        """Check that the cost of an answer does not grow with the number of earlier questions."""
        plugin, questions = self.fresh(), self.questions()
        one = questions[0]
        before = count_operations(lambda: one.put(plugin))
        for _ in range(1 + ASKED_BEFORE // len(questions)):
            for question in questions:
                question.put(plugin)
        after = count_operations(lambda: one.put(plugin))
        assert after <= 2 * before + SLACK, (
            f"{one.text} costs {before} executed lines at first, and {after} after {ASKED_BEFORE} questions: "
            "the cost must not grow; do not iterate over data collected from earlier questions"
        )

    def test_hash_seed_changes_no_answer(self, request: pytest.FixtureRequest) -> None:
        """Check that answers do not depend on the hash seed, such as through the order of a set."""
        # The processes that `different_answers` starts run this test, too, and only write their answers.
        found = different_answers(request, lambda: self.comparable(self._answers(self.fresh())))
        assert not found, "\n".join(
            [
                "answers depend on the hash seed of Python, so equal runs decide differently; do not use "
                "hash() or the order of a set, sort the set instead:",
                *found,
            ]
        )


def _same(one: Any, other: Any) -> bool:
    # NaN is equal here; another test refuses NaN.
    return bool(one == other) or (one != one and other != other)
