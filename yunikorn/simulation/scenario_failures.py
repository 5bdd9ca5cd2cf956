"""The key `failures` of a scenario: nodes that are removed with their tasks, and return, at random."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase

from yunikorn.config.reading import Table
from yunikorn.simulation.generator import Amounts
from yunikorn.simulation.rng import Streams
from yunikorn.simulation.scenario_draws import TIME, read_amounts
from yunikorn.simulation.scenario_values import read_name, read_time
from yunikorn.simulation.workload import NodeEvent, NodeEventKind, WorkloadNode
from yunikorn.text import suggest

KEYS = ("nodes", "every", "down", "until")
MANY = 200_000
"""Maximum number of events of one entry."""


def read_failures(
    document: Table, nodes: list[WorkloadNode], busy: Collection[str], of: Streams
) -> list[NodeEvent]:
    """Return the events of the nodes in the entries; nodes in `busy` have explicit events and are refused."""
    found: list[NodeEvent] = []
    taken = dict.fromkeys(busy, "entries in events")
    for table in document.tables("failures"):
        wrong = len(table.findings.problems)
        table.only(KEYS)
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
            what = f"creates more than {MANY:,} events: increase every, or reduce until"
            table.findings.problem(table.spot("every"), what)
    return found


def _read_nodes(table: Table, nodes: list[WorkloadNode], taken: dict[str, str]) -> list[WorkloadNode]:
    pattern = read_name(table, "nodes")
    names = [node.name for node in nodes]
    chosen = [node for node in nodes if fnmatchcase(node.name, pattern)]
    if pattern and not chosen:
        table.findings.problem(
            table.spot("nodes"),
            f"no initial node matches '{pattern}'{suggest(pattern, names)}; "
            "worker-* matches all names that start with worker-",
        )
    for node in chosen:
        if node.name in taken:
            table.findings.problem(table.spot("nodes"), f"node '{node.name}' already has {taken[node.name]}")
            break
        taken[node.name] = "failures from an earlier entry"
    return chosen


def _lose(
    node: WorkloadNode, every: Amounts, down: Amounts, until: int, of: Streams, most: int
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
