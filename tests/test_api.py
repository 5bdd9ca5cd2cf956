"""The contract with plugin authors: the names in `yunikorn.api`, none of which may disappear."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import attrs
import pytest

import yunikorn_testing as testing
from yunikorn import api
from yunikorn.framework.hook_manager import HOOKS
from yunikorn.framework.kinds import ALL_KINDS, KINDS

VIEWS = {
    "Queue": (
        "allocated configured_max fair_max guaranteed is_leaf max parent path pending priority properties "
        "recent unused_by_siblings"
    ),
    "Application": (
        "allocated allocations allocations_by_node arrival fair_total groups id past pending priority queue "
        "queue_name state submitted tags user waiting_since"
    ),
    "Task": "app execution_timeout key originator placeholder priority resource tags task_group",
    "Ask": "created required_node",
    "Allocation": "created node placed uuid",
    "AskClass": "resource",
    "Node": "allocated allocations attributes available capacity id occupied",
    "QueueTree": "",
    "GangPart": "count resource task_group",
    "PlacedGang": "app parts size",
    "TopologyDomain": "children idle level name nodes parent size",
    "RunningCore": "",
    "Service": "core now",
}
PUBLIC = {
    "Command": ["command()"],
    "Door": ["start(service)", "stop()", "reload()", "unready()"],
    "AppSortPolicy": [
        *("key(app)", "admission_class(app)", "admission_limits(counts)", "subject(app)"),
        *("placed(task, node)", "released(task, node)", "node_added(node)", "node_removed(node)"),
    ],
    "QueueSortPolicy": ["key(queue)"],
    "NodeSortPolicy": [
        "placed(task, node)",
        "released(task, node)",
        "node_added(node)",
        "node_removed(node)",
    ],
    "PlacementRule": [],
    "Predicate": [
        "check(ask, node)",
        "prepare(ask)",
        "ask_class(ask)",
        "node_class(node)",
        "wanted(ask)",
        "placed(task, node)",
        "released(task, node)",
        "node_added(node)",
        "node_removed(node)",
        "domain(node)",
        "scope(ask, node)",
        "domain_in(node, scope)",
        "subjects(task)",
    ],
    "EventSink": ["send(batch)"],
    "UserGroupResolver": ["groups(user)"],
    "PreemptionPolicy": ["rank(victim, cause)", "protects(victim, cause)", "cost(victim, cause)"],
    "SubmitPolicy": ["submit(app)", "submit_ask(ask)"],
    "AdmissionPolicy": ["admit(app)"],
    "QuotaPolicy": ["quota(queue)"],
    "ReservationPolicy": [
        *("reserves_after(ask, delay)", "most_in(queue)", "most_of(app)", "lasts(ask)", "reason(ask)"),
        "rank_node(ask, node)",
    ],
    "PermitPolicy": [
        "permit(allocation)",
        "group(allocation)",
        "placed(task, node)",
        "released(task, node)",
        "node_added(node)",
        "node_removed(node)",
    ],
    "TopologySource": ["path(node)"],
    "GangPlacementPolicy": [
        *("rank(gang, domain)", "refuses(gang, domain)", "split(gang, part, count, room)"),
        *("score(gang, nodes)", "gives_up_after(gang, level, wait)"),
    ],
    "RunTimeEstimator": ["estimate(task, age)", "observe(task, seconds)"],
    "Plugin": ["opened(context)", "reloaded(context)", "closed()"],
}
VALUES = (
    *("Context", "Event", "PreemptionCause", "Resource", "ResourceManager", "Wait", "dotless", "hookimpl"),
    *("AskSubmission", "PastService", "Quota", "Refused", "Submission", "UsageView", "VictimUnit", "Where"),
    *("RunTime", "parse_quantity"),
)
TESTING = """
         AdmissionPolicyContract AllocationSample Amounts AppSortPolicyContract ApplicationSample
    AskSample Cluster     Clusters CommandContract DomainSample DoorContract EventSinkContract
    GangPartSample GangPlacementPolicyContract GangSample MakeScheduler
    NodeSample NodeSortPolicyContract PermitPolicyContract Placement     PlacementRuleContract
    PluginContract PredicateContract PreemptionPolicyContract QueueSample     QueueSortPolicyContract
    QueueTreeSample QuotaPolicyContract ReservationPolicyContract RunTimeEstimatorContract ServiceSample
    SubmitPolicyContract
    TopologySourceContract UserGroupResolverContract allocation application ask assert_node_order assert_order
    assert_pending_because assert_placed assert_queue assert_rejected_because foreign_task gang
    gang_part node queue registry_with submission topology
