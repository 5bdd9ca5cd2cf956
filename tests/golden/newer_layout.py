"""Hand-written messages of the interface's newer layout (one request type per subject)."""

from __future__ import annotations

from typing import Any

from tests.core.kit import configuration, queue
from tests.service.recording.script import amounts

RecordedEntry = dict[str, Any]

CONFIG = configuration(
    queue("a", resources={"guaranteed": {"memory": "8"}}, properties={"preemption.delay": "10s"}),
    queue("b", resources={"max": {"memory": "16"}}),
)


def nodes(*entries: RecordedEntry) -> RecordedEntry:
    """Return a `NodeRequest`."""
    return {"update_node": {"nodes": list(entries)}}


def new_node(name: str, memory: int, **more: Any) -> RecordedEntry:
    """Return the registration of a node."""
    return {"nodeID": name, "action": "CREATE", "schedulableResource": amounts(memory=memory), **more}


def apps(*entries: RecordedEntry) -> RecordedEntry:
    """Return an `ApplicationRequest` with new applications."""
    return {"update_application": {"new": [{"ugi": {"user": "ann"}, **entry} for entry in entries]}}


def asks(app: str, *keys: str, memory: int = 1, **more: Any) -> RecordedEntry:
    """Return an `AllocationRequest` with asks."""
    entries = [
        {"allocationKey": key, "applicationID": app, "resourcePerAlloc": amounts(memory=memory), **more}
        for key in keys
    ]
    return {"update_allocation": {"allocations": entries}}


def releases(app: str, *keys: str, why: str = "STOPPED_BY_RM") -> RecordedEntry:
    """Return an `AllocationRequest` with releases."""
    entries = [{"applicationID": app, "allocationKey": key, "terminationType": why} for key in keys]
    return {"update_allocation": {"releases": {"allocationsToRelease": entries}}}


LINES: list[RecordedEntry] = [
    {"rm": "rm", "register": {"config": CONFIG}},
    nodes(new_node("n1", 8), new_node("n2", 8)),
    apps(
        {"applicationID": "b1", "queueName": "root.b"}, {"applicationID": "b2", "queueName": "root.missing"}
    ),
    asks("b1", *[f"x{number}" for number in range(18)]),
    {"advance": "1s"},
    apps({"applicationID": "a1", "queueName": "root.a"}),
    asks("a1", "y0", "y1", memory=4),
    {"advance": "5s"},
    asks("a1", "urgent", memory=2, priority=5),
    {"advance": "12s"},
    *[releases("b1", f"x{number}", why="PREEMPTED_BY_SCHEDULER") for number in range(18)],
    nodes({"nodeID": "n1", "action": "DRAIN_NODE"}),
    asks("a1", "late", memory=1),
    nodes({"nodeID": "n1", "action": "DRAIN_TO_SCHEDULABLE"}),
    nodes(new_node("n3", 4)),
    apps(
        {
            "applicationID": "gang",
            "queueName": "root.b",
            "placeholderAsk": amounts(memory=3),
            "gangSchedulingStyle": "Soft",
            "executionTimeoutMilliSeconds": 20000,
        }
    ),
    asks("gang", "p0", "p1", "p2", placeholder=True, taskGroupName="workers"),
    {"advance": "1s"},
    asks("gang", "t0", "t1", taskGroupName="workers"),
    releases("gang", "p0", "p1", "p2", why="PLACEHOLDER_REPLACED"),
    {"advance": "40s"},
    nodes({"nodeID": "n2", "action": "UPDATE", "schedulableResource": amounts(memory=6)}),
    nodes({"nodeID": "n2", "action": "DECOMISSION"}),
    nodes({"nodeID": "unknown", "action": "DECOMISSION"}),
    asks("nowhere", "z"),
    releases("a1", "y0"),
    releases("a1", "unknown"),
    {"update_application": {"remove": [{"applicationID": "b1"}]}},
    {"update_application": {"remove": [{"applicationID": "a1"}]}},
    {"advance": "60s"},
]
