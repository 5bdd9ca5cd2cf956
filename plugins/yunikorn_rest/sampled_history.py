"""History of the numbers of running applications and of allocations, sampled once a minute."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Generator, Sequence

import attrs

from yunikorn.interface.scheduler import Scheduler
from yunikorn.states import RUNNING, compatible_state
from yunikorn_rest.partition_reader import STEP
from yunikorn_service.runtime.sliced_reads import CoreReader
from yunikorn_service.runtime.threaded import CoreStopped

_log = logging.getLogger("yunikorn.rest")

INTERVAL = 60.0
"""Seconds between two samples."""
KEPT = 1440
"""Number of samples that are kept: those of a day."""


@attrs.frozen
class HistorySample:
    """Numbers at a time."""

    time: int
    """Time (ns)."""
    applications: int
    """Number of running applications."""
    containers: int
    """Number of allocations."""


def take_sample(scheduler: Scheduler) -> Generator[None, None, HistorySample]:
    """Count the running applications and the allocations of all partitions."""
    now, applications, containers = scheduler.clock.now(), 0, 0
    for _, at in scheduler.all_partitions():
        for index, app in enumerate(list(at.partition.applications.values())):
            applications += compatible_state(app.state) == RUNNING
            containers += len(app.allocations)
            if index % STEP == STEP - 1:
                yield
        yield
    return HistorySample(now, applications, containers)


class SampledHistory:
    """The samples of a day, oldest first."""

    def __init__(self) -> None:
        self._samples: deque[HistorySample] = deque(maxlen=KEPT)

    @property
    def samples(self) -> Sequence[HistorySample]:
        """All samples, oldest first."""
        return tuple(self._samples)

    def add(self, sample: HistorySample) -> None:
        """Add a sample; the oldest one is dropped if there are too many."""
        self._samples.append(sample)

    async def keep(self, core: CoreReader, interval: float = INTERVAL) -> None:
        """Take a sample at each interval until the core stops."""
        while True:
            await asyncio.sleep(interval)
            try:
                self.add(await core.read(take_sample))
            except CoreStopped:
                return
            except Exception as error:
                _log.error("no sample of the history: %s: %s", type(error).__name__, error, exc_info=error)
