"""Creation and deletion of many objects by parallel writers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from benchmarks.failure import BenchmarkFailure
from tests.kubernetes.cluster import ApiFault, Kubectl, Obj

WRITERS = 8
TRIES = 100
"""Attempts to delete all pods; the server ends each after a minute."""


def create_all(kubectl: Kubectl, objects: Iterable[Obj]) -> None:
    """Create objects as fast as the server takes them."""
    left = iter(objects)
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                obj = next(left, None)
            if obj is None:
                return
            kubectl.create(obj)

    with ThreadPoolExecutor(WRITERS) as pool:
        for done in [pool.submit(work) for _ in range(WRITERS)]:
            done.result()


def create_at_rate(kubectl: Kubectl, objects: Iterable[Obj], rate: float) -> None:
    """Create `rate` objects per second; what was late is made up for as fast as the server permits."""
    create_all(kubectl, _paced(objects, rate))


def _paced(objects: Iterable[Obj], rate: float) -> Iterator[Obj]:
    pause = threading.Event()
    start = time.monotonic()
    for number, obj in enumerate(objects):
        pause.wait(max(0.0, start + number / rate - time.monotonic()))
        yield obj


def delete_pods(kubectl: Kubectl, labels: str) -> None:
    """Delete all pods with a label at once, and wait until they are gone. Raises `BenchmarkFailure`."""
    for _ in range(TRIES):
        try:
            kubectl.delete_all("Pod", "default", labels=labels, grace=0)
            if not kubectl.list("Pod", "default", labels=labels):
                return
        except (OSError, ApiFault):
            # The deletion of thousands takes longer than the server permits for one request.
            continue
    raise BenchmarkFailure(f"the pods {labels} are not gone after {TRIES} deletions")
