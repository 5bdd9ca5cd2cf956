"""Contract test of reservation policies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import attrs

from yunikorn.api import ReservationPolicy
from yunikorn.clock import ManualClock
from yunikorn.containment import number_or_none
from yunikorn.framework.kinds import RESERVATION
from yunikorn_testing.answers_contract import AnswersContract, Question, calling
from yunikorn_testing.plugin_contract import Yaml, assert_same_decisions
from yunikorn_testing.samples import (
    AskSample,
    NodeSample,
    QueueSample,
    allocation,
    application,
    ask,
    node,
    queue,
    with_task,
)

DELAYS = (None, 0.0, 2.0)
"""Delays of a partition, in seconds."""
LONGEST = 1e9
"""Upper bound of ages and durations, in seconds."""


class ReservationPolicyContract(AnswersContract):
    """Tests that a reservation policy must pass; set `policy = Mine(...)`.

    Override `samples` and `nodes` with cases that matter to the policy.
    """

    kind = RESERVATION
    policy: ClassVar[ReservationPolicy]

    def name_in(self, document: Yaml) -> None:
        """Add the policy to the partition."""
        document["partitions"][0]["reservations"] = self.named("policy")

    def samples(self) -> Sequence[AskSample]:
        """Return requests of different size, age, priority, role and queue."""
        root = queue("root", total={"vcore": 100}, is_leaf=False)
        busy = queue(
            "root.batch.low",
            parent=queue("root.batch", parent=root, is_leaf=False),
            max={"vcore": 10},
            allocated={"vcore": 10},
            properties={"team": "physics"},
        )
        batch = with_task(
            application("batch", queue=busy, tags={"team": "physics"}, user="ann@example.org", groups=())
        )
        default = application("app-1", queue=queue("root.default", parent=root))
        group = attrs.evolve(ask("placeholder", app=batch, vcore=1), task_group="workers", placeholder=True)
        return [
            ask("plain", app=default, vcore=1),
            ask("large", app=default, vcore=80, memory="160Gi"),
            ask("old", app=batch, vcore=1, created=-86_400),
            ask("urgent", app=batch, vcore=4, priority=100),
            ask("low", app=batch, memory="1Gi", priority=-100, tags={"team": "chemistry"}),
            ask("driver", app=batch, vcore=1, originator=True),
            group,
            attrs.evolve(ask("limited", app=default, vcore=1), execution_timeout=600_000_000_000),
            ask("rare", app=default, resource={"gpu": 2, "licence": 0}),
        ]

    def nodes(self) -> Sequence[NodeSample]:
        """Return nodes of different size, with and without running tasks."""
        empty, full = node("node-1", vcore=16), node("node-2", {"zone": "b"}, vcore=4)
        running = allocation(ask("running", vcore=4), full, placed=-60)
        limited = attrs.evolve(
            allocation(ask("limited", vcore=4), full, "limited#1"), execution_timeout=600_000_000_000
        )
        return [
            empty,
            attrs.evolve(full, allocated=running.resource, allocations={running.uuid: running}),
            attrs.evolve(full, id="node-3", allocated=running.resource, allocations={limited.uuid: limited}),
            node("node-4", gpu=8),
        ]

    def questions(self) -> Sequence[Question]:
        """Return a question for each method and sample."""
        return [
            Question(f"{method}({label})", calling(method, *given), fault_of)
            for method, fault_of in FAULTS.items()
            for label, given in self._calls(method)
        ]

    def _calls(self, method: str) -> list[tuple[str, tuple[Any, ...]]]:
        """Return the arguments of all calls of a method, with their descriptions."""
        asks = self.samples()
        if method == "reserves_after":
            return [(f"{one.key}, {delay}", (one, delay)) for one in asks for delay in DELAYS]
        if method in ("lasts", "reason"):
            return [(one.key, (one,)) for one in asks]
        if method == "most_in":
            return [(one.path, (one,)) for one in self._queues()]
        if method == "most_of":
            return [(name, (app,)) for name, app in {one.app.id: one.app for one in asks}.items()]
        nodes = self.nodes() if self._ranks_nodes else ()
        return [(f"{one.key}, {each.id}", (one, each)) for one in asks for each in nodes]

    @property
    def _ranks_nodes(self) -> bool:
        return type(self.policy).rank_node is not ReservationPolicy.rank_node

    def _queues(self) -> list[QueueSample]:
        found: dict[str, QueueSample] = {}
        for one in self.samples():
            above = one.app.queue
            while above is not None:
                found[above.path] = above
                above = above.parent
        return list(found.values())

    def test_reload_without_changes_changes_no_decision(self) -> None:
        """Check that a reload of another part of the configuration keeps the plugin's state and decisions."""
        # A reload drops reservations, so there is one in both runs.
        before, after = (self.play(reload=reload) for reload in (1, 2))
        assert_same_decisions(
            before, after, "a reload (second run) of other parts of the configuration changed decisions"
        )

    def test_refusal_does_not_end_with_time_alone(self) -> None:
        """Check that a request that must not reserve is not permitted to as time passes."""
        clock = ManualClock()
        policy = self.fresh(clock)
        before = {one.key: policy.reserves_after(one, 2.0) for one in self.samples()}
        clock.advance(86_400)
        for one in self.samples():
            assert before[one.key] is not None or policy.reserves_after(one, 2.0) is None, (
                f"reserves_after({one.key}, 2.0) is None and later a number, with time alone, which the "
                "scheduler would not notice: return the age from which the request may reserve"
            )

    def test_pause_is_a_number_of_seconds(self) -> None:
        """Check that `pause` is a number of seconds of 0 or more."""
        policy = self.fresh()
        sound = _is_number(policy.pause) and 0 <= policy.pause < LONGEST
        assert sound, f"pause is {policy.pause!r}: set a number of seconds of 0 or more"


def _is_number(value: object) -> bool:
    return number_or_none(value) is not None


def _fault_of_age(age: Any) -> str:
    fits = age is None or (_is_number(age) and abs(age) < LONGEST)
    return "" if fits else "return the age in seconds from which the request may reserve a node, or None"


def _fault_of_bound(most: Any) -> str:
    fits = most is None or (_is_number(most) and isinstance(most, int) and most >= 0)
    return "" if fits else "return a whole number of 0 or more, or None for no bound"


def _fault_of_duration(lasts: Any) -> str:
    fits = lasts is None or (_is_number(lasts) and 0 < lasts < LONGEST)
    return "" if fits else "return a number of seconds above 0, or None for no end"


def _fault_of_rank(rank: Any) -> str:
    return "" if _is_number(rank) else "return a number"


def _fault_of_reason(reason: Any) -> str:
    return "" if reason is None or isinstance(reason, str) else "return a text, or None for a general one"


FAULTS = {
    "reserves_after": _fault_of_age,
    "lasts": _fault_of_duration,
    "most_in": _fault_of_bound,
    "most_of": _fault_of_bound,
    "rank_node": _fault_of_rank,
    "reason": _fault_of_reason,
}
"""Methods of the policy, each with a function that returns why an answer is not valid."""
