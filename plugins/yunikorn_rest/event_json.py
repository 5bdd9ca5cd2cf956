"""JSON of events: names, numbers and omissions as in YuniKorn 1.9, whose records are a protobuf message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs

from yunikorn.accounting.event_batch import Source
from yunikorn.api import Event
from yunikorn.event_types import EventDetail
from yunikorn.states import STARTING
from yunikorn_rest.encoding import to_bytes
from yunikorn_service.fields import NONE, always, optional

TYPES: Mapping[str, int] = {
    "REQUEST": 1,
    "APP": 2,
    "NODE": 3,
    "QUEUE": 4,
    "USERGROUP": 5,
    "PLUGIN": 1000,  # not in YuniKorn
}
CHANGES: Mapping[str, int] = {"NONE": 0, "SET": 1, "ADD": 2, "REMOVE": 3}
DETAILS: Mapping[str, int] = {
    "DETAILS_NONE": 0,
    "REQUEST_CANCEL": 100,
    "REQUEST_ALLOC": 101,
    "REQUEST_TIMEOUT": 102,
    "APP_ALLOC": 200,
    "APP_REQUEST": 201,
    "APP_REJECT": 202,
    "APP_NEW": 203,
    "APP_ACCEPTED": 204,
    "APP_STARTING": 206,  # Running in YuniKorn 1.9
    "APP_RUNNING": 206,
    "APP_COMPLETING": 207,
    "APP_COMPLETED": 208,
    "APP_FAILING": 209,
    "APP_FAILED": 210,
    "APP_RESUMING": 211,
    "APP_EXPIRED": 212,
    "APP_CANNOTRUN_QUEUE": 213,
    "APP_RUNNABLE_QUEUE": 214,
    "APP_CANNOTRUN_QUOTA": 215,
    "APP_RUNNABLE_QUOTA": 216,
    "NODE_DECOMISSION": 300,
    "NODE_SCHEDULABLE": 302,
    "NODE_ALLOC": 303,
    "NODE_CAPACITY": 304,
    "NODE_OCCUPIED": 305,
    "NODE_RESERVATION": 306,
    "QUEUE_CONFIG": 400,
    "QUEUE_DYNAMIC": 401,
    "QUEUE_TYPE": 402,
    "QUEUE_MAX": 403,
    "QUEUE_GUARANTEED": 404,
    "QUEUE_APP": 405,
    "QUEUE_ALLOC": 406,
    "QUEUE_QUOTA_PREEMPTION": 407,
    "ALLOC_CANCEL": 500,
    "ALLOC_PREEMPT": 501,
    "ALLOC_TIMEOUT": 502,
    "ALLOC_REPLACED": 503,
    "ALLOC_NODEREMOVED": 504,
    "UG_USER_LIMIT": 600,
    "UG_GROUP_LIMIT": 601,
    "UG_APP_LINK": 602,
    "UG_USER_RESOURCE": 603,
    "UG_GROUP_RESOURCE": 604,
}
"""Numbers of details; a detail without a number is 0."""
LONGEST = 1024
"""Maximum size of a message in bytes; longer messages are cut."""

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


@attrs.frozen
class Quantity:
    """Amount of a resource type; without a value it is 0."""

    value: int = optional("amount", 0)


@attrs.frozen
class Amounts:
    """Resources of an event."""

    resources: Mapping[str, Quantity] = optional("amounts by resource type", NONE)


@attrs.frozen
class EventRecord:
    """Event; fields that are empty or 0 are absent, except for the resource."""

    type: int = optional(
        "1 request, 2 application, 3 node, 4 queue, 5 user or group, 1000 failure of a plugin", 0
    )
    object_id: str = optional(
        "id of the application, node, user, group, request or plugin, or path of the queue",
        "",
        name="objectID",
    )
    message: str = optional("explanation", "")
    timestamp_nano: int = optional("time (ns since 1970)", 0)
    event_change_type: int = optional("1 set, 2 add, 3 remove", 0)
    event_change_detail: int = optional("number of the detail of YuniKorn's event protocol", 0)
    reference_id: str = optional("id of another object that the event is about", "", name="referenceID")
    resource: Amounts = always("amounts", Amounts())
    rm_id: str = optional("with `details`: id of the resource manager", "", name="rmID")
    partition: str = optional("with `details`: name of the partition", "")
    application_id: str = optional("with `details`: id of the application", "", name="applicationID")
    queue_name: str = optional("with `details`: full path of the queue of the application", "")
    node_id: str = optional("with `details`: id of the node", "", name="nodeID")
    reason: str = optional("with `details`: reason in one word", "")
    design_state: str = optional("`Starting` for an application that is Running to YuniKorn 1.9", "")


@attrs.frozen
class EventBatch:
    """Successive events, and the ids that the service has."""

    instance: str = always("identifier that differs for each start of the service", name="InstanceUUID")
    lowest: int = always("id of the oldest event; 0 if there is none", name="LowestID")
    highest: int = always("id of the latest event; 0 if there is none", name="HighestID")
    records: list[EventRecord] | None = always(
        "events from the requested id on; null if there is none with this id", name="EventRecords"
    )


def line_of(event: Event, source: Source | None = None) -> bytes:
    """Return the record of an event as JSON, with a line break; with a `source`, in all detail."""
    record: dict[str, Any] = {}
    for name, value in (
        ("type", TYPES.get(event.type, 0)),
        ("objectID", event.object_id),
        ("message", cut(event.message)),
        ("timestampNano", event.timestamp),
        ("eventChangeType", CHANGES.get(event.change, 0)),
        ("eventChangeDetail", DETAILS.get(event.detail, 0)),
        ("referenceID", event.reference_id),
    ):
        if value:
            record[name] = value
    amounts = event.resource
    record["resource"] = (
        {"resources": {name: {"value": amounts[name]} if amounts[name] else {} for name in sorted(amounts)}}
        if amounts
        else {}
    )
    if event.detail == EventDetail.APP_STARTING:
        record["designState"] = STARTING
    if source is not None:
        rm_id, partition = source
        for name, text in (
            ("rmID", rm_id),
            ("partition", partition),
            ("applicationID", event.application_id),
            ("queueName", event.queue),
            ("nodeID", event.node_id),
            ("reason", event.reason),
        ):
            if text:
                record[name] = text
    return to_bytes(f"{_encode(record)}\n")


def cut(message: str) -> str:
    """Cut a message to `LONGEST` bytes."""
    if 4 * len(message) <= LONGEST or len(encoded := message.encode("utf-8", "replace")) <= LONGEST:
        return message
    return encoded[: LONGEST - 3].decode("utf-8", "ignore") + "..."


def instance_line(instance: str) -> bytes:
    """Return the first line of a stream."""
    return to_bytes(f"{_encode({'InstanceUUID': instance})}\n")
