"""Scheduling states of pending asks, reported to RMs that implement the call.

See docs/decisions/archive/0037.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, document, partition, queue
from tests.core.predicate_tags import DISK, ZONE
from tests.core.predicates import plugins
from yunikorn.clock import SECOND
from yunikorn.interface.messages import (
    NodeAction,
    PredicatesArgs,
    UpdateContainerSchedulingStateRequest,
)
from yunikorn.model.context import Timeouts

NO_NODE = "request is waiting for cluster resources become available"
Output = tuple[str, str]
"""Key of an ask and its scheduling state."""


class Curious(RM):
    """An RM that implements the call."""

    def __init__(self, *args: Any, **keys: Any) -> None:
        self.states: list[UpdateContainerSchedulingStateRequest] = []
        super().__init__(*args, **keys)

    def update_container_scheduling_state(self, request: UpdateContainerSchedulingStateRequest) -> None:
        """Record the reports."""
        self.states.append(request)

    def reported(self) -> list[Output]:
        """Return the reports since the last call."""
        reported = [(one.allocation_key, one.state.name) for one in self.states]
        self.states.clear()
        return reported

    def settle(self) -> list[Output]:
        """Schedule, let one second pass, and return the reports."""
        self.schedule()
        self.pass_time(1)
        return self.reported()


def cluster(*queues: Any, nodes: int = 1, memory: int = 4, reservation: int | None = None) -> Curious:
    """Return an RM with equal nodes and an application; by default without reservations."""
    rm = Curious(configuration(*queues), timeouts=Timeouts(reservation=reservation))
    for number in range(nodes):
        rm.node(f"n{number + 1}", memory=memory)
    rm.app()
    return rm


def test_ask_without_a_fitting_node_is_reported_failed_once() -> None:
    rm = cluster()
    rm.ask(key="runs", memory=3)
    rm.ask(key="waits", memory=2)
    rm.schedule()
    assert rm.reported() == [("runs", "SCHEDULED")]
    assert rm.settle() == [("waits", "FAILED")]
    assert rm.settle() == []
    rm.change_node("n1", memory=4)
    assert rm.settle() == []

    rm.node("n2", memory=4)
    assert rm.settle() == [("waits", "SCHEDULED")]


def test_reason_has_the_text_that_autoscalers_expect() -> None:
    rm = cluster(memory=1)
    rm.ask(key="waits", memory=2)
    rm.schedule()
    rm.pass_time(1)
    (reported,) = rm.states
    assert (reported.application_id, reported.allocation_key, reported.reason) == ("app", "waits", NO_NODE)


def test_all_asks_of_a_class_are_reported_even_if_never_tried() -> None:
    rm = cluster()
    for number in range(3):
        rm.ask(key=f"k{number}", memory=3)
    assert rm.settle() == [("k0", "SCHEDULED"), ("k1", "FAILED"), ("k2", "FAILED")]
    rm.ask(key="late", memory=3)
    assert rm.settle() == [("late", "FAILED")]


def test_a_request_over_a_quota_is_skipped_and_fails_when_the_quota_has_room() -> None:
    rm = cluster(queue("a", resources={"max": {"memory": "4"}}), memory=5)
    rm.ask(key="runs", memory=2)
    rm.ask(key="waits", memory=3)
    assert rm.settle() == [("runs", "SCHEDULED"), ("waits", "SKIPPED")]
    rm.change_node("n1", memory=2)
    rm.reload(configuration(queue("a", resources={"max": {"memory": "5"}})))
    assert rm.settle() == [("waits", "FAILED")]
    rm.change_node("n1", memory=5)
    assert rm.settle() == [("waits", "SCHEDULED")]


def test_failed_asks_are_reported_only_within_the_quota() -> None:
    rm = cluster(queue("a", resources={"max": {"memory": "6"}}), memory=4)
    rm.ask(key="runs", memory=3)
    for number in range(3):
        rm.ask(key=f"k{number}", memory=2)
    # One vcore is left on the node: none of the three fits; the quota has room for one of them.
    assert rm.settle() == [
        ("runs", "SCHEDULED"),
        ("k0", "FAILED"),
        ("k1", "SKIPPED"),
        ("k2", "SKIPPED"),
    ]
    rm.release_ask(key="k0")
    assert rm.settle() == [("k1", "FAILED")]


def test_exhausted_quota_admits_no_amount() -> None:
    rm = cluster(queue("a", resources={"max": {"memory": "4"}}), memory=4)
    rm.ask(key="runs", memory=4)
    rm.ask(key="waits", memory=1)
    assert rm.settle() == [("runs", "SCHEDULED"), ("waits", "SKIPPED")]


def test_replicas_of_one_ask_count() -> None:
    rm = cluster(queue("a", resources={"max": {"memory": "7"}}), memory=4)
    rm.ask(key="runs", memory=3)
    rm.ask(key="three", count=3, memory=2)
    rm.ask(key="one", memory=2)
    assert rm.settle() == [("runs", "SCHEDULED"), ("three", "FAILED"), ("one", "SKIPPED")]


def test_limits_of_users_count_like_quotas() -> None:
    limits = [{"limit": "one user", "users": ["user"], "maxresources": {"memory": "5"}}]
    rm = cluster(queue("a", limits=limits), memory=4)
    rm.ask(key="runs", memory=3)
    rm.ask(key="first", memory=2)
    rm.ask(key="second", memory=2)
    assert rm.settle() == [("runs", "SCHEDULED"), ("first", "FAILED"), ("second", "SKIPPED")]


def test_a_reload_resets_the_counts() -> None:
    rm = cluster(queue("a", resources={"max": {"memory": "5"}}), memory=4)
    rm.ask(key="runs", memory=3)
    rm.ask(key="first", memory=2)
    rm.ask(key="second", memory=2)
    assert rm.settle() == [("runs", "SCHEDULED"), ("first", "FAILED"), ("second", "SKIPPED")]
    rm.reload(configuration(queue("a", resources={"max": {"memory": "7"}})))
    assert rm.settle() == [("second", "FAILED")]


def test_requests_of_a_stopped_queue_and_of_applications_that_may_not_run_are_skipped() -> None:
    rm = cluster(queue("a", maxapplications=1), queue("b", maxapplications=1))
    rm.ask(key="runs", memory=1)
    rm.app("held")
    rm.ask("held", "held", memory=1)
    rm.app("stopped", "root.b")
    rm.scheduler.stop_queue("rm", "default", "root.b")
    rm.ask("stopped", "stopped", memory=1)
    assert rm.settle() == [("runs", "SCHEDULED"), ("held", "SKIPPED"), ("stopped", "SKIPPED")]
    rm.release(key="runs")
    assert rm.settle() == [("held", "SCHEDULED")]


def test_asks_with_a_required_node_are_not_reported_failed() -> None:
    rm = cluster()
    rm.ask(memory=1, tags={"yunikorn.apache.org/requiredNode": "n9"})
    assert rm.settle() == []


class CuriousGangs(Curious, GangRM):
    """An RM with gangs that implements the call."""


def two_of_three(quota: int) -> CuriousGangs:
    """Return an RM with a node of 4 m vcore, a queue with a quota, and two of three members of a gang."""
    rm = CuriousGangs(configuration(queue("a", resources={"max": {"vcore": f"{quota}m"}})))
    rm.node("n1", vcore=4)
    rm.gang("app", "Atomic", vcore=9)
    for number in range(2):
        rm.task("app", f"m{number}", "members", vcore=3)
    return rm


def test_members_of_an_atomic_gang_fail_when_the_nodes_lack_room_for_the_whole_gang() -> None:
    """A cluster autoscaler then adds nodes for all of them; before, more nodes would not help."""
    rm = two_of_three(quota=20)
    assert rm.settle() == [("m0", "SKIPPED"), ("m1", "SKIPPED")]
    rm.task("app", "m2", "members", vcore=3)
    assert rm.settle() == [("m0", "FAILED"), ("m1", "FAILED"), ("m2", "FAILED")]
    rm.node("n2", vcore=4)
    assert rm.settle() == []
    rm.node("n3", vcore=4)
    assert sorted(rm.settle()) == [("m0", "SCHEDULED"), ("m1", "SCHEDULED"), ("m2", "SCHEDULED")]


def test_members_of_an_atomic_gang_over_a_quota_are_skipped() -> None:
    rm = two_of_three(quota=12)
    rm.app("other")
    rm.ask("other", "runs", vcore=4)
    rm.schedule()
    assert rm.reported() == [("runs", "SCHEDULED")]
    rm.task("app", "m2", "members", vcore=3)
    assert rm.settle() == [("m0", "SKIPPED"), ("m1", "SKIPPED"), ("m2", "SKIPPED")]
    assert rm.settle() == []


def test_reservation_is_reported() -> None:
    rm = cluster(nodes=2, reservation=2 * SECOND)
    rm.ask(key="small", count=2, memory=2)
    rm.ask(key="big", memory=3)
    rm.schedule()
    rm.pass_time(1)
    assert ("big", "FAILED") in rm.reported()
    rm.pass_time(2)
    rm.schedule()
    assert rm.reported() == [("big", "RESERVED")]


def test_changed_ask_is_reported_again() -> None:
    rm = cluster()
    rm.ask(key="runs", memory=3)
    rm.ask(key="waits", memory=2)
    assert rm.settle() == [("runs", "SCHEDULED"), ("waits", "FAILED")]
    rm.ask(key="waits", memory=4)
    assert rm.settle() == [("waits", "FAILED")]


def test_an_idle_scheduler_sets_no_timers() -> None:
    rm = cluster()
    rm.app("other")
    rm.ask(key="waits", memory=9)
    rm.settle()
    rm.schedule()
    assert rm.scheduler.next_timer() is None


def test_rm_without_the_method_receives_no_states() -> None:
    rm = RM(configuration(), timeouts=Timeouts(reservation=None))
    rm.node(memory=1)
    rm.app()
    rm.ask(memory=2)
    rm.schedule()
    assert rm.at_work().state_reporter is None
    assert rm.scheduler.next_timer() is None


def test_partitions_added_by_a_reload_report_states() -> None:
    rm = Curious(configuration())
    rm.reload(document(partition(queue("a")), partition(queue("a"), name="second")))
    rm.app("app", "root.a", partition_name="second")
    rm.ask("app", "waits", partition_name="second", memory=1)
    assert rm.settle() == [("waits", "FAILED")]


def test_an_ask_that_loses_its_reservation_is_reported_again() -> None:
    rm = cluster(nodes=2, reservation=2 * SECOND)
    for number in range(2):
        rm.ask(key=f"runs{number}", memory=3)
    rm.ask(key="waits", memory=4)
    assert rm.settle() == [("runs0", "SCHEDULED"), ("runs1", "SCHEDULED"), ("waits", "FAILED")]
    rm.pass_time(2)
    assert rm.settle() == [("waits", "RESERVED")]
    (kept,) = [node.id for node in rm.at_work().partition.nodes.values() if node.reservations]
    rm.change_node(kept, NodeAction.DECOMMISSION)
    other = "n1" if kept == "n2" else "n2"
    assert rm.settle() == [], "another is kept for it at once"
    assert rm.find_node(other).reservations
    rm.change_node(other, memory=3)
    assert rm.settle() == [("waits", "FAILED")]
    rm.node("n3", memory=4)
    assert rm.settle() == [("waits", "SCHEDULED")]


# -- asks that predicates refuse ---------------------------------------------------------------------------


class Choosy(Curious):
    """Refuses nodes by their names."""

    def __init__(self, refused: Mapping[str, str]) -> None:
        self.refused = refused
        super().__init__(configuration(), timeouts=Timeouts(reservation=None))

    def predicates(self, args: PredicatesArgs) -> str | None:
        """Return the reason of a refusal, or None."""
        return self.refused.get(args.node_id)

    def why(self) -> list[tuple[str, str, str]]:
        """Let one second pass; return key, state and reason of all reports since the last call."""
        self.states.clear()
        self.schedule()
        self.pass_time(1)
        return [(one.allocation_key, one.state.name, one.reason) for one in self.states]


def choosy(*names: str, refused: Mapping[str, str]) -> Choosy:
    rm = Choosy(refused)
    for name in names:
        rm.node(name, memory=4)
    rm.app()
    return rm


def test_failed_reason_counts_predicate_refusals() -> None:
    rm = choosy("n1", "n2", "n3", refused={"n1": "it is tainted", "n2": "it is tainted", "n3": "it is hot"})
    rm.ask(key="waits", memory=1)
    reason = "no node that has room accepts the request: it is hot (1x); it is tainted (2x)"
    assert rm.why() == [("waits", "FAILED", reason)]


def test_failed_reason_names_resources_only_if_nodes_lack_them() -> None:
    rm = choosy("n1", "n2", refused={"n1": "it is tainted"})
    rm.ask(key="runs", memory=4)
    rm.ask(key="waits", memory=4)
    rm.ask(key="large", memory=5)
    assert rm.why() == [
        ("runs", "SCHEDULED", ""),
        ("waits", "FAILED", "no node that has room accepts the request: it is tainted (1x)"),
        ("large", "FAILED", NO_NODE),
    ]


def test_refused_ask_that_later_lacks_resources_is_reported_with_resources() -> None:
    rm = choosy("n1", refused={"n1": "it is tainted"})
    rm.ask(key="waits", memory=3)
    rm.schedule()
    rm.change_node("n1", memory=2)
    assert rm.why() == [("waits", "FAILED", NO_NODE)]


@pytest.mark.parametrize(
    ("name", "tag", "refusal"), [("zone", ZONE, "not in zone fast"), ("disk", DISK, "no fast")]
)
def test_failed_reason_names_refusals_for_any_predicate_declaration(
    name: str, tag: str, refusal: str
) -> None:
    rm = Curious(configuration(predicates=[name]), plugins(), timeouts=Timeouts(reservation=None))
    rm.node("n1", {tag: "slow"}, memory=4)
    rm.app()
    for key in ("first", "second"):
        rm.ask(key=key, memory=1, tags={tag: "fast"})
    rm.ask(key="large", memory=5)
    rm.schedule()
    rm.pass_time(1)
    reason = f"no node that has room accepts the request: {refusal} (1x)"
    assert [(one.allocation_key, one.reason) for one in rm.states] == [
        ("first", reason),
        ("second", reason),
        ("large", NO_NODE),
    ]
    rm.states.clear()
    rm.node("n2", {tag: "fast"}, memory=4)
    assert rm.settle() == [("first", "SCHEDULED"), ("second", "SCHEDULED")]


@pytest.mark.parametrize(("name", "tag"), [("zone", ZONE), ("disk", DISK)])
def test_predicate_refusals_are_dropped_when_resources_are_lacking(name: str, tag: str) -> None:
    rm = Curious(configuration(predicates=[name]), plugins(), timeouts=Timeouts(reservation=None))
    rm.node("n1", {tag: "slow"}, memory=4)
    rm.app()
    rm.ask(key="waits", memory=3, tags={tag: "fast"})
    rm.schedule()
    rm.change_node("n1", memory=2)
    rm.node("n2", {tag: "fast"}, memory=2)
    rm.node("drained", {tag: "slow"}, schedulable=False, memory=9)
    rm.schedule()
    rm.pass_time(1)
    assert [(one.allocation_key, one.reason) for one in rm.states] == [("waits", NO_NODE)]


def test_reason_is_at_most_as_long_as_an_event_message() -> None:
    names = [f"n{number}" for number in range(50)]
    rm = choosy(*names, refused={name: f"{name} is {'very ' * 20}tainted" for name in names})
    rm.ask(key="waits", memory=1)
    ((_, _, reason),) = rm.why()
    assert len(reason) == 1024
    assert reason.endswith("...")
