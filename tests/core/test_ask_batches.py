"""Asks of one update are booked as a batch, with the same outcome as asks sent one by one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.event_collector import EventCollector
from tests.core.gangs import GangRM
from tests.core.kit import RM, partition, queue
from yunikorn.accounting.partition import Partition
from yunikorn.interface.ask_entries import is_plain, spec_of
from yunikorn.interface.checks import ask_fault
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    PreemptionPolicy,
    TerminationType,
    UserGroupInformation,
)
from yunikorn.model.ask import DEFAULT_SPEC
from yunikorn.resources import Resource, without_zeros

SIZES = [
    Resource(vcore=1),
    Resource(vcore=2, memory=1),
    Resource(vcore=1, memory=0),
    Resource(),
    Resource(vcore=-1),
    {"vcore": 1},
]
plain = st.fixed_dictionaries(
    {
        "allocation_key": st.sampled_from("abcdefgh"),
        "application_id": st.sampled_from(["app1", "app2", "unknown", 3]),
        "resource_ask": st.sampled_from(SIZES),
    },
    optional={
        "partition_name": st.sampled_from(["", "default", "[rm]default", "other", None]),
        "max_allocations": st.sampled_from([1, 2, 0, -1, True, 2**31]),
        "priority": st.sampled_from([None, 0, 5, -5, -(2**31), 2.0]),
    },
)
rare = st.fixed_dictionaries(
    {},
    optional={
        "tags": st.sampled_from([{}, {"creationTime": "0"}, {"zone": "a"}, None]),
        "task_group_name": st.sampled_from(["", "workers", 1]),
        "placeholder": st.sampled_from([False, True, 0]),
        "originator": st.booleans(),
        "execution_timeout_ms": st.sampled_from([0, 5, 0.0]),
        "priority_class_name": st.sampled_from(["", "urgent"]),
        "preemption_policy": st.sampled_from([None, PreemptionPolicy(allow_preempt_other=False)]),
    },
)
members = st.fixed_dictionaries(
    {
        "allocation_key": st.sampled_from("abcdefgh"),
        "application_id": st.just("app2"),
        "resource_ask": st.just(Resource(vcore=1)),
        "task_group_name": st.sampled_from(["", "workers"]),
        "placeholder": st.booleans(),
    }
)
"""Asks of an application that may be a gang, of its task group or of none."""
asks = st.builds(lambda one, more: {**one, **more}, plain, rare | st.just({})) | members


def pending_positions(objects: Partition) -> list[Any]:
    """Return the pending asks with their positions.

    Of bits only the number is compared: a gang that becomes whole within a batch gets its bit later.
    """
    queues = [
        (queue.path, without_zeros(queue.pending), queue.waiting, queue.priority, queue.bits.bit_count())
        for queue in objects.queues
    ]
    apps = [
        (
            app.id,
            without_zeros(app.pending),
            app.priority,
            app.submitted,
            app.state,
            app.bits.bit_count(),
            app.requests.bits.bit_count(),
        )
        for app in objects.applications.values()
    ]
    waiting = [
        (
            ask.key,
            ask.order,
            ask.pending,
            ask.state,
            ask.tags,
            ask.resource,
            ask.pending_class.asks,
            ask.ask_class.waiting,
        )
        for app in objects.applications.values()
        for ask in app.requests
    ]
    blocked = [
        (ask.key, ask.pending, ask.gang_blocked, ask.unschedulable)
        for app in objects.applications.values()
        for ask in app.asks.values()
    ]
    groups = [
        (app.id, name, group.count, group.is_replaceable)
        for app in objects.applications.values()
        if app.gang is not None
        for name, group in app.gang.groups.items()
    ]
    members = [
        (app.id, [(ask.key, count) for ask, count in app.atomic.members], app.atomic.arrived)
        for app in objects.applications.values()
        if app.atomic is not None
    ]
    return [queues, apps, waiting, blocked, groups, members]


unplaced = st.builds(
    lambda one, more: {**one, **more},
    st.fixed_dictionaries(
        {
            "allocation_key": st.sampled_from(["ran", *"abcdef"]),
            "application_id": st.sampled_from(["app1", "app2", "unknown", 3]),
            "resource_per_alloc": st.sampled_from(SIZES),
        },
        optional={"priority": st.sampled_from([0, 5, -5, -(2**31), 2.0, None])},
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "node_id": st.sampled_from(["", "node", "nowhere", None]),
            "uuid": st.sampled_from(["", "u1", 7]),
            "partition_name": st.sampled_from(["", "default", "other", None]),
            "allocation_tags": st.sampled_from([{}, {"zone": "a"}, {"foreign": "default"}, None]),
            "task_group_name": st.sampled_from(["", "workers", 1]),
            "originator": st.booleans(),
            "preemption_policy": st.sampled_from([None, PreemptionPolicy(allow_preempt_other=False)]),
        },
    )
    | st.just({}),
)


STYLES = st.sampled_from(["", "Soft", "Hard", "Atomic"])


def outcome(
    entries: list[dict[str, Any]],
    style: str,
    *,
    limited: bool,
    kind: type[Allocation | AllocationAsk] = AllocationAsk,
) -> tuple[Any, ...]:
    """Return responses, events and accounting after these asks; `app2` is a gang if it has a `style`."""
    limits = [{"limit": "", "users": ["*"], "maxapplications": 1, "maxresources": {"vcore": "5"}}]
    collector = EventCollector()
    sort = "fifo" if style else "fair"
    leaf = queue("a", properties={"application.sort.policy": sort}, limits=limits if limited else [])
    rm: RM = collector.rm(partition(leaf))
    rm.node(vcore=9, memory=9)
    rm.app("app1")
    if style:
        rm.update(
            new_applications=[
                AddApplicationRequest(
                    "app2",
                    "root.a",
                    ugi=UserGroupInformation("user"),
                    gang_scheduling_style=style,
                    placeholder_ask=Resource(vcore=2),
                )
            ]
        )
        placeholder = style != "Atomic"
        first = AllocationAsk(
            "first",
            "app2",
            resource_ask=Resource(vcore=1),
            task_group_name="workers",
            placeholder=placeholder,
        )
        rm.update(asks=[first])
    else:
        rm.app("app2")
    rm.ask("app1", "ran", vcore=1)
    rm.schedule()
    if kind is AllocationAsk:
        rm.update(asks=[AllocationAsk(**entry) for entry in entries])
    else:
        rm.update(allocations=[Allocation(**entry) for entry in entries])
    positions = pending_positions(rm.at_work().partition)
    rm.scheduler.schedule()
    return positions, rm.take_response(), collector.events


@given(st.lists(asks, max_size=12), STYLES, st.booleans())
def test_ask_batch_equals_asks_booked_one_by_one(
    entries: list[dict[str, Any]], style: str, limited: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("yunikorn.interface.ask_entries.is_plain", lambda ask: False)
        patch.setattr("yunikorn.scheduling.ask_admission.TAKING", frozenset())
        alone = outcome(entries, style, limited=limited)
    assert outcome(entries, style, limited=limited) == alone


@given(st.lists(unplaced, max_size=12), STYLES, st.booleans())
def test_ask_batch_of_the_newer_layout_equals_asks_booked_one_by_one(
    entries: list[dict[str, Any]], style: str, limited: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("yunikorn.interface.ask_entries.is_plain_request", lambda one: False)
        patch.setattr("yunikorn.scheduling.ask_admission.TAKING", frozenset())
        alone = outcome(entries, style, limited=limited, kind=Allocation)
    assert outcome(entries, style, limited=limited, kind=Allocation) == alone


@given(asks)
def test_plain_asks_have_no_faults_and_the_default_options(entry: dict[str, Any]) -> None:
    ask = AllocationAsk(**{**entry, "application_id": "app1", "partition_name": ""})
    if is_plain(ask) and isinstance(ask.resource_ask, Resource):
        assert ask_fault(ask) == ""
        assert spec_of(ask) is DEFAULT_SPEC


def test_allocated_asks_of_the_newer_layout_are_not_pending_again() -> None:
    rm = RM()
    rm.node(vcore=9)
    rm.app("app1")
    rm.ask("app1", "ran", vcore=1)
    rm.schedule()
    again = [Allocation(key, "app1", resource_per_alloc=Resource(vcore=1)) for key in ("new", "ran", "newer")]
    rm.update(allocations=again)
    assert sorted(key for _, key, _ in rm.schedule()) == ["new", "newer"]
    assert len(rm.running) == 3


def test_priorities_in_an_ask_batch_apply_immediately() -> None:
    rm = RM()
    rm.node(vcore=2)
    rm.app("app1")
    rm.app("app2")
    rm.ask("app1", "first", vcore=1)
    entries = [("app1", "low", -1), ("app1", "high", 3), ("app2", "middle", 1), ("app2", "highest", 4)]
    rm.update(
        asks=[
            AllocationAsk(key, app_id, resource_ask=Resource(vcore=1), priority=priority)
            for app_id, key, priority in entries
        ]
    )
    assert [key for _, key, _ in rm.schedule()] == ["highest", "high"]


@pytest.mark.parametrize("together", [True, False])
def test_ask_of_a_task_group_replaces_a_placeholder_after_a_plain_ask_of_the_same_update(
    together: bool,
) -> None:
    rm = GangRM()
    rm.node(vcore=9)
    rm.gang("app", "Soft", vcore=2)
    rm.task("app", "ph1", "workers", placeholder=True, vcore=1)
    rm.task("app", "ph2", "workers", placeholder=True, vcore=1)
    rm.schedule()
    plain_ask = AllocationAsk("plain", "app", resource_ask=Resource(vcore=1))
    member = AllocationAsk("real", "app", resource_ask=Resource(vcore=1), task_group_name="workers")
    for update in [[plain_ask, member]] if together else [[plain_ask], [member]]:
        rm.update(asks=update)
    rm.take_response()
    rm.schedule()
    response = rm.take_response()
    assert [one.allocation_key for one in response.new_allocations] == ["plain"]
    released = [(one.allocation_key, one.termination_type) for one in response.released_allocations]
    assert released == [("ph1", TerminationType.PLACEHOLDER_REPLACED)]
