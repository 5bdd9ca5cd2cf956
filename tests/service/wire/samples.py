"""Hypothesis strategies for messages of every kind."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from yunikorn.interface.messages import (
    AcceptedApplication,
    AcceptedNode,
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    AllocationReleasesRequest,
    FailedNodeUpdate,
    NewNodeInfo,
    NodeAction,
    PreemptionMode,
    PreemptionPolicy,
    RegisterResourceManagerRequest,
    RejectedAllocationAsk,
    RejectedApplication,
    RejectedNode,
    RemoveApplicationRequest,
    SchedulerAction,
    TerminationType,
    UpdatedApplication,
    UpdateNodeInfo,
    UpdateRequest,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.resources import Resource

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
TAGS = st.dictionaries(TEXT, TEXT, max_size=3)
AMOUNTS = st.dictionaries(TEXT, INT64, max_size=3).map(Resource)
POLICIES = st.none() | st.builds(PreemptionPolicy, st.booleans(), st.booleans())
TERMINATIONS = st.sampled_from(TerminationType)

MODES = st.sampled_from(PreemptionMode)

REGISTRATIONS = st.builds(
    RegisterResourceManagerRequest, TEXT, TEXT, TEXT, TEXT, TAGS, TAGS, st.lists(MODES, max_size=2)
)
NEW_APPLICATIONS = st.builds(
    AddApplicationRequest,
    TEXT,
    TEXT,
    TEXT,
    st.builds(UserGroupInformation, TEXT, st.lists(TEXT, max_size=2)),
    TAGS,
    INT64,
    AMOUNTS,
    TEXT,
)
REMOVED_APPLICATIONS = st.builds(RemoveApplicationRequest, TEXT, TEXT)
PRIORITIES = st.tuples(st.none() | INT32, st.just("")) | st.tuples(st.none(), TEXT)
"""A number or the name of a class: the wire has a field for one of them."""
ASKS = st.builds(
    lambda priority, **fields: AllocationAsk(priority=priority[0], priority_class_name=priority[1], **fields),
    PRIORITIES,
    allocation_key=TEXT,
    application_id=TEXT,
    partition_name=TEXT,
    resource_ask=AMOUNTS,
    max_allocations=INT32,
    execution_timeout_ms=INT64,
    tags=TAGS,
    task_group_name=TEXT,
    placeholder=st.booleans(),
    originator=st.booleans(),
    preemption_policy=POLICIES,
)
ALLOCATIONS = st.builds(
    Allocation,
    TEXT,
    TEXT,
    TEXT,
    TEXT,
    AMOUNTS,
    TEXT,
    TEXT,
    INT32,
    TAGS,
    TEXT,
    st.booleans(),
    st.booleans(),
    POLICIES,
)
RELEASES = st.builds(AllocationRelease, TEXT, TEXT, TEXT, TERMINATIONS, TEXT, TEXT, MODES)
ASK_RELEASES = st.builds(AllocationAskRelease, TEXT, TEXT, TEXT, TERMINATIONS, TEXT)
NEW_NODES = st.builds(
    NewNodeInfo, TEXT, TAGS, AMOUNTS, AMOUNTS, st.lists(ALLOCATIONS, max_size=2), st.booleans()
)
UPDATED_NODES = st.builds(
    UpdateNodeInfo, TEXT, st.sampled_from(NodeAction), TAGS, st.none() | AMOUNTS, st.none() | AMOUNTS
)
REJECTED_ASKS = st.builds(RejectedAllocationAsk, TEXT, TEXT, TEXT)
REJECTED_APPLICATIONS = st.builds(RejectedApplication, TEXT, TEXT)
ACCEPTED_APPLICATIONS = st.builds(AcceptedApplication, TEXT)
UPDATED_APPLICATIONS = st.builds(UpdatedApplication, TEXT, TEXT, INT64, TEXT)
REJECTED_NODES = st.builds(RejectedNode, TEXT, TEXT)
ACCEPTED_NODES = st.builds(AcceptedNode, TEXT)
FAILED_NODES = st.builds(FailedNodeUpdate, TEXT, TEXT)


def few(entries: SearchStrategy) -> SearchStrategy:
    """Return a strategy for a short list of these."""
    return st.lists(entries, max_size=2)


UPDATES: SearchStrategy[UpdateRequest] = st.builds(
    UpdateRequest,
    TEXT,
    few(ASKS),
    st.builds(AllocationReleasesRequest, few(RELEASES), few(ASK_RELEASES)),
    few(NEW_NODES),
    few(UPDATED_NODES),
    few(NEW_APPLICATIONS),
    few(REMOVED_APPLICATIONS),
    few(ALLOCATIONS),
)
RESPONSES: SearchStrategy[UpdateResponse] = st.builds(
    UpdateResponse,
    st.sampled_from(SchedulerAction),
    few(ALLOCATIONS),
    few(RELEASES),
    few(ASK_RELEASES),
    few(REJECTED_ASKS),
    few(REJECTED_APPLICATIONS),
    few(ACCEPTED_APPLICATIONS),
    few(UPDATED_APPLICATIONS),
    few(REJECTED_NODES),
    few(ACCEPTED_NODES),
    few(FAILED_NODES),
)
