"""What a simulation leaves in a folder: every decision, every change of a node, every application's fate.

One JSON object per line, written as it happens:

- `decisions.jsonl`: `time` (seconds), `event` (`allocation` or `release`), `application`, `ask`,
  `allocation`, `queue`, `node`, `partition`, `resources`; a release also has its `reason`. The order of
  the lines is the order of the decisions.
- `nodes.jsonl`: `time`, `event` (`add`, `drain`, `resume`, `remove`, `capacity`), `node`, `partition`,
  `resources` (its capacity from now on), and `after`, the number of lines in decisions.jsonl before it.
- `applications.jsonl`: when an application came to its end, how, and what it waited.

Together the first two suffice to replay every node's and every queue's usage.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from yunikorn.clock import SECOND
from yunikorn.interface.messages import Allocation
from yunikorn.simulation.out_folder import OutFolder
from yunikorn.simulation.oversized import partition_name
from yunikorn.simulation.recorder import Recorder
from yunikorn.simulation.report import Report
from yunikorn.simulation.rm_state import Submitted
from yunikorn.simulation.statistics import seconds
from yunikorn.simulation.workload import NodeEvent, NodeEventKind

DECISIONS = "decisions.jsonl"
NODES = "nodes.jsonl"
APPLICATIONS = "applications.jsonl"
REPORT = "report.json"

_quote = json.encoder.encode_basestring_ascii


class FolderRecorder(Recorder):
    """Writes into a folder, line by line; files get their names when all is written (`OutFolder`)."""

    def __init__(self, folder: Path) -> None:
        self.folder = OutFolder(folder)
        """For further files of the same run."""
        self._lines = 0
        self._amounts: dict[int, tuple[Mapping[str, int], str]] = {}

    def begin(self) -> None:
        """Make the folder if it is missing; raises `UsageError` when it cannot be written."""
        self.folder.prepare()
        names = (DECISIONS, NODES, APPLICATIONS)
        self._decisions, self._nodes, self._applications = (self.folder.open(name) for name in names)

    def __enter__(self) -> FolderRecorder:
        self.folder.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.folder.__exit__(kind, error, trace)

    def allocated(self, moment: int, allocation: Allocation) -> None:
        """A line in decisions.jsonl."""
        self._decide(moment, "allocation", allocation, "")

    def released(self, moment: int, allocation: Allocation, reason: str) -> None:
        """A line in decisions.jsonl."""
        self._decide(moment, "release", allocation, f', "reason": {_quote(reason)}')

    def _decide(self, moment: int, event: str, allocation: Allocation, more: str) -> None:
        # Written by hand: a long trace has millions of these lines, and json.dumps costs five times as much.
        self._lines += 1
        self._decisions.write(
            f'{{"time": {_time(moment)}, "event": "{event}"'
            f', "application": {_quote(allocation.application_id)}'
            f', "ask": {_quote(allocation.allocation_key)}, "allocation": {_quote(allocation.uuid)}'
            f', "queue": {_quote(allocation.queue_name)}, "node": {_quote(allocation.node_id)}'
            f', "partition": {_quote(partition_name(allocation.partition_name))}'
            f', "resources": {self._amount(allocation.resource_per_alloc)}{more}}}\n'
        )

    def _amount(self, amount: Mapping[str, int]) -> str:
        # The amount is kept beside its text, so that its id is not given to another one.
        known = self._amounts.get(id(amount))
        if known is None:
            if len(self._amounts) > 10_000:
                self._amounts.clear()
            known = self._amounts[id(amount)] = (amount, json.dumps(dict(sorted(amount.items()))))
        return known[1]

    def node_changed(self, event: NodeEvent) -> None:
        """A line in nodes.jsonl."""
        capacity = event.resources if event.change is NodeEventKind.CAPACITY else event.node.resources
        self._write(
            self._nodes,
            {
                "time": seconds(event.at),
                "event": event.change.value,
                "node": event.node.name,
                "partition": partition_name(event.node.partition),
                "resources": {} if event.change is NodeEventKind.REMOVE else dict(sorted(capacity.items())),
                "after": self._lines,
            },
        )

    def application_ended(self, moment: int, record: Submitted, outcome: str, reason: str) -> None:
        """A line in applications.jsonl."""
        start = record.first_start
        self._write(
            self._applications,
            {
                "application": record.plan.id,
                "user": record.plan.user,
                "queue": record.queue,
                "submitted": seconds(record.plan.submit),
                "started": None if start is None else seconds(start),
                "ended": seconds(moment),
                "outcome": outcome,
                "reason": reason,
                "tasks": record.plan.size,
                "restarts": record.restarts,
            },
        )

    def write_report(self, report: Report) -> None:
        """Write report.json."""
        self.folder.open(REPORT).write(report.to_json())

    @staticmethod
    def _write(file: IO[str], line: dict[str, Any]) -> None:
        file.write(json.dumps(line) + "\n")


def _time(moment: int) -> str:
    whole, rest = divmod(moment, SECOND)
    return f"{whole}.{rest:09}".rstrip("0") if rest else str(whole)
