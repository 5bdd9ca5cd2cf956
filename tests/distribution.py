"""Distribution of the tests to the workers of pytest-xdist: whole files, and all tests of the shim to one.

Tests of a file share its fixtures. Those of the shim share the cluster, too, and often wait for it, so a run
of all tests has a worker more than processors.
"""

from __future__ import annotations

import os

import pytest
from xdist.scheduler import LoadFileScheduling

from tests.kubernetes.cluster import missing
from tests.kubernetes.cluster.cluster import PARTS

TOGETHER = "tests/kubernetes/"
"""Folder whose tests are one unit."""


class WholeFiles(LoadFileScheduling):  # type: ignore[misc]
    """Sends the tests of a file to one worker, the largest files first."""

    def _split_scope(self, nodeid: str) -> str:
        return TOGETHER if nodeid.startswith(TOGETHER) else nodeid.partition("::")[0]


def uses_cluster(config: pytest.Config) -> bool:
    """Return True for a run of all tests where those of the cluster are not skipped."""
    wanted = os.environ.get("YUNIKORN_TEST_CLUSTER", "")
    chosen = config.option.file_or_dir or config.option.markexpr or config.option.keyword
    return not chosen and wanted != "off" and (wanted == "required" or not missing(PARTS))
