"""The chain of placement rules on a queue tree."""

from __future__ import annotations

from typing import Any

import pytest

from tests.placement.conftest import placed_by
from yunikorn.api import Application, PlacementRule, hookimpl
from yunikorn.config.queues_yaml import RuleConfig
from yunikorn.errors import OptionError, UnknownPlugin
from yunikorn.framework.instances import InstancePlan
from yunikorn.framework.plugin_failures import PluginFailures
from yunikorn.framework.registry import Registry
from yunikorn.scheduling.placement import NO_MATCH, PlacementChain

USER = {"name": "user", "create": True}
PROVIDED = {"name": "provided", "create": True}
FORCED = {"application.create.force": "true"}


def test_no_rules_mean_the_provided_queue_which_must_exist(place: Any, make_tree: Any) -> None:
    tree = make_tree("root.a")
    assert place([], tree, queue_name="root.a").queue == "root.a"
    assert place([], tree, queue_name="A").queue == "root.a"
    refused = place([], tree, queue_name="root.b")
    assert refused.queue == ""
    assert refused.reason.startswith(NO_MATCH)
    assert "provided: queue root.b does not exist" in refused.reason


def test_steps_contain_the_result_of_each_rule(place: Any, make_tree: Any) -> None:
    rules = [{"name": "tag", "value": "namespace", "create": True}, {"name": "user"}, PROVIDED]
    placement = place(rules, make_tree(), queue_name="q")
    assert (placement.queue, placement.rule, placement.reason) == ("root.q", "provided", "")
    assert [(step.number, step.rule, step.outcome, step.queue) for step in placement.steps] == [
        (1, "tag", "no match", ""),
        (2, "user", "no match", ""),
        (3, "provided", "match", "root.q"),
    ]
    assert placement.steps[0].title == "tag 'namespace'"
    assert placement.steps[1].reason == "queue root.developer does not exist, and the rule does not create it"


def test_filter_prevents_the_call_of_the_rule(place: Any, make_tree: Any) -> None:
    rules = [{**USER, "filter": {"type": "deny", "users": ["bob"]}}]
    assert place(rules, make_tree(), user="ann").queue == "root.ann"
    refused = place(rules, make_tree(), user="bob")
    assert "user: its filter excludes user 'bob'" in refused.reason


def test_the_last_parent_in_the_chain_is_directly_below_root(place: Any, make_tree: Any) -> None:
    tag = {
        "name": "tag",
        "value": "namespace",
        "create": True,
        "parent": {"name": "fixed", "value": "org.unit"},
    }
    rules = [{**USER, "parent": {**tag, "parent": {"name": "fixed", "value": "org.unit", "create": True}}}]
    placement = place(rules, make_tree(), tags={"namespace": "ns.1"})
    assert placement.queue == "root.org.unit.ns_dot_1.developer"


def test_each_rule_of_a_chain_has_its_own_create(place: Any, make_tree: Any) -> None:
    rules = [{**USER, "parent": {"name": "tag", "value": "namespace"}}]
    tags = {"namespace": "testing"}
    assert place(rules, make_tree("root.testing."), tags=tags).queue == "root.testing.developer"
    refused = place(rules, make_tree(), tags=tags)
    assert "user: parent rule tag 'namespace': queue root.testing does not exist" in refused.reason


def test_a_complete_name_skips_the_parent_rule(place: Any, make_tree: Any) -> None:
    rules = [{**PROVIDED, "parent": USER}, {"name": "tag", "value": "q", "create": True, "parent": USER}]
    assert place(rules, make_tree(), queue_name="root.x").queue == "root.x"
    assert place(rules, make_tree(), queue_name="x").queue == "root.developer.x"
    assert place(rules, make_tree(), tags={"q": "root.y"}).queue == "root.y"


def test_parent_rule_that_returns_a_leaf_is_no_match(place: Any, make_tree: Any) -> None:
    rules = [{**PROVIDED, "parent": {"name": "user"}}, {"name": "fixed", "value": "root.other"}]
    placement = place(rules, make_tree("root.developer", "root.other"), queue_name="x")
    assert (placement.queue, placement.rule) == ("root.other", "fixed")
    assert placement.steps[0].reason == "parent rule returned a leaf queue: root.developer"
    assert [step.outcome for step in placement.steps] == ["no match", "match"]


@pytest.mark.parametrize(
    ("asked", "failure"),
    [
        ("bad name", "'bad name' contains characters other than"),
        ("root.a..b", "one of its levels is empty"),
        ("root.a.", "one of its levels is empty"),
        ("x" * 65, "has 65 characters, 64 are allowed"),
        ("root.a.b!", "'b!' contains characters other than"),
    ],
)
def test_an_illegal_name_ends_the_placement(place: Any, make_tree: Any, asked: str, failure: str) -> None:
    placement = place([PROVIDED, USER], make_tree(), queue_name=asked)
    assert placement.queue == ""
    assert placement.rule == "provided"
    assert placement.reason.startswith("invalid queue name '")
    assert failure in placement.reason


