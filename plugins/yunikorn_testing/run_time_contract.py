"""Contract test of estimators of run times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import attrs

from yunikorn.api import RunTime, RunTimeEstimator
from yunikorn.containment import number_or_none
from yunikorn.framework.kinds import RUN_TIME
from yunikorn_testing.answers_contract import AnswersContract, Question, calling
from yunikorn_testing.costs import count_operations
from yunikorn_testing.plugin_contract import Yaml
from yunikorn_testing.samples import AllocationSample, AskSample, allocation, application, ask, node, queue

AGES = (0.0, 59.5, 86_400.0)
"""Ages of tasks, in seconds."""
LONGEST = 1e9
"""Upper bound of run times, in seconds."""
OBSERVED = 500
"""Number of observed tasks, after which an answer must not cost much more."""


class RunTimeEstimatorContract(AnswersContract):
    """Tests that an estimator must pass; set `estimator = Mine(...)`.

    Override `samples` with requests that the estimator knows something about.
    """

    kind = RUN_TIME
    subject = "estimator"
    estimator: ClassVar[RunTimeEstimator]

    def name_in(self, document: Yaml) -> None:
        """Add the estimator to the partition."""
        document["partitions"][0]["estimators"] = [self.named("name")]

    def samples(self) -> Sequence[AskSample]:
        """Return requests of different users, queues, sizes and limits."""
        batch = application(
            "batch-2026-11-27", "root.batch", user="ann@example.org", tags={"team": "physics"}
        )
        batch = attrs.evolve(batch, queue=queue("root.batch"))
        limited = attrs.evolve(ask("limited", app=batch, vcore=4), execution_timeout=600_000_000_000)
        return [
            ask("plain", vcore=1),
            ask("named", app=batch, vcore=1, tags={"team": "chemistry"}),
            ask("rare", app=batch, resource={"gpu": 2, "licence": 0}),
            limited,
        ]

    def observed(self, number: int) -> tuple[AllocationSample, float]:
        """Return a task that has ended, and after how many seconds; they differ by `number`."""
        one = self.samples()[number % 4]
        return allocation(one, node("node-1"), f"{one.key}#{number}"), float(number % 100)

    def questions(self) -> Sequence[Question]:
        """Return a question for each sample and age."""
        return [
            Question(f"estimate({one.key}, {age:g})", calling("estimate", one, age))
            for one in self.samples()
            for age in AGES
        ]

    def fault_of(self, answer: Any) -> str:
        """Return why an answer is neither None nor a run time."""
        if answer is None:
            return ""
        if type(answer) is not RunTime:
            return "return RunTime(low, median, high) in seconds, or None"
        times = [answer.low, answer.median, answer.high]
        if any(number_or_none(each) is None or not 0 <= each < LONGEST for each in times):
            return "give numbers of seconds from 0 to below 1e9"
        return "" if times == sorted(times) else "low must not exceed median, nor median high"

    def test_learning_is_deterministic(self) -> None:
        """Check that equal observations give equal answers, which are valid."""
        first, second = self._learned(OBSERVED), self._learned(OBSERVED)
        for question in self.questions():
            one, other = question.put(first), question.put(second)
            assert one == other, f"{question.text} is {one!r} and {other!r} after equal observations"
            fault = self.fault_of(one)
            assert not fault, f"{question.text} is {one!r} after {OBSERVED} observations: {fault}"

    def test_cost_of_an_estimate_is_independent_of_observations(self) -> None:
        """Check that an answer costs about the same after many observations."""
        question = self.questions()[0]
        costs = []
        for times in (1, 4):
            plugin = self._learned(times * OBSERVED)
            costs.append(count_operations(lambda plugin=plugin: question.put(plugin)))  # type: ignore[misc]
        assert costs[1] <= 2 * costs[0] + 100, (
            f"{question.text} costs {costs[0]} executed lines after {OBSERVED} observations, and {costs[1]} "
            f"after {4 * OBSERVED}: keep quantiles or histograms instead of all run times"
        )

    def _learned(self, tasks: int) -> Any:
        plugin = self.fresh()
        for number in range(tasks):
            plugin.observe(*self.observed(number))
        return plugin
