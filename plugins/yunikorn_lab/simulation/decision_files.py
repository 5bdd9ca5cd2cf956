"""Output files of a simulation: every decision, every node change and the outcome of every application.

Each file contains one JSON object per line, written as the simulation proceeds:

- `decisions.jsonl`: `time` (seconds), `event` (`allocation` or `release`), `application`, `ask`,
  `allocation`, `queue`, `node`, `partition`, `resources`; a release also has its `reason`. The lines are in
  the order of the decisions.
- `nodes.jsonl`: `time`, `event` (`add`, `drain`, `resume`, `remove`, `capacity`), `node`, `partition`,
  `resources` (capacity after the event), and `after`, the number of preceding lines in decisions.jsonl.
- `applications.jsonl`: times of submission, start and end of an application that ended, and its outcome.

The first two files suffice to reconstruct the usage of every node and every queue.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any

from yunikorn.clock import SECOND
from yunikorn.interface.messages import Allocation
from yunikorn_lab.simulation.out_folder import OutFolder
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.rm_state import Submitted, partition_name
from yunikorn_lab.simulation.statistics import seconds
from yunikorn_lab.simulation.workload import NodeEvent, NodeEventKind

DECISIONS = "decisions.jsonl"
NODES = "nodes.jsonl"
APPLICATIONS = "applications.jsonl"
REPORT = "report.json"

_quote = json.encoder.encode_basestring_ascii


class FolderRecorder(Recorder):
    """A recorder that writes to an output folder line by line."""

    def __init__(self, folder: OutFolder) -> None:
        self._folder = folder
        self._lines = 0
        self._amounts: dict[int, tuple[Mapping[str, int], str]] = {}

    def begin(self) -> None:
        """Create the folder and open the files; raises `UsageError` if the folder cannot be written."""
        self._folder.prepare()
        names = (DECISIONS, NODES, APPLICATIONS)
        self._decisions, self._nodes, self._applications = (self._folder.open(name) for name in names)

    def allocated(self, moment: int, allocation: Allocation) -> None:
        """Write a line to decisions.jsonl."""
        self._decide(moment, "allocation", allocation, "")

    def released(self, moment: int, allocation: Allocation, reason: str) -> None:
        """Write a line to decisions.jsonl."""
        self._decide(moment, "release", allocation, f', "reason": {_quote(reason)}')

    def _decide(self, moment: int, event: str, allocation: Allocation, more: str) -> None:
        # A long trace has millions of these lines, and json.dumps is five times slower.
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
        # The cache entry keeps a reference to the amount, so that its id is not reused for another amount.
        known = self._amounts.get(id(amount))
        if known is None:
            if len(self._amounts) > 10_000:
                self._amounts.clear()
            known = self._amounts[id(amount)] = (amount, json.dumps(dict(sorted(amount.items()))))
        return known[1]

    def node_changed(self, event: NodeEvent) -> None:
        """Write a line to nodes.jsonl."""
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
        """Write a line to applications.jsonl."""
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

    @staticmethod
    def _write(file: IO[str], line: dict[str, Any]) -> None:
        file.write(json.dumps(line) + "\n")


def _time(moment: int) -> str:
    whole, rest = divmod(moment, SECOND)
    return f"{whole}.{rest:09}".rstrip("0") if rest else str(whole)