def test_names_are_matched_in_any_case_and_lowered(place: Any, make_tree: Any) -> None:
    tree = make_tree("root.prod")
    assert place([{"name": "provided"}], tree, queue_name="root.PROD").queue == "root.prod"
    assert place([PROVIDED], tree, queue_name="New").queue == "root.new"
    assert place([USER], tree, user="Ann").queue == "root.ann"


def test_a_user_called_root_gets_a_queue_below_root(place: Any, make_tree: Any) -> None:
    assert place([USER], make_tree(), user="root").queue == "root.root"


def test_root_queue_accepts_no_application(place: Any, make_tree: Any) -> None:
    placement = place([PROVIDED], make_tree(), queue_name="root")
    assert "queue root is a parent queue" in placement.reason
    rules = [{**USER, "parent": {"name": "fixed", "value": "root"}}]
    assert place(rules, make_tree()).queue == "root.developer"


# -- the chosen queue ----------------------------------------------------------------------------------


def test_parent_queue_accepts_no_application(place: Any, make_tree: Any) -> None:
    rules = [{"name": "fixed", "value": "root.a"}, {"name": "fixed", "value": "root.b"}]
    placement = place(rules, make_tree("root.a.", "root.b"))
    assert placement.queue == "root.b"
    assert placement.steps[0].reason == "queue root.a is a parent queue, applications run in leaf queues"


def test_queue_that_cannot_be_created_is_no_match(place: Any, make_tree: Any) -> None:
    rules = [PROVIDED, {"name": "fixed", "value": "root.other"}]
    placement = place(rules, make_tree("root.leaf", "root.other"), queue_name="root.leaf.x")
    assert (placement.queue, placement.rule) == ("root.other", "fixed")
    assert placement.steps[0].outcome == "no match"
    assert placement.steps[0].reason == "queue root.leaf.x cannot be created: root.leaf is a leaf queue"


@pytest.mark.parametrize("asked", ["ROOT.x", "Root.X", "rOOt.x"])
def test_a_name_is_complete_whatever_the_case_of_root(place: Any, make_tree: Any, asked: str) -> None:
    rules = [{**PROVIDED, "parent": USER}]
    assert place(rules, make_tree(), queue_name=asked).queue == "root.x"
    assert place(rules, make_tree("root.x"), queue_name=asked).queue == "root.x"
    tag = [{"name": "tag", "value": "q", "create": True, "parent": USER}]
    assert place(tag, make_tree(), tags={"q": asked}).queue == "root.x"
    assert "queue root is a parent queue" in place([PROVIDED], make_tree(), queue_name="ROOT").reason
    assert place([PROVIDED], make_tree(), queue_name="rooT.a.").reason.endswith("one of its levels is empty")


def test_draining_queue_accepts_no_application_and_a_stopped_one_does(place: Any, make_tree: Any) -> None:
    tree = make_tree("root.a")
    tree.queue("root.a").state = "Draining"
    assert "root.a is being removed" in place([{"name": "fixed", "value": "root.a"}], tree).reason
    tree.queue("root.a").state = "Stopped"
    assert place([{"name": "fixed", "value": "root.a"}], tree).queue == "root.a"


def test_access_to_a_queue_is_granted_by_the_queue_or_its_ancestors(place: Any, make_tree: Any) -> None:
    tree = make_tree("root.a.", "root.a.b", acls={"root.a": "ann", "root.a.b": "bob  "})
    rules = [{"name": "fixed", "value": "root.a.b"}]
    assert place(rules, tree, user="ann").queue == "root.a.b"
    assert place(rules, tree, user="bob").queue == "root.a.b"
    assert "user 'eve' may not submit to root.a.b" in place(rules, tree, user="eve").reason


def test_access_to_a_queue_to_be_created_is_that_of_its_nearest_ancestor(place: Any, make_tree: Any) -> None:
    tree = make_tree("root.a.", acls={"root.a": "ann dev"})
    rules = [{"name": "fixed", "value": "root.a.x.y", "create": True}]
    assert place(rules, tree, user="ann").queue == "root.a.x.y"
    assert place(rules, tree, user="bob", groups=("ops", "dev")).queue == "root.a.x.y"
    refused = place(rules, tree, user="eve")
    assert "user 'eve' may not submit to root.a, where root.a.x.y would be created" in refused.reason


# -- fallbacks -----------------------------------------------------------------------------------------


def test_root_default_accepts_unmatched_applications_if_it_exists(place: Any, make_tree: Any) -> None:
    placement = place([{"name": "user"}], make_tree("root.default"))
    assert (placement.queue, placement.rule) == ("root.default", "recovery")
    assert [step.rule for step in placement.steps] == ["user", "recovery"]


