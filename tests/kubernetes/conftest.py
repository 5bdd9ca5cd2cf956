"""The test cluster as a fixture: one for all tests of a process, without leftovers of other tests."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.kubernetes.cluster import BuildError, Cluster, Kubectl, build, missing
from tests.kubernetes.cluster.cluster import PARTS
from tests.kubernetes.cluster.programs import NOT_BUILT
from tests.kubernetes.reference import PROGRAM, Reference
from tests.kubernetes.scheduling import Scheduled, scheduling

SHARED = "scheduled"
"""Fixture of the tests that use one process after each other."""
VARIABLE = "YUNIKORN_TEST_CLUSTER"
"""Environment variable: `required` builds missing programs or fails, `off` skips."""


def demand(programs: Sequence[str] = PARTS) -> None:
    """Skip or fail the test if programs have not been built, as the environment variable says."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in ("", "required", "off"):
        pytest.fail(f"{VARIABLE} is {wanted!r}, but must be required, off or empty")
    if wanted == "off":
        pytest.skip(f"{VARIABLE} is off")
    if wanted == "required":
        problem = ""
        try:
            build(programs)
        except BuildError as error:
            problem = str(error)
        if problem:
            pytest.fail(problem, pytrace=False)
    elif missing(programs):
        pytest.skip(NOT_BUILT)


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A running cluster, with whatever earlier tests left in it: tests use `cluster`."""
    demand()
    with Cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


class SharedScheduler:
    """A scheduler for all consecutive tests that use `scheduled`: a start takes longer than most of them."""

    def __init__(self, cluster: Cluster, folders: pytest.TempPathFactory) -> None:
        """Create it without a process."""
        self._cluster, self._folders = cluster, folders
        self._running: Scheduled | None = None
        self._open = ExitStack()

    def reset(self) -> Scheduled:
        """Return a cluster with a scheduler, and without all else that a test makes."""
        if self._running is None or not self._running.scheduler.is_alive:
            self.end()
            self._cluster.reset()
            folder = self._folders.mktemp("scheduler")
            self._running = self._open.enter_context(scheduling(self._cluster, folder, is_forked=False))
            self._open.enter_context(self._cluster.keeping())
        else:
            self._cluster.reset()
            self._running.until_empty()
        return self._running

    def end(self) -> None:
        """End the process, if there is one; its objects remain until the next reset of the cluster."""
        self._running = None
        self._open.close()


@pytest.fixture(scope="session")
def shared_scheduler(
    shared_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SharedScheduler]:
    """The scheduler of tests that use `scheduled`."""
    shared = SharedScheduler(shared_cluster, tmp_path_factory)
    yield shared
    shared.end()


@pytest.fixture
def cluster(shared_cluster: Cluster, shared_scheduler: SharedScheduler) -> Cluster:
    """A running cluster without a scheduler, nodes, pods and all else that a test makes."""
    shared_scheduler.end()
    shared_cluster.reset()
    return shared_cluster


@pytest.fixture
def scheduled(shared_scheduler: SharedScheduler) -> Scheduled:
    """A running cluster with a scheduler, and without nodes, pods and all else that a test makes."""
    return shared_scheduler.reset()


@pytest.fixture
def plain_cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A running cluster of its own, with the features that are on by default: it has no PodGroups."""
    demand()
    with Cluster(tmp_path / "cluster", pod_groups=False) as running:
        yield running


@pytest.fixture
def kubectl(cluster: Cluster) -> Kubectl:
    """A client of the clean cluster, as its administrator."""
    return cluster.kubectl


@pytest.fixture(scope="session")
def reference() -> Iterator[Reference]:
    """The filter plugins of kube-scheduler."""
    demand([PROGRAM])
    with Reference() as running:
        yield running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests that share a scheduler one after the other: each start takes longer than most of them."""
    shared = [item for item in items if isinstance(item, pytest.Function) and SHARED in item.fixturenames]
    if shared:
        first, chosen = items.index(shared[0]), set(shared)
        before = [item for item in items[:first] if item not in chosen]
        after = [item for item in items[first:] if item not in chosen]
        items[:] = [*before, *shared, *after]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Name the logs of the cluster below a failure, and show that of a shared scheduler, which then ends."""
    report = yield
    used = item.funcargs.values() if isinstance(item, pytest.Function) else ()
    for one in used if report.failed else ():
        if isinstance(one, Cluster):
            report.sections.append(("test cluster", f"logs: {one.logs}"))
        elif isinstance(one, Scheduled):
            report.sections.append(("scheduler", one.scheduler.log))
        elif isinstance(one, SharedScheduler):
            # What the test has configured may still be in force.
            one.end()
    return report
