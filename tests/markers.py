"""The markers of the tests, and the rules by which tests get them.

| marker | rule |
|---|---|
| `slow` | the test function is in `slow.txt`, or is decorated because it waits for a clock |
| `docs` | the test runs or checks a page of the documentation |
| `packages` | the test builds or installs a package, which requires pip and setuptools |
| `net` | the test listens or connects, if only on this machine |
| `kubernetes` | the test uses the test cluster (`tests/kubernetes/cluster`); also `slow` and `net` |

One worker of pytest-xdist runs all tests of the cluster (`distribution.py`), which are in the files below
`CLUSTER_TESTS`.

`slow.txt` is measured: `pytest -n auto --costs tests/slow.txt` writes the file, see `costs.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.costs import function_of

TESTS = Path(__file__).parent
SLOW = frozenset((TESTS / "slow.txt").read_text("utf-8").split())
DOCS = ("tests/documentation/", "tests/test_docs.py", "tests/test_tutorial.py")
NET = ("tests/service/client/", "tests/service/")
BUILDS = "can_build"
"""The fixture required for building a package."""
CLUSTER = "shared_cluster"
"""The fixture that starts the test cluster."""
CLUSTER_TESTS = (
    "tests/kubernetes/admission/test_admission_served.py",
    "tests/kubernetes/api_server/test_real_server.py",
    "tests/kubernetes/chaos/",
    "tests/kubernetes/scenarios/",
    "tests/kubernetes/test_cluster.py",
    "tests/kubernetes/test_cluster_benchmark.py",
    "tests/kubernetes/test_manifests.py",
    "tests/kubernetes/translation/test_with_api_server.py",
    "tests/kubernetes/volumes/test_real_cluster.py",
)
"""Files and folders of all tests that use the cluster."""


def mark(item: pytest.Item) -> None:
    """Add the markers that the rules define to a test."""
    if function_of(item.nodeid) in SLOW:
        item.add_marker("slow")
    if item.nodeid.startswith(DOCS) or item.path.name == "test_docs.py":
        item.add_marker("docs")
    if item.nodeid.startswith(NET):
        item.add_marker("net")
    if isinstance(item, pytest.Function) and BUILDS in item.fixturenames:
        item.add_marker("packages")
    if isinstance(item, pytest.Function) and CLUSTER in item.fixturenames:
        if not item.nodeid.startswith(CLUSTER_TESTS):
            raise pytest.UsageError(
                f"{item.nodeid} uses the cluster: add its file to CLUSTER_TESTS, {__file__}"
            )
        for name in ("kubernetes", "net", "slow"):
            item.add_marker(name)
