"""Nodes of a scenario and their events: the keys `nodes` and `events`.

Events with a `config` do not concern nodes; `read_reloads` reads them.
"""

from __future__ import annotations

from pathlib import Path

import attrs

from yunikorn.config.reading import Table
from yunikorn.resources import NOTHING, Resource
from yunikorn.simulation.config_events import ConfigEvent
from yunikorn.simulation.input_error import InputError
from yunikorn.simulation.machines import MAX_NODES, numbered
from yunikorn.simulation.scenario_values import read_count, read_name, read_resources, read_time
from yunikorn.simulation.source import read_content, yaml_text
from yunikorn.simulation.workload import NodeEvent, NodeEventKind, WorkloadNode
from yunikorn.text import suggest

NODE_KEYS = ("name", "count", "resources", "attributes", "partition")
CONFIG_KEYS = ("at", "config")
EVENT_KEYS = ("at", "node", "action", "resources", "attributes", "partition")
_MEANINGFUL = {
    NodeEventKind.ADD: ("resources", "attributes", "partition"),
    NodeEventKind.CAPACITY: ("resources",),
}
ACTIONS = tuple(change.value for change in NodeEventKind)


def read_nodes(document: Table) -> list[WorkloadNode]:
    """Read the initial nodes; duplicate names are reported as problems."""
    nodes: dict[str, WorkloadNode] = {}
    for table in document.tables("nodes"):
        table.only(NODE_KEYS)
        name = read_name(table, "name")
        alike = _read_node(table, name)
        for each in numbered(name, read_count(table, MAX_NODES)):
            if each and each in nodes:
                table.findings.problem(table.spot("name"), f"duplicate node name '{each}'")
                break
            nodes[each] = attrs.evolve(alike, name=each)
    return list(nodes.values())


def _read_node(table: Table, name: str) -> WorkloadNode:
    resources = read_resources(table, "a node")
    return WorkloadNode(name, resources, table.pairs("attributes"), table.text("partition"))


@attrs.frozen
class _EventText:
    """An event as written; the presence of its node is checked after all events have been sorted."""

    at: int
    change: NodeEventKind
    name: str
    table: Table
    resources: Resource
    joining: WorkloadNode | None
    """Node that joins; None for a node that returns unchanged."""


def read_events(document: Table, nodes: list[WorkloadNode]) -> list[NodeEvent]:
    """Read the node events in order of time; events of absent nodes are reported as problems."""
    tables = [table for table in document.tables("events") if "config" not in table.node.entries]
    written = [_read_event(table) for table in tables]
    present = {node.name: node for node in nodes}
    gone: dict[str, WorkloadNode] = {}
    events = []
    for entry in sorted(filter(None, written), key=lambda entry: entry.at):
        node = _check_presence(entry, present, gone)
        if node is None:
            continue
        events.append(NodeEvent(entry.at, entry.change, node, entry.resources))
        if entry.change is NodeEventKind.REMOVE:
            gone[node.name] = present.pop(node.name)
        else:
            present[node.name] = node
    return events


def _check_presence(
    entry: _EventText, present: dict[str, WorkloadNode], gone: dict[str, WorkloadNode]
) -> WorkloadNode | None:
    node = present.get(entry.name)
    if entry.change is NodeEventKind.ADD:
        joining = entry.joining or gone.get(entry.name)
        if joining is None:
            what = "required, but missing: a new node needs resources"
            entry.table.findings.problem(entry.table.spot("resources"), what)
            return None
        if node is None:
            return joining
        entry.table.findings.problem(
            entry.table.spot("node"), f"node '{entry.name}' is already registered at that time"
        )
        return None
    if node is None:
        entry.table.findings.problem(
            entry.table.spot("node"),
            f"no node '{entry.name}' is registered at that time{suggest(entry.name, present)}",
        )
    return node


def _read_event(table: Table) -> _EventText | None:
    wrong = len(table.findings.problems)
    table.only(EVENT_KEYS)
    at = read_time(table, "at")
    name = read_name(table, "node")
    action = read_name(table, "action")
    if action and action not in ACTIONS:
        table.findings.problem(
            table.spot("action"),
            f"unknown action '{action}'{suggest(action, ACTIONS)}; known: {', '.join(ACTIONS)}",
        )
    if action not in ACTIONS:
        return None
    change = NodeEventKind(action)
    says_more = any(key in table for key in _MEANINGFUL[NodeEventKind.ADD])
    joining = _read_node(table, name) if change is NodeEventKind.ADD and says_more else None
    resources = read_resources(table, "a change of capacity") if change is NodeEventKind.CAPACITY else NOTHING
    for key in ("resources", "attributes", "partition"):
        if key in table and key not in _MEANINGFUL.get(change, ()):
            table.findings.problem(table.spot(key), f"not allowed with the action '{action}'")
    if len(table.findings.problems) != wrong:
        return None
    return _EventText(at, change, name, table, resources, joining)


def read_reloads(document: Table, folder: Path) -> list[ConfigEvent]:
    """Read the configurations to load, in order of time; `folder` is the folder of the scenario."""
    found = []
    for table in document.tables("events"):
        if "config" not in table.node.entries:
            continue
        table.only(CONFIG_KEYS)
        at, name = read_time(table, "at"), read_name(table, "config")
        try:
            found.append(ConfigEvent(at, name, yaml_text(read_content(folder / name), name)))
        except InputError as error:
            for problem in error.problems if name else ():
                table.findings.problem(table.spot("config"), f"{folder / name}: {problem.message}")
    return sorted(found, key=lambda event: event.at)
