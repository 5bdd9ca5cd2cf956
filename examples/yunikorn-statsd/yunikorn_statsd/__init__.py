"""A door that sends the sizes of queues to statsd, and a command that counts the pending tasks of users.

yunikorn serve --config queues.yaml --statsd --statsd-address 127.0.0.1:8125
yunikorn pending-by-user state.json
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Generator
from typing import TYPE_CHECKING

import attrs
import click

from yunikorn.api import Command, Door, Service, hookimpl

if TYPE_CHECKING:
    from yunikorn.interface.scheduler import Scheduler

_log = logging.getLogger("yunikorn.plugins")
LONGEST = 1400
"""Bytes of a packet, so that the network does not split it."""


def _is_address(_: object, __: attrs.Attribute[str], text: str) -> None:
    host, _colon, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"expected HOST:PORT, got '{text}'")


@attrs.define(eq=False)
class Statsd(Door):
    """Send the numbers of pending and running tasks of each queue to statsd, over UDP."""

    name = "statsd"
    address: str = attrs.field(
        default="127.0.0.1:8125", validator=_is_address, metadata={"help": "HOST:PORT of the server."}
    )
    interval: float = attrs.field(
        default=10.0, validator=attrs.validators.ge(0.1), metadata={"help": "Seconds between two reports."}
    )
    prefix: str = attrs.field(default="yunikorn", metadata={"help": "First part of all names."})
    _transport: asyncio.DatagramTransport | None = attrs.field(init=False, default=None)
    _failure: str = attrs.field(init=False, default="")

    async def start(self, service: Service) -> str:
        """Look up the address, and begin to send."""
        await self.reload()
        service.run_in_background(self._send_repeatedly(service))
        return f"udp {self.address} every {self.interval:g} s"

    async def reload(self) -> None:
        """Look up the address again: the name of a server may have got another one."""
        host, _, port = self.address.rpartition(":")
        loop = asyncio.get_running_loop()
        transport, _protocol = await loop.create_datagram_endpoint(
            asyncio.DatagramProtocol, remote_addr=(host.strip("[]"), int(port)), family=socket.AF_UNSPEC
        )
        before, self._transport = self._transport, transport
        if before is not None:
            before.close()

    async def stop(self) -> None:
        """Close the socket; `start` may have failed."""
        if self._transport is not None:
            self._transport.close()

    def unready(self) -> str:
        """Return why the last report could not be sent."""
        return self._failure

    async def _send_repeatedly(self, service: Service) -> None:
        while True:
            sizes = await service.core.read(read_sizes)
            try:
                self._send(sizes)
            except OSError as error:
                if not self._failure:
                    _log.warning("statsd at %s: %s", self.address, error)
                self._failure = f"statsd at {self.address}: {error}"
            else:
                self._failure = ""
            await asyncio.sleep(self.interval)

    def _send(self, sizes: dict[str, tuple[int, int]]) -> None:
        if self._transport is None:
            return
        lines = [
            f"{self.prefix}.{path}.{name}:{value}|g"
            for path, numbers in sizes.items()
            for name, value in zip(("pending", "running"), numbers, strict=True)
        ]
        for packet in packets(lines):
            self._transport.sendto(packet)


def packets(lines: list[str]) -> list[bytes]:
    """Return lines in packets of at most `LONGEST` bytes, or of one line."""
    found = [b""]
    for line in lines:
        encoded = line.encode() + b"\n"
        if found[-1] and len(found[-1]) + len(encoded) > LONGEST:
            found.append(b"")
        found[-1] += encoded
    return list(filter(None, found))


def read_sizes(scheduler: Scheduler) -> Generator[None, None, dict[str, tuple[int, int]]]:
    """Return the numbers of pending and running tasks of each leaf queue; pauses after each application."""
    found: dict[str, tuple[int, int]] = {}
    for _, at in scheduler.all_partitions():
        for queue in list(at.partition.queues):
            if not queue.is_leaf:
                continue
            pending, running = found.get(queue.path, (0, 0))
            for app in list(queue.applications.values()):
                pending += sum(ask.pending for ask in app.asks.values())
                running += len(app.allocations)
                yield
            found[queue.path] = (pending, running)
    return found


class PendingByUser(Command):
    """Print the number of pending tasks of each user."""

    name = "pending-by-user"
    section = "Look into a running scheduler"

    def command(self) -> click.Command:
        """Return the click command, whose module only its call imports."""
        from yunikorn_statsd.pending_by_user import command

        return command


@hookimpl
def yunikorn_doors() -> list[type[Door]]:
    """Return the door of this package."""
    return [Statsd]


@hookimpl
def yunikorn_commands() -> list[type[Command]]:
    """Return the command of this package."""
    return [PendingByUser]
