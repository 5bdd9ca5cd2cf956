"""Contract test of admission policies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from yunikorn.api import AdmissionPolicy
from yunikorn.framework.kinds import ADMISSION
from yunikorn.testing.answers_contract import Question, calling, fault_of_verdict
from yunikorn.testing.plugin_contract import Yaml
from yunikorn.testing.samples import ApplicationSample, application, queue
from yunikorn.testing.worker_contract import WorkerContract


class AdmissionPolicyContract(WorkerContract):
    """Tests that an admission policy must pass; set `policy = Mine(...)`."""

    kind = ADMISSION
    policy: ClassVar[AdmissionPolicy]

    def name_in(self, document: Yaml) -> None:
        """Add the policy to the partition."""
        document["partitions"][0]["admission"] = [self.named("name")]

    def samples(self) -> Sequence[ApplicationSample]:
        """Return applications in their queues; extend the list with cases that matter to the policy."""
        root = queue("root", total={"vcore": 100, "memory": "400G"})
        default = queue("root.default", parent=root, total={"vcore": 100}, max={"vcore": 10})
        busy = queue(
            "root.batch.low",
            parent=queue("root.batch", parent=root),
            max={"vcore": 10},
            allocated={"vcore": 10},
            pending={"vcore": 500},
            properties={"team": "physics"},
        )
        return [
            application("plain", queue=default),
            application("busy", "root.batch.low", user="ann@example.org", groups=(), queue=busy),
            application("tagged", queue=default, tags={"namespace": "science", "team": "physics"}),
            application("strange", user="ä ö", queue=default, tags={"": ""}, submitted=5),
            application("waiting", queue=busy, state="Accepted", pending={"vcore": 2}, priority=7),
        ]

    def questions(self) -> Sequence[Question]:
        """Return a question for each sample."""
        return [
            Question(f"admit() of application {sample.id}", calling("admit", sample))
            for sample in self.samples()
        ]

    def fault_of(self, answer: Any) -> str:
        """Return why an answer is neither None, nor a reason, nor a valid wait."""
        return fault_of_verdict(answer, "admit the application")

    def test_policy_returns_a_wait_a_reason_or_none(self) -> None:
        """Check the type of each answer, and the seconds and the reason of a wait."""
        policy = self.fresh()
        for sample in self.samples():
            answer = policy.admit(sample)
            fault = self.fault_of(answer)
            assert not fault, f"admit() returned {answer!r} for application {sample.id}: {fault}"
