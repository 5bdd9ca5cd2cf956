"""Violations that the contract of doors detects."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import threading
import time
import warnings
from typing import Any

import attrs
import pytest

from yunikorn.api import Door, Service
from yunikorn_testing import Clusters, DoorContract, ServiceSample


@attrs.define(eq=False)
class Echo(Door):
    """Answer what is sent over TCP."""

    name = "echo"
    address: str = attrs.field(default="127.0.0.1:0", metadata={"help": "Where to listen."})
    _server: asyncio.Server | None = attrs.field(init=False, default=None)

    async def start(self, service: Service) -> str:
        host, _, port = self.address.rpartition(":")
        self._server = await asyncio.start_server(self._answer, host, int(port))
        service.run_in_background(self._look(service))
        return "{}:{}".format(*self._server.sockets[0].getsockname())

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        writer.close()

    async def _look(self, service: Service) -> None:
        await service.core.call(lambda scheduler: scheduler.all_partitions())

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()


def violation(door: type[Door], test: str, **options: Any) -> str:
    """Return the message of a test of the contract that fails."""

    class TestIt(DoorContract):
        limit = 0.5

    TestIt.door = door(**options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # some of these doors close nothing
        try:
            getattr(TestIt(), test)()
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        else:
            found = ""
        gc.collect()
    return found


def test_correct_door_passes_the_contract() -> None:
    class TestEcho(DoorContract):
        door = Echo()

    case = TestEcho()
    for name in dir(case):
        if name.startswith("test_"):
            getattr(case, name)()


class _Base(Door):
    name = "odd"

    async def start(self, service: Service) -> str:
        return ""


class NoDocstring(_Base):
    pass


class Sleeps(_Base):
    """Block the loop for a moment."""

    async def start(self, service: Service) -> str:
        with contextlib.suppress(Exception):
            time.sleep(0.001)
        return ""


class Connects(_Base):
    """Connect in the loop's thread."""

    async def start(self, service: Service) -> str:
        with socket.socket() as one, contextlib.suppress(Exception):
            one.connect(("127.0.0.1", 9))
        return ""


class ReturnsNone(_Base):
    """Return no address."""

    async def start(self, service: Service) -> str:
        return None  # type: ignore[return-value]


class Hangs(_Base):
    """Never stop."""

    async def stop(self) -> None:
        await asyncio.Event().wait()


class Reloads(_Base):
    """Fail to reload."""

    async def reload(self) -> None:
        raise ValueError("no such file")


class Unready(_Base):
    """Answer a probe with True."""

    def unready(self) -> str:
        return True  # type: ignore[return-value]


class WaitsForTheCore(_Base):
    """Ask the core before all doors are open."""

    async def start(self, service: Service) -> str:
        await service.core.call(lambda scheduler: scheduler.all_partitions())
        return ""


class Half(_Base):
    """Stop only what was opened to the end."""

    async def start(self, service: Service) -> str:
        await asyncio.sleep(0)
        self._is_open = True
        return ""

    async def stop(self) -> None:
        assert self._is_open


class LeavesWork(_Base):
    """Begin a task that no one ends."""

    async def start(self, service: Service) -> str:
        self._task = asyncio.ensure_future(asyncio.Event().wait())
        return ""


class Fails(_Base):
    """Fail in the background."""

    async def start(self, service: Service) -> str:
        service.run_in_background(self._work())
        return ""

    async def _work(self) -> None:
        raise ValueError("no more")


class Early(_Base):
    """Start a thread in the constructor."""

    def __init__(self) -> None:
        threading.Thread(target=str).start()


@pytest.mark.parametrize(
    ("door", "test", "text"),
    [
        (NoDocstring, "test_class_has_a_docstring", "NoDocstring has no docstring"),
        (Sleeps, "test_door_opens_reloads_and_closes", "blocks the event loop: time.sleep() was called"),
        (
            Connects,
            "test_door_opens_reloads_and_closes",
            "event loop: socket.connect() was called",
        ),
        (ReturnsNone, "test_door_opens_reloads_and_closes", "start() returned None"),
        (Hangs, "test_door_opens_reloads_and_closes", "stop() takes longer than"),
        (Reloads, "test_door_opens_reloads_and_closes", "no such file"),
        (Unready, "test_unready_returns_a_text", "unready() returned True"),
        (WaitsForTheCore, "test_door_opens_reloads_and_closes", "the core begins when all doors are open"),
        (Half, "test_door_that_was_not_opened_closes", "AttributeError"),
        (LeavesWork, "test_another_door_opens_after_the_first_is_closed", "after stop(), these tasks run:"),
        (Fails, "test_door_opens_reloads_and_closes", "no more"),
        (Early, "test_creation_opens_nothing", "do this in start()"),
    ],
)
def test_violation_is_found(door: type[Door], test: str, text: str) -> None:
    assert text in violation(door, test)


def test_port_that_is_not_given_back_is_found() -> None:
    class Keeps(Echo):
        """Keep the port."""

        name = "keeps"

        async def stop(self) -> None:
            pass

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    test = "test_another_door_opens_after_the_first_is_closed"
    assert "address already in use" in violation(Keeps, test, address=f"127.0.0.1:{port}")


def test_a_door_is_tried_with_a_cluster() -> None:
    async def story() -> bytes:
        async with ServiceSample(Clusters()()).open(Echo()) as address:
            host, _, port = address.rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"hello\n")
            answer = await reader.readline()
            writer.close()
            return answer

    assert asyncio.run(story()) == b"hello\n"
