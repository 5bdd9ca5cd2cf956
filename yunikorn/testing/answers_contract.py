"""What every plugin keeps that answers: all kinds but event sinks.

An answer is a pure, deterministic function of the question and the options: asking changes nothing, what
was asked before does not matter, nor which object is asked, nor the seed by which Python hashes texts, and
no answer costs more the longer the scheduler runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import pytest

from yunikorn.testing.hash_seeds import different_answers
from yunikorn.testing.operations import count_operations
from yunikorn.testing.plugin_contract import PluginContract
from yunikorn.testing.stopped_time import without_clock_and_chance

SLACK = 100
"""Operations that may be more for reasons of no importance."""
ASKED_BEFORE = 3_000
"""Questions after which one must not cost more."""


@attrs.frozen
class Question:
    """Something that a plugin is asked."""

    text: str
    """As a message says it: `the key of app-1`."""
    put: Callable[[Any], Any]
    """Asks a plugin object."""


class AnswersContract(PluginContract):
    """What these kinds have in common; derive from the contract of yours."""

    asks_the_world = False
    """Whether the plugin may look at the world outside of the scheduler, with its clock and its chances."""

    def questions(self) -> Sequence[Question]:
        """All that the plugin is asked."""
        raise NotImplementedError

    def comparable(self, answers: Sequence[Any]) -> Mapping[str, str]:
        """The answers to all questions in a form that another process can compare, by what they say."""
        found: dict[str, str] = {}
        for question, answer in zip(self.questions(), answers, strict=True):
            again = question.text in found
            found[f"{question.text} ({len(found)})" if again else question.text] = repr(answer)
        return found

    def _answers(self, plugin: Any) -> list[Any]:
        return [question.put(plugin) for question in self.questions()]

    def _compare(self, first: Sequence[Any], second: Sequence[Any], when: str) -> None:
        """Raises `AssertionError` for the first question of which the answers differ."""
        for question, one, other in zip(self.questions(), first, second, strict=True):
            if not _same(one, other):
                raise AssertionError(f"{question.text} is {one!r}, but {when} it is {other!r}")

    def test_asking_twice_gives_the_same_answer(self) -> None:
        """Asking changes nothing, and it does not matter what was asked before."""
        plugin = self.fresh()
        forth = self._answers(plugin)
        back = [question.put(plugin) for question in self.questions()[::-1]][::-1]
        self._compare(forth, back, "asked again, after other questions,")

    def test_another_object_with_the_same_options_gives_the_same_answers(self) -> None:
        """Nothing but the options and what it is asked about decides."""
        first, second = self._answers(self.fresh()), self._answers(self.fresh())
        self._compare(first, second, "asked of another object with the same options")

    def test_a_reload_changes_no_answer(self) -> None:
        """`reloaded` tells it that it stays as it is."""
        plugin = self.fresh()
        before = self._answers(plugin)
        plugin.reloaded(self.context())
        self._compare(before, self._answers(plugin), "after a reload that leaves it alone")

    def test_it_reads_no_clock_and_throws_no_dice(self) -> None:
        """The only time there is is that of `context.now()`."""
        if self.asks_the_world:
            return
        plugin = self.fresh()
        with without_clock_and_chance(type(plugin)):
            self._answers(plugin)

    def test_an_answer_costs_no_more_the_more_was_asked(self) -> None:
        """Its speed class: what it remembers must not be gone through at every question."""
        plugin, questions = self.fresh(), self.questions()
        one = questions[0]
        before = count_operations(lambda: one.put(plugin))
        for _ in range(1 + ASKED_BEFORE // len(questions)):
            for question in questions:
                question.put(plugin)
        after = count_operations(lambda: one.put(plugin))
        assert after <= 2 * before + SLACK, (
            f"{one.text} takes {before} steps of Python at first, {after} after many questions: it must not "
            "go through all that it was ever asked"
        )

    def test_another_hash_seed_changes_no_answer(self, request: pytest.FixtureRequest) -> None:
        """Python hashes texts differently in each process: no answer may depend on the order of a set."""
        # In a process of its own this asks; in the one of the test it has two such processes ask.
        found = different_answers(request, lambda: self.comparable(self._answers(self.fresh())))
        assert not found, "\n".join(
            [
                "answers differ from process to process, with the seed by which Python hashes texts (do they "
                "depend on hash(), or on the order of a set? then sort it):",
                *found,
            ]
        )


def _same(one: Any, other: Any) -> bool:
    # NaN is wrong for another reason, of which another test tells.
    return bool(one == other) or (one != one and other != other)