"""
"""All names in `yunikorn_testing`: a further name is a further promise, and added deliberately."""
OF_CLUSTER = """
    add advance change clock close events failures finish partition placements preempted queue_of reload
    remove rejected request run running scheduler state submit why withdraw
"""


def test_names_are_listed_and_sorted() -> None:
    assert api.__all__ == sorted(api.__all__)
    assert {*api.__all__} == {*VIEWS, *PUBLIC, *VALUES}
    assert all(hasattr(api, name) for name in api.__all__)


def test_public_names_of_the_test_kit() -> None:
    assert testing.__all__ == TESTING.split()
    assert all(hasattr(testing, name) for name in testing.__all__)
    cluster = testing.Clusters()()
    public = {name for name in dir(cluster) if not name.startswith("_")}
    of_resource_manager = {"recv_update_response", "send_events"}
    assert public == {*OF_CLUSTER.split(), *of_resource_manager}
    for base in PUBLIC:
        assert base == "Plugin" or hasattr(testing, f"{base}Contract")


@pytest.mark.parametrize("view", VIEWS)
def test_views_keep_their_read_only_properties(view: str) -> None:
    members = {name: value for name, value in vars(getattr(api, view)).items() if name in VIEWS[view].split()}
    assert sorted(members) == VIEWS[view].split()
    for name, member in members.items():
        assert isinstance(member, property), name
        assert member.fset is None
        assert member.__doc__


@pytest.mark.parametrize("base", PUBLIC)
def test_bases_keep_their_methods(base: str) -> None:
    cls = getattr(api, base)
    for signature in PUBLIC[base]:
        name = signature.partition("(")[0]
        arguments = [
            argument for argument in inspect.signature(getattr(cls, name)).parameters if argument != "self"
        ]
        assert f"{name}({', '.join(arguments)})" == signature


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.id)
def test_abstract_base_reports_its_missing_method(kind: object) -> None:
    base = getattr(kind, "base")  # noqa: B009
    method = getattr(base(), getattr(kind, "method"), None)  # noqa: B009
    if method is None:
        assert base in (api.NodeSortPolicy, api.PlacementRule)
        return
    with pytest.raises(TypeError, match=f"{base.__name__} has no {method.__name__}"):
        method(*([None] * len(inspect.signature(method).parameters)))


def test_context_and_event_are_values() -> None:
    event = api.Event("APP", "app-1", change="ADD")
    assert event == api.Event("APP", "app-1", change="ADD")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        event.type = "NODE"  # type: ignore[misc]
    assert api.Context("default", lambda: 7).now() == 7


@pytest.mark.parametrize(("name", "level"), [("a.b", "a_dot_b"), ("plain", "plain"), ("..", "_dot__dot_")])
def test_dotless_returns_one_level(name: str, level: str) -> None:
    assert api.dotless(name) == level


def test_hooks_document_their_result() -> None:
    for kind in ALL_KINDS:
        text = inspect.getdoc(getattr(HOOKS, kind.hook)) or ""
        assert f"Return the classes of a {kind.title}" in text
        assert f"{kind.method}({', '.join(kind.arguments)})" in text


def test_contract_imports_are_limited() -> None:
    imported = {
        node.module
        for path in Path(inspect.getfile(api)).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module is not None
    }
    ours = {module for module in imported if module.startswith("yunikorn")}
    assert {module for module in ours if not module.startswith("yunikorn.api.")} == {
        "yunikorn.quantities",
        "yunikorn.resources",
    }
