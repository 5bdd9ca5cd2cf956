"""A connection to the scheduler of a snapshot, restored in this process, which answers like a service."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from yunikorn.clock import ManualClock, stopwatch
from yunikorn.framework.policy_calls import NoWorkers
from yunikorn.interface.scheduler import Scheduler
from yunikorn_commands.allowed_plugins import load_registry
from yunikorn_commands.extras import importing_extra
from yunikorn_commands.plugin_files import CodePermission
from yunikorn_rest.commands.rest_client import RestConnection
from yunikorn_service.runtime.sliced_reads import STALLED, Reading

if TYPE_CHECKING:
    import httpx
    from starlette.types import ASGIApp

T = TypeVar("T")


class RestoredCore:
    """Core that does nothing but carry out readings, in the calling thread."""

    def __init__(self, scheduler: Scheduler) -> None:
        """Read this scheduler."""
        self._scheduler = scheduler

    async def read(self, reading: Reading[T]) -> T:
        """Carry out a reading; other tasks run while it is stalled."""
        slices = reading(self._scheduler)
        while True:
            try:
                if next(slices) is STALLED:
                    await asyncio.sleep(0)
            except StopIteration as end:
                result: T = end.value
                return result


@contextlib.contextmanager
def open_snapshot(file: Path, named: tuple[Path | str, ...] = ()) -> Iterator[RestConnection]:
    """Restore the scheduler of a snapshot, and open a connection to it.

    Its time is that of the snapshot. Its configuration may load plugins from the folders and modules that are
    named; names of files are relative to the first folder. Raises `SnapshotError`, `OSError` or `UsageError`.
    """
    with importing_extra("foresight", "for snapshots"):
        from yunikorn_snapshots.restored_snapshot import read_header, restored_scheduler
    with importing_extra("web", "to look into a snapshot"):
        import httpx

        from yunikorn_rest.app import rest_app
        from yunikorn_rest.endpoints import RestContext
        from yunikorn_rest.routes.all_routes import ENDPOINTS
    folder = next((one for one in named if isinstance(one, Path)), None)
    registry = load_registry().permitting(CodePermission.of_data(folder, named))
    clock = ManualClock(read_header(file).time)
    scheduler = restored_scheduler(file, registry, clock, workers=NoWorkers())
    app = rest_app(RestContext(RestoredCore(scheduler), registry, stopwatch), ENDPOINTS)
    plain = {"accept-encoding": "identity"}
    with httpx.Client(base_url="http://localhost", headers=plain, transport=_transport(app)) as client:
        yield RestConnection(client, f"snapshot {file}", clock)


def _transport(app: ASGIApp) -> httpx.BaseTransport:
    """Return a transport by which the requests of a client in this thread reach an application."""
    import httpx

    inner = httpx.ASGITransport(app)

    class ApplicationTransport(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            async def answered() -> httpx.Response:
                found = await inner.handle_async_request(request)
                return httpx.Response(found.status_code, headers=found.headers, content=await found.aread())

            return asyncio.run(answered())

    return ApplicationTransport()
