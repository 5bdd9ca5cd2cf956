"""Submit policies: what they change, reject and cannot change, and the default `default-tags`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import pytest

from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn.api import Submission, SubmitPolicy
from yunikorn.interface.messages import Allocation
from yunikorn.resources import Resource

Answer = Callable[[Submission], Any]
SEEN: list[Submission] = []
evolve: Any = attrs.evolve
"""Without the types of the attributes."""


def policy(title: str, answer: Answer) -> type[SubmitPolicy]:
    class Policy(SubmitPolicy):
        """A policy with a given answer."""

        name = title

        def submit(self, app: Submission) -> Any:
            SEEN.append(app)
            return answer(app)

    return Policy


def cluster(*answers: Answer, make: type[RM] = RM, **keys: Any) -> Any:
    SEEN.clear()
    names = [f"p{number}" for number in range(len(answers))]
    classes = [policy(name, answer) for name, answer in zip(names, answers, strict=True)]
    text = configuration(queue("a"), queue("b"), submitpolicies=names, **keys)
    return make(text, with_plugins(submit_policies=classes))


def rejections(rm: RM) -> list[str]:
    return [one.reason for one in rm.entries("rejected_applications")]


def test_policy_sees_the_application_with_its_groups() -> None:
    rm = cluster(lambda app: None, make=GangRM)
    rm.app("plain", "root.a", user="ann", groups=(), namespace="x")
    rm.gang("gang", "Hard", vcore=4)
    plain, gang = SEEN
    assert (plain.id, plain.user, plain.groups, plain.queue_name) == ("plain", "ann", ("ann",), "root.a")
    assert (dict(plain.tags), plain.priority, dict(plain.gang_total)) == ({"namespace": "x"}, None, {})
    assert (dict(gang.gang_total), gang.gang_style) == ({"vcore": 4}, "Hard")


def test_policy_changes_queue_tags_and_priority() -> None:
    rm = cluster(
        lambda app: attrs.evolve(app, queue_name="root.b", tags={**app.tags, "team": "x"}, priority=7)
    )
    rm.node(vcore=4)
    rm.app("app", "root.a", user="ann")
    rm.ask("app", "one", priority=1, vcore=1)
    rm.ask("app", "two", vcore=1)
    app = rm.find_app()
    assert app.queue is not None
    assert (app.queue.path, app.tags) == ("root.b", {"team": "x"})
    assert (app.priority, rm.find_queue("root.b").priority) == (7, 7)
    rm.ask("app", "one", 2, priority=3, vcore=1)
    assert [ask.priority for ask in app.asks.values()] == [7, 7]
    rm.schedule()
    assert {one.priority for one in rm.running.values()} == {7}


def test_policies_run_in_order_and_see_previous_answers() -> None:
    rm = cluster(
        lambda app: attrs.evolve(app, tags={**app.tags, "first": "1"}),
        lambda app: None,
        lambda app: "it has the tag" if "first" in app.tags else None,
        lambda app: pytest.fail("asked after a rejection"),
    )
    rm.app("app", "root.a")
    assert rejections(rm) == ["submit policy p2 rejects application app: it has the tag"]
    assert rm.at_work().partition.applications == {}


WRONG: dict[str, tuple[Answer, str]] = {
    "another user": (lambda app: attrs.evolve(app, user="root"), "it changed 'user'"),
    "other groups": (lambda app: attrs.evolve(app, groups=("wheel",)), "it changed 'groups'"),
    "another id": (lambda app: attrs.evolve(app, id="x"), "it changed 'id'"),
    "forced": (
        lambda app: attrs.evolve(app, tags={"application.create.force": "true"}),
        "it changed the tag",
    ),
    "not a submission": (lambda app: 7, "it returned 7"),
    "no text": (lambda app: evolve(app, queue_name=None), "it set queue_name to None"),
    "tags without text": (lambda app: evolve(app, tags={"a": 1}), "it set tags to"),
    "a priority of 33 bits": (lambda app: attrs.evolve(app, priority=2**32), "it set priority to"),
    "a boolean priority": (lambda app: attrs.evolve(app, priority=True), "it set priority to True"),
    "raises": (lambda app: 1 / 0, "ZeroDivisionError"),
    "writes": (lambda app: app.tags.update(a="b"), "AttributeError"),  # type: ignore[attr-defined]
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_answers_reject_the_application_and_are_named(wrong: str) -> None:
    answer, message = WRONG[wrong]
    rm = cluster(answer)
    rm.app("app", "root.a")
    (reason,) = rejections(rm)
    (failure,) = rm.failures()
    assert reason == failure
    assert message in reason
    assert "plugin p0 of test-plugin (yunikorn-test 1.0): checking application 'app'" in reason


def change(app: Submission) -> Submission:
    return attrs.evolve(app, queue_name="root.b", tags={**app.tags, "team": "x"}, priority=7)


@pytest.mark.parametrize("refusal", [lambda app: "no", lambda app: 1 / 0])
def test_recovered_application_is_changed_but_not_rejected_or_moved(refusal: Answer) -> None:
    rm = cluster(change, refusal)
    rm.app_tagged("app", "root.a", {"application.create.force": "true"})
    rm.node(vcore=4, existing=[existing("app", "u1")])
    app = rm.find_app()
    assert app.queue is not None
    assert (app.queue.path, app.tags["team"], app.ask_priority) == ("root.a", "x", 7)
    assert [one.priority for one in app.allocations.values()] == [7]


def existing(app_id: str, uuid: str) -> Allocation:
    return Allocation(uuid, app_id, uuid, "n1", Resource({"vcore": 1}))


def test_tags_of_a_policy_decide_on_placement_and_quotas() -> None:
    quota = '{"resources": {"vcore": {"value": 2000}}}'
    rm = cluster(
        lambda app: attrs.evolve(app, tags={"namespace": "dev", "namespace.resourcequota": quota}),
        placementrules=[{"name": "tag", "value": "namespace", "create": True}],
    )
    rm.app("app", "")
    made = rm.find_queue("root.dev")
    assert dict(made.max or {}) == {"vcore": 2000}


def tagged(rm: RM, app_id: str) -> Mapping[str, str]:
    return rm.find_app(app_id).tags


def test_default_tags() -> None:
    entry = {"name": "default-tags", "tags": {"team": "none", "zone": "a"}, "require": ["project", "team"]}
    rm = RM(configuration(submitpolicies=[entry]))
    rm.app("full", project="x", team="y", zone="b")
    rm.app("partial", project="x")
    rm.app("lacking", project="", team="y")
    assert tagged(rm, "full") == {"project": "x", "team": "y", "zone": "b"}
    assert tagged(rm, "partial") == {"project": "x", "team": "none", "zone": "a"}
    assert rejections(rm) == [
        "submit policy default-tags rejects application lacking: it lacks the tags project"
    ]
