"""Histories for tests: rows by hand, or those of a simulation, as a recorder would write them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from yunikorn.clock import MILLISECOND
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import Allocation
from yunikorn_history.database import open_writer
from yunikorn_history.history_tables import METADATA, PLACEHOLDER, PREEMPTED
from yunikorn_history.row_writer import RowWriter
from yunikorn_history.rows import Ids, RowBatch
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.rm_state import Running, Submitted, partition_name
from yunikorn_lab.simulation.run import simulate
from yunikorn_lab.simulation.scenario_reader import read_scenario
from yunikorn_lab.simulation.workload import NodeEvent, NodeEventKind, Workload

BEGIN = 1_793_491_200_000
"""2026-11-01, midnight in UTC."""
NAMED = {"rm", "partition", "queue", "user", "groups", "template", "gang", "state", "reason", "longest_wait"}
NAMED |= {"tags", "node", "task_group", "exit", "preemptor", "name", "source", "by", "group"}
CORE = {"vcore": 1000}


class HistoryRows:
    """Rows of a history, with names and amounts instead of their ids."""

    def __init__(self) -> None:
        self.names, self.shapes = Ids("names", {}), Ids("shapes", {})
        self.batch = RowBatch()
        self.numbers: dict[str, int] = {}

    def add(self, table: str, **values: Any) -> int:
        """Add a row, whose id is the next one unless it is given, and return the id."""
        number: int = values.setdefault("id", self.numbers.get(table, 0) + 1)
        self.numbers[table] = number
        row = []
        for column in METADATA.tables[table].c:
            value = values.pop(column.name, getattr(column.default, "arg", None))
            if isinstance(value, str) and column.name in NAMED:
                value = self.names.of(value)
            elif column.name == "shape" and isinstance(value, Mapping):
                value = self.shapes.of(json.dumps(dict(value), sort_keys=True))
            elif isinstance(value, (dict, list)):
                value = json.dumps(value)
            row.append(value)
        assert not values, values
        self.batch.add(table, tuple(row))
        return number

    def application(self, app_id: str, submitted: int, **values: Any) -> int:
        """Add an application, submitted so many milliseconds after `BEGIN`."""
        given = {"partition": "default", "queue": "root.a", "user": "ann", "groups": "[]", "states": []}
        return self.add("applications", **{**given, **values}, app_id=app_id, submitted=BEGIN + submitted)

    def task(self, app: int, requested: int, placed: int, ended: int | None, **values: Any) -> int:
        """Add an allocation of one core, with times after `BEGIN`."""
        given = {"key": f"task-{len(self.batch)}", "node": "n1", "shape": CORE}
        end = None if ended is None else BEGIN + ended
        times = {"requested": BEGIN + requested, "placed": BEGIN + placed, "ended": end}
        return self.add("allocations", **{**given, **values}, **times, app=app)

    def node(self, name: str, joined: int, left: int | None = None, **values: Any) -> int:
        """Add a node of four cores, with times after `BEGIN`."""
        given = {"partition": "default", "shape": {"vcore": 4000}, "changes": []}
        end = None if left is None else BEGIN + left
        return self.add("nodes", **{**given, **values}, name=name, joined=BEGIN + joined, left=end)

    def seen(self, until: int) -> None:
        """Add a run of the scheduler from `BEGIN` to so many milliseconds later."""
        self.add("runs", started=BEGIN, seen=BEGIN + until, version="1", host="h")

    def write(self, location: Path | str) -> str:
        """Write the rows to a new history."""
        self.names.move_to(self.batch)
        self.shapes.move_to(self.batch)
        writer = open_writer(str(location))
        RowWriter(writer).write(self.batch)
        writer.close()
        return str(location)


class SimulatedHistory(Recorder):
    """Recorder that makes the rows of a simulation."""

    def __init__(self) -> None:
        self.rows = HistoryRows()
        self._open: dict[object, dict[str, Any]] = {}
        self._applications: dict[str, dict[str, Any]] = {}
        self._nodes: dict[str, dict[str, Any]] = {}

    def submitted(self, moment: int, record: Submitted) -> None:
        plan = record.plan
        self._applications[plan.id] = {
            **{
                "app_id": plan.id,
                "submitted": moment // MILLISECOND,
                "partition": partition_name(plan.partition),
            },
            **{"queue": plan.queue, "user": plan.user, "groups": json.dumps(plan.groups), "gang": plan.gang},
            **{"tags": json.dumps(dict(plan.tags)), "gang_timeout": plan.patience // MILLISECOND or None},
            "id": len(self._applications) + 1,
        }

    def application_ended(self, moment: int, record: Submitted, outcome: str, reason: str) -> None:
        self._applications[record.plan.id]["ended"] = BEGIN + moment // MILLISECOND

    def _begin(self, key: object, allocation: Allocation, asked: int, moment: int, flags: int) -> None:
        self._open[key] = {
            **{"app": self._applications[allocation.application_id]["id"], "node": allocation.node_id},
            **{
                "key": allocation.uuid,
                "shape": allocation.resource_per_alloc,
                "priority": allocation.priority,
            },
            **{"requested": asked // MILLISECOND, "placed": moment // MILLISECOND, "flags": flags},
            "task_group": allocation.task_group_name,
        }

    def _end(self, key: object, moment: int, reason: str) -> None:
        row = self._open.pop(key)
        row["flags"] |= PREEMPTED * (reason == "preempted")
        self.rows.task(ended=moment // MILLISECOND, **row)

    def allocated(self, moment: int, allocation: Allocation) -> None:
        if allocation.placeholder:
            self._begin(allocation.uuid, allocation, moment, moment, PLACEHOLDER)

    def released(self, moment: int, allocation: Allocation, reason: str) -> None:
        if allocation.placeholder:
            self._end(allocation.uuid, moment, reason)

    def started(self, moment: int, task: Running) -> None:
        self._begin(task, task.allocation, task.ask.asked, moment, 0)

    def left(self, moment: int, task: Running, reason: str) -> None:
        self._end(task, moment, reason)

    def node_changed(self, event: NodeEvent) -> None:
        time, name = event.at // MILLISECOND, event.node.name
        if event.change is NodeEventKind.ADD:
            self._nodes[name] = {
                **{"name": name, "joined": time, "shape": event.node.resources, "changes": []},
                **{
                    "partition": partition_name(event.node.partition),
                    "attributes": dict(event.node.attributes),
                },
            }
            return
        row = self._nodes[name]
        if event.change is NodeEventKind.REMOVE:
            self.rows.node(left=time, **self._nodes.pop(name))
        elif event.change is NodeEventKind.CAPACITY:
            row["changes"].append([BEGIN + time, "capacity", json.dumps(dict(row["shape"]))])
            row["shape"] = event.resources
        else:
            row["changes"].append([BEGIN + time, event.change.value, ""])

    def finish(self, until: int) -> HistoryRows:
        """Add what has not ended at a time (ms), and return the rows."""
        for row in self._open.values():
            self.rows.task(ended=None, **row)
        for row in self._nodes.values():
            self.rows.node(**row)
        for row in self._applications.values():
            self.rows.application(**row)
        self.rows.seen(until)
        return self.rows


def history_of(scenario: str, config: str, registry: Registry, location: Path | str) -> Workload:
    """Simulate a scenario, write its history, and return the workload of the scenario."""
    recorder = SimulatedHistory()
    workload = read_scenario(scenario, "s.yaml", "s.yaml")
    report = simulate(config, workload, registry, recorder=recorder)
    recorder.finish(round(report.times.stopped * 1000)).write(location)
    return workload
