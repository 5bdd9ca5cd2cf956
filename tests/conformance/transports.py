"""Transports to the scheduler, which must behave equally: in process, and the gRPC layouts."""

from __future__ import annotations

import asyncio
import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Self

from tests.service.kit import PATIENCE
from yunikorn.clock import Clock, ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.callback import Callback
from yunikorn.interface.messages import (
    AddApplicationRequest,
    AllocationRelease,
    AllocationReleasesRequest,
    NewNodeInfo,
    PreemptionMode,
    RegisterResourceManagerRequest,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.resources import Resource
from yunikorn_service.async_scheduler import AsyncScheduler
from yunikorn_service.client import BY_SUBJECT, ONE_STREAM, Client, ClientOptions
from yunikorn_service.client.client_options import Layout
from yunikorn_service.grpc_server import Server
from yunikorn_service.policy_groups import Configurations
from yunikorn_service.runtime.threaded import ThreadedScheduler
from yunikorn_service.service_settings import ServerSettings

REGISTRATION = RegisterResourceManagerRequest("rm", preemption_modes=[*PreemptionMode])
FENCE = "~fence-"
"""Prefix of the ids in fences: invalid entries, sent only for their answers."""


class Transport(ABC):
    """Access to a scheduler of its own, with a manual clock."""

    def __init__(self, registry: Registry, config: str, received: Callable[[], int]) -> None:
        self.clock = ManualClock()
        self._registry, self._config = registry, config
        self._heard = received

    def make(self, clock: Clock) -> Scheduler:
        """Create the scheduler."""
        return Scheduler(self._registry, clock, configurations=Configurations({"": self._config}))

    @abstractmethod
    def register(self, callback: Callback) -> None:
        """Register the resource manager `rm`, also for a second time."""

    @abstractmethod
    def send(self, request: UpdateRequest) -> None:
        """Send an update; return when all responses have arrived."""

    @abstractmethod
    def advance(self, seconds: float) -> None:
        """Let time pass; return as `send` does."""

    @abstractmethod
    def close(self) -> None:
        """Shut down."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class InProcess(Transport):
    """The scheduler object itself."""

    def register(self, callback: Callback) -> None:
        if not hasattr(self, "_scheduler"):
            self._scheduler = self.make(self.clock)
        self._scheduler.register_resource_manager(REGISTRATION, callback)

    def send(self, request: UpdateRequest) -> None:
        self._scheduler.update(request)
        self._decide()

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self._scheduler.fire_timers()
        self._decide()

    def close(self) -> None:
        self._scheduler.close()

    def _decide(self) -> None:
        while self._scheduler.schedule():
            pass


class Fenced:
    """Callback between a client and the resource manager that removes the answers to fences."""

    def __init__(self, callback: Callback) -> None:
        self._callback = callback
        self._missing = 0
        self._all = threading.Condition()

    def __getattr__(self, name: str) -> object:
        return getattr(self._callback, name)

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Count the answers to fences, and pass on the rest."""
        before = _fences(response)
        if before:
            response.rejected_nodes = [
                one for one in response.rejected_nodes if not one.node_id.startswith(FENCE)
            ]
            response.rejected_applications = [
                one for one in response.rejected_applications if not one.application_id.startswith(FENCE)
            ]
            response.released_allocations = [
                one for one in response.released_allocations if not one.application_id.startswith(FENCE)
            ]
        self._callback.recv_update_response(response)
        with self._all:
            self._missing -= before
            self._all.notify_all()

    def expect(self, answers: int) -> None:
        """Expect this many answers to fences."""
        with self._all:
            self._missing += answers

    def wait(self) -> None:
        """Wait for all expected answers."""
        with self._all:
            assert self._all.wait_for(lambda: self._missing == 0, PATIENCE), "the scheduler does not answer"


def _fences(response: UpdateResponse) -> int:
    names = [one.node_id for one in response.rejected_nodes]
    names += [one.application_id for one in response.rejected_applications]
    names += [one.application_id for one in response.released_allocations]
    return sum(name.startswith(FENCE) for name in names)


class OverGrpc(Transport):
    """A service in a thread, and a client in another."""

    layout: Layout

    def __init__(self, registry: Registry, config: str, received: Callable[[], int]) -> None:
        super().__init__(registry, config, received)
        self._client: Client | None = None
        self._fenced: Fenced | None = None
        self._numbers = itertools.count(1)
        self._threaded = ThreadedScheduler(self.make, self.clock)
        self._ready = threading.Event()
        self._over: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._address = ""
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._ready.wait(PATIENCE)

    async def _serve(self) -> None:
        over = asyncio.Event()
        async with AsyncScheduler(self._threaded) as core:
            server = Server(core, ServerSettings("127.0.0.1:0"))
            self._address = await server.start()
            self._over = asyncio.get_running_loop(), over
            self._ready.set()
            await over.wait()
            await server.stop()

    def register(self, callback: Callback) -> None:
        if self._client is not None:
            self._client.disconnect()
        self._fenced = Fenced(callback)
        self._client = Client(
            self._address, REGISTRATION, self._fenced, options=ClientOptions(layout=self.layout)
        )
        self._client.start(PATIENCE)

    def send(self, request: UpdateRequest) -> None:
        assert self._client is not None
        assert self._client.update(request)
        self._settle()

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self._threaded.call(lambda _: None)
        self._settle()

    def _settle(self) -> None:
        """Send fences until one is answered alone: everything sent before has then been processed."""
        self._fence()
        before = -1
        while before != (before := self._heard()):
            self._fence()

    def _fence(self) -> None:
        assert self._client is not None
        assert self._fenced is not None
        name = f"{FENCE}{next(self._numbers)}"
        self._fenced.expect(3)
        fence = UpdateRequest(
            "",
            new_schedulable_nodes=[NewNodeInfo(name, schedulable_resource=Resource(vcore=-1))],
            new_applications=[AddApplicationRequest(name, "root..")],
            releases=AllocationReleasesRequest([AllocationRelease(name, allocation_key=name)]),
        )
        assert self._client.update(fence)
        self._fenced.wait()

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
        assert self._over is not None
        loop, over = self._over
        loop.call_soon_threadsafe(over.set)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


class OneStream(OverGrpc):
    """The layout of release v0.11.0."""

    layout = ONE_STREAM


class BySubject(OverGrpc):
    """The newer layout."""

    layout = BY_SUBJECT


OpenTransport = Callable[[Registry, str, Callable[[], int]], Transport]
TRANSPORTS: dict[str, OpenTransport] = {
    "in-process": InProcess,
    "Update": OneStream,
    "split": BySubject,
}
