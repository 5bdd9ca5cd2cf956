"""Decisions beside REST requests: a core and its REST interface in this process, a client in another."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from benchmarks.failure import BenchmarkFailure
from benchmarks.harness import ResourceManager
from benchmarks.quantiles import quantile
from benchmarks.workload import RM, Workload
from yunikorn.clock import SystemClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import (
    AddApplicationRequest,
    AllocationAsk,
    RegisterResourceManagerRequest,
    UpdateRequest,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn_rest.event_store import EventStore
from yunikorn_rest.rest_settings import RestSettings
from yunikorn_rest.served_rest import Rest
from yunikorn_service.async_scheduler import AsyncScheduler
from yunikorn_service.runtime.threaded import ThreadedScheduler

CLIENT = Path(__file__).with_name("rest_client.py")
RATE = 200
"""REST requests per second."""
PACE = 40_000
"""Asks per second of the measurement at a pace."""
TOGETHER = 1_000
"""Number of asks in an update."""
PARTS = 10
"""Number of parts of the tasks, which are placed alternately without and with requests."""
PATIENCE = 300.0


def tasks_per_second(workload: Workload) -> dict[str, float]:
    """Measure tasks placed per second without requests and beside them, and the latency of the requests.

    The core always has something to decide. The processor time of both sides of the comparison is that of
    this process, which parses and answers the requests.
    """
    return asyncio.run(_measure(workload, pace=None))


def at_a_pace(workload: Workload) -> dict[str, float]:
    """Measure the same for asks that arrive at `PACE`, which a core must be faster than.

    The tasks per second show whether the core keeps up.
    """
    return asyncio.run(_measure(workload, pace=PACE))


async def _measure(workload: Workload, pace: int | None) -> dict[str, float]:
    async with asyncio.timeout(PATIENCE), _serving(workload) as (core, rm, port):
        client = await asyncio.create_subprocess_exec(
            *(sys.executable, str(CLIENT), str(port), str(RATE)),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 24,
        )  # fmt: skip
        assert client.stdin is not None
        assert client.stdout is not None
        taken: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
        latencies: list[float] = []
        for number, part in enumerate(_parts(workload)):
            beside = number % 2 == 1
            if beside:
                client.stdin.write(b"go\n")
            taken[beside].append(await rm.place(core, part, pace))
            if beside:
                client.stdin.write(b"pause\n")
                latencies += json.loads(await client.stdout.readline())
        client.stdin.close()
        if await client.wait():
            raise BenchmarkFailure("a REST request has failed")
    workload.verify(rm.placed)
    half = workload.tasks / 2
    alone, beside_s = (sum(wall for wall, _ in taken[side]) for side in (False, True))
    return {
        "tasks_per_s": half / beside_s,
        "alone_tasks_per_s": half / alone,
        "cpu_s": sum(cpu for _, cpu in taken[True]),
        "alone_cpu_s": sum(cpu for _, cpu in taken[False]),
        "requests_per_s": len(latencies) / beside_s,
        "request_p50_s": quantile(latencies, 0.5),
        "request_p99_s": quantile(latencies, 0.99),
    }


def _parts(workload: Workload) -> Iterator[list[UpdateRequest]]:
    """Yield the asks in equal parts, in updates of up to `TOGETHER` asks of one application."""
    asked, apps = workload.asked, workload.applications
    size = workload.tasks // PARTS
    for first in range(0, size * PARTS, size):
        yield [
            UpdateRequest(RM, asks=[workload.ask(task, asked) for task in tasks[at : at + TOGETHER]])
            for app in range(apps)
            for tasks in [range(first + app, first + size, apps)]
            for at in range(0, len(tasks), TOGETHER)
        ]


class _Placing(ResourceManager):
    """Resource manager that waits for the placement of its asks; the core calls it in its thread."""

    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._wanted = 0
        self._placed = asyncio.Event()

    def recv_update_response(self, response: UpdateResponse) -> None:
        super().recv_update_response(response)
        if self.received >= self._wanted:
            self._loop.call_soon_threadsafe(self._placed.set)

    async def place(
        self, core: AsyncScheduler, updates: list[UpdateRequest], pace: int | None = None
    ) -> tuple[float, float]:
        """Send asks and wait for their allocations; returns the elapsed and the processor seconds.

        With a `pace`, so many asks are sent per second; else all at once.
        """
        self._wanted = self.received + sum(len(update.asks) for update in updates)
        self._placed.clear()
        gc.collect()
        start, cpu, sent = time.perf_counter(), time.process_time(), 0
        for update in updates:
            if pace is not None:
                await asyncio.sleep(max(0.0, start + sent / pace - time.perf_counter()))
                sent += len(update.asks)
            await core.update(update)
        await self._placed.wait()
        return time.perf_counter() - start, time.process_time() - cpu


@asynccontextmanager
async def _serving(workload: Workload) -> Any:
    """Provide a core with the nodes and applications of a workload, its RM, and the port of its REST."""
    registry, clock, rm = Registry.load(third_party=False), SystemClock(), _Placing()
    store = EventStore("benchmark")
    threaded = ThreadedScheduler(lambda own: Scheduler(registry, own, event_receiver=store), clock)
    settings = RestSettings(address="127.0.0.1:0")
    async with AsyncScheduler(threaded) as core:
        await core.carry_out(
            lambda scheduler: scheduler.register_resource_manager(
                RegisterResourceManagerRequest(RM, config=workload.configuration()), rm
            )
        )
        watched = AddApplicationRequest(
            "watched", workload.application_requests()[0].queue_name, ugi=UserGroupInformation("user", [])
        )
        applications = [*workload.application_requests(), watched]
        await core.update(
            UpdateRequest(RM, new_schedulable_nodes=workload.node_infos(), new_applications=applications)
        )
        ask = AllocationAsk("watched", "watched", resource_ask=workload.asked[0])
        await rm.place(core, [UpdateRequest(RM, asks=[ask])])
        rm.placed.clear()
        rest = Rest(core, settings, registry, None, store, clock)
        try:
            yield core, rm, int((await rest.start()).rpartition(":")[2])
        finally:
            await rest.stop()
