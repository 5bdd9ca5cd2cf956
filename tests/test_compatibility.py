"""Differences that docs/compatibility.md lists exist, and so do the tests that docs/statements.md names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, document, partition, queue, with_plugins
from yunikorn.api import UserGroupResolver
from yunikorn.errors import ConfigError, UsageError
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    NewNodeInfo,
    NodeAction,
    PreemptionPolicy,
    TerminationType,
    UpdateRequest,
    UserGroupInformation,
)
from yunikorn.resources import Resource

TESTS = Path(__file__).parent
NAMING = (TESTS.parent / "docs" / "statements.md").read_text("utf-8")
FORCED = {"application.create.force": "true"}
ONE_CORE = Resource(vcore=1)


def test_the_tests_that_the_page_names_exist() -> None:
    tests = "".join(path.read_text("utf-8") for path in TESTS.rglob("test_*.py"))
    named, existing = (
        set(re.findall(r"`(test_\w+)`", NAMING)),
        set(re.findall(r"\bdef (test_\w+)", tests)),
    )
    assert named
    assert not named - existing


# -- configuration and the design document ----------------------------------------------------------------


@pytest.mark.parametrize("key", ["capacity", "max-capacity"])
def test_the_capacities_of_the_design_document_are_unknown_keys(key: str) -> None:
    with pytest.raises(ConfigError, match="unknown key"):
        RM(configuration(queue("a", **{key: {"vcore": 1}})))


@pytest.mark.parametrize("kind", ["guaranteed", "max"])
def test_root_has_neither_guarantee_nor_max(kind: str) -> None:
    root = {"name": "root", "resources": {kind: {"vcore": 1}}}
    with pytest.raises(ConfigError, match="resources"):
        RM(document({"name": "default", "queues": [root]}))


def test_fixed_rule_needs_a_queue_that_exists_or_can_be_created() -> None:
    rule = {"name": "fixed", "value": "root.missing"}
    with pytest.raises(ConfigError, match=r"queue root\.missing does not exist"):
        RM(configuration(queue("a"), placementrules=[rule]))
    rm = RM(configuration(queue("a"), placementrules=[{**rule, "create": True}]))
    rm.app("app", "")
    assert rm.find_app().chain[0].path == "root.missing"


# -- reload -------------------------------------------------------------------------------------------


def test_a_reload_with_one_error_changes_nothing() -> None:
    rm = RM(configuration(queue("a")))
    with pytest.raises(ConfigError, match="no placement rule is called 'nope'"):
        rm.reload(
            configuration(queue("a", resources={"max": {"vcore": 1}}), placementrules=[{"name": "nope"}])
        )
    assert rm.find_queue().max is None
    rm.app()
    assert rm.entries("accepted_applications")


def test_queue_changes_its_type_only_when_empty() -> None:
    rm = RM(configuration(queue("a"), queue("p", queue("b"))))
    rm.app("app", "root.a")
    with pytest.raises(ConfigError, match=r"root\.a cannot change its type now: it has 1 application"):
        rm.reload(configuration(queue("a", queue("c")), queue("p", queue("b"))))
    with pytest.raises(ConfigError, match=r"root\.p cannot change its type now: it has 1 child queue"):
        rm.reload(configuration(queue("a"), queue("p")))
    rm.reload(configuration(queue("a"), queue("p", parent=True)))
    rm.pass_time(10)
    rm.reload(configuration(queue("a"), queue("p")))
    assert rm.find_queue("root.p").is_leaf


def test_removed_partition_fails_its_applications_and_is_gone() -> None:
    rm = RM(document(partition(queue("a")), partition(queue("a"), name="lab")))
    rm.app("app", partition_name="lab")
    rm.ask("app", partition_name="lab", vcore=1)
    rm.reload(configuration(queue("a")))
    assert [update.state for update in rm.entries("updated_applications")] == [
        "Accepted",
        "Failing",
        "Failed",
    ]
    rm.app("late", partition_name="lab")
    assert rm.entries("rejected_applications")[0].reason == "failed to find partition lab"


def test_parent_keeps_the_inherited_template_through_a_reload() -> None:
    rules = [{"name": "provided", "create": True}]
    template = {"resources": {"max": {"vcore": 3}}}
    root = {"name": "root", "submitacl": "*", "childtemplate": template, "queues": [queue("p", parent=True)]}
    text = document({"name": "default", "placementrules": rules, "queues": [root]})
    rm = RM(text)
    assert rm.reload(text + " ")
    rm.app("app", "root.p.new")
    assert rm.find_queue("root.p.new").max == {"vcore": 3000}


# -- placement and users -------------------------------------------------------------------------------


def test_failing_rule_does_not_keep_a_forced_application_from_the_recovery_queue() -> None:
    rm = RM()
    rm.app_tagged("forced", "root.a..b", FORCED)
    rm.app("free", "root.a..b")
    assert rm.find_app("forced").chain[0].path == "root.@recovery@"
    assert "one of its levels is empty" in rm.entries("rejected_applications")[0].reason


def test_only_the_first_application_enters_the_recovery_queue_by_name() -> None:
    rm = RM(configuration(queue("a"), placementrules=[{"name": "provided", "create": True}]))
    rm.app("first", "root.@recovery@")
    rm.app("second", "root.@recovery@")
    rm.app_tagged("forced", "root.@recovery@", FORCED)
    assert [one.application_id for one in rm.entries("accepted_applications")] == ["first", "forced"]


def test_root_as_a_queue_name_is_root_itself() -> None:
    rm = RM(configuration(queue("a"), placementrules=[{"name": "provided", "create": True}]))
    rm.app("app", "root")
    assert "queue root is a parent queue" in rm.entries("rejected_applications")[0].reason


def test_root_as_a_fixed_parent_is_directly_below_root() -> None:
    rule = {"name": "user", "create": True, "parent": {"name": "fixed", "value": "root"}}
    rm = RM(configuration(queue("a"), placementrules=[rule]))
    rm.app("app", "", user="ann")
    assert rm.find_app().chain[0].path == "root.ann"


def test_namespace_quota_sets_only_the_given_types() -> None:
    template = {"resources": {"max": {"vcore": 5}, "guaranteed": {"vcore": 1}}}
    rules = [{"name": "provided", "create": True}]
    rm = RM(configuration(queue("p", parent=True, childtemplate=template), placementrules=rules))
    quota = '{"resources": {"vcore": {"value": 7}}}'
    rm.app_tagged("app", "root.p.new", {"namespace.resourcequota": quota})
    made = rm.find_queue("root.p.new")
    assert (made.max, made.guaranteed) == ({"vcore": 7}, {"vcore": 1000})


@attrs.define(eq=False)
class Stranger(UserGroupResolver):
    """Has no groups for any user."""

    name = "stranger"
    asked: int = attrs.field(default=0, init=False)

    def groups(self, user: str) -> None:
        """Return no groups."""
        self.asked += 1


def test_each_partition_has_its_resolver_and_failures_expire_after_thirty_seconds() -> None:
    partitions = (
        partition(queue("a"), usergroupresolver={"type": "stranger"}),
        partition(queue("a"), name="lab"),
    )
    rm = RM(document(*partitions), with_plugins(user_group_resolvers=[Stranger]))
    resolver = rm.at_work().policies.users.resolver
    assert isinstance(resolver, Stranger)
    rm.app("there", groups=(), partition_name="lab")
    assert resolver.asked == 0
    for seconds, asked in ((0, 1), (29, 1), (1, 2)):
        rm.pass_time(seconds)
        rm.app(f"after-{seconds}", groups=())
        assert resolver.asked == asked
    assert [one.application_id for one in rm.entries("accepted_applications")] == ["there"]


def test_user_name_is_checked_even_without_groups() -> None:
    rm = RM()
    rm.app("app", user="no name", groups=())
    assert "invalid username 'no name'" in rm.entries("rejected_applications")[0].reason


def test_a_resolver_that_is_not_installed_refuses_the_configuration() -> None:
    for missing in ("nothing-like-it", "radius"):
        with pytest.raises(ConfigError, match=f"no user-group resolver is called '{missing}'"):
            RM(configuration(usergroupresolver={"type": missing}))
        rm = RM(configuration(usergroupresolver={"type": missing, "required": False}))
        rm.app("app", groups=())
        assert rm.find_app("app").groups == ("user",)


# -- queues, order, states ----------------------------------------------------------------------------


def test_zero_amount_requests_nothing() -> None:
    rm = RM(configuration(queue("a", resources={"max": {"gpu": 0, "vcore": 1}})))
    rm.node(vcore=10)
    rm.app()
    rm.ask(vcore=1, gpu=0, disk=0)
    assert rm.schedule() == [("app", "ask", "n1")]


def test_fair_applications_share_the_cluster() -> None:
    rm = RM(configuration(queue("a", properties={"application.sort.policy": "fair"})))
    rm.node(vcore=10, memory=1000)
    rm.app("cores")
    rm.app("bytes")
    rm.ask("cores", vcore=2)
    rm.ask("bytes", memory=100)
    rm.schedule()
    # A hundred bytes are a tenth of the memory, two vcores a fifth of the vcores.
    rm.ask("cores", "more", vcore=1)
    rm.ask("bytes", "more", memory=1)
    assert [app for app, _, _ in rm.schedule(1)] == ["bytes"]


def test_foreign_usage_changes_the_node_order() -> None:
    rm = RM()
    rm.node("n1", vcore=10)
    rm.node("n2", vcore=10)
    rm.change_node("n1", occupied={"vcore": 5})
    rm.app()
    rm.ask(vcore=1)
    assert rm.schedule() == [("app", "ask", "n2")]


def test_application_starts_and_completes_even_if_everything_is_released_at_once() -> None:
    rm = RM()
    rm.node(vcore=2)
    rm.app()
    rm.ask(count=2, vcore=1)
    rm.schedule(1)
    assert rm.state() == "Starting"
    rm.schedule()
    rm.release()
    assert rm.state() == "Completing"
    rm.pass_time(30)
    assert rm.state() == "Completed"
    rm.app()
    assert rm.state() == "New"


def test_only_cores_and_memory_count_in_the_order_of_nodes() -> None:
    for weights, first in ((None, "n1"), ({"gpu": 1.0}, "n2")):
        policy = {"type": "fair", **({"resourceweights": weights} if weights else {})}
        rm = RM(configuration(queue("a"), nodesortpolicy=policy))
        rm.node("n1", vcore=10, memory=10, gpu=4, occupied={"gpu": 3})
        rm.node("n2", vcore=10, memory=10, gpu=4, occupied={"vcore": 1})
        rm.app()
        rm.ask(vcore=1)
        assert rm.schedule() == [("app", "ask", first)]


# -- reservations -------------------------------------------------------------------------------------


def test_ask_class_has_one_reservation_however_many_asks_are_pending() -> None:
    rm = RM()
    for node_id in ("n1", "n2"):
        rm.node(node_id, vcore=4)
    rm.app()
    rm.ask(count=8, vcore=1)
    rm.ask(key="big", count=2, vcore=3)
    rm.schedule()
    rm.pass_time(2)
    rm.schedule()
    reserved = [[ask.key for ask in rm.find_node(node_id).reservations] for node_id in ("n1", "n2")]
    assert sorted(reserved) == [[], ["big"]]


def test_a_request_reaches_the_node_that_it_requires_even_while_it_drains() -> None:
    rm = RM()
    rm.node(vcore=1)
    rm.change_node("n1", NodeAction.DRAIN_NODE)
    rm.app()
    rm.ask(vcore=1, tags={"yunikorn.apache.org/requiredNode": "n1"})
    assert rm.schedule() == [("app", "ask", "n1")]


def test_a_node_that_is_drained_loses_its_reservation() -> None:
    rm = RM()
    rm.node("n1", vcore=4)
    rm.app()
    rm.ask(vcore=2)
    rm.ask(key="big", vcore=3)
    rm.schedule()
    rm.pass_time(2)
    rm.schedule()
    assert [ask.key for ask in rm.find_node("n1").reservations] == ["big"]
    rm.change_node("n1", NodeAction.DRAIN_NODE)
    assert not rm.find_node("n1").reservations


# -- interface and nodes ------------------------------------------------------------------------------


def test_replicas_are_named_after_their_ask_and_the_ask_ends_with_them() -> None:
    rm = RM()
    rm.node(vcore=3)
    rm.app()
    rm.ask(count=3, vcore=1)
    rm.schedule(1)
    rm.ask(count=1, vcore=1)
    rm.schedule()
    assert list(rm.running) == ["ask#1", "ask#2"]
    assert "ask" in rm.find_app().asks
    for uuid in list(rm.running):
        rm.release(uuid=uuid)
    assert rm.find_app().asks == {}


def test_one_update_may_contain_an_application_and_its_allocations() -> None:
    rm = RM()
    running = Allocation("k", "app", uuid="u", resource_per_alloc=ONE_CORE)
    rm.scheduler.update(
        UpdateRequest(
            "rm",
            new_schedulable_nodes=[NewNodeInfo("n1", {}, ONE_CORE, existing_allocations=[running])],
            new_applications=[AddApplicationRequest("app", "root.a", ugi=UserGroupInformation("ann"))],
        )
    )
    assert rm.find_app().allocated == {"vcore": 1}
    assert rm.entries("new_allocations") == []


def test_expired_allocation_counts_as_used_until_the_rm_confirms() -> None:
    rm = RM()
    rm.node(vcore=1)
    owner = UserGroupInformation("ann")
    rm.update(
        new_applications=[AddApplicationRequest("short", "root.a", ugi=owner, execution_timeout_ms=2000)]
    )
    rm.ask("short", vcore=1)
    rm.app()
    rm.ask(vcore=1)
    assert rm.schedule() == [("short", "ask", "n1")]
    rm.pass_time(2)
    (reported,) = rm.entries("released_allocations")
    assert (reported.allocation_key, reported.termination_type) == ("ask", TerminationType.TIMEOUT)
    assert (rm.state("short"), rm.schedule()) == ("Failing", [])
    rm.confirm()
    assert (rm.state("short"), rm.schedule()) == ("Failed", [("app", "ask", "n1")])


def test_resized_allocation_frees_resources_and_moves_the_node_in_its_order() -> None:
    rm = RM()
    rm.node("n1", vcore=4)
    rm.node("n2", vcore=4)
    rm.app()
    rm.ask(key="k1", vcore=3)
    rm.ask(key="k2", vcore=2)
    assert rm.schedule() == [("app", "k1", "n1"), ("app", "k2", "n2")]
    rm.update(allocations=[Allocation("k1", "app", node_id="n1", resource_per_alloc=ONE_CORE)])
    rm.ask(key="next", vcore=1)
    assert rm.schedule() == [("app", "next", "n1")]
    rm.update(allocations=[Allocation("k2", "app", node_id="n1", resource_per_alloc=ONE_CORE)])
    assert "is on node n2 and cannot move to n1" in rm.entries("rejected_allocations")[0].reason


def test_unknown_release_is_answered_and_counted() -> None:
    rm = RM()
    rm.app()
    rm.release(uuid="ask#7")
    (answer,) = rm.entries("released_allocations")
    assert answer.termination_type == TerminationType.STOPPED_BY_RM
    assert answer.message == "allocation 'ask#7' is unknown or no longer exists: nothing was released"
    assert rm.at_work().partition.unknown_releases.releases == 1


def test_a_node_that_does_not_drain_cannot_be_made_schedulable() -> None:
    rm = RM()
    rm.node(vcore=1)
    rm.change_node("n1", NodeAction.DRAIN_TO_SCHEDULABLE)
    (failed,) = rm.entries("failed_node_updates")
    assert (failed.node_id, failed.reason) == (
        "n1",
        "node n1 is Schedulable: DRAIN_TO_SCHEDULABLE is not possible",
    )


def test_foreign_usage_of_a_node_can_be_reported_in_both_ways() -> None:
    rm = RM()
    rm.node("n1", vcore=10, occupied={"vcore": 3})
    rm.node("n2", vcore=10)
    foreign = Allocation("daemon", "", node_id="n1", resource_per_alloc=Resource(vcore=2))
    foreign.allocation_tags = {"foreign": "default"}
    rm.update(allocations=[foreign])
    assert rm.find_node("n1").available == {"vcore": 5}
    rm.update(allocations=[attrs.evolve(foreign, node_id="n2")])
    assert [rm.find_node(name).available["vcore"] for name in ("n1", "n2")] == [7, 8]
    rm.update(allocations=[attrs.evolve(foreign, resource_per_alloc=Resource(vcore=-1))])
    assert rm.entries("rejected_allocations")[0].reason == "allocation contains negative resources"


# -- stopping -----------------------------------------------------------------------------------------


def test_calls_and_reloads_do_not_start_queues_stopped_by_the_other() -> None:
    rm = RM()
    rm.node(vcore=2)
    rm.app()
    rm.ask(vcore=1)
    rm.scheduler.stop_queue("rm", "default", "root")
    rm.reload(configuration(queue("a"), queue("b", properties={"queue.state": "stopped"})))
    assert rm.schedule() == []
    rm.scheduler.start_queue("rm", "default", "root")
    assert rm.schedule() == [("app", "ask", "n1")]
    with pytest.raises(UsageError, match=r"root\.b is stopped by its property queue\.state"):
        rm.scheduler.start_queue("rm", "default", "root.b")


# -- gangs --------------------------------------------------------------------------------------------


def test_placeholders_need_fifo_or_stateaware_and_atomic_gangs_take_any_policy() -> None:
    leaves = [
        queue(name, properties={"application.sort.policy": name}) for name in ("fifo", "stateaware", "fair")
    ]
    rm = GangRM(configuration(*leaves))
    for name in ("fifo", "stateaware", "fair"):
        rm.gang(f"held-{name}", queue_name=f"root.{name}", vcore=2)
        rm.gang(f"atomic-{name}", "Atomic", f"root.{name}", vcore=2)
    rm.gang("forced", queue_name="root.fair", tags=FORCED, vcore=2)
    (refused,) = rm.entries("rejected_applications")
    assert refused.application_id == "held-fair"
    assert "placeholders need one of fifo, stateaware" in refused.reason


def test_an_atomic_gang_is_placed_in_one_decision_or_not_at_all() -> None:
    rm = GangRM()
    rm.node("n1", vcore=2)
    rm.gang("app", "Atomic", vcore=3)
    rm.task("app", "t", "workers", 3, vcore=1)
    assert rm.schedule() == []
    rm.node("n2", vcore=1)
    assert len(rm.schedule(1)) == 3


def test_gang_is_complete_when_placeholders_cover_the_announced_size() -> None:
    rm = GangRM()
    rm.node("n1", vcore=10)
    rm.gang("app", vcore=3)
    rm.task("app", "ph", "workers", 2, placeholder=True, vcore=2)
    rm.schedule()
    assert rm.state() == "Starting"


def test_real_asks_of_an_expired_soft_gang_stay_and_more_are_accepted() -> None:
    rm = GangRM()
    rm.node("n1", vcore=5)
    rm.gang("app", "Soft", seconds=60, vcore=6)
    rm.task("app", "ph", "workers", 3, placeholder=True, vcore=2)
    rm.ask("app", "t", vcore=4)
    rm.schedule()
    rm.pass_time(60)
    assert rm.state() == "Resuming"
    rm.ask("app", "more", vcore=1)
    assert rm.schedule() == [("app", "more", "n1")]
    rm.confirmed()
    assert rm.schedule() == [("app", "t", "n1")]


def test_real_task_replaces_a_placeholder_however_it_ends() -> None:
    rm = GangRM()
    rm.node("n1", vcore=2)
    rm.gang("app", vcore=2)
    rm.task("app", "ph", "workers", placeholder=True, vcore=2)
    rm.schedule()
    rm.task("app", "t", "workers", vcore=2)
    assert rm.schedule() == []
    rm.take_response()
    rm.release(uuid="ph#1")
    assert [one.allocation_key for one in rm.take_response().new_allocations] == ["t"]
    assert rm.counts("app", "workers") == (1, 1, 0)


# -- preemption ---------------------------------------------------------------------------------------


def preempted(rm: RM, **amounts: int) -> list[str]:
    """Return the victims of an ask of `root.a`, guaranteed 4 memory, that has waited long enough."""
    rm.app("late", "root.a")
    rm.ask("late", resource=amounts)
    rm.pass_time(60)
    rm.schedule()
    return sorted(rm.evicted)


def full(**of_b: Any) -> RM:
    """Fill the only node with allocations of `root.b`."""
    rm = RM(configuration(queue("a", resources={"guaranteed": {"memory": 4}}), queue("b", **of_b)))
    rm.node(memory=4, vcore=4)
    rm.app("big", "root.b")
    return rm


def test_only_an_explicit_opt_out_prevents_preemption_of_an_ask() -> None:
    rm = full()
    rm.ask("big", "says-nothing-either", memory=1, vcore=1)
    rm.ask("big", "kept", memory=1, vcore=1, policy=PreemptionPolicy(allow_preempt_self=False))
    rm.ask("big", "says-nothing", 2, memory=1, vcore=1)
    rm.schedule()
    assert preempted(rm, memory=4) == []
    assert preempted(rm, memory=2) == ["says-nothing#3", "says-nothing#4"]


def test_no_queue_is_preempted_below_its_guarantee() -> None:
    rm = full(resources={"guaranteed": {"memory": 3}})
    rm.ask("big", "t", 2, memory=2)
    rm.schedule()
    # One of the two exceeds the guarantee by half, so it stays.
    assert preempted(rm, memory=1) == []


def test_preemption_makes_room_in_every_type_or_not_at_all() -> None:
    rm = full()
    rm.ask("big", "memory", memory=4)
    rm.ask("big", "cores", vcore=4, policy=PreemptionPolicy(allow_preempt_self=False))
    rm.schedule()
    assert preempted(rm, memory=1, vcore=1) == []


def test_guarantee_of_other_types_does_not_apply() -> None:
    rm = full()
    rm.ask("big", "cores", vcore=4)
    rm.schedule()
    assert preempted(rm, vcore=1) == []


def test_first_max_counts_as_lowered_and_originators_are_preempted_last() -> None:
    delayed = queue("a", properties={"quota.preemption.delay": "10s"})
    switch = {"quotapreemptionenabled": True}
    rm = RM(configuration(delayed, preemption=switch))
    rm.node(memory=3)
    rm.app()
    rm.ask(key="driver", memory=1, originator=True)
    rm.ask(key="task", count=2, memory=1)
    rm.schedule()
    rm.reload(configuration({**delayed, "resources": {"max": {"memory": 1}}}, preemption=switch))
    rm.pass_time(10)
    assert sorted(rm.evicted) == ["task#2", "task#3"]
