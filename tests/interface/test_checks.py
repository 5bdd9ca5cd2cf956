"""Invalid entries of messages: each is answered with the reason, and does not affect the others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.kit import RM, with_plugins
from yunikorn.api import Ask, Node, Predicate
from yunikorn.errors import UsageError
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    AllocationReleasesRequest,
    NewNodeInfo,
    NodeAction,
    PreemptionPolicy,
    RegisterResourceManagerRequest,
    RemoveApplicationRequest,
    TerminationType,
    UpdateNodeInfo,
    UpdateRequest,
    UserGroupInformation,
)
from yunikorn.resources import INT64_MAX, Resource

LONG = "x" * 1025
TOO_LONG = "has 1025 bytes: a name has at most 1024"
SURROGATE = "\ud800"
HALVES = "is not valid text: it contains surrogates (halves of characters)"
ONE = Resource(vcore=1)
HUGE = Resource(vcore=2**63)
NOT_64 = "vcore is 9223372036854775808, not a whole number of 64 bits"


def loose(cls: type[Any], *arguments: Any, **named: Any) -> Any:
    """Return an entry with values of undeclared types."""
    return cls(*arguments, **named)


APPLICATIONS = [
    (loose(AddApplicationRequest, LONG), f"applicationID {TOO_LONG}"),
    (loose(AddApplicationRequest, "é" * 513), "applicationID has 1026 bytes: a name has at most 1024"),
    (loose(AddApplicationRequest, "a\nb"), r"applicationID has control characters: a\nb"),
    (loose(AddApplicationRequest, "a\x1b[2J"), r"applicationID has control characters: a\x1b[2J"),
    (loose(AddApplicationRequest, SURROGATE), f"applicationID {HALVES}"),
    (loose(AddApplicationRequest, 7), "applicationID is int, not text"),
    (loose(AddApplicationRequest, None), "applicationID is NoneType, not text"),
    (loose(AddApplicationRequest, "a", LONG), f"queueName {TOO_LONG}"),
    (loose(AddApplicationRequest, "a", "", 3), "partitionName is int, not text"),
    (loose(AddApplicationRequest, "a", ugi=None), "ugi is NoneType, not UserGroupInformation"),
    (loose(AddApplicationRequest, "a", ugi=loose(UserGroupInformation, 5)), "user is int, not text"),
    (
        loose(AddApplicationRequest, "a", ugi=loose(UserGroupInformation, "u", "group")),
        "ugi.groups are str, not a list of names",
    ),
    (
        loose(AddApplicationRequest, "a", ugi=loose(UserGroupInformation, "u", ["g", None])),
        "a group is NoneType, not text",
    ),
    (loose(AddApplicationRequest, "a", tags=[]), "tags are list, not a mapping of text to text"),
    (loose(AddApplicationRequest, "a", tags={"k": 1}), "tags['k'] is int, not text"),
    (loose(AddApplicationRequest, "a", tags={1: "v"}), "a name in tags is int, not text"),
    (loose(AddApplicationRequest, "a", tags={LONG: "v"}), f"a name in tags {TOO_LONG}"),
    (loose(AddApplicationRequest, "a", tags={"k": SURROGATE}), f"tags['k'] {HALVES}"),
    (
        loose(AddApplicationRequest, "a", execution_timeout_ms=1.5),
        f"executionTimeoutMilliSeconds is float, not a whole number from {-(2**63)} to {INT64_MAX}",
    ),
    (loose(AddApplicationRequest, "a", placeholder_ask=HUGE), f"placeholderAsk: {NOT_64}"),
    (loose(AddApplicationRequest, "a", placeholder_ask={}), "placeholderAsk is dict, not a Resource"),
    (loose(AddApplicationRequest, "a", gang_scheduling_style=1), "gangSchedulingStyle is int, not text"),
]


@pytest.mark.parametrize(("bad", "reason"), APPLICATIONS, ids=lambda value: "")
def test_applications(bad: AddApplicationRequest, reason: str) -> None:
    rm = RM()
    good = AddApplicationRequest("good", "root.a", ugi=UserGroupInformation("user"))
    rm.update(new_applications=[bad, good])
    received = rm.take_response()
    assert [one.reason for one in received.rejected_applications] == [reason]
    assert [one.application_id for one in received.accepted_applications] == ["good"]


ASKS = [
    (
        loose(AllocationAsk, "k", "app", resource_ask=ONE, preemption_policy=True),
        "preemptionPolicy is bool, not PreemptionPolicy",
    ),
    (
        loose(AllocationAsk, "k", "app", resource_ask=ONE, preemption_policy=loose(PreemptionPolicy, "no")),
        "allowPreemptSelf is str, not true or false",
    ),
    (loose(AllocationAsk, LONG, "app"), f"allocationKey {TOO_LONG}"),
    (loose(AllocationAsk, b"key", "app"), "allocationKey is bytes, not text"),
    (loose(AllocationAsk, "k", LONG), f"applicationID {TOO_LONG}"),
    (loose(AllocationAsk, "k", "app", "\0"), r"partitionName has control characters: \x00"),
    (loose(AllocationAsk, "k", "app", resource_ask=None), "resourceAsk is NoneType, not a Resource"),
    (loose(AllocationAsk, "k", "app", resource_ask=HUGE), f"resourceAsk: {NOT_64}"),
    (
        loose(AllocationAsk, "k", "app", resource_ask=Resource(vcore=10**5000)),
        "resourceAsk: vcore is a number of 16610 bits, not a whole number of 64 bits",
    ),
    (
        loose(AllocationAsk, "k", "app", resource_ask=loose(Resource, vcore=1.5)),
        "resourceAsk: vcore is float, not a whole number of 64 bits",
    ),
    (
        loose(AllocationAsk, "k", "app", resource_ask=loose(Resource, vcore=True)),
        "resourceAsk: vcore is bool, not a whole number of 64 bits",
    ),
    (
        loose(AllocationAsk, "k", "app", resource_ask=Resource({"": 1})),
        "a resource type of resourceAsk is empty",
    ),
    (loose(AllocationAsk, "k", "app", resource_ask=Resource(vcore=-1)), "ask contains negative resources"),
    (loose(AllocationAsk, "k", "app", resource_ask=Resource()), "ask contains no resources"),
    (
        loose(AllocationAsk, "k", "app", resource_ask=ONE, max_allocations=2**31),
        "maxAllocations is 2147483648, not a whole number from -2147483648 to 2147483647",
    ),
    (
        loose(AllocationAsk, "k", "app", resource_ask=ONE, max_allocations=0),
        "maxAllocations is 0, it must be 1 or more",
    ),
    (
        loose(AllocationAsk, "k", "app", resource_ask=ONE, priority=2**31),
        "priority 2147483648 is out of range",
    ),
    (
        loose(AllocationAsk, "k", "app", resource_ask=ONE, priority="high"),
        f"priority is str, not a whole number from {-(2**63)} to {INT64_MAX}",
    ),
    (loose(AllocationAsk, "k", "app", resource_ask=ONE, tags={"k": None}), "tags['k'] is NoneType, not text"),
    (loose(AllocationAsk, "k", "app", resource_ask=ONE, task_group_name=LONG), f"taskGroupName {TOO_LONG}"),
    (
        loose(AllocationAsk, "k", "app", resource_ask=ONE, priority_class_name=5),
        "priorityClassName is int, not text",
    ),
]


@pytest.mark.parametrize(("bad", "reason"), ASKS, ids=lambda value: "")
def test_asks(bad: AllocationAsk, reason: str) -> None:
    rm = RM()
    rm.node(vcore=1)
    rm.app()
    rm.update(asks=[bad, AllocationAsk("good", "app", resource_ask=ONE)])
    assert [one.reason for one in rm.take_response().rejected_allocations] == [reason]
    assert rm.schedule() == [("app", "good", "n1")]


ALLOCATIONS = [
    (
        loose(Allocation, "k", "app", "u", "n1", ONE, priority_class_name=5),
        "priorityClassName is int, not text",
    ),
    (
        loose(Allocation, "k", "app", "u", "n1", ONE, originator=None),
        "originator is NoneType, not true or false",
    ),
    (loose(Allocation, LONG, "app", "u", "n1", ONE), f"allocationKey {TOO_LONG}"),
    (loose(Allocation, "", "app", "u", "n1", ONE), "an allocation needs an allocation key"),
    (loose(Allocation, "k", "app", LONG, "n1", ONE), f"UUID {TOO_LONG}"),
    (loose(Allocation, "k", "app", None, "n1", ONE), "UUID is NoneType, not text"),
    (loose(Allocation, "k", "app", "u", "n1", HUGE), f"resourcePerAlloc: {NOT_64}"),
    (
        loose(Allocation, "k", "app", "u", "n1", Resource(vcore=-1)),
        "allocation contains no resources or negative resources",
    ),
    (
        loose(Allocation, "k", "app", "u", "n1", ONE, priority=None),
        "priority is NoneType, not a whole number from -2147483648 to 2147483647",
    ),
    (
        loose(Allocation, "k", "app", "u", "n1", ONE, allocation_tags={"foreign": 1}),
        "allocationTags['foreign'] is int, not text",
    ),
]


@pytest.mark.parametrize("as_existing", [True, False])
@pytest.mark.parametrize(("bad", "reason"), ALLOCATIONS, ids=lambda value: "")
def test_allocations(bad: Allocation, reason: str, as_existing: bool) -> None:
    rm = RM()
    rm.app()
    good = Allocation("good", "app", "g", "n1", ONE)
    if as_existing:
        rm.node(vcore=9, existing=[bad, good])
    else:
        rm.node(vcore=9)
        rm.update(allocations=[bad, good])
    assert [one.reason for one in rm.take_response().rejected_allocations] == [reason]
    assert list(rm.find_app().allocations) == ["g"]


NODES = [
    (loose(NewNodeInfo, LONG), f"nodeID {TOO_LONG}"),
    (loose(NewNodeInfo, 1), "nodeID is int, not text"),
    (loose(NewNodeInfo, "n", None), "attributes are NoneType, not a mapping of text to text"),
    (loose(NewNodeInfo, "n", {"zone": 1}), "attributes['zone'] is int, not text"),
    (loose(NewNodeInfo, "n", {}, HUGE), f"schedulableResource: {NOT_64}"),
    (loose(NewNodeInfo, "n", {}, Resource(vcore=-1)), "node has negative resources"),
    (loose(NewNodeInfo, "n", {}, ONE, schedulable="no"), "schedulable is str, not true or false"),
    (loose(NewNodeInfo, "n", {}, ONE, None), "occupiedResource is NoneType, not a Resource"),
]


@pytest.mark.parametrize(("bad", "reason"), NODES, ids=lambda value: "")
def test_nodes(bad: NewNodeInfo, reason: str) -> None:
    rm = RM()
    rm.update(new_schedulable_nodes=[bad, NewNodeInfo("good", {}, ONE)])
    received = rm.take_response()
    assert [one.reason for one in received.rejected_nodes] == [reason]
    assert [one.node_id for one in received.accepted_nodes] == ["good"]
    assert rm.at_work().partition.cluster.total == {"vcore": 1}


NODE_UPDATES = [
    (loose(UpdateNodeInfo, None), "nodeID is NoneType, not text"),
    (
        loose(UpdateNodeInfo, "n1", 9),
        "action is 9, not one of UPDATE, DRAIN_NODE, DECOMMISSION, DRAIN_TO_SCHEDULABLE, UNKNOWN",
    ),
    (loose(UpdateNodeInfo, "n1", attributes={1: ""}), "a name in attributes is int, not text"),
    (loose(UpdateNodeInfo, "n1", schedulable_resource=HUGE), f"schedulableResource: {NOT_64}"),
    (loose(UpdateNodeInfo, "n1", occupied_resource={}), "occupiedResource is dict, not a Resource"),
    (loose(UpdateNodeInfo, "n1", occupied_resource=Resource(vcore=-1)), "node has negative resources"),
]


@pytest.mark.parametrize(("bad", "reason"), NODE_UPDATES, ids=lambda value: "")
def test_node_updates(bad: UpdateNodeInfo, reason: str) -> None:
    rm = RM()
    rm.node(vcore=1)
    rm.update(updated_nodes=[bad, UpdateNodeInfo("n1", schedulable_resource=Resource(vcore=2))])
    assert [one.reason for one in rm.take_response().failed_node_updates] == [reason]
    assert rm.at_work().partition.cluster.total == {"vcore": 2}


KINDS = ", ".join(kind.name for kind in TerminationType)
RELEASES = [
    (loose(AllocationRelease, LONG), f"applicationID {TOO_LONG}"),
    (loose(AllocationRelease, "app", 5), "UUID is int, not text"),
    (loose(AllocationRelease, "app", "u", "", 1), f"terminationType is 1, not one of {KINDS}"),
    (loose(AllocationAskRelease, "app", SURROGATE), f"allocationKey {HALVES}"),
    (loose(AllocationAskRelease, "app", "k", "", None), f"terminationType is NoneType, not one of {KINDS}"),
]


@pytest.mark.parametrize(("bad", "reason"), RELEASES, ids=lambda value: "")
def test_releases(bad: AllocationRelease | AllocationAskRelease, reason: str) -> None:
    rm = RM()
    rm.node(vcore=2)
    rm.app()
    rm.ask(count=2, vcore=1)
    rm.schedule()
    rm.take_response()
    good = AllocationRelease("app", "ask#1")
    if isinstance(bad, AllocationRelease):
        rm.update(releases=AllocationReleasesRequest([bad, good]))
    else:
        rm.update(releases=AllocationReleasesRequest([good], [bad]))
    received = rm.take_response()
    assert [one.reason for one in received.rejected_allocations] == [f"{reason}: nothing was released"]
    assert [one.uuid for one in received.released_allocations] == ["ask#1"]


def test_a_removal() -> None:
    rm = RM()
    rm.app()
    rm.update(remove_applications=[loose(RemoveApplicationRequest, 1), RemoveApplicationRequest("app")])
    (refused,) = rm.entries("rejected_applications")
    assert refused.reason == "applicationID is int, not text: nothing was removed"
    assert not rm.at_work().partition.applications


def test_rejection_names_its_entry_as_far_as_known() -> None:
    rm = RM()
    rm.update(asks=[loose(AllocationAsk, LONG, SURROGATE), loose(AllocationAsk, 5, "a")])
    first, second = rm.entries("rejected_allocations")
    assert (first.allocation_key, first.application_id) == (LONG, r"\ud800")
    assert (second.allocation_key, second.application_id) == ("", "a")


def test_valid_entries() -> None:
    """Names in any script, up to the maximum length, and any text as the value of a tag."""
    rm = RM()
    rm.node("n1", {"zone": "z\n" * 5000}, vcore=INT64_MAX)
    name = "名" * 341
    rm.app_tagged(name, "root.a", {"note": "two\nlines \x1b and \U0001f984"})
    rm.ask(name, name, vcore=INT64_MAX)
    assert rm.schedule() == [(name, name, "n1")]


def test_sums_over_64_bits_are_shown_clamped_and_kept_exactly() -> None:
    rm = RM()
    for name in ("n1", "n2", "n3"):
        rm.node(name, vcore=INT64_MAX)
    assert rm.at_work().partition.cluster.total == {"vcore": INT64_MAX}
    rm.change_node("n1", NodeAction.DECOMMISSION)
    rm.change_node("n2", vcore=1)
    assert rm.at_work().partition.cluster.total == {"vcore": INT64_MAX}
    rm.change_node("n3", NodeAction.DECOMMISSION)
    assert rm.at_work().partition.cluster.total == {"vcore": 1}


def test_pending_sums_may_exceed_64_bits() -> None:
    rm = RM()
    rm.app()
    rm.ask(count=3, vcore=INT64_MAX)
    rm.ask(key="other", vcore=1)
    assert rm.find_queue().pending == {"vcore": 3 * INT64_MAX + 1}
    rm.release_ask(key="ask")
    assert rm.find_queue().pending == {"vcore": 1}


# -- refused as a whole -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"asks": [None]}, r"asks\[0\] is NoneType, not AllocationAsk"),
        ({"asks": AllocationAsk("k", "app")}, "asks is AllocationAsk, not a list"),
        (
            {"new_applications": [AllocationAsk("k")]},
            r"new_applications\[0\] is AllocationAsk, not AddApplicat",
        ),
        ({"releases": None}, "releases is NoneType, not AllocationReleasesRequest"),
        (
            {"releases": AllocationReleasesRequest(loose(list, ["x"]), [])},
            r"releases.allocations_to_release\[0\] is str, not AllocationRelease",
        ),
        (
            {"new_schedulable_nodes": [loose(NewNodeInfo, "n", existing_allocations=[1])]},
            r"new_schedulable_nodes\[0\].existing_allocations\[0\] is int, not Allocation",
        ),
        ({"asks": [None] * 7}, "and 2 more$"),
    ],
)
def test_update_with_wrong_types_raises_without_effect(entries: dict[str, Any], message: str) -> None:
    rm = RM()
    good = AddApplicationRequest("good", "root.a", ugi=UserGroupInformation("user"))
    with pytest.raises(UsageError, match=f"no entry of this update was applied: .*{message}"):
        rm.update(**{"new_applications": [good], **entries})
    assert not rm.at_work().partition.applications
    assert rm.responses == []


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (loose(RegisterResourceManagerRequest, LONG), f"rm_id {TOO_LONG}"),
        (loose(RegisterResourceManagerRequest, None), "rm_id is NoneType, not text"),
        (loose(RegisterResourceManagerRequest, "r\n"), "rm_id has control characters"),
        (
            loose(RegisterResourceManagerRequest, "r", 1, None),
            "version is int, not text; policy_group is NoneType",
        ),
        (
            loose(RegisterResourceManagerRequest, "r", build_info={"a": 1}),
            r"build_info\['a'\] is int, not text",
        ),
        (loose(RegisterResourceManagerRequest, "r", config={}), "config is dict, not text"),
    ],
    ids=lambda value: "",
)
def test_an_invalid_registration_raises_all_its_errors(
    request_: RegisterResourceManagerRequest, message: str
) -> None:
    rm = RM()
    with pytest.raises(UsageError, match=f"invalid registration: {message}"):
        rm.scheduler.register_resource_manager(request_, rm)
    assert [status.rm_id for status in rm.scheduler.sessions()] == ["rm"]


# -- calls at the wrong time -------------------------------------------------------------------------------


def test_calls_from_plugins_during_a_decision_raise() -> None:
    calls: list[str] = []

    class Meddler(Predicate):
        name = "meddler"

        def check(self, ask: Ask, node: Node) -> str | None:
            calls.append(node.id)
            rm.update(asks=[AllocationAsk("more", "app", resource_ask=ONE)])
            return None

    rm = RM(
        '{"partitions": [{"name": "default", "predicates": ["meddler"],'
        ' "queues": [{"name": "root", "submitacl": "*", "queues": [{"name": "a"}]}]}]}',
        with_plugins(predicates=[Meddler]),
    )
    rm.node(vcore=1)
    rm.app()
    rm.ask(vcore=1)
    assert rm.schedule() == []
    assert calls
    (fault,) = rm.failures()
    assert (
        "update was called while the core is making decisions: a predicate or another plugin must not call"
        in fault
    )
    assert list(rm.find_app().asks) == ["ask"]


def test_the_scheduler_can_be_called_again_after_a_call_that_failed() -> None:
    rm = RM()
    with pytest.raises(UsageError):
        rm.update(asks=[None])
    rm.app()
    assert rm.state() == "New"


def test_an_update_for_an_rm_that_is_not_registered_is_an_error() -> None:
    with pytest.raises(UsageError, match="no resource manager '' is registered; registered: rm"):
        RM().scheduler.update(UpdateRequest(""))
