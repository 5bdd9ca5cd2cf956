"""Contract test of admission policies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

from yunikorn.api import AdmissionPolicy, Wait
from yunikorn.framework.kinds import ADMISSION
from yunikorn.testing.answers_contract import Question
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
            Question(f"admit() of application {sample.id}", partial(_admit, app=sample))
            for sample in self.samples()
        ]

    def test_policy_returns_a_wait_a_reason_or_none(self) -> None:
        """Check the type of each answer, and the seconds and the reason of a wait."""
        policy = self.fresh()
        for sample in self.samples():
            answer = policy.admit(sample)
            what = f"admit() returned {answer!r} for application {sample.id}"
            if answer is None or isinstance(answer, str):
                assert answer != "", f"{what}: return None to admit the application, or a reason"
                continue
            assert isinstance(answer, Wait), f"{what}: return None, a reason, or Wait(seconds, why)"
            seconds = answer.seconds
            sound = type(seconds) in (int, float) and 0 < seconds < 1e9
            assert sound, f"{what}: wait more than 0 and less than 1e9 seconds"
            explained = isinstance(answer.why, str) and answer.why != ""
            assert explained, f"{what}: give the reason as text"


def _admit(policy: Any, app: ApplicationSample) -> Any:
    return policy.admit(app)
