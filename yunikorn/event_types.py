"""Types, changes and details of events, with the names of YuniKorn's event protocol.

Source: `si.proto` of the scheduler interface, message `EventRecord`. `PLUGIN` is not in YuniKorn.
"""

from __future__ import annotations

from enum import StrEnum


class EventType(StrEnum):
    """Kind of the object that an event is about."""

    REQUEST = "REQUEST"
    APP = "APP"
    NODE = "NODE"
    QUEUE = "QUEUE"
    USERGROUP = "USERGROUP"
    PLUGIN = "PLUGIN"
    """Failure of a plugin."""


class EventChange(StrEnum):
    """Kind of change."""

    NONE = "NONE"
    SET = "SET"
    ADD = "ADD"
    REMOVE = "REMOVE"


class EventDetail(StrEnum):
    """Detail of a change."""

    DETAILS_NONE = "DETAILS_NONE"
    REQUEST_CANCEL = "REQUEST_CANCEL"
    REQUEST_TIMEOUT = "REQUEST_TIMEOUT"
    APP_ALLOC = "APP_ALLOC"
    APP_REQUEST = "APP_REQUEST"
    APP_NEW = "APP_NEW"
    APP_REJECT = "APP_REJECT"
    APP_ACCEPTED = "APP_ACCEPTED"
    APP_STARTING = "APP_STARTING"
    APP_RUNNING = "APP_RUNNING"
    APP_COMPLETING = "APP_COMPLETING"
    APP_COMPLETED = "APP_COMPLETED"
    APP_FAILING = "APP_FAILING"
    APP_FAILED = "APP_FAILED"
    APP_RESUMING = "APP_RESUMING"
    APP_EXPIRED = "APP_EXPIRED"
    APP_RUNNABLE_QUEUE = "APP_RUNNABLE_QUEUE"
    APP_RUNNABLE_QUOTA = "APP_RUNNABLE_QUOTA"
    APP_CANNOTRUN_QUEUE = "APP_CANNOTRUN_QUEUE"
    APP_CANNOTRUN_QUOTA = "APP_CANNOTRUN_QUOTA"
    ALLOC_CANCEL = "ALLOC_CANCEL"
    ALLOC_NODEREMOVED = "ALLOC_NODEREMOVED"
    ALLOC_PREEMPT = "ALLOC_PREEMPT"
    ALLOC_REPLACED = "ALLOC_REPLACED"
    ALLOC_TIMEOUT = "ALLOC_TIMEOUT"
    NODE_ALLOC = "NODE_ALLOC"
    NODE_CAPACITY = "NODE_CAPACITY"
    NODE_DECOMISSION = "NODE_DECOMISSION"
    """Spelled as in the protocol."""
    NODE_OCCUPIED = "NODE_OCCUPIED"
    NODE_RESERVATION = "NODE_RESERVATION"
    NODE_SCHEDULABLE = "NODE_SCHEDULABLE"
    QUEUE_APP = "QUEUE_APP"
    QUEUE_DYNAMIC = "QUEUE_DYNAMIC"
    QUEUE_GUARANTEED = "QUEUE_GUARANTEED"
    QUEUE_MAX = "QUEUE_MAX"
    QUEUE_QUOTA_PREEMPTION = "QUEUE_QUOTA_PREEMPTION"
    """Not in YuniKorn: quota preemption of a queue."""
    QUEUE_TYPE = "QUEUE_TYPE"
    UG_APP_LINK = "UG_APP_LINK"
    UG_GROUP_LIMIT = "UG_GROUP_LIMIT"
    UG_GROUP_RESOURCE = "UG_GROUP_RESOURCE"
    UG_USER_LIMIT = "UG_USER_LIMIT"
    UG_USER_RESOURCE = "UG_USER_RESOURCE"


_REASONS_OF_TYPE = {
    EventType.REQUEST: (
        "GangUnschedulable",
        "InsufficientGroupQuota",
        "InsufficientQueueResources",
        "InsufficientUserQuota",
        "PermitGranted",
        "PermitRefused",
        "PermitWait",
        "PlaceholderMismatch",
        "PreemptionFailed",
        "Preempted",
        "QueueResourcesAvailable",
        "SchedulingFailedOnRM",
        "Unschedulable",
        "UserQuotaAvailable",
    ),
    EventType.APP: (
        "ApplicationAdmitted",
        "ApplicationHeld",
        "BackOff",
        "GangTooLarge",
        "UnknownGangStyle",
        "UnknownNodeSortPolicy",
    ),
    EventType.NODE: ("UnknownForeignKind",),
}
"""Reasons of events without a detail, by type."""

_PREFIXES_OF_TYPE = {
    EventType.APP: ("APP_", "REQUEST_", "ALLOC_"),
    EventType.NODE: ("NODE_",),
    EventType.QUEUE: ("QUEUE_",),
    EventType.USERGROUP: ("UG_",),
}
"""Beginnings of the details of a type."""

DETAILS_OF_TYPE: dict[EventType, tuple[str, ...]] = {
    kind: (
        *(str(one) for one in EventDetail if one.startswith(_PREFIXES_OF_TYPE.get(kind, ()))),
        *_REASONS_OF_TYPE.get(kind, ()),
    )
    for kind in EventType
}
"""Details and reasons that events of a type may have."""
