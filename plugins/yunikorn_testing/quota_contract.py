"""Contract test of quota policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs

from yunikorn.api import Quota, QuotaPolicy
from yunikorn.clock import SECOND, ManualClock
from yunikorn.framework.kinds import QUOTA
from yunikorn.resources import INT64_MAX, Resource
from yunikorn_testing.answers_contract import Question, calling
from yunikorn_testing.plugin_contract import Yaml
from yunikorn_testing.samples import Amounts, QueueSample, queue
from yunikorn_testing.worker_contracts import WorkerContract

MOMENTS = (0, 3600, 86_400 * 365, 1_700_000_000)
"""Times (s) at which the policy is asked."""
STEPS = 50
"""Number of answers that are followed from each to the next by their `until`."""


class QuotaPolicyContract(WorkerContract):
    """Tests that a quota policy must pass; set `policy = Mine(...)`."""

    kind = QUOTA
    in_properties = True
    flags = ("watches_siblings", "watches_cluster")
    policy: ClassVar[QuotaPolicy]

    def name_in(self, document: Yaml) -> None:
        """Add the policy as a property of both leaf queues, which get a max."""
        texts = self.option_texts()
        for found in document["partitions"][0]["queues"][0]["queues"]:
            found["properties"] = {
                "quota.policy": type(self.given).name,
                **{f"quota.policy.{name}": text for name, text in texts.items()},
            }
            found["resources"] = {"max": {"vcore": 64}}

    def samples(self) -> Sequence[QueueSample]:
        """Return queues; extend the list with cases that matter to the policy."""
        total: Amounts = {"vcore": 100, "memory": "400G"}
        root = queue("root", total=total)
        team = queue("root.team", parent=root, total=total, max={"vcore": 40, "memory": "100G"})
        return [
            queue("root.plain", parent=root, total=total),
            queue("root.limited", parent=root, total=total, max={"vcore": 10}),
            queue("root.lowered", parent=root, total=total, max={"vcore": 0}, configured_max={"vcore": 10}),
            queue(
                "root.team.busy",
                parent=team,
                total=total,
                guaranteed={"vcore": 4},
                max={"vcore": 10, "memory": "20G"},
                allocated={"vcore": 12, "memory": "1G"},
                pending={"vcore": 500},
                unused_by_siblings={"vcore": 7},
                properties={"team": "physics"},
            ),
            queue("root.empty", parent=root, max={"vcore": 10, "gpu": 0}),
        ]

    def questions(self) -> Sequence[Question]:
        """Return a question for each sample."""
        return [
            Question(f"quota() of queue {sample.path}", calling("quota", sample)) for sample in self.samples()
        ]

    def fault_of(self, answer: Any) -> str:
        """Return why an answer is not a quota; empty if it is one."""
        return _fault(answer, -1)

    def test_answers_are_quotas_or_none(self) -> None:
        """Check amounts, time and reason of each answer, at several times."""
        for moment in MOMENTS:
            clock = ManualClock(moment * SECOND)
            policy = self.fresh(clock)
            for sample in self.samples():
                answer = policy.quota(sample)
                fault = _fault(answer, clock.now())
                what = f"quota() returned {answer!r} for queue {sample.path} at {clock.now()} ns"
                assert not fault, f"{what}: {fault}"

    def test_answers_hold_until_the_time_they_name(self) -> None:
        """Check that an answer stays the same until its `until`, and that asking then gets on in time."""
        for sample in self.samples():
            clock = ManualClock()
            policy = self.fresh(clock)
            for _ in range(STEPS):
                answer = policy.quota(sample)
                if answer is None or answer.until is None:
                    break
                assert answer.until > clock.now(), f"quota() named {answer.until} ns at {clock.now()} ns"
                if answer.until - clock.now() > 1 and policy.refresh_every is None:
                    clock.set((clock.now() + answer.until) // 2)
                    later = policy.quota(sample)
                    same = later is not None and later.max == answer.max and later.until == answer.until
                    assert same, (
                        f"quota() returned {answer!r}, and {later!r} at {clock.now()} ns: the core asks only "
                        "at the time that the answer named"
                    )
                clock.set(answer.until)

    def test_change_with_time_is_announced(self) -> None:
        """Check that an answer without `until` does not change with time, unless `refresh_every` is set."""
        for sample in self.samples():
            clock = ManualClock()
            policy = self.fresh(clock)
            answer = policy.quota(sample)
            if (answer is not None and answer.until is not None) or policy.refresh_every is not None:
                continue
            for moment in MOMENTS:
                clock.set(moment * SECOND)
                later = policy.quota(sample)
                assert later == answer, (
                    f"quota() returned {answer!r} for queue {sample.path}, and {later!r} later: "
                    "set `until` or `refresh_every`, or the policy is not asked again"
                )

    def test_policy_that_blocks_watches_no_siblings(self) -> None:
        """Check that a policy with `blocking = True` need not be asked before each placement."""
        policy = self.fresh()
        assert getattr(policy, "blocking", True) is False or not policy.watches_siblings, (
            "the policy has blocking = True and watches_siblings, so that it would be asked before every "
            "placement: use refresh_every, until or watches_cluster"
        )

    def test_what_is_read_is_declared(self) -> None:
        """Check that a policy which reads its siblings or the cluster declares that."""
        policy = self.fresh()
        read = {name for _, name in self.read_by(policy).names}
        for attribute, name in (("unused_by_siblings", "watches_siblings"), ("total", "watches_cluster")):
            declared = getattr(policy, name) or policy.refresh_every is not None
            assert declared or attribute not in read, (
                f"quota() reads queue.{attribute}: set {name} = True, or the policy is not asked again when "
                "it changes"
            )

    def test_answer_does_not_depend_on_the_answer_before(self) -> None:
        """Check that the policy does not read `queue.max`, which is what it has answered itself."""
        policy = self.fresh()
        for sample in self.samples():
            answer = policy.quota(sample)
            for other in (None, Resource(), Resource(vcore=1_000), Resource(vcore=10**9)):
                later = policy.quota(attrs.evolve(sample, max=other, fair_max=other or Resource()))
                assert later == answer, (
                    f"quota() returned {answer!r} for queue {sample.path}, and {later!r} when queue.max is "
                    f"{other!r}: max is the answer before, so that answers build on each other; read "
                    "queue.configured_max"
                )


def _fault(answer: Any, now: int) -> str:
    """Return why an answer at the time `now` is invalid; empty if it is valid."""
    if answer is None:
        return ""
    if not isinstance(answer, Quota):
        return "return None, or Quota(amounts, until, why)"
    if not isinstance(answer.why, str):
        return "give the reason as text"
    if answer.until is not None and (type(answer.until) is not int or answer.until <= now):
        return f"until is a whole number of nanoseconds after the present, {now}"
    if answer.max is None:
        return ""
    if not isinstance(answer.max, Mapping):
        return "the amounts are a mapping, or None"
    for name, amount in answer.max.items():
        if not isinstance(name, str) or type(amount) is not int or not 0 <= amount <= INT64_MAX:
            return f"{name!r}: {amount!r} is not a whole number from 0 to {INT64_MAX}"
    return ""
