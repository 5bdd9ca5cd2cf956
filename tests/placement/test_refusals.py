"""Placement rules that refuse an application with a reason, and rules that see the queues."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn.api import Application, PlacementRule, QueueTree, Refused
from yunikorn_lab.placement_dry_run import PlacementDryRun


class Existing(PlacementRule):
    """Places applications in the queue of their user, and refuses users without one."""

    name = "existing"

    def place(self, app: Application, queues: QueueTree) -> str | Refused | None:
        if app.user == "nobody":
            return None
        found = queues.get(f"ROOT.{app.user}")
        if found is None:
            known = ", ".join(child.path for child in queues.children("root"))
            return Refused(f"{app.user} is none of {known}{len(queues.children('root.x'))}")
        return found.path


class Wrong(PlacementRule):
    """Refuses without a text."""

    name = "wrong"

    def place(self, app: Application) -> Any:
        return Refused(7)  # type: ignore[arg-type]


REGISTRY = with_plugins(placement_rules=[Existing, Wrong])
REASON = "eve is none of root.ann, root.bob, root.default0"


def text(*rules: dict[str, Any]) -> str:
    return configuration(queue("bob"), queue("ann"), queue("default"), placementrules=list(rules))


RULES = text({"name": "existing"}, {"name": "fixed", "value": "default"})


def queue_of(rm: RM, app_id: str) -> str:
    found = rm.find_app(app_id).queue
    assert found is not None
    return found.path


def test_refusal_rejects_the_application_and_ends_the_chain() -> None:
    rm = RM(RULES, REGISTRY)
    for user in ("ann", "eve", "nobody"):
        rm.app(user, "", user=user)
    assert (queue_of(rm, "ann"), queue_of(rm, "nobody")) == ("root.ann", "root.default")
    (refused,) = rm.entries("rejected_applications")
    assert refused.reason == f"failed to place application eve: {REASON}"
    assert rm.failures() == []


def test_forced_application_goes_to_the_next_rule() -> None:
    rm = RM(RULES, REGISTRY)
    rm.app_tagged("eve", "", {"application.create.force": "true"}, user="eve")
    assert queue_of(rm, "eve") == "root.default"


def test_refusal_of_a_parent_rule_refuses() -> None:
    rm = RM(
        text({"name": "provided", "parent": {"name": "existing"}}, {"name": "fixed", "value": "ann"}),
        REGISTRY,
    )
    rm.app("eve", "q", user="eve")
    (refused,) = rm.entries("rejected_applications")
    assert refused.reason == f"failed to place application eve: parent rule existing: {REASON}"


def test_refusal_without_a_reason_is_a_failure() -> None:
    rm = RM(text({"name": "wrong"}), REGISTRY)
    rm.app("app", "")
    (failure,) = rm.failures()
    assert "it refused with the reason 7 instead of text" in failure
    assert len(rm.entries("rejected_applications")) == 1


@pytest.mark.parametrize(("user", "outcome"), [("ann", "match"), ("eve", "refused"), ("nobody", "no match")])
def test_dry_run_shows_the_refusal(user: str, outcome: str) -> None:
    run = PlacementDryRun(RULES, REGISTRY)
    answer = run.ask("app", user)
    assert answer.steps[0].outcome == outcome
    assert (REASON in answer.reason) == (outcome == "refused")
    json.dumps([step.reason for step in answer.steps])
