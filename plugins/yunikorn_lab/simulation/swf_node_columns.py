"""Nodes of jobs in two columns of numbers after the 18th: the nodes, and the processors on each of them.

Two columns are taken for these if the header names them, or if their product is the number of processors of
nearly all jobs. Logs with one column for both (`4:ppn=8`) are read in `swf_jobs`.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from itertools import combinations

import attrs

from yunikorn_lab.simulation.swf_jobs import COLUMNS, JobTable
from yunikorn_lab.simulation.workload import WorkloadNode

MOST_EXTRAS = 8
"""Number of columns after the 18th that are examined."""
MATCH = 0.95
"""Part of the jobs whose nodes times processors per node must be their processors."""
KNOWN = 0.5
"""Part of the jobs that must have both numbers."""
UNKNOWN = 0

_NUMBERED = re.compile(r"(?:(?:column|field|col)\b\.?\s*)?#?(\d{1,2})\b\s*[-:=.)]*\s*(\D.*)", re.IGNORECASE)
"""A line that describes one column, such as `column 19: nodes`."""
_PER_NODE = re.compile(
    r"\bppn\b|(processor|proc|core|cpu|task)s?[ _-]*(per|/)[ _-]*(node|host)", re.IGNORECASE
)
_NODES = re.compile(
    r"\b(n|num|nr|number|req|requested|alloc|allocated)?[ _-]*(of[ _-])?(nodes|hosts|nnodes)\b", re.IGNORECASE
)


@attrs.frozen
class NodeColumns:
    """Places of the two columns after the 18th; `per_node` is None if only the nodes are known."""

    nodes: int
    per_node: int | None

    def __str__(self) -> str:
        if self.per_node is None:
            return f"column {COLUMNS + self.nodes + 1}"
        first, second = sorted((COLUMNS + self.nodes + 1, COLUMNS + self.per_node + 1))
        return f"columns {first} and {second}"


class ExtraColumns:
    """Numbers of the columns after the 18th, job by job; `UNKNOWN` for what is none, or not above 0."""

    def __init__(self) -> None:
        self._columns: list[array[int]] = []
        self._count = 0

    def add(self, extras: Sequence[str]) -> None:
        """Append the columns of a job."""
        for place, text in enumerate(extras[:MOST_EXTRAS]):
            if place == len(self._columns):
                self._columns.append(array("q", bytes(8 * self._count)))
            self._columns[place].append(_number(text))
        self._count += 1
        for column in self._columns[len(extras) :]:
            column.append(UNKNOWN)

    def apply(
        self, jobs: JobTable, header: Iterable[str], nodes: Sequence[WorkloadNode]
    ) -> NodeColumns | None:
        """Set the nodes of the jobs if there are columns for them, and return these."""
        if 2 * jobs.nodes_known() > len(jobs):
            return None
        found = self._named(header) or self._by_product(jobs.processors(), nodes)
        if found is None:
            return None
        counts = self._columns[found.nodes]
        pairs = zip(counts, jobs.processors(), strict=True)
        jobs.set_nodes([count if count <= processors else UNKNOWN for count, processors in pairs])
        return found

    def _named(self, header: Iterable[str]) -> NodeColumns | None:
        """Return the columns that the header names."""
        names: dict[int, str] = {}
        for line in header:
            line = line.lstrip(";# \t")
            words = line.replace(",", " ").split()
            if len(words) == COLUMNS + len(self._columns):
                names.update(enumerate(words[COLUMNS:]))
            elif match := _NUMBERED.match(line):
                names.setdefault(int(match[1]) - COLUMNS - 1, match[2])
        known = {place: name for place, name in names.items() if 0 <= place < len(self._columns)}
        per_node = next((place for place, name in known.items() if _PER_NODE.search(name)), None)
        nodes = next(
            (place for place, name in known.items() if place != per_node and _NODES.search(name)), None
        )
        if nodes is None or not any(self._columns[nodes]):
            return None
        return NodeColumns(nodes, per_node)

    def _by_product(self, processors: Sequence[int], nodes: Sequence[WorkloadNode]) -> NodeColumns | None:
        """Return the first two columns whose product is the number of processors.

        The one that fits the number of nodes has the nodes, or the first one if both do.
        """
        # A constant column proves nothing: every number is itself times one.
        varied = [place for place, column in enumerate(self._columns) if len(set(column) - {UNKNOWN}) > 1]
        for first, second in combinations(varied, 2):
            one, other = self._columns[first], self._columns[second]
            if _is_product(one, other, processors):
                is_swapped = _misfits(other, one, nodes) < _misfits(one, other, nodes)
                return NodeColumns(second, first) if is_swapped else NodeColumns(first, second)
        return None


def _misfits(counts: Iterable[int], each: Iterable[int], nodes: Sequence[WorkloadNode]) -> int:
    """Return for how many jobs there are not as many nodes, or no node has as many processors."""
    most = max(node.resources.get("vcore", 0) // 1000 for node in nodes)
    return sum(1 for count, one in zip(counts, each, strict=True) if count > len(nodes) or one > most)


def _is_product(counts: Iterable[int], each: Iterable[int], processors: Sequence[int]) -> bool:
    known = equal = 0
    for count, one, product in zip(counts, each, processors, strict=True):
        if count and one:
            known += 1
            equal += count * one == product
    return known >= KNOWN * len(processors) and equal >= MATCH * known


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) <= 10 else UNKNOWN
