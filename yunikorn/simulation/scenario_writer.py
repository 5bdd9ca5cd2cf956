"""Output of a workload as a scenario, with one line for each node, event and application.

The scenario reproduces the workload exactly when it is read. The part of a line after the dash is JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from yunikorn.clock import SECOND
from yunikorn.simulation.scenario_values import ALWAYS
from yunikorn.simulation.workload import (
    FOREVER,
    NodeEvent,
    NodeEventKind,
    Workload,
    WorkloadApplication,
    WorkloadNode,
    WorkloadTaskGroup,
)


def scenario_lines(workload: Workload) -> Iterator[str]:
    """Yield the lines of the scenario, without line ends; applications are generated on demand."""
    yield f"name: {_flow(workload.name)}"
    yield "nodes:"
    for node in workload.nodes:
        yield f"- {_flow(_node(node))}"
    if workload.events or workload.reloads:
        yield "events:"
    for event in workload.events:
        yield f"- {_flow(_event(event))}"
    for reload in workload.reloads:
        yield f"- {_flow({'at': _time(reload.at), 'config': reload.file})}"
    yield "applications:"
    for application in workload.applications:
        yield f"- {_flow(_application(application))}"


class _Plain(str):
    """A number that is written without quotes."""

    __slots__ = ()


def _flow(value: Any) -> str:
    # JSON is also YAML, and the streaming reader parses JSON much faster.
    if isinstance(value, _Plain):
        return value
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_quote(key)}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _quote(value) if isinstance(value, str) else json.dumps(value)


def _quote(text: str) -> str:
    if text.isascii():
        return json.dumps(text)
    # JSON escapes characters beyond 16 bits as surrogate pairs, which YAML does not support.
    plain = json.dumps(text, ensure_ascii=False)
    return "".join(
        char if char.isprintable() or ord(char) > 0xFFFF else f"\\u{ord(char):04x}" for char in plain
    )


def _node(node: WorkloadNode) -> dict[str, Any]:
    return {"name": node.name, "resources": _amount(node.resources), **_more(node)}


def _more(node: WorkloadNode) -> dict[str, Any]:
    found = {"attributes": dict(node.attributes), "partition": node.partition}
    return {key: value for key, value in found.items() if value}


def _event(event: NodeEvent) -> dict[str, Any]:
    found = {"at": _time(event.at), "node": event.node.name, "action": event.change.value}
    if event.change is NodeEventKind.ADD:
        return {**found, "resources": _amount(event.node.resources), **_more(event.node)}
    if event.change is NodeEventKind.CAPACITY:
        return {**found, "resources": _amount(event.resources)}
    return found


def _application(application: WorkloadApplication) -> dict[str, Any]:
    found = {
        "id": application.id,
        "submit": _time(application.submit) if application.submit else "",
        "user": application.user,
        "groups": list(application.groups),
        "queue": application.queue,
        "partition": application.partition,
        "tags": dict(application.tags),
        "gang": application.gang,
        "gangtimeout": _time(application.patience) if application.patience else "",
        "timeout": _time(application.timeout) if application.timeout else "",
        "preempted": application.preempted,
        "tasks": [_tasks(group) for group in application.tasks],
    }
    return {key: value for key, value in found.items() if value}


def _tasks(group: WorkloadTaskGroup) -> dict[str, Any]:
    found = {
        "name": group.name,
        "count": group.count if group.count != 1 else "",
        "resources": _amount(group.resources),
        "runtime": ALWAYS if group.runtime == FOREVER else _time(group.runtime),
        "priority": _Plain(group.priority) if group.priority is not None else "",
        "tags": dict(group.tags),
        "timeout": _time(group.timeout) if group.timeout else "",
    }
    return {key: value for key, value in found.items() if value}


def _amount(resources: Mapping[str, int]) -> dict[str, str]:
    return {kind: _quantity(kind, value) for kind, value in resources.items()}


def _quantity(kind: str, value: int) -> str:
    if kind == "vcore":
        return f"{value}m" if value % 1000 else str(value // 1000)
    if kind == "memory" and value:
        for suffix, size in (("Gi", 2**30), ("Mi", 2**20)):
            if value % size == 0:
                return f"{value // size}{suffix}"
    return str(value)


def _time(moment: int) -> _Plain:
    whole, rest = divmod(moment, SECOND)
    return _Plain(f"{whole}.{rest:09}".rstrip("0") if rest else whole)
