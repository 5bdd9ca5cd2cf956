"""Contract test of permit policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from yunikorn.api import PermitPolicy
from yunikorn.framework.kinds import PERMIT
from yunikorn_testing.answers_contract import Question, calling, fault_of_verdict
from yunikorn_testing.books_contract import BooksContract
from yunikorn_testing.plugin_contract import Yaml
from yunikorn_testing.samples import (
    AllocationSample,
    AskSample,
    NodeSample,
    allocation,
    application,
    ask,
    busy_node,
    node,
    with_task,
)
from yunikorn_testing.worker_contracts import WorkerContract


class PermitPolicyContract(BooksContract, WorkerContract):
    """Tests that a permit policy must pass; set `policy = Mine(...)`."""

    kind = PERMIT
    policy: ClassVar[PermitPolicy]

    def name_in(self, document: Yaml) -> None:
        """Add the policy to the partition."""
        document["partitions"][0]["permits"] = [self.named("name")]

    def hosts(self) -> Sequence[NodeSample]:
        """Return nodes on which tasks are placed."""
        return [
            node("n1", vcore=8, memory="32G"),
            node("n2", {"zone": "b", "rack": "r1"}, vcore=4, memory="16G"),
            node("ä ö", {"": ""}, vcore=1),
            busy_node(),
        ]

    def requests(self) -> Sequence[AskSample]:
        """Return requests whose tasks are placed; extend the list with cases that matter to the policy."""
        app = application("app")
        other = with_task(application("other", "root.batch", user="ann", tags={"team": "physics"}))
        return [
            ask("plain", app=app, vcore=1),
            ask("tagged", app=app, tags={"team": "physics", "zone": "b"}, vcore="500m", memory="1G"),
            ask("urgent", app=other, priority=10, vcore=2),
            ask("member", app=other, task_group="workers", vcore=1),
            ask("placeholder", app=other, task_group="workers", placeholder=True, vcore=1),
            ask("strange", app=other, tags={"": ""}, memory=1),
        ]

    def samples(self) -> Sequence[AllocationSample]:
        """Return a placement of each request."""
        hosts = self.hosts()
        return [
            allocation(wanted, hosts[number % len(hosts)]) for number, wanted in enumerate(self.requests())
        ]

    def questions(self) -> Sequence[Question]:
        """Return the questions for each sample."""
        samples = self.samples()
        return [
            *(
                Question(f"permit() of task {one.key}", calling("permit", one), _fault_of_permit)
                for one in samples
            ),
            *(
                Question(f"group() of task {one.key}", calling("group", one), _fault_of_group)
                for one in samples
            ),
        ]

    def all_answers(self, plugin: Any) -> Mapping[str, Any]:
        """Return the answers about all samples."""
        return {question.text: repr(question.put(plugin)) for question in self.questions()}

    def test_policy_that_blocks_keeps_no_books(self) -> None:
        """Check that a policy with `blocking = True` has no books, which the core changes meanwhile."""
        policy = self.fresh()
        assert getattr(policy, "blocking", True) is False or type(policy).placed is PermitPolicy.placed, (
            "the policy has blocking = True and keeps books: leave out placed() and released(), and read the "
            "argument of permit()"
        )

    def test_timeout_is_a_number_of_seconds(self) -> None:
        """Check that a held placement is taken back some day."""
        timeout = self.fresh().timeout
        sound = type(timeout) in (int, float) and 0 < timeout < 1e9
        assert sound, f"timeout is {timeout!r}: use more than 0 and less than 1e9 seconds"


def _fault_of_permit(answer: Any) -> str:
    """Return why an answer is neither None, nor a reason, nor a valid wait."""
    return fault_of_verdict(answer, "permit the placement")


def _fault_of_group(group: Any) -> str:
    fits = group is None or isinstance(group, str)
    return "" if fits else "return text, or None without a group"
