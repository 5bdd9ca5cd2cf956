"""Contract test of preemption policies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs

from yunikorn.api import PreemptionCause, PreemptionPolicy, VictimUnit
from yunikorn.clock import ManualClock
from yunikorn.containment import number_or_none, numbers_or_none
from yunikorn.framework.kinds import PREEMPTION
from yunikorn.model.allocation import PreemptionMode
from yunikorn.resources import Resource
from yunikorn_testing.answers_contract import AnswersContract, Question, calling
from yunikorn_testing.order_laws import Keyed, assert_ordered, broken_laws
from yunikorn_testing.other_usage import beside_busier_allocations, read_usage, with_busier_cause
from yunikorn_testing.plugin_contract import Yaml
from yunikorn_testing.samples import (
    AllocationSample,
    allocation,
    application,
    ask,
    busy_node,
    node,
    queue,
    with_task,
)
from yunikorn_testing.watched_samples import WatchedReading


def _fault_of_rank(rank: Any) -> str:
    broken = broken_laws([Keyed("a", rank), Keyed("b", rank)])
    return f"ranks need a total order: {broken[0]}" if broken else ""


def _fault_of_protection(answer: Any) -> str:
    fits = answer is None or (isinstance(answer, str) and answer.strip())
    return "" if fits else "return None, or the reason as text"


def _fault_of_cost(cost: Any) -> str:
    fits = number_or_none(cost) is not None and 0 <= cost < math.inf
    return "" if fits else "return a finite number of 0 or more"


def _fault_of_mode(mode: Any) -> str:
    names = [one.name.lower() for one in PreemptionMode]
    return "" if isinstance(mode, str) and mode in names else f"return one of {', '.join(names)}"


def _fault_of_unit_cost(cost: Any) -> str:
    return "" if numbers_or_none(cost) is not None else "return a number, or a tuple of up to 16 numbers"


FAULTS = {
    "rank": _fault_of_rank,
    "protects": _fault_of_protection,
    "cost": _fault_of_cost,
    "mode_of": _fault_of_mode,
}
"""Methods of the policy, each with a function that returns why an answer is not valid."""
KEPT = ("rank", "protects", "cost")
"""Methods whose answers `is_constant` concerns; modes are asked for when they are needed."""
REMEDIES = (
    "candidates are kept from one search to the next, so set is_constant = False, or read only what never "
    "changes while a task runs",
    "is_constant has no effect on a policy with cost: remove it",
)
"""Remedies for answers that change, of other methods and of `cost`."""


class PreemptionPolicyContract(AnswersContract):
    """Tests that a preemption policy must pass; set `policy = Mine(...)`.

    Override `victims` with cases that matter to the policy.
    """

    kind = PREEMPTION
    policy: ClassVar[PreemptionPolicy]

    def name_in(self, document: Yaml) -> None:
        """Add the policy to the partition, and guarantees, priorities and a shrinking node that need it."""
        partition = document["partitions"][0]
        partition["preemption"] = {"policy": self.named("name"), "shrunknodes": True}
        root = partition["queues"][0]
        root["properties"] = {"preemption.delay": "1s", "preemption.by.priority": "enabled"}
        root["queues"][1]["resources"] = {"guaranteed": {"vcore": 6}}

    def victims(self) -> Sequence[AllocationSample]:
        """Return running allocations of different age, size, priority and role."""
        of_batch = queue("root.batch", parent=queue("root"))
        batch = with_task(application("batch", queue=of_batch, tags={"team": "physics"}, arrival=3))
        here = attrs.evolve(busy_node(), id="node-1")
        there = node("node-2", {"zone": "b"}, vcore=4)
        placeholder = attrs.evolve(
            ask("placeholder", app=batch, vcore=1), task_group="workers", placeholder=True
        )
        limited = attrs.evolve(ask("limited", vcore=1), execution_timeout=600_000_000_000)
        return [
            allocation(ask("plain", vcore=1), here),
            allocation(ask("large", vcore=8, memory="16Gi"), here, placed=-60),
            allocation(ask("old", app=batch, vcore=1), here, placed=-86_400),
            allocation(ask("young", app=batch, vcore=1), there, placed=-3_599),
            allocation(ask("urgent", vcore=1, priority=100), here),
            allocation(ask("low", memory="1Gi", priority=-100, tags={"team": "chemistry"}), there),
            allocation(ask("driver", app=batch, vcore=1, originator=True), here),
            allocation(placeholder, there),
            allocation(limited, here),
            allocation(ask("rare", resource={"gpu": 2, "licence": 0}), there),
            allocation(ask("nothing"), here),
        ]

    def causes(self) -> Sequence[PreemptionCause]:
        """Return one cause of each kind."""
        root = queue("root", total={"vcore": 12}, allocated={"vcore": 11}, is_leaf=False)
        asking = queue("root.asking", guaranteed={"vcore": 4}, max={"vcore": 8}, parent=root)
        place = node("node-1", vcore=8)
        amount = Resource(vcore=1_000)
        return [
            PreemptionCause("guarantee", asking, 0),
            PreemptionCause("priority", asking, 50),
            PreemptionCause("required-node", asking, 0, place, amount),
            PreemptionCause("quota", asking, amount=amount),
            PreemptionCause("shrunk-node", node=place, amount=amount),
        ]

    def units(self) -> Sequence[Sequence[VictimUnit]]:
        """Return work that ends so that a gang has room: single tasks, steps of a gang, and whole gangs."""
        one, *others = self.victims()
        whole = VictimUnit(tuple(others), "gang", outside=len(others) // 2)
        return [[VictimUnit((one,))], [VictimUnit(tuple(others[:2]), "step"), whole]]

    def questions(self) -> Sequence[Question]:
        """Return a question for each method, victim and cause, and for units of victims."""
        of_victims = [
            Question(f"{method}({victim.key}, {cause.kind})", calling(method, victim, cause), fault_of)
            for victim, cause in self._pairs()
            for method, fault_of in FAULTS.items()
        ]
        of_units = [
            Question(
                f"cost_of_units({' and '.join(unit.kind for unit in units)}, {cause.kind})",
                calling("cost_of_units", units, cause),
                _fault_of_unit_cost,
            )
            for cause in self.causes()
            if cause.kind in ("guarantee", "priority")
            for units in self.units()
        ]
        return of_victims + of_units

    def _pairs(self) -> list[tuple[AllocationSample, PreemptionCause]]:
        return [(victim, cause) for cause in self.causes() for victim in self.victims()]

    def test_ranks_have_a_total_order(self) -> None:
        """Check for a total order of the victims of each cause."""
        policy = self.fresh()
        for cause in self.causes():
            keyed = [Keyed(victim.key, policy.rank(victim, cause)) for victim in self.victims()]
            assert_ordered(keyed, f"ranks for {cause.kind}")

    def test_constant_answers_do_not_change(self) -> None:
        """Check that with `is_constant` answers change neither with time nor with usage."""
        clock = ManualClock()
        policy = self.fresh(clock)
        if not policy.is_constant or policy.refresh_every is not None:
            return
        pairs = self._pairs()
        before = [self._answers_of(policy, *pair) for pair in pairs]
        used = [(beside_busier_allocations(victim), with_busier_cause(cause)) for victim, cause in pairs]
        self._check_constant(policy, before, used, "when more is used on its node and in its queue")
        clock.advance(86_400)
        self._check_constant(policy, before, pairs, "a day later")

    def _answers_of(self, policy: Any, victim: Any, cause: PreemptionCause) -> dict[str, Any]:
        return {method: getattr(policy, method)(victim, cause) for method in KEPT}

    def _check_constant(
        self,
        policy: Any,
        before: Sequence[Mapping[str, Any]],
        pairs: Sequence[tuple[AllocationSample, PreemptionCause]],
        when: str,
    ) -> None:
        for answers, (victim, cause) in zip(before, pairs, strict=True):
            for method, first in answers.items():
                reading = WatchedReading()
                watched = reading.watch(victim, "victim."), reading.watch(cause, "cause.")
                later = getattr(policy, method)(*watched)
                found = read_usage(reading.paths)
                reads = f", which reads {found}," if found else ""
                assert later == first, (
                    f"{method}({victim.key}, {cause.kind}) of '{policy.name}'{reads} is {first!r}, and "
                    f"{later!r} {when}, although is_constant is True: {REMEDIES[method == 'cost']}"
                )

    def test_modes_are_valid(self) -> None:
        """Check that `mode` and `mode_of` are `end`, `requeue` or `suspend`."""
        mode = self.fresh().mode
        fault = _fault_of_mode(mode)
        assert not fault, f"mode is {mode!r}: {fault}"

    def test_time_dependent_answer_declares_its_refresh_interval(self) -> None:
        """Check that a policy whose protection changes with time alone sets `refresh_every`."""
        clock = ManualClock()
        policy = self.fresh(clock)
        if policy.refresh_every is not None:
            return
        protected = [policy.protects(victim, cause) is not None for victim, cause in self._pairs()]
        clock.advance(86_400)
        later = [policy.protects(victim, cause) is not None for victim, cause in self._pairs()]
        assert protected == later, (
            "protects() changes with time alone, which the scheduler would not notice: set refresh_every to "
            "the number of seconds after which a failed preemption is tried again"
        )
