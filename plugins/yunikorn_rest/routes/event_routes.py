"""Routes of events: the latest ones, and streams of new ones."""

from __future__ import annotations

import json

from yunikorn_rest.answers import Answer, RequestRefused
from yunikorn_rest.endpoints import COUNT, Call, Query, Route
from yunikorn_rest.event_json import EventBatch
from yunikorn_rest.event_streams import EVENT_STREAM, EventHub, EventStream

EVENTS = "/ws/v1/events"
NATURAL = {**COUNT, "minimum": 0}
"""JSON schema of a number from 0 on."""
DISABLED = "Event tracking is disabled"
DETAILS = Query(
    "details", "with any value: records have resource manager, partition, application, queue, node and reason"
)
LARGEST = 2**64
"""Bound of the numbers that parameters may have."""


def _hub(call: Call) -> EventHub:
    events = call.context.events
    if events is None or not events.store.is_tracking:
        raise RequestRefused(500, DISABLED)
    return events


def unsigned(text: str, default: int) -> int:
    """Return the number in a parameter, or the default if it is absent; raises `RequestRefused`."""
    if not text:
        return default
    if not (text.isascii() and text.isdigit()):
        raise RequestRefused(400, f"strconv.ParseUint: parsing {json.dumps(text)}: invalid syntax")
    significant = text.lstrip("0")
    if len(significant) > len(str(LARGEST)) or int(significant or "0") >= LARGEST:
        raise RequestRefused(400, f"strconv.ParseUint: parsing {json.dumps(text)}: value out of range")
    return int(significant or "0")


@Route(
    EVENTS + "/batch",
    EventBatch,
    queries=(
        Query("start", "id of the first event, by default 0", "0", NATURAL),
        Query("count", "maximum number of events, by default and at most 10000", "100", COUNT),
        DETAILS,
    ),
    errors=(400,),
)
async def batch(call: Call) -> Answer:
    """Events from an id on."""
    hub = _hub(call)
    most = hub.limits.records
    count = unsigned(call.query("count"), most)
    if count == 0:
        raise RequestRefused(400, '0 is not a valid value for "count"')
    start = unsigned(call.query("start"), 0)
    lowest, following = hub.store.bounds
    lines: list[bytes] = []
    if lowest <= start < following:
        number = min(count, most, following - start)
        lines = await hub.lines(start, number, detailed=DETAILS.name in call.request.query_params)
        if not lines:  # they were forgotten meanwhile
            lowest, following = hub.store.bounds
    head = json.dumps(
        {"InstanceUUID": hub.store.instance, "LowestID": lowest, "HighestID": max(0, following - 1)},
        separators=(",", ":"),
    )
    records = b"[%b]" % b",".join(line[:-1] for line in lines) if lines else b"null"
    return Answer(pieces=(b'%b,"EventRecords":' % head[:-1].encode(), records, b"}\n"))


@Route(
    EVENTS + "/stream",
    content_type=EVENT_STREAM,
    queries=(Query("count", "number of past events to begin with, by default 0", "100", NATURAL), DETAILS),
    errors=(400,),
    is_unlimited=True,
)
async def stream(call: Call) -> Answer:
    """Events as they occur: one JSON object a line, or Server-Sent Events if accepted."""
    hub = _hub(call)
    host = call.caller.address
    if not hub.has_room(host):
        hub.refused += 1
        raise RequestRefused(503, "Too many streaming connections")
    position = hub.position_for(unsigned(call.query("count"), 0))
    detailed = DETAILS.name in call.request.query_params
    as_messages = EVENT_STREAM in call.request.headers.get("accept", "").lower()
    missed = 0
    if as_messages:
        seen = _last_seen(call.request.headers.get("last-event-id", ""), hub)
        if seen is not None:
            lowest = hub.store.bounds[0]
            position, missed = max(lowest, seen + 1), max(0, lowest - seen - 1)
    return EventStream(
        hub=hub, host=host, position=position, missed=missed, as_messages=as_messages, detailed=detailed
    )


def _last_seen(text: str, hub: EventHub) -> int | None:
    """Return the id of the last event that a reconnecting client has, or None."""
    instance, _, number = text.rpartition(":")
    if instance != hub.store.instance or not (number.isascii() and number.isdigit() and len(number) < 20):
        return None
    return int(number) if int(number) < hub.store.bounds[1] else None


ENDPOINTS = (batch, stream)
