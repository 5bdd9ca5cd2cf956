"""Contract test of plugins that return answers, that is, of all kinds except event sinks.

An answer must be a pure, deterministic function of the question and the options. An answer must not depend on
earlier questions, on the plugin object, or on the hash seed of Python. The cost of an answer must not grow
with the number of earlier questions.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar

import attrs
import pytest

from yunikorn.api import Wait
from yunikorn.framework.plugin_failures import LONGEST_SECONDS
from yunikorn_testing.costs import CONTAINERS, count_operations, count_retained, own_modules
from yunikorn_testing.forbidden_calls import without_clock_and_random_numbers
from yunikorn_testing.hash_seeds import different_answers
from yunikorn_testing.plugin_contract import PluginContract
from yunikorn_testing.watched_samples import WatchedReading

SLACK = 100
"""Tolerance in operations, for negligible differences."""
ASKED_BEFORE = 3_000
"""Number of earlier questions after which the cost of a question must not have grown."""
DIFFERENT = 1_200
"""Number of different questions after which a plugin must not keep more objects."""
KEPT_SLACK = 50
"""Tolerance in kept objects."""
ODD_TEXTS = (
    "",
    " ",
    "?!",
    "a,b",
    "=",
    "0",
    "-1",
    "1e999",
    "nan",
    "inf",
    "\u00e4\n",
    "x" * 5_000,
    "9" * 5_000,
)
"""Texts that users may write into any tag or attribute."""


@attrs.frozen
class Question:
    """Call of a plugin with a sample."""

    text: str
    """Description in messages, such as `the key of app-1`."""
    put: Callable[[Any], Any]
    """Calls a plugin object and returns the answer."""
    fault_of: Callable[[Any], str] | None = None
    """Returns why an answer is not valid, or an empty text; None for `AnswersContract.fault_of`."""


def calling(method: str, *arguments: Any) -> Callable[[Any], Any]:
    """Return a function that calls a method of a plugin with these arguments."""
    return partial(_call, method, *arguments)


def _call(method: str, *arguments: Any) -> Any:
    *given, plugin = arguments
    return getattr(plugin, method)(*given)


class AnswersContract(PluginContract):
    """Tests of all kinds with answers; derive from the contract of the plugin's kind."""

    uses_external_state = False
    """True if the plugin may use external state, including the system clock and random numbers."""
    flags: ClassVar[tuple[str, ...]] = ()
    """Attributes of the plugin that are True or False."""

    def questions(self) -> Sequence[Question]:
        """Return all questions to the plugin."""
        raise NotImplementedError

    def side_questions(self) -> Sequence[Question]:
        """Return calls of members other than the method of the kind, such as `ask_class` and `placed`.

        Tests of what a plugin reads put them, too.
        """
        return []

    def comparable(self, answers: Sequence[Any]) -> Mapping[str, str]:
        """Return all answers as text, which can be compared between processes."""
        found: dict[str, str] = {}
        for question, answer in zip(self.questions(), answers, strict=True):
            again = question.text in found
            found[f"{question.text} ({len(found)})" if again else question.text] = repr(answer)
        return found

    def fault_of(self, answer: Any) -> str:
        """Return why an answer is not valid for the kind; empty if it is valid."""
        return ""

    def read_by(self, plugin: Any, reading: WatchedReading | None = None) -> WatchedReading:
        """Return the record of what the plugin reads to answer all questions; exceptions propagate."""
        reading = WatchedReading() if reading is None else reading
        for question in self._all_questions():
            reading.watch_call(question.put)(plugin)
        return reading

    def _all_questions(self) -> list[Question]:
        return [*self.questions(), *self.side_questions()]

    def _answers(self, plugin: Any) -> list[Any]:
        return [question.put(plugin) for question in self.questions()]

    def _compare(self, first: Sequence[Any], second: Sequence[Any], when: str) -> None:
        """Raise `AssertionError` for the first question with different answers."""
        for question, one, other in zip(self.questions(), first, second, strict=True):
            if not _same(one, other):
                raise AssertionError(f"{question.text} is {one!r}, but {other!r} {when}")

    def test_answers_are_valid(self) -> None:
        """Check the type and the range of the answer to each question."""
        plugin = self.fresh()
        for question in self._all_questions():
            answer = question.put(plugin)
            fault = (question.fault_of or self.fault_of)(answer)
            assert not fault, f"{question.text} is {answer!r}: {fault}"

    def test_declarations_are_valid(self) -> None:
        """Check that `flags` are True or False, and that `refresh_every` is a positive number or None."""
        plugin = self.fresh()
        for name in self.flags:
            declared: object = getattr(plugin, name)
            assert isinstance(declared, bool), f"{name} is {declared!r}: set True or False"
        every = getattr(plugin, "refresh_every", None)
        assert every is None or every > 0, (
            f"refresh_every is {every!r}: set a positive number of seconds, or None"
        )

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

    def test_answers_wake_no_policies(self) -> None:
        """Check that no answer calls `context.wake`, which would ask for the same answer again."""
        woken: list[str] = []
        own = threading.get_ident()
        plugin = self._made()

        def note(kind: str) -> None:
            if threading.get_ident() == own:
                woken.append(kind)

        plugin.opened(self.context(woken=note))
        woken.clear()
        for question in self._all_questions():
            question.put(plugin)
            assert not woken, (
                f"{question.text} calls context.wake({woken[0]!r}), so that the scheduler asks again and "
                "again: call it where something outside has changed, such as in a thread"
            )

    def test_shared_states_change_no_answer(self) -> None:
        """Check that what the plugin finds in `context.shared(task)` is what it computes without it."""
        states: dict[int, dict[Any, Any]] = {}
        plugin = self._made()
        plugin.opened(self.context(shared=lambda task: states.setdefault(id(task), {})))
        self._compare(
            self._answers(self.fresh()),
            self._answers(plugin),
            "with the state of context.shared(task): what is in it must follow from the task alone",
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

    def test_memory_is_independent_of_earlier_calls(self) -> None:
        """Check that the plugin does not keep something of every question, such as in a growing cache."""
        if self.uses_external_state:
            return
        plugin = self.fresh()
        places = self.read_by(plugin).texts
        kept = []
        for stop in (DIFFERENT, 2 * DIFFERENT):
            # A predicate may learn from `ask_class` what requests depend on, within bounds of its own.
            questions = self.questions()
            for number in range(stop - DIFFERENT, stop):
                texts = {place: f"value-{number}" for place in places}
                reading = WatchedReading(pretended=texts, suffix=f"-{number}")
                with suppress(Exception):  # another test refuses exceptions
                    reading.watch_call(questions[number % len(questions)].put)(plugin)
            kept.append(count_retained(plugin))
        first, second = kept
        assert second <= first + KEPT_SLACK, (
            f"the plugin and its modules keep {first} objects after {DIFFERENT} different questions, and "
            f"{second} after twice as many: the scheduler runs for months, so bound what is kept, for "
            "example with functools.lru_cache(maxsize=1024)"
        )

    def test_only_documented_attributes_are_read(self) -> None:
        """Check that the plugin reads no attribute that the views of `yunikorn.api` do not have."""
        reading = WatchedReading()
        try:
            self.read_by(self.fresh(), reading)
        except AttributeError:
            if not reading.hidden:
                raise
        found = ", ".join(f"{view}.{name}" for view, name in sorted(reading.hidden))
        assert not found, (
            f"the plugin reads {found}, which the views of yunikorn.api do not have; an attribute of the "
            "scheduler itself may change in any version"
        )

    def test_odd_texts_in_tags_are_answered(self) -> None:
        """Check that every tag, attribute and property that the plugin reads may have any text."""
        plugin = self.fresh()
        for place in sorted(self.read_by(plugin).texts, key=str):
            for text in ODD_TEXTS:
                reading = WatchedReading(pretended={place: text})
                shown = f"{text[:20]!r}{' and so on' if len(text) > 20 else ''}"
                for question in self._all_questions():
                    what = f"{question.text}, with {place} = {shown},"
                    try:
                        answer = reading.watch_call(question.put)(plugin)
                    except Exception as error:
                        raise AssertionError(
                            f"{what} raises {type(error).__name__}: {str(error)[:200]}; users may write any "
                            "text there, so give the answer for a missing value, or a reason for a refusal"
                        ) from error
                    fault = (question.fault_of or self.fault_of)(answer)
                    assert not fault, f"{what} is {str(answer)[:200]}: {fault}"

    def test_answers_set_no_class_attribute_and_no_global(self) -> None:
        """Check that the plugin does not count or remember in its classes or modules."""
        plugin = self.fresh()
        self._answers(plugin)
        before = _shared_values(plugin)
        self._answers(plugin)
        after = _shared_values(plugin)
        changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        assert not changed, (
            f"questions change {', '.join(changed)}: an answer must depend only on the arguments and the "
            "options; objects of the class in other partitions share this value"
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


def fault_of_verdict(answer: Any, consent: str) -> str:
    """Return why an answer is neither None, nor a reason, nor a valid wait; None is the `consent`."""
    if answer is None or isinstance(answer, str):
        return f"return None to {consent}, or a reason" if answer == "" else ""
    if not isinstance(answer, Wait):
        return "return None, a reason, or Wait(seconds, why)"
    if type(answer.seconds) not in (int, float) or not 0 < answer.seconds < LONGEST_SECONDS:
        return "wait more than 0 and less than 1e9 seconds"
    return "" if isinstance(answer.why, str) and answer.why else "give the reason as text"


def fault_of_class(answer: Any) -> str:
    """Return why the answer of a member such as `ask_class` is not hashable; empty if it is."""
    try:
        hash(answer)
    except TypeError as error:
        return f"{error}; return a tuple"
    return ""


def _shared_values(plugin: Any) -> dict[str, str]:
    """Return the numbers, texts and containers in the classes and modules of a plugin as texts, by name."""
    modules = own_modules(type(plugin))
    own = {module.__name__ for module in modules}
    owners: list[Any] = [*modules, *(cls for cls in type(plugin).__mro__ if cls.__module__ in own)]
    return {
        f"{owner.__name__}.{name}": _described(value)
        for owner in owners
        for name, value in vars(owner).items()
        if isinstance(value, (int, float, str, *CONTAINERS)) and not name.startswith("__")
    }


def _described(value: Any, depth: int = 4) -> str:
    """Return a text that changes with a number, a text, or the contents of a container."""
    if isinstance(value, CONTAINERS) and depth:
        entries = value.items() if isinstance(value, dict) else value
        described = [_described(entry, depth - 1) for entry in entries]
        is_ordered = isinstance(value, list | tuple | deque)
        return f"{type(value).__name__} of {', '.join(described if is_ordered else sorted(described))}"
    if isinstance(value, int):
        return hex(value)  # repr has a limit of digits
    return repr(value) if isinstance(value, (float, str)) else type(value).__name__


def _same(one: Any, other: Any) -> bool:
    # NaN is equal here; another test refuses NaN.
    return bool(one == other) or (one != one and other != other)
