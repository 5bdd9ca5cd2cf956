"""Steps that ask policies, and stop at a policy that workers call until its answer arrives.

The steps are a generator that yields a question where a worker has to be asked, receives the answer, and
returns the result. So a sequence of policies is written once, with and without workers
(`docs/decisions/archive/0183`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import attrs

if TYPE_CHECKING:
    from yunikorn.framework.policy_calls import PolicyAnswer
    from yunikorn.scheduling.policy_questions import AskedPolicy, PolicyQuestions


@attrs.frozen(eq=False)
class PolicyQuestion:
    """A question to a policy that workers call; see `PolicyQuestions.ask`."""

    asked: AskedPolicy
    make: Callable[[], object]
    """Returns the argument of the policy when the call starts."""
    key: Hashable = None
    """Questions with the same key share one call."""
    digest: Callable[[PolicyAnswer], Any] | None = None
    """Converts the answer once for all questions with the same key; None leaves the answer as it is."""


T = TypeVar("T")
Steps = Generator[PolicyQuestion, Any, T]


class PendingSteps(Generic[T]):
    """Steps that wait for the answer of a worker."""

    def __init__(self, steps: Steps[T], questions: PolicyQuestions, then: Callable[[T], object]) -> None:
        self._steps, self._questions, self._then = steps, questions, then
        self.waits_for = ""
        """Policy whose answer is awaited, as in `submit policy site-rules`."""
        self.withdraw: Callable[[], None] = lambda: None
        """Ends the steps without a result."""

    def ask(self, question: PolicyQuestion) -> None:
        """Ask a question of the steps, and continue with the answer."""
        asked = question.asked
        self.waits_for = asked.title
        more = {} if question.digest is None else {"digest": question.digest}
        self.withdraw = self._questions.ask(asked, question.make, self._go_on, key=question.key, **more)

    def _go_on(self, answer: Any) -> None:
        try:
            question = self._steps.send(answer)
        except StopIteration as end:
            self._then(end.value)
        else:
            self.ask(question)


@attrs.frozen
class Finished(Generic[T]):
    """Result of steps that needed no worker."""

    result: T


def begin(
    steps: Steps[T], questions: PolicyQuestions | None, then: Callable[[T], object]
) -> Finished[T] | PendingSteps[T]:
    """Take steps; if that needs a worker, `then` is called with their result later.

    Without `questions` there are no workers, and no policy may need one.
    """
    try:
        question = next(steps)
    except StopIteration as end:
        return Finished(end.value)
    assert questions is not None
    pending = PendingSteps(steps, questions, then)
    pending.ask(question)
    return pending
