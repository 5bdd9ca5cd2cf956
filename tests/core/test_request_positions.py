"""Partitions and resource managers are scheduled in turn; small answers that were wrong once."""

from __future__ import annotations

from tests.core.kit import RM, configuration, document, partition, queue
from yunikorn.clock import ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import Allocation, NodeAction, PreemptionPolicy
from yunikorn.interface.scheduler import Scheduler
from yunikorn.resources import Resource


def pending_accounting(rm: RM, name: str = "default") -> None:
    attributes = {"si/node-partition": name}
    rm.node(f"n-{rm.rm_id}-{name}", attributes, vcore=100)
    rm.app(f"app-{name}", partition_name=name)
    rm.ask(f"app-{name}", "t", 10, partition_name=name, vcore=1)


def test_single_decisions_serve_all_partitions() -> None:
    rm = RM(document(partition(queue("a")), partition(queue("a"), name="gpu")))
    pending_accounting(rm)
    pending_accounting(rm, "gpu")
    served = [rm.schedule(1)[0][0] for _ in range(6)]
    assert served == ["app-default", "app-gpu"] * 3


def test_single_decisions_serve_all_resource_managers() -> None:
    scheduler = Scheduler(Registry.load(third_party=False), ManualClock())
    one, two = (RM(scheduler=scheduler, rm_id=rm_id) for rm_id in ("one", "two"))
    pending_accounting(one)
    pending_accounting(two)
    for _ in range(6):
        scheduler.schedule(1)
    assert (len(one.running), len(two.running)) == (3, 3)


def test_raised_limit_in_the_update_of_an_application_lets_others_start() -> None:
    template = {"maxapplications": 1}
    rule = {"name": "provided", "create": True}
    parent = queue("p", parent=True, childtemplate=template)
    rm = RM(configuration(parent, placementrules=[rule]))
    rm.node(vcore=10)
    for name in ("one", "two"):
        rm.app(name, "root.p.x")
        rm.ask(name, "t", vcore=1)
    assert rm.schedule() == [("one", "t", "n1")]
    rm.app_tagged("three", "root.p.x", {"namespace.resourcemaxapps": "2"})
    assert rm.schedule() == [("two", "t", "n1")]


def test_recovery_queue_ignores_limits_of_the_template() -> None:
    root = {"name": "root", "submitacl": "*", "childtemplate": {"maxapplications": 1}, "parent": True}
    rm = RM(document({"name": "default", "queues": [root]}))
    rm.node(vcore=10)
    for name in ("one", "two"):
        rm.app_tagged(name, "", {"application.create.force": "true"})
        rm.ask(name, "t", vcore=1)
    assert [app for app, _, _ in rm.schedule()] == ["one", "two"]


def test_expired_application_is_reported_to_the_rm() -> None:
    rm = RM()
    rm.node(vcore=10)
    rm.app()
    rm.ask(vcore=1)
    rm.schedule()
    rm.release(uuid=next(iter(rm.running)))
    rm.pass_time(4 * 24 * 3600)
    states = [update.state for update in rm.entries("updated_applications")]
    assert states == ["Accepted", "Starting", "Completing", "Completed", "Expired"]


def test_ask_without_application_is_rejected_with_the_reason_of_its_application() -> None:
    rm = RM(configuration(queue("a")))
    rm.ask("", "lonely", vcore=1)
    (refused,) = rm.entries("rejected_allocations")
    assert "no placement rule matched" in refused.reason


def test_recovered_allocations_without_a_uuid_get_different_ones() -> None:
    rm = RM()
    for name in ("one", "two"):
        rm.app(name)
    amount = Resource(vcore=1)
    existing = [Allocation("t", name, resource_per_alloc=amount) for name in ("one", "two")]
    rm.node(vcore=10, existing=existing)
    assert rm.entries("rejected_allocations") == []
    assert len(rm.find_node().allocations) == 2


def test_allocations_lost_with_their_node_are_reported_as_stopped_by_rm() -> None:
    rm = RM()
    rm.node(vcore=10)
    rm.app()
    rm.ask(vcore=1)
    rm.schedule()
    rm.change_node("n1", NodeAction.DECOMMISSION)
    (release,) = rm.entries("released_allocations")
    assert (release.termination_type.name, release.message) == ("STOPPED_BY_RM", "Node n1 Removed")


def test_allocation_has_originator_and_preemption_policy_of_its_ask() -> None:
    rm = RM()
    rm.node(vcore=10)
    rm.app()
    rm.ask(key="driver", originator=True, policy=PreemptionPolicy(False, True), vcore=1)
    rm.ask(key="worker", vcore=1)
    rm.schedule()
    reported = {
        one.allocation_key: (one.originator, one.preemption_policy) for one in rm.entries("new_allocations")
    }
    assert reported == {"driver": (True, PreemptionPolicy(False, True)), "worker": (False, None)}


def test_release_with_a_wrong_application_is_rejected_without_effect() -> None:
    rm = RM()
    rm.node(vcore=10)
    for name in ("one", "two"):
        rm.app(name)
    rm.ask("one", "t", vcore=1)
    rm.schedule()
    (uuid,) = rm.running
    rm.take_response()
    rm.release("two", uuid)
    received = rm.take_response()
    assert received.released_allocations == []
    (refused,) = received.rejected_allocations
    assert refused.reason == f"allocation '{uuid}' belongs to application one: nothing was released"
    assert rm.find_node().available == {"vcore": 9}


def test_admin_access_is_checked_at_all_ancestors() -> None:
    inner = queue("b", adminacl="bob")
    rm = RM(configuration(queue("a", inner, adminacl="ann ops")))
    leaf, parent = rm.find_queue("root.a.b"), rm.find_queue("root.a")
    assert [leaf.admin_allowed(user, ()) for user in ("bob", "ann", "eve")] == [True, True, False]
    assert [parent.admin_allowed(user, ()) for user in ("bob", "ann", "eve")] == [False, True, False]
    assert leaf.admin_allowed("eve", ("ops",))
