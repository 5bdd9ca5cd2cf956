"""Contract test of submit policies."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from yunikorn.api import Submission, SubmitPolicy
from yunikorn.framework.kinds import SUBMIT
from yunikorn.model.ask import INT32_MAX, INT32_MIN
from yunikorn.scheduling.application_checks import FIXED
from yunikorn.testing.answers_contract import Question, calling
from yunikorn.testing.plugin_contract import Yaml
from yunikorn.testing.worker_contract import WorkerContract


class SubmitPolicyContract(WorkerContract):
    """Tests that a submit policy must pass; set `policy = Mine(...)`."""

    kind = SUBMIT
    policy: ClassVar[SubmitPolicy]

    def name_in(self, document: Yaml) -> None:
        """Add the policy to the partition."""
        document["partitions"][0]["submitpolicies"] = [self.named("name")]

    def samples(self) -> Sequence[Submission]:
        """Return applications of various users; extend the list with cases that matter to the policy."""
        return [
            submission("plain"),
            submission("mail", user="ann@example.org", groups=("team.a", "staff")),
            submission("anywhere", "", groups=()),
            submission("tagged", tags={"namespace": "science", "team": "physics", "zone": "a"}),
            submission("strange", "root.a.b", user="ä ö", tags={"": ""}),
            Submission("gang", "ann", ("staff",), gang_total=MappingProxyType({"vcore": 4000})),
        ]

    def questions(self) -> Sequence[Question]:
        """Return a question for each sample."""
        return [
            Question(f"submit() of application {sample.id}", calling("submit", sample))
            for sample in self.samples()
        ]

    def fault_of(self, answer: Any) -> str:
        """Return why an answer is neither None, nor a reason, nor a valid submission."""
        if answer is None or isinstance(answer, str):
            return "return None if the application is fine, or a reason" if answer == "" else ""
        if not isinstance(answer, Submission):
            return "return None, a reason, or attrs.evolve(app, ...)"
        texts = [answer.queue_name, *answer.tags, *answer.tags.values()]
        if not all(isinstance(text, str) for text in texts):
            return "queue and tags must be text"
        priority = answer.priority
        fits = priority is None or (type(priority) is int and INT32_MIN < priority <= INT32_MAX)
        return "" if fits else "the priority must be None or a whole number of 32 bits"

    def test_policy_returns_a_submission_a_reason_or_none(self) -> None:
        """Check the type of each answer, that a reason is not empty, and that fixed attributes are kept."""
        policy = self.fresh()
        for sample in self.samples():
            answer = policy.submit(sample)
            what = f"submit() returned {answer!r} for application {sample.id}"
            fault = self.fault_of(answer)
            assert not fault, f"{what}: {fault}"
            if isinstance(answer, Submission):
                changed = [name for name in FIXED if getattr(answer, name) != getattr(sample, name)]
                assert not changed, f"{what}: {', '.join(changed)} cannot be changed by a submit policy"


def submission(
    id: str,
    queue_name: str = "root.default",
    *,
    user: str = "ann",
    groups: tuple[str, ...] = ("staff",),
    tags: dict[str, str] | None = None,
) -> Submission:
    """Return an application as a submit policy receives it; its tags cannot be modified."""
    return Submission(id, user, groups, queue_name, MappingProxyType(dict(tags or {})))