def test_root_default_requires_submit_access(place: Any, make_tree: Any) -> None:
    placement = place([{"name": "user"}], make_tree("root.default", acls={"root.default": "ann"}), user="bob")
    assert placement.queue == ""
    assert placement.reason.startswith(NO_MATCH)
    assert "recovery: user 'bob' may not submit to root.default" in placement.reason


@pytest.mark.parametrize("key", ["application.create.force", "Application.Create.FORCE"])
@pytest.mark.parametrize("yes", ["1", "t", "T", "true", "True", "TRUE"])
def test_forced_application_is_placed_in_the_recovery_queue(
    place: Any, make_tree: Any, key: str, yes: str
) -> None:
    placement = place([{"name": "user"}], make_tree("root.default", acls={}), tags={key: yes})
    assert (placement.queue, placement.rule) == ("root.@recovery@", "recovery")


@pytest.mark.parametrize("no", ["yes", "0", "false", "tRUE", ""])
def test_only_a_true_tag_value_forces(place: Any, make_tree: Any, no: str) -> None:
    assert place([{"name": "user"}], make_tree(), tags={"application.create.force": no}).queue == ""


def test_a_forced_application_is_placed_by_rules_first(place: Any, make_tree: Any) -> None:
    assert place([USER], make_tree(), tags=FORCED).queue == "root.developer"


def test_failing_rule_does_not_reject_a_forced_application(place: Any, make_tree: Any) -> None:
    placement = place([PROVIDED], make_tree(), queue_name="bad name", tags=FORCED)
    assert placement.queue == "root.@recovery@"
    assert [step.outcome for step in placement.steps] == ["error", "match"]


def test_recovery_queue_may_be_requested_by_name(place: Any, make_tree: Any) -> None:
    # Measured like this on YuniKorn 1.9.
    asked = "root.@recovery@"
    assert place([PROVIDED], make_tree(), queue_name=asked).queue == asked
    assert place([{"name": "provided"}], make_tree(), queue_name=asked).queue == ""


# -- creation of the chain, and plugins that raise -----------------------------------------------------


@pytest.mark.parametrize("name", ["recovery", "usr"])
def test_unknown_rule_is_rejected_with_the_known_ones(registry: Registry, make_tree: Any, name: str) -> None:
    with pytest.raises(UnknownPlugin, match="known: fixed, provided, tag, user"):
        PlacementChain([RuleConfig(name)], InstancePlan(registry), make_tree())


def test_invalid_options_are_rejected_also_in_a_parent_rule(registry: Registry, make_tree: Any) -> None:
    parent = RuleConfig("tag", value="ns", options={"colour": "red"})
    with pytest.raises(OptionError, match="unknown option 'colour'"):
        PlacementChain([RuleConfig("user", parent=parent)], InstancePlan(registry), make_tree())


def test_a_value_is_accepted_on_every_rule(place: Any, make_tree: Any) -> None:
    assert place([{**USER, "value": "whatever"}], make_tree()).queue == "root.developer"


class Explosive(PlacementRule):
    """A rule that fails as its `name` says."""

    name = "explosive"

    def place(self, app: Application) -> str | None:
        """Raise an error."""
        raise KeyError("boom")


class Sloppy(PlacementRule):
    """A rule that returns another type."""

    name = "sloppy"

    def place(self, app: Application) -> str | None:
        """Return no text."""
        return 7  # type: ignore[return-value]


class Both:
    """A plugin that offers both rules."""

    @hookimpl
    def yunikorn_placement_rules(self) -> list[type[PlacementRule]]:
        """Return both rules."""
        return [Explosive, Sloppy]


@pytest.mark.parametrize(
    ("rule", "operation"),
    [
        ("explosive", "KeyError: 'boom'"),
        ("sloppy", "TypeError: it returned 7 instead of a queue name or None"),
    ],
)
def test_rule_that_raises_rejects_the_application_and_is_named(
    registry: Registry, make_tree: Any, make_app: Any, rule: str, operation: str
) -> None:
    assert registry.register(Both(), "both", "their-dist", "1.2")
    failures = PluginFailures()
    chain = PlacementChain(
        [RuleConfig(rule), RuleConfig("user", create=True)], InstancePlan(registry), make_tree(), failures
    )
    placement = placed_by(chain, make_app())
    assert placement.queue == ""
    assert placement.reason == (
        f"plugin {rule} of both (their-dist 1.2): placing application 'app-1': {operation}"
    )
    assert placed_by(chain, make_app(tags=FORCED)).queue == "root.developer"
    assert [(failure.message, failure.count) for failure in failures] == [(placement.reason, 2)]


def test_observer_receives_every_placement(registry: Registry, make_tree: Any, make_app: Any) -> None:
    chain = PlacementChain([], InstancePlan(registry), make_tree("root.a"))
    seen: list[tuple[str, str]] = []
    chain.observer = lambda app, placement: seen.append((app.id, placement.queue))
    for queue in ("root.a", "root.b"):
        placed_by(chain, make_app(id=queue[-1], queue_name=queue))
    assert seen == [("a", "root.a"), ("b", "")]
