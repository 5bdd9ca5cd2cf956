"""Contract test of placement rules."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

from yunikorn.api import PlacementRule, Refused
from yunikorn.config.acl import is_queue_name
from yunikorn.framework.kinds import PLACEMENT
from yunikorn_testing.answers_contract import Question
from yunikorn_testing.costs import count_parameters
from yunikorn_testing.plugin_contract import Yaml
from yunikorn_testing.samples import ApplicationSample, QueueTreeSample, application, queue
from yunikorn_testing.worker_contracts import WorkerContract

QUEUES = QueueTreeSample([queue("root"), queue("root.default"), queue("root.other", max={"vcore": 4})])
"""Queues for rules with a second parameter."""


class PlacementRuleContract(WorkerContract):
    """Tests that a placement rule must pass; set `rule = Mine(...)`."""

    kind = PLACEMENT
    subject = "rule"
    rule: ClassVar[PlacementRule]

    def name_in(self, document: Yaml) -> None:
        """Add the rule before two rules that place all remaining applications."""
        document["partitions"][0]["placementrules"] = [
            {**self.named("name"), "create": True},
            {"name": "provided"},
            {"name": "fixed", "value": "root.default"},
        ]

    def samples(self) -> Sequence[ApplicationSample]:
        """Return applications of various users; extend the list with cases that matter to the rule."""
        return [
            application("plain"),
            application("dotted", user="ann.lee", groups=("team.a", "staff")),
            application("mail", user="ann@example.org"),
            application("anywhere", "", groups=()),
            application("ungrouped", "root.other", user="bob", groups=()),
            application("tagged", tags={"namespace": "science", "team": "physics", "zone": "a"}),
            application("strange", "root.a.b", user="ä ö", tags={"namespace": "a.b c/d", "": ""}),
            application("long", user="x" * 300),
        ]

    def fault_of(self, answer: Any) -> str:
        """Return why an answer is neither None, nor a refusal with a reason, nor a name."""
        if isinstance(answer, Refused):
            explained = isinstance(answer.reason, str) and answer.reason != ""
            return "" if explained else "return Refused(reason) with a reason"
        if answer == "":
            return "return None if the rule does not match"
        return "" if answer is None or isinstance(answer, str) else "return a queue name, or None"

    def questions(self) -> Sequence[Question]:
        """Return a question for the queue of each sample."""
        return [
            Question(f"the queue of application {sample.id}", partial(_place, app=sample))
            for sample in self.samples()
        ]

    def test_rule_that_blocks_gets_no_queues(self) -> None:
        """Check that a rule with `blocking = True` has no second parameter: the queues change meanwhile."""
        rule = self.fresh()
        assert getattr(rule, "blocking", True) is False or not _takes_queues(rule), (
            "the rule has blocking = True and place(app, queues): workers cannot read the queues; define "
            "place(app) and return the name, so that the next rule is tried if there is no such queue"
        )

    def test_names_contain_only_allowed_characters(self) -> None:
        """Check that no level is empty and that the rule adds legal characters; those of users may not be."""
        rule = self.fresh()
        for sample in self.samples():
            answer = _name(_place(rule, sample))
            levels = answer.split(".") if answer not in ("", "root.") else ()
            assert all(level.strip() for level in levels), (
                f"place() returned {answer!r} for application {sample.id}: a level of the name is empty, so "
                "the application is rejected"
            )
            texts = [sample.user, *sample.groups, sample.queue_name, *sample.tags.values()]
            own = "".join(char for char in answer if not any(char in text for text in texts))
            wrong = [char for char in own if char != "." and not is_queue_name(f"a{char}")]
            assert not wrong, (
                f"place() returned {answer!r} for application {sample.id}: the rule added {wrong}, which are "
                "illegal in queue names, so the application is rejected; use letters, digits, '-' and '_'"
            )

    def test_dots_in_user_and_group_names_create_no_level(self) -> None:
        """Check that dots in names are replaced with `dotless`: `ann.lee` is one level, `ann_dot_lee`."""
        rule = self.fresh()
        for sample in self.samples():
            answer = f".{_name(_place(rule, sample))}."
            for name in (sample.user, *sample.groups):
                assert "." not in name or f".{name}." not in answer, (
                    f"place() returned {answer[1:-1]!r} for application {sample.id}: the dot in {name!r} "
                    "separates two queue levels; use dotless(name)"
                )


def _name(answer: Any) -> str:
    return answer if isinstance(answer, str) else ""


def _place(rule: Any, app: ApplicationSample) -> Any:
    return rule.place(app, QUEUES) if _takes_queues(rule) else rule.place(app)


def _takes_queues(rule: Any) -> bool:
    return count_parameters(rule.place) > 1
