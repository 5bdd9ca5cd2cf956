"""Distribution of the tests to the workers of pytest-xdist: whole files, and all tests of the cluster to one.

Tests of a file share its fixtures. Those of the cluster share it, and often wait for it, so a run of all
tests has a worker more than processors. Files with many slow tests come first, so that all workers end
together.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

from tests.kubernetes.cluster import missing
from tests.kubernetes.cluster.cluster import PARTS
from tests.markers import CLUSTER_TESTS, SLOW

TOGETHER = "tests/kubernetes/"
"""Name of the unit of all tests that use the cluster."""
LONGEST = (
    "tests/documentation/test_blocks.py",
    "tests/plugins/test_abuses_served.py",
    "tests/plugins/test_abuses.py",
    "tests/testing/test_default_plugins.py",
    "tests/test_newcomer.py",
    "tests/service/test_doors_of_packages.py",
    "tests/test_example_packages.py",
    "tests/history/test_kills.py",
)
"""Files of few slow functions that take longest, half a minute of processor time to two and a half."""
SLOW_TESTS = Counter(name.partition("::")[0] for name in SLOW)
"""Number of slow tests by file."""


class WholeFiles(LoadFileScheduling):  # type: ignore[misc]
    """Sends the tests of a file to one worker: first those of the cluster, then the longest files."""

    def _split_scope(self, nodeid: str) -> str:
        return TOGETHER if nodeid.startswith(CLUSTER_TESTS) else nodeid.partition("::")[0]

    def _assign_work_unit(self, node: Any) -> None:
        self.workqueue.move_to_end(max(self.workqueue, key=self._length), last=False)
        super()._assign_work_unit(node)

    def _length(self, unit: str) -> tuple[bool, bool, int, int]:
        return unit == TOGETHER, unit in LONGEST, SLOW_TESTS[unit], len(self.workqueue[unit])

    def add_node_collection(self, node: Any, collection: list[str]) -> None:
        """Add the tests that a worker has found."""
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = _Numbered(collection)

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """Mark a test as complete, and forget complete units: each call counts the tests of all others."""
        super().mark_test_complete(node, item_index, duration)
        units = self.assigned_work[node]
        for name in [name for name, tests in units.items() if all(tests.values())]:
            del units[name]


class _Numbered(list[str]):
    """A list that finds the index of an element at once: each test is looked up among all."""

    def __init__(self, elements: list[str]) -> None:
        super().__init__(elements)
        self._numbers = {element: number for number, element in enumerate(elements)}

    def index(self, element: str, *_: Any) -> int:
        """Return the index of an element."""
        return self._numbers[element]


def uses_cluster(config: pytest.Config) -> bool:
    """Return True for a run of all tests where those of the cluster are not skipped."""
    wanted = os.environ.get("YUNIKORN_TEST_CLUSTER", "")
    chosen = config.option.file_or_dir or config.option.markexpr or config.option.keyword
    return not chosen and wanted != "off" and (wanted == "required" or not missing(PARTS))
