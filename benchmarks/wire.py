"""Throughput over the network: a service in a separate process, and a client here, on loopback."""

from __future__ import annotations

import asyncio
import functools
import gc
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.failure import BenchmarkFailure
from benchmarks.harness import ResourceManager
from benchmarks.service_process import ServiceProcess
from benchmarks.workload import RM, Workload
from yunikorn.interface.messages import RegisterResourceManagerRequest, UpdateRequest, UpdateResponse
from yunikorn_service.client import BY_SUBJECT, ONE_STREAM, AsyncClient, ClientOptions
from yunikorn_service.client.client_options import Layout

PATIENCE = 300.0
"""Timeout for answers of the service in seconds."""


def tasks_per_second(layout: Layout) -> Callable[[Workload], dict[str, float]]:
    """Return a measurement with `layout`, from the first ask sent to the last allocation received.

    The figures include the CPU seconds of both sides; the larger value limits the throughput.
    """
    return functools.partial(_measure, layout)


def _measure(layout: Layout, workload: Workload) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "queues.yaml"
        file.write_text(workload.configuration(), encoding="utf-8")
        with ServiceProcess(file, "--log", "warning") as service:
            return asyncio.run(_converse(workload, layout, service))


async def _converse(workload: Workload, layout: Layout, service: ServiceProcess) -> dict[str, float]:
    rm = _Listener(workload.tasks)
    registration = RegisterResourceManagerRequest(RM)
    updates = list(workload.ask_updates())
    async with (
        asyncio.timeout(PATIENCE),
        AsyncClient(service.address, registration, rm, options=ClientOptions(layout=layout)) as client,
    ):
        await client.update(UpdateRequest(RM, new_schedulable_nodes=workload.node_infos()))
        await client.update(UpdateRequest(RM, new_applications=workload.application_requests()))
        await rm.ready(workload.nodes, workload.applications)
        gc.collect()
        server, own = service.cpu(), time.process_time()
        start = time.perf_counter()
        for update in updates:
            await client.update(update)
        handed_in = time.perf_counter()
        await rm.all_placed.wait()
        figures = {
            "tasks_per_s": workload.tasks / (rm.last - start),
            "hand_in_s": handed_in - start,
            "client_cpu_s": time.process_time() - own,
            "server_cpu_s": service.cpu() - server,
        }
    workload.verify(rm.placed)
    return figures


class _Listener(ResourceManager):
    """Resource manager that signals when all tasks are placed."""

    def __init__(self, tasks: int) -> None:
        super().__init__()
        self._tasks = tasks
        self._accepted = 0
        self._some = asyncio.Event()
        self.all_placed = asyncio.Event()

    def recv_update_response(self, response: UpdateResponse) -> None:
        super().recv_update_response(response)
        if self.rejected:
            raise BenchmarkFailure(f"{len(self.rejected)} refused, the first: {self.rejected[0]}")
        self._accepted += len(response.accepted_nodes) + len(response.accepted_applications)
        self._some.set()
        if self.received == self._tasks:
            self.all_placed.set()

    async def ready(self, nodes: int, applications: int) -> None:
        """Wait until the scheduler has accepted these numbers of nodes and applications."""
        while self._accepted < nodes + applications:
            self._some.clear()
            await self._some.wait()


ONE = tasks_per_second(ONE_STREAM)
SPLIT = tasks_per_second(BY_SUBJECT)
