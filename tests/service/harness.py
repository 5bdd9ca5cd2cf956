"""Test kit of the service inside one event loop: a server, and resource managers on real gRPC streams.

A test is a coroutine that receives a `ServiceHarness`; `serve` runs it with a server on a free port.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio

from tests.service.kit import CONFIG, PATIENCE
from yunikorn.clock import Clock, SystemClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import RegisterResourceManagerRequest, UpdateRequest, UpdateResponse
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.context import Timeouts
from yunikorn_service.async_scheduler import AsyncScheduler
from yunikorn_service.grpc_server import Server
from yunikorn_service.policy_groups import Configurations
from yunikorn_service.runtime.threaded import ThreadedScheduler
from yunikorn_service.service_settings import ServerSettings
from yunikorn_service.wire import v0_11
from yunikorn_service.wire.protocol import REGISTER, SCHEDULER, UPDATE, path

HERE = "127.0.0.1:0"


class Ended(Exception):
    """A stream ended with this status."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        self.code, self.text = code, text
        super().__init__(f"{code.name}: {text}")


class Stream:
    """Client end of an update stream."""

    def __init__(
        self,
        call: Any,
        encode: Callable[[UpdateRequest], bytes] = v0_11.UPDATE_REQUEST.encode,
        decode: Callable[[bytes], UpdateResponse] = v0_11.UPDATE_RESPONSE.decode,
    ) -> None:
        self.call = call
        self._encode, self._decode = encode, decode

    async def send(self, request: UpdateRequest) -> None:
        """Send an update."""
        await self.call.write(self._encode(request))

    async def read(self) -> UpdateResponse:
        """Return the next response; raises `Ended`."""
        try:
            data = await self.call.read()
        except grpc.aio.AioRpcError as error:
            raise Ended(error.code(), error.details() or "") from error
        if not isinstance(data, bytes):
            raise Ended(await self.call.code(), await self.call.details())
        return self._decode(data)

    async def allocations(self, number: int) -> dict[str, str]:
        """Return the next allocations as node by key, from as many responses as needed; raises `Ended`."""
        found: dict[str, str] = {}
        while len(found) < number:
            found.update({one.allocation_key: one.node_id for one in (await self.read()).new_allocations})
        return found

    async def collect(self, into: list[UpdateResponse]) -> None:
        """Return all responses until the end; raises `Ended`."""
        while True:
            into.append(await self.read())

    async def end(self) -> Ended:
        """Return how the stream ends; responses before are skipped."""
        while True:
            try:
                await self.read()
            except Ended as ended:
                return ended

    async def half_close(self) -> None:
        """Half-close the stream."""
        await self.call.done_writing()

    def cut(self) -> None:
        """Cancel the call, as a broken connection does."""
        self.call.cancel()


class ServiceHarness:
    """A running server, and clients that connect to it."""

    def __init__(self, core: AsyncScheduler, server: Server, address: str) -> None:
        self.core, self.server, self.address = core, server, address
        # Disabled since gRPC would enlarge the window on a busy machine, and buffer megabytes that no test
        # reads.
        self.channel: Any = grpc.aio.insecure_channel(address, [("grpc.http2.bdp_probe", 0)])

    async def register(self, rm_id: str = "rm", **fields: Any) -> None:
        """Register a resource manager; raises `Ended`."""
        call = self.channel.unary_unary(path(SCHEDULER, REGISTER))
        try:
            await call(v0_11.REGISTER_REQUEST.encode(RegisterResourceManagerRequest(rm_id, **fields)))
        except grpc.aio.AioRpcError as error:
            raise Ended(error.code(), error.details() or "") from error

    def stream(self) -> Stream:
        """Open an update stream in the layout of release v0.11.0."""
        return Stream(self.channel.stream_stream(path(SCHEDULER, UPDATE))())

    async def state(self, rm_id: str = "rm") -> str:
        """Return the state of the session in the core."""
        return await self.core.call(lambda core: core.session_state(rm_id))

    async def becomes(self, state: str, rm_id: str = "rm") -> None:
        """Wait until the session has this state."""
        while await self.state(rm_id) != state:
            await asyncio.sleep(0)


def serve(
    registry: Registry,
    scenario: Callable[[ServiceHarness], Awaitable[None]],
    settings: ServerSettings | None = None,
    *,
    timeouts: Timeouts | None = None,
    configurations: Configurations | None = None,
    make: Callable[[Clock], Scheduler] | None = None,
    clock: Clock | None = None,
) -> None:
    """Run a test coroutine with a server; a coroutine that hangs fails."""

    def new(moved: Clock) -> Scheduler:
        return Scheduler(registry, moved, timeouts, configurations or Configurations({"": CONFIG}))

    async def run() -> None:
        threaded = ThreadedScheduler(make or new, clock or SystemClock())
        async with asyncio.timeout(PATIENCE), AsyncScheduler(threaded) as core:
            server = Server(core, settings or ServerSettings(HERE))
            harness = ServiceHarness(core, server, await server.start())
            try:
                await scenario(harness)
            finally:
                await harness.channel.close()
                await server.stop()

    asyncio.run(run())
