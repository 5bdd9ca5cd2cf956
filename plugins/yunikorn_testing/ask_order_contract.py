"""Contract test of the order of requests, for application sort policies with `ask_key`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import attrs

from yunikorn.api import AppSortPolicy, PastService
from yunikorn.clock import ManualClock
from yunikorn.resources import Resource
from yunikorn.scheduling.ask_order import plain_ask_key
from yunikorn_testing.answers_contract import AnswersContract, Question, calling
from yunikorn_testing.other_usage import beside_busier_applications
from yunikorn_testing.samples import ApplicationSample, AskSample, application, ask, queue

ONCE = (
    "the scheduler computes the key when the request arrives, and not again: it must depend on the request"
    " alone"
)


class AskOrderContract(AnswersContract):
    """Tests of application sort policies with `ask_key`; policies without it pass."""

    def asks(self) -> Sequence[AskSample]:
        """Return requests of one application; extend the list with cases that matter to the policy."""
        of = partial(ask, app=application("job", tags={"team": "physics"}, queue=queue("root.batch")))
        return [
            of("plain", vcore=1, memory="1Gi"),
            of("twin", vcore=1, memory="1Gi"),
            of("large", vcore=64, memory="512Gi", created=5),
            of("nothing"),
            of("alien", gpu=8, licence=1),
            of("urgent", priority=100, vcore=1, created=9),
            of("many", 1000, vcore=1),
            of("driver", originator=True, vcore=2),
            of("placeholder", task_group="workers", placeholder=True, vcore=4),
            of("staged", tags={"stage": "2", "team": "physics"}, task_group="workers", vcore=4),
            attrs.evolve(of("limited", vcore=1), execution_timeout=10**12, required_node="node-1"),
        ]

    def ask_questions(self) -> list[Question]:
        """Return a question for the key of each request; none for a policy without `ask_key`."""
        cls: Any = type(self.given)
        if cls.ask_key is AppSortPolicy.ask_key:
            return []
        return [
            Question(f"ask_key({one.key})", calling("ask_key", one), self._fault_of_ask_key)
            for one in self.asks()
        ]

    def _fault_of_ask_key(self, answer: Any) -> str:
        """Return why the answer is no valid key among those of the sample requests."""
        if not hasattr(self, "_form_of_samples"):
            self._form_of_samples = _form_of(self.ask_questions()[0].put(self.fresh()))
        try:
            form = _form_of(answer)
        except TypeError as error:
            return str(error)
        if form != self._form_of_samples:
            return f"{form} does not compare with {self._form_of_samples}, the form of other keys"
        return ""

    def test_keys_of_requests_are_repeatable(self) -> None:
        """Check that keys depend neither on earlier requests, nor on the object, nor on the time."""
        questions, clock = self.ask_questions(), ManualClock()
        one, other = self.fresh(clock), self.fresh()
        first = [question.put(one) for question in questions]
        clock.advance(86_400)
        back = [question.put(one) for question in reversed(questions)][::-1]
        again = [question.put(other) for question in questions]
        for question, key, *others in zip(questions, first, back, again, strict=True):
            for differing in others:
                assert key == differing, (
                    f"{question.text} is {key!r}, and later or from another object {differing!r}; {ONCE}"
                )

    def test_keys_of_requests_do_not_depend_on_the_state(self) -> None:
        """Check that keys stay the same when the application or its queue uses and requests more."""
        if not self.ask_questions():
            return
        policy: AppSortPolicy = self.fresh()
        for one in self.asks():
            before = policy.ask_key(one)
            for what, app in _later(one.app).items():
                after = policy.ask_key(attrs.evolve(one, app=app))
                assert before == after, f"ask_key({one.key}) is {before!r}, and {after!r} when {what}; {ONCE}"


def _form_of(key: Any) -> str:
    form, _ = plain_ask_key(key)
    return form


def _later(app: ApplicationSample) -> dict[str, ApplicationSample]:
    """Return the application in later states, by what has changed."""
    past = PastService({"vcore": 9e9}, {"vcore": 7e6}, 9, 7, 10**12)
    more = Resource({"vcore": 7_000, "memory": 10**10})
    return {
        "its application has allocations": attrs.evolve(app, allocated=more, state="Running"),
        "its application requests more": attrs.evolve(app, pending=more, priority=77),
        "its application has ended tasks": attrs.evolve(app, past=past, waiting_since=10**12),
        "its queue is used more": beside_busier_applications(app),
        "it has left its queue": attrs.evolve(app, queue=None),
    }
