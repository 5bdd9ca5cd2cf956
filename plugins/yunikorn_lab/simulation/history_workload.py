"""Workloads from the history of a scheduler: what was requested, when, by whom, and for how long it ran.

An application is read from its row and those of its allocations. A note of the workload names what a history
does not know, and docs/workloads.md has the rules for what it knows in part.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator

import attrs
import msgspec

from yunikorn.clock import MILLISECOND
from yunikorn.errors import Problem
from yunikorn.model.gang import ATOMIC
from yunikorn.resources import Resource
from yunikorn_commands.input_files import HeldInput
from yunikorn_commands.input_source import InputError
from yunikorn_history.history_filter import HistoryFilter
from yunikorn_history.history_tables import PLACEHOLDER, PREEMPTED
from yunikorn_history.past_load import Values, past_load, recorded_time, repeated_ids
from yunikorn_history.past_records import PastNode
from yunikorn_history.queries import HistoryQueries, every
from yunikorn_lab.simulation import workload as plan
from yunikorn_lab.simulation.arrivals import Arrivals
from yunikorn_lab.simulation.scenario_keys import NOBODY
from yunikorn_lab.simulation.scenario_reader import ScenarioCluster
from yunikorn_lab.simulation.workload import (
    HourlyLoad,
    NodeEvent,
    NodeEventKind,
    WorkloadApplication,
    WorkloadNode,
)

TOGETHER = 1_000
"""Time (ms) within which requests of an application are one, and the end of a task is that of its node."""
BEFORE, AFTER = 60_000, 600_000
"""Time (ms) before and after the end of a preempted or lost task in which a request may replace it."""

NEVER_PLACED = "applications left out that were never allocated anything"
CARRIED = "applications from before the window"
OPEN = "tasks that still ran at the end of the window"
REPLACED = "replacements of preempted or lost tasks"
CUT = "preempted or lost tasks without a replacement"
UNKNOWN = (
    "a history has no conditions on nodes (selectors, affinity, tolerations), no time limits, no "
    "dependencies between applications, and no requests that were never allocated, and so has its simulation"
)
Kind = tuple[str, tuple[tuple[str, int], ...], int]
"""Task group, amounts and priority of a task."""
Place = tuple[str, str, str]
"""Resource manager, partition and name of a node."""


def hold_history(location: str, until: int | None) -> HeldInput:
    """Return the input that stands for a history before `until`, or for what it has now.

    All readers of the input read the same, whatever a scheduler adds meanwhile. Raises `HistoryError`, and
    `InputError` for an empty history.
    """
    times = recorded_time(location)
    if times is None:
        raise InputError(f"history:{location}", [Problem("", "the history has no applications yet")])
    # The latest time is part of the window, which ends before `until`.
    until = times[1] + 1 if until is None else min(until, times[1] + 1)
    return HeldInput(f"history:{location}", msgspec.json.encode({"history": [location, times[0], until]}))


def read_history(
    content: bytes, file: str, name: str, wanted: HistoryFilter, cluster: ScenarioCluster | None
) -> plan.Workload:
    """Read the workload of a history, to be run on its nodes, or on a `cluster`; raises `InputError`."""
    location, first, until = msgspec.json.decode(content)["history"]
    since = first if wanted.since is None else wanted.since
    if since >= until:
        raise InputError(file, [Problem("", "the window is empty: nothing is recorded after its beginning")])
    past = HistoryApplications(location, attrs.evolve(wanted, since=since, until=until), since, until)
    past.scan()
    counts = {what: count for what, count in past.counts.items() if count}
    if not len(past):
        queries = HistoryQueries.open(location)
        unknown = queries.unknown_names(wanted)
        queries.close()
        if unknown:
            raise InputError(file, [Problem("", why) for _, why in unknown])
        left_out = "".join(f" ({count} {what})" for what, count in counts.items())
        raise InputError(file, [Problem("", f"has no applications in this window{left_out}")])
    cluster = cluster or past.cluster
    if not cluster.nodes and not cluster.events:
        raise InputError(file, [Problem("", "has no nodes in this window: specify them with --nodes FILE")])
    return plan.Workload(
        *(name, "history", cluster.nodes, past, cluster.events, [f"{file}: {UNKNOWN}"], counts),
        origin=since / 1000,
        began=since / 1000,
        reloads=cluster.reloads,
        recorded=past.load,
    )


@attrs.define
class _Task:
    """A task as it is simulated: an allocation, or several of which each but the last was lost."""

    kind: Kind
    requested: int
    placed: int
    last: Values
    delay: int = 0


class HistoryApplications(Arrivals):
    """Applications of a window of a history, which is read again in each iteration."""

    def __init__(self, location: str, wanted: HistoryFilter, since: int, until: int) -> None:
        """Read the nodes; raises `HistoryError`."""
        self._location, self._wanted, self._since, self._until = location, wanted, since, until
        self.counts: Counter[str] = Counter()
        """Numbers of what was left out or completed, by kind."""
        self.load = HourlyLoad(self._moment(until))
        """Placements and use as they were recorded."""
        queries = HistoryQueries.open(location)
        nodes = [*every(queries.nodes, HistoryFilter(since=since, until=until))][::-1]
        queries.close()
        self.cluster = self._cluster(nodes)
        """Nodes at the beginning of the window, and what changed later."""
        self._repeated = repeated_ids(location)
        self._left = {(_place(one), one.left // TOGETHER) for one in nodes if one.left is not None}
        self._resources: dict[tuple[tuple[str, int], ...], Resource] = {}
        self._length = 0

    def scan(self) -> None:
        """Read the window once, for its length, the counts and the load."""
        for past, rows in past_load(self._location, self._wanted):
            self._length += self._convert(past, rows, past["app_id"], self.counts) is not None
            for one in rows:
                if not one["flags"] & PLACEHOLDER:
                    since = self._moment(one["placed"])
                    self.load.place(since)
                    self.load.spend(since, self._moment(self._end(one)), one["shape"])

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[WorkloadApplication]:
        runs: Counter[str] = Counter()
        for past, rows in past_load(self._location, self._wanted):
            name = past["app_id"]
            if name in self._repeated:
                runs[name] += 1
                name = name if runs[name] == 1 else f"{name}~run-{runs[name]}"
            found = self._convert(past, rows, name, Counter())
            if found is not None:
                yield found

    def _moment(self, time: int) -> int:
        return (time - self._since) * MILLISECOND

    def _end(self, row: Values) -> int:
        end: int | None = row["ended"]
        return self._until if end is None else end

    def _convert(
        self, past: Values, rows: list[Values], name: str, counts: Counter[str]
    ) -> WorkloadApplication | None:
        """Return the application as it is simulated; None if it had no task in the window."""
        since = self._since
        is_carried = past["submitted"] < since
        places = Counter(one["task_group"] for one in rows if one["flags"] & PLACEHOLDER)
        tasks = self._tasks(past, rows, counts)
        tasks = [one for one in tasks if not is_carried or self._end(one.last) > since]
        if not tasks:
            counts[NEVER_PLACED] += not is_carried
            return None
        counts[CARRIED] += is_carried
        counts[OPEN] += sum(one.last["ended"] is None for one in tasks)
        first = min(one.placed for one in tasks)
        # The members of a gang from before the window may run already.
        gang = past["gang"] if first >= since and (places or past["gang"] == ATOMIC) else ""
        asked = past["submitted"] if gang and places else min(one.requested for one in tasks)
        begin = max(since, asked)
        _delay(tasks, begin, first, places if gang else None)
        groups = Counter(
            (one.kind, one.delay, self._end(one.last) - max(one.last["placed"], since)) for one in tasks
        )
        wait = max(one.placed for one in tasks if not one.delay) - begin
        return WorkloadApplication(
            name,
            self._moment(begin),
            tuple(
                plan.WorkloadTaskGroup(
                    *(f"{group or 'task'}.{number}", count, self._resource(amounts), runtime * MILLISECOND),
                    priority=priority or None,
                    delay=delay * MILLISECOND,
                    task_group=group,
                )
                for number, (((group, amounts, priority), delay, runtime), count) in enumerate(
                    groups.items(), 1
                )
            ),
            queue=past["queue"],
            user=past["user"] or NOBODY,
            groups=tuple(past["groups"] or ()),
            partition=past["partition"],
            tags=past["tags"] or {},
            gang=gang,
            patience=(past["gang_timeout"] or 0) * MILLISECOND,
            recorded_wait=None if is_carried else wait * MILLISECOND,
        )

    def _resource(self, amounts: tuple[tuple[str, int], ...]) -> Resource:
        return self._resources.setdefault(amounts, Resource(dict(amounts)))

    def _tasks(self, past: Values, rows: list[Values], counts: Counter[str]) -> list[_Task]:
        """Return the tasks in the order of their requests; a replacement continues the task that was lost."""
        found: list[_Task] = []
        lost: dict[Kind, list[tuple[int, int]]] = {}
        """Ends and places in `found` of tasks without a replacement."""
        for one in rows:
            if one["flags"] & PLACEHOLDER:
                continue
            kind = one["task_group"], tuple(one["shape"].items()), one["priority"]
            requested, ended, alike = one["requested"], one["ended"], lost.setdefault(kind, [])
            while alike and alike[0][0] + AFTER < requested:
                counts[CUT] += 1
                heapq.heappop(alike)
            if alike and alike[0][0] - BEFORE <= requested:
                counts[REPLACED] += 1
                at = heapq.heappop(alike)[1]
                found[at].last = one
            else:
                at = len(found)
                found.append(_Task(kind, requested, one["placed"], one))
            place = past["rm"], past["partition"], one["node"]
            if ended is not None and (one["flags"] & PREEMPTED or self._is_lost(place, ended)):
                heapq.heappush(alike, (ended, at))
        counts[CUT] += sum(map(len, lost.values()))
        return found

    def _is_lost(self, node: Place, ended: int) -> bool:
        """Return True for a task that ended with its node."""
        second = ended // TOGETHER
        return any((node, one) in self._left for one in (second - 1, second, second + 1))

    def _cluster(self, nodes: list[PastNode]) -> ScenarioCluster:
        found = ScenarioCluster([])
        gone: dict[Place, int] = {}
        owners: dict[tuple[str, str], Place] = {}
        for one in nodes:
            place, name = _place(one), (one.partition, one.node_id)
            if one.joined < gone.get(place, 0):
                continue  # a second row of one registration
            gone[place] = self._until if one.left is None else one.left
            owner = owners.setdefault(name, place)
            if owner != place and one.joined < gone[owner]:
                # The resource manager of the simulation has the nodes of all.
                one = attrs.evolve(one, node_id=f"{one.node_id}~{one.rm_id}")
            else:
                owners[name] = place
            self._add_node(one, found)
        found.events.sort(key=lambda event: event.at)
        return found

    def _add_node(self, one: PastNode, cluster: ScenarioCluster) -> None:
        changes = [
            change
            for change in one.changes
            # Older versions could write another text over the capacity before.
            if change.kind in ("drain", "resume") or (change.kind == "capacity" and change.text[:1] == "{")
        ]
        before = (msgspec.json.decode(change.text) for change in changes if change.kind == "capacity")
        amounts, *later = map(Resource, (*before, one.capacity))
        node = WorkloadNode(one.node_id, amounts, dict(one.attributes), one.partition)
        begin, is_drained = max(one.joined, self._since), False
        events: list[tuple[int, NodeEventKind, Resource]] = []
        for change in changes:
            kind = NodeEventKind(change.kind)
            size = later.pop(0) if kind is NodeEventKind.CAPACITY else Resource()
            if change.time > begin:
                events.append((change.time, kind, size))
            elif size:
                node = attrs.evolve(node, resources=size)
            else:
                is_drained = kind is NodeEventKind.DRAIN
        if is_drained:
            events.insert(0, (begin, NodeEventKind.DRAIN, Resource()))
        if one.joined > self._since:
            events.insert(0, (begin, NodeEventKind.ADD, Resource()))
        else:
            cluster.nodes.append(node)
        if one.left is not None:
            events.append((one.left, NodeEventKind.REMOVE, Resource()))
        cluster.events.extend(
            NodeEvent(self._moment(at), kind, node, size) for at, kind, size in events if at < self._until
        )


def _place(node: PastNode) -> Place:
    return node.rm_id, node.partition, node.node_id


def _delay(tasks: list[_Task], begin: int, first: int, places: Counter[str] | None) -> None:
    """Set the delays of tasks (ms), in the order of their requests; `places` are the placeholders of a gang.

    Members of a gang have no delay: as many as there were placeholders of their task group, or, without any,
    those that were placed at `first`. All other tasks of a gang have one, because they are no members.
    """
    together, left = begin, Counter(places)
    for one in tasks:
        group = one.kind[0]
        left[group] -= 1
        if places is not None and (left[group] >= 0 if places else one.placed == first):
            continue
        if one.requested - together > TOGETHER:
            together = one.requested
        one.delay = max(together - begin, 0 if places is None else 1)
