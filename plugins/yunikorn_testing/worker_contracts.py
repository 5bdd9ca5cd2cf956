"""Contract tests of plugins that worker threads may call."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

import attrs

from yunikorn.api import AdmissionPolicy, AskSubmission, Resource, Submission, SubmitPolicy, UserGroupResolver
from yunikorn.containment import contained
from yunikorn.framework.kinds import ADMISSION, RESOLVER, SUBMIT
from yunikorn.resources import INT32_MAX, INT32_MIN
from yunikorn.scheduling.admission.submit_answers import FIXED
from yunikorn_testing.answers_contract import (
    DIFFERENT,
    KEPT_SLACK,
    AnswersContract,
    Question,
    calling,
    fault_of_verdict,
)
from yunikorn_testing.costs import count_retained
from yunikorn_testing.plugin_contract import Yaml
from yunikorn_testing.samples import ApplicationSample, application, queue


class WorkerContract(AnswersContract):
    """Tests of all kinds that workers may call; derive from the contract of the plugin's kind."""

    def test_answers_are_the_same_in_another_thread(self) -> None:
        """Check that a plugin opened in one thread answers in another, as in a service."""
        plugin = self.fresh()
        if getattr(plugin, "blocking", True) is False:
            return
        here, there = self._answers(plugin), _in_a_thread(lambda: self._answers(plugin))
        assert not isinstance(there, BaseException), (
            f"{type(there).__name__} in another thread than that of opened(): {there}; a service calls the "
            "plugin in worker threads, so open a connection that is bound to a thread there"
        )
        self._compare(
            here,
            there,
            "in another thread: a service calls the plugin in worker threads; use no threading.local",
        )


def _in_a_thread(call: Any) -> Any:
    """Return the result of a call in another thread, or the exception that it raised."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(call())
        except contained() as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    return found[0]


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
            Question(
                f"submit() of application {sample.id}",
                calling("submit", sample),
                partial(_fault_of_submission, sample),
            )
            for sample in self.samples()
        ]

    def asks(self) -> Sequence[AskSubmission]:
        """Return requests for policies with `submit_ask`; extend the list with cases that matter."""
        root = queue("root", total={"vcore": 100})
        app = application("app", queue=queue("root.default", parent=root), tags={"team": "physics"})
        other = application("other", user="ä ö", groups=(), queue=queue("root.other", parent=root))
        amount, tags = Resource(vcore=1000, memory=2**30), MappingProxyType({"zone": "a", "": ""})
        return [
            AskSubmission("plain", app, amount),
            AskSubmission("urgent", app, amount, 100, INT32_MAX, tags),
            AskSubmission("low", other, Resource(vcore=64_000, gpu=8), priority=INT32_MIN + 1),
            AskSubmission("nothing", other, Resource()),
            AskSubmission("gang", app, amount, 3, task_group="workers", placeholder=True),
            AskSubmission("driver", app, amount, originator=True),
        ]

    def side_questions(self) -> Sequence[Question]:
        """Return a question for each request."""
        return [
            Question(
                f"submit_ask() of request {one.key}",
                calling("submit_ask", one),
                partial(_fault_of_ask, one),
            )
            for one in self.asks()
        ]


def _fault_of_submission(given: Submission, answer: Any) -> str:
    """Return why an answer is neither None, nor a reason, nor a valid submission."""
    if answer is None or isinstance(answer, str):
        return "return None if the application is fine, or a reason" if answer == "" else ""
    if not isinstance(answer, Submission):
        return "return None, a reason, or attrs.evolve(app, ...)"
    texts = [answer.queue_name, *answer.tags, *answer.tags.values()]
    if not all(isinstance(text, str) for text in texts):
        return "queue and tags must be text"
    changed = [name for name in FIXED if getattr(answer, name) != getattr(given, name)]
    if changed:
        return f"{', '.join(changed)} cannot be changed by a submit policy"
    priority = answer.priority
    fits = priority is None or (type(priority) is int and INT32_MIN < priority <= INT32_MAX)
    return "" if fits else "the priority must be None or a whole number of 32 bits"


def _fault_of_ask(given: AskSubmission, answer: Any) -> str:
    """Return why an answer about a request is neither None, nor a reason, nor a valid request."""
    if answer is None or isinstance(answer, str):
        return "return None if the request is fine, or a reason" if answer == "" else ""
    if not isinstance(answer, AskSubmission):
        return "return None, a reason, or attrs.evolve(ask, priority=...)"
    if attrs.evolve(answer, priority=given.priority) != given:
        return "only the priority can be changed by a submit policy"
    fits = type(answer.priority) is int and INT32_MIN < answer.priority <= INT32_MAX
    return "" if fits else "the priority must be a whole number of 32 bits"


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


class UserGroupResolverContract(WorkerContract):
    """Tests that a user-group resolver must pass; set `resolver = Mine(...)`."""

    kind = RESOLVER
    subject = "resolver"
    uses_external_state = True
    resolver: ClassVar[UserGroupResolver]
    different_users: ClassVar[int] = DIFFERENT
    """Number of users of whom the resolver must not remember all; fewer for a slow directory."""

    def name_in(self, document: Yaml) -> None:
        """Add the resolver to the partition."""
        document["partitions"][0]["usergroupresolver"] = self.named("type")

    def users(self) -> Sequence[str]:
        """Return known and unknown users; extend the list with users that the resolver knows."""
        return ["root", "ann", "ann.lee", "ann@example.org", "no-such-user-anywhere", "ä ö", "x" * 300, ""]

    def questions(self) -> Sequence[Question]:
        """Return a question for the groups of each user; the external source must not change meanwhile."""
        return [Question(f"groups({user!r})", calling("groups", user)) for user in self.users()]

    def fault_of(self, answer: Any) -> str:
        """Return why an answer is neither None nor a list of distinct names."""
        if answer is None:
            return ""
        if not isinstance(answer, Sequence) or isinstance(answer, str):
            return "return a list of names, or None for an unknown user"
        if not all(isinstance(group, str) and group for group in answer):
            return "each group must be non-empty text"
        return "" if len(set(answer)) == len(answer) else "a group is listed twice; remove duplicates"

    def test_memory_is_independent_of_earlier_calls(self) -> None:
        """Check that the resolver does not keep something of every user; the scheduler remembers groups."""
        resolver = self.fresh()
        kept = []
        for stop in (self.different_users, 2 * self.different_users):
            for number in range(stop - self.different_users, stop):
                with suppress(Exception):  # another test refuses exceptions
                    resolver.groups(f"no-such-user-{number}")
            kept.append(count_retained(resolver))
        first, second = kept
        assert second <= first + KEPT_SLACK, (
            f"the resolver keeps {first} objects after {self.different_users} different users, and {second} "
            "after twice as many: the scheduler runs for months, and remembers groups itself for the time of "
            "`cache`, so remember none, or a limited number of them"
        )
