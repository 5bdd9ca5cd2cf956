"""The nodes of a scenario and what happens to them: the keys `nodes` and `events`."""

from __future__ import annotations

import attrs

from yunikorn.config.reading import Table
from yunikorn.resources import NOTHING, Resource
from yunikorn.simulation.machines import MAX_NODES, numbered
from yunikorn.simulation.scenario_values import read_count, read_name, read_resources, read_time
from yunikorn.simulation.workload import Node, NodeChange, NodeEvent
from yunikorn.suggestions import suggest

NODE_KEYS = ("name", "count", "resources", "attributes", "partition")
EVENT_KEYS = ("at", "node", "action", "resources", "attributes", "partition")
_MEANINGFUL = {
    NodeChange.ADD: ("resources", "attributes", "partition"),
    NodeChange.CAPACITY: ("resources",),
}
ACTIONS = tuple(change.value for change in NodeChange)


def read_nodes(document: Table) -> list[Node]:
    """The nodes that are there from the start; a name that is given twice is a problem."""
    nodes: dict[str, Node] = {}
    for table in document.tables("nodes"):
        table.only(NODE_KEYS)
        name = read_name(table, "name")
        alike = _read_node(table, name)
        for each in numbered(name, read_count(table, MAX_NODES)):
            if each and each in nodes:
                table.findings.problem(table.spot("name"), f"a node is already called '{each}'")
                break
            nodes[each] = attrs.evolve(alike, name=each)
    return list(nodes.values())


def _read_node(table: Table, name: str) -> Node:
    resources = read_resources(table, "a node")
    return Node(name, resources, table.pairs("attributes"), table.text("partition"))


@attrs.frozen
class _Written:
    """An event as it stands in the text; whether its node is there is known when all are sorted."""

    at: int
    change: NodeChange
    name: str
    table: Table
    resources: Resource
    joining: Node | None


def read_events(document: Table, nodes: list[Node]) -> list[NodeEvent]:
    """What happens to nodes, in order of time; an event of a node that is not there is a problem."""
    written = [_read_event(table) for table in document.tables("events")]
    present = {node.name: node for node in nodes}
    events = []
    for entry in sorted(filter(None, written), key=lambda entry: entry.at):
        node = _check_presence(entry, present)
        if node is None:
            continue
        events.append(NodeEvent(entry.at, entry.change, node, entry.resources))
        if entry.change is NodeChange.REMOVE:
            del present[node.name]
        else:
            present[node.name] = node
    return events


def _check_presence(entry: _Written, present: dict[str, Node]) -> Node | None:
    node = present.get(entry.name)
    if entry.joining is not None:
        if node is None:
            return entry.joining
        entry.table.findings.problem(
            entry.table.spot("node"), f"a node called '{entry.name}' is already there at that time"
        )
        return None
    if node is None:
        entry.table.findings.problem(
            entry.table.spot("node"),
            f"no node called '{entry.name}' is there at that time{suggest(entry.name, present)}",
        )
    return node


def _read_event(table: Table) -> _Written | None:
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
    change = NodeChange(action)
    joining = _read_node(table, name) if change is NodeChange.ADD else None
    resources = read_resources(table, "a change of capacity") if change is NodeChange.CAPACITY else NOTHING
    for key in ("resources", "attributes", "partition"):
        if key in table and key not in _MEANINGFUL.get(change, ()):
            table.findings.problem(table.spot(key), f"means nothing with the action '{action}'")
    if len(table.findings.problems) != wrong:
        return None
    return _Written(at, change, name, table, resources, joining)
