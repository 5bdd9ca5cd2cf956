"""Entries of a scenario: applications, nodes, their events, and failures.

Events with a `config` do not concern nodes; `read_reloads` reads them. The key `failures` describes nodes
that are removed with their tasks, and return, at random.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import accumulate
from pathlib import Path
from typing import TypeVar

import attrs

from yunikorn.config.yaml_reading import YamlTable
from yunikorn.errors import ConfigError
from yunikorn.model.gang import HARD, SOFT
from yunikorn.resources import NOTHING, Resource
from yunikorn.text import suggest
from yunikorn_commands.config_source import read_source
from yunikorn_commands.input_source import InputError, read_content, yaml_text
from yunikorn_commands.plugin_files import CodePermission
from yunikorn_lab.simulation.dependencies import ScenarioDependencies
from yunikorn_lab.simulation.distributions import DrawnAmounts
from yunikorn_lab.simulation.machines import MAX_NODES, numbered
from yunikorn_lab.simulation.rng import Streams
from yunikorn_lab.simulation.scenario_keys import (
    APPLICATION,
    APPLICATION_KEYS,
    MAX_COUNT,
    NODE,
    NODE_KEYS,
    TASK,
    TASK_KEYS,
    read_keys,
)
from yunikorn_lab.simulation.scenario_values import (
    TIME,
    missing,
    read_amounts,
    read_count,
    read_name,
    read_resources,
    read_time,
    unknown,
)
from yunikorn_lab.simulation.workload import (
    ConfigEvent,
    NodeEvent,
    NodeEventKind,
    WorkloadApplication,
    WorkloadNode,
    WorkloadTaskGroup,
)

T = TypeVar("T")

CONFIG_KEYS = ("at", "config")
EVENT_KEYS = ("at", "node", "action", "resources", "attributes", "partition", "devices")
_MEANINGFUL = {
    NodeEventKind.ADD: ("resources", "attributes", "partition", "devices"),
    NodeEventKind.CAPACITY: ("resources",),
}
ACTIONS = tuple(change.value for change in NodeEventKind)
FAILURE_KEYS = ("nodes", "every", "down", "until")
MANY = 200_000
"""Maximum number of failure events of one entry."""


def read_applications(
    tables: Sequence[YamlTable], counts: Sequence[int], entries: ScenarioDependencies
) -> list[WorkloadApplication]:
    """Read the applications in the order of the text, and add their entries to `entries`.

    `counts` has the number of each entry. Duplicate ids and impossible predecessors are reported as problems.
    """
    found: dict[str, WorkloadApplication] = {}
    for table, count in zip(tables, counts, strict=True):
        ids = []
        for application in _read_alike(table, count):
            if application.id and application.id in found:
                table.problem("id", f"duplicate application id '{application.id}'")
                break
            found[application.id] = application
            ids.append(application.id)
        entries.add(table, ids)
    return list(entries.resolve(found).values())


def too_many_applications(count: int) -> str:
    """Return the problem of a scenario with this number of applications."""
    remedy = "simulate a shorter time, or fewer applications with more tasks each"
    return f"expected at most {MAX_COUNT:,} applications {_up_to_here(count)}: {remedy}"


def _too_many_nodes(count: int) -> str:
    return f"expected at most {MAX_NODES:,} nodes {_up_to_here(count)}: simulate fewer, larger ones"


def _up_to_here(count: int) -> str:
    return f"in a scenario, and up to here there are {count:,} or more"


def check_total(
    tables: Sequence[YamlTable], counts: Sequence[int], most: int, problem: Callable[[int], str]
) -> bool:
    """Return False, and report it, if the numbers of these entries are too many together.

    The caller makes nothing then: the objects of the first entries would fill the memory.
    """
    for table, total in zip(tables, accumulate(counts), strict=True):
        if total > most:
            table.problem("count", problem(total))
            return False
    return True


def _read_alike(table: YamlTable, count: int) -> Iterator[WorkloadApplication]:
    """Yield the applications of an entry, `count` in all."""
    table.only(APPLICATION_KEYS)
    every = read_time(table, "every", 0)
    values = read_keys(table, APPLICATION)
    application = WorkloadApplication(**values, tasks=read_tasks(table, _read_task))
    check_times(table, application)
    if application.has_wrong_least:
        table.problem(
            "tasks", "atleast is at most the count of the tasks, in an application with gang: Atomic"
        )
    if application.has_wrong_step:
        table.problem(
            "tasks", "step divides atleast and the count of the tasks, in an application with gang: Atomic"
        )
    for index, name in enumerate(numbered(application.id, count)):
        yield attrs.evolve(application, id=name, submit=application.submit + index * every)


def check_times(table: YamlTable, application: WorkloadApplication) -> None:
    """Report conflicting timeouts: a gang with placeholders has `gangtimeout`, others have `timeout`."""
    if application.patience and not application.has_placeholders:
        what_to_do = f"set gang: {SOFT} or gang: {HARD}, or remove gangtimeout"
        table.problem("gangtimeout", f"applies only to a gang with placeholders: {what_to_do}")
    if application.timeout and application.has_placeholders:
        what_to_do = "set gangtimeout, or a timeout for each of its tasks"
        table.problem("timeout", f"does not apply to a gang with placeholders: {what_to_do}")


def read_tasks(application: YamlTable, read: Callable[[YamlTable, str], T]) -> tuple[T, ...]:
    """Read the task groups of an application, at least one; `read` receives a group and its name."""
    wrong = len(application.findings.problems)
    groups: dict[str, T] = {}
    for number, table in enumerate(application.tables("tasks"), 1):
        name = table.text("name") or f"task-{number}"
        if name in groups:
            table.problem("name", f"duplicate task name '{name}' in this application")
        groups[name] = read(table, name)
    if not groups and len(application.findings.problems) == wrong:
        application.problem("tasks", "an application needs tasks")
    return tuple(groups.values())


def _read_task(table: YamlTable, name: str) -> WorkloadTaskGroup:
    table.only(TASK_KEYS)
    return WorkloadTaskGroup(name, **read_keys(table, TASK))


# -- nodes and their events -------------------------------------------------------------------------------


def read_nodes(document: YamlTable) -> list[WorkloadNode]:
    """Read the initial nodes; duplicate names are reported as problems."""
    nodes: dict[str, WorkloadNode] = {}
    tables = document.tables("nodes")
    counts = [read_count(table, MAX_NODES) for table in tables]
    if not check_total(tables, counts, MAX_NODES, _too_many_nodes):
        counts = [0] * len(counts)
    for table, count in zip(tables, counts, strict=True):
        table.only(NODE_KEYS)
        name = read_name(table, "name")
        alike = WorkloadNode(name, **read_keys(table, NODE))
        for each in numbered(name, count):
            if each and each in nodes:
                table.problem("name", f"duplicate node name '{each}'")
                break
            nodes[each] = attrs.evolve(alike, name=each)
    return list(nodes.values())


@attrs.frozen
class _EventText:
    """An event as written; the presence of its node is checked after all events have been sorted."""

    at: int
    change: NodeEventKind
    name: str
    table: YamlTable
    resources: Resource
    joining: WorkloadNode | None
    """Node that joins; None for a node that returns unchanged."""


def read_events(document: YamlTable, nodes: list[WorkloadNode]) -> list[NodeEvent]:
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
            missing(entry.table, "resources", "a new node needs resources")
        elif node is not None:
            entry.table.problem("node", f"node '{entry.name}' is already registered at that time")
        return joining if node is None else None
    if node is None:
        hint = suggest(entry.name, present)
        entry.table.problem("node", f"no node '{entry.name}' is registered at that time{hint}")
    return node


def _read_event(table: YamlTable) -> _EventText | None:
    wrong = len(table.findings.problems)
    table.only(EVENT_KEYS)
    at = read_time(table, "at")
    name = read_name(table, "node")
    action = read_name(table, "action")
    if action not in ACTIONS:
        if action:
            unknown(table, "action", action, ACTIONS)
        return None
    change = NodeEventKind(action)
    joining, resources = None, NOTHING
    if change is NodeEventKind.ADD and any(key in table for key in _MEANINGFUL[change]):
        joining = WorkloadNode(name, **read_keys(table, NODE))
    elif change is NodeEventKind.CAPACITY:
        resources = read_resources(table, "a change of capacity")
    for key in ("resources", "attributes", "partition", "devices"):
        if key in table and key not in _MEANINGFUL.get(change, ()):
            table.problem(key, f"not allowed with the action '{action}'")
    if len(table.findings.problems) != wrong:
        return None
    return _EventText(at, change, name, table, resources, joining)


def read_reloads(document: YamlTable, folder: Path) -> list[ConfigEvent]:
    """Read the configurations to load, in order of time; `folder` is the folder of the scenario."""
    found = []
    for table in document.tables("events"):
        if "config" not in table.node.entries:
            continue
        table.only(CONFIG_KEYS)
        at, name = read_time(table, "at"), read_name(table, "config")
        try:
            source = read_source(yaml_text(read_content(folder / name), name))
            found.append(ConfigEvent(at, name, source, CodePermission.of_data((folder / name).parent)))
        except ConfigError as error:
            for one in error.problems:
                table.problem("config", f"{folder / name}: {one}")
        except InputError as error:
            for one in error.problems if name else ():
                table.problem("config", f"{folder / name}: {one.message}")
    return sorted(found, key=lambda event: event.at)


# -- failures -------------------------------------------------------------------------------------------


def read_failures(
    document: YamlTable, nodes: list[WorkloadNode], busy: Collection[str], of: Streams
) -> list[NodeEvent]:
    """Return the events of the nodes in the entries; nodes in `busy` have explicit events and are refused."""
    found: list[NodeEvent] = []
    taken = dict.fromkeys(busy, "entries in events")
    for table in document.tables("failures"):
        wrong = len(table.findings.problems)
        table.only(FAILURE_KEYS)
        chosen = _read_nodes(table, nodes, taken)
        every, down = read_amounts(table, "every", TIME), read_amounts(table, "down", TIME)
        until = read_time(table, "until")
        if len(table.findings.problems) != wrong:
            continue
        room = MANY
        for node in chosen:
            events = list(_lose(node, every, down, until, of, room))
            room -= len(events)
            found += events
        if room < 0:
            table.problem("every", f"creates more than {MANY:,} events: increase every, or reduce until")
    return found


def _read_nodes(table: YamlTable, nodes: list[WorkloadNode], taken: dict[str, str]) -> list[WorkloadNode]:
    pattern = read_name(table, "nodes")
    names = [node.name for node in nodes]
    chosen = [node for node in nodes if fnmatchcase(node.name, pattern)]
    if pattern and not chosen:
        hint = "worker-* matches all names that start with worker-"
        table.problem("nodes", f"no initial node matches '{pattern}'{suggest(pattern, names)}; {hint}")
    for node in chosen:
        if node.name in taken:
            table.problem("nodes", f"node '{node.name}' already has {taken[node.name]}")
            break
        taken[node.name] = "failures from an earlier entry"
    return chosen


def _lose(
    node: WorkloadNode, every: DrawnAmounts, down: DrawnAmounts, until: int, of: Streams, most: int
) -> Iterator[NodeEvent]:
    up, away = of(f"failures {node.name}"), of(f"repairs {node.name}")
    moment = 0
    for _ in range(most // 2 + 1):
        # At least 1 ns: a node that fails at the moment of its return would stop the clock.
        moment += max(every.draw(up), 1)
        if moment > until:
            return
        yield NodeEvent(moment, NodeEventKind.REMOVE, node)
        moment += down.draw(away)
        yield NodeEvent(moment, NodeEventKind.ADD, node)
