"""Output of a workload as a scenario, with one line for each node, event and application.

The scenario reproduces the workload exactly when it is read. The part of a line after the dash is JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from yunikorn_lab.simulation.distributions import DISTRIBUTIONS, PLAIN, Constant, DrawnAmounts, WeightedChoice
from yunikorn_lab.simulation.scenario_keys import (
    APPLICATION,
    NODE,
    TASK,
    Literal,
    write_amounts,
    write_keys,
    write_time,
)
from yunikorn_lab.simulation.workload import (
    NodeEvent,
    NodeEventKind,
    Workload,
    WorkloadApplication,
    WorkloadNode,
)


def scenario_lines(workload: Workload) -> Iterator[str]:
    """Yield the lines of the scenario, without line ends; applications are generated on demand."""
    yield f"name: {_flow(workload.name)}"
    if workload.startup.amounts is not None:
        yield f"seed: {workload.startup.seed}"
        yield f"startup: {_flow(_times(workload.startup.amounts))}"
    yield "nodes:"
    for node in workload.nodes:
        yield f"- {_flow(_node(node))}"
    if workload.events or workload.reloads:
        yield "events:"
    for event in workload.events:
        yield f"- {_flow(_event(event))}"
    for reload in workload.reloads:
        yield f"- {_flow({'at': write_time(reload.at), 'config': reload.file})}"
    yield "applications:"
    for application in workload.applications:
        yield f"- {_flow(_application(application))}"


def _times(amounts: DrawnAmounts) -> Any:
    """Return the value of a key for times that are fixed or drawn."""
    of = amounts.distribution
    if isinstance(of, Constant):
        return write_time(round(of.value))
    limits = {
        "min": write_time(amounts.low),
        "max": write_time(amounts.high),
        "step": write_time(amounts.step),
    }
    if isinstance(of, WeightedChoice):
        pairs = zip(of.values, of.weights, strict=True)
        weights = {str(write_time(round(value))): Literal(repr(weight)) for value, weight in pairs}
        return {"distribution": "choice", "values": weights, **limits}
    name, kind = next((name, kind) for name, kind in DISTRIBUTIONS.items() if isinstance(of, kind))
    options = {
        field.name: Literal(repr(value)) if field.name in PLAIN else write_time(round(value))
        for field in attrs.fields(kind)
        for value in [getattr(of, field.name)]
    }
    return {"distribution": name, **options, **limits}


def _flow(value: Any) -> str:
    # JSON is also YAML, and the streaming reader parses JSON much faster.
    if isinstance(value, Literal):
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
    return {"name": node.name, **write_keys(node, NODE)}


def _event(event: NodeEvent) -> dict[str, Any]:
    found = {"at": write_time(event.at), "node": event.node.name, "action": event.change.value}
    if event.change is NodeEventKind.ADD:
        return {**found, **write_keys(event.node, NODE)}
    if event.change is NodeEventKind.CAPACITY:
        return {**found, "resources": write_amounts(event.resources)}
    return found


def _application(application: WorkloadApplication) -> dict[str, Any]:
    tasks = [{"name": group.name, **write_keys(group, TASK)} for group in application.tasks]
    return {**write_keys(application, APPLICATION), "tasks": tasks}
