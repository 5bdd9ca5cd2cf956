"""Schedulers that are compared: how they start and end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import attrs

from tests.kubernetes.cluster import Cluster
from tests.kubernetes.cluster.cluster import SCHEDULER
from tests.kubernetes.cluster.objects import config_map
from tests.kubernetes.scheduler_process import SchedulerProcess

RATE_LIMIT = "5000"
"""Requests per second of both schedulers, far above what the server takes."""


@contextmanager
def _yunikorn(cluster: Cluster) -> Iterator[int]:
    with SchedulerProcess(cluster) as process:
        yield process.pid


@contextmanager
def _kube_scheduler(cluster: Cluster) -> Iterator[int]:
    cluster.start_scheduler()
    try:
        yield cluster.pid(SCHEDULER)
    finally:
        cluster.kill(SCHEDULER)


@attrs.frozen
class Contender:
    """A scheduler; `started` runs it and returns its process id."""

    name: str
    scheduler_name: str
    """Value of `schedulerName` of its pods."""
    started: Callable[[Cluster], AbstractContextManager[int]]


CONTENDERS = {
    one.name: one
    for one in (
        Contender("yunikorn", "yunikorn", _yunikorn),
        Contender("kube-scheduler", "default-scheduler", _kube_scheduler),
    )
}


def prepare(cluster: Cluster) -> None:
    """Create the ConfigMap of YuniKorn with the rate limit that kube-scheduler has in the test cluster."""
    data = {"kubernetes.qps": RATE_LIMIT, "kubernetes.burst": RATE_LIMIT}
    cluster.kubectl.create(config_map("yunikorn-configs", data))
