"""The door for resource managers on any machine: the scheduler interface over gRPC.

The gRPC libraries are imported when the door is opened, because they may not be installed; so is the
service, because `--help` reads the options of all doors.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import attrs
import click

from yunikorn.api import Service, hookimpl
from yunikorn.errors import UsageError
from yunikorn_commands.extras import importing_extra
from yunikorn_service.certificates import VERBOSITY, handshakes_logged
from yunikorn_service.option_values import OFF, parse_seconds
from yunikorn_service.service_door import ServiceDoor, option, reload_certificates
from yunikorn_service.service_settings import (
    DEFAULT_ADDRESS,
    LIMITS,
    Patience,
    RMLimits,
    ServerSettings,
    ServerTls,
    ServiceLimits,
)

if TYPE_CHECKING:
    from yunikorn_service.grpc_server import Server


class GrpcDoor(ServiceDoor):
    """Serve resource managers over gRPC.

    The scheduler interface in all layouts, with callbacks, health and reflection.
    """

    name = "grpc"
    for_resource_managers = True

    def __init__(self, settings: ServerSettings, server: type[Server]) -> None:
        self.settings = settings
        self._class = server
        self._server: Server | None = None

    @classmethod
    def flags(cls) -> Sequence[click.Option]:
        """Return the address, and what holds for each resource manager."""
        return (
            option(
                "--grpc",
                "address",
                default=DEFAULT_ADDRESS,
                show_default=True,
                metavar="ADDRESS",
                help="Where to listen: HOST:PORT (port 0: any free port), unix:PATH, or off.",
            ),
            option(
                "--callback-timeout",
                default="5s",
                show_default=True,
                metavar="TIME",
                callback=parse_seconds,
                help=(
                    "How long to wait for the answer of a resource manager to a callback, such as a"
                    " predicate."
                ),
            ),
            option(
                "--callback-default",
                type=click.Choice(("refuse", "accept")),
                default="refuse",
                show_default=True,
                help="Predicate result for a node if that answer does not arrive.",
            ),
            option(
                "--limit",
                "limits",
                multiple=True,
                metavar="NAME=NUMBER",
                help=f"Limits of one resource manager: {', '.join(LIMITS)}; or NAME=none. May be repeated.",
            ),
            option(
                "--rm-identity",
                type=click.Choice(("cn", "san")),
                help=(
                    "Let a client use only the rmID that its certificate names: as common or alternative"
                    " name."
                ),
            ),
        )

    @classmethod
    def of_flags(cls, values: Mapping[str, Any], settings: ServerSettings) -> Self | None:
        """Return the door, or None for `--grpc off`."""
        identity = values["rm_identity"]
        if identity and (settings.tls is None or settings.tls.client_authority is None):
            raise UsageError("--rm-identity needs --tls-client-ca: without it clients show no certificate")
        settings = attrs.evolve(
            settings,
            address=values["address"],
            accept_unanswered=values["callback_default"] == "accept",
            limits=ServiceLimits(per_rm=RMLimits.parse(values["limits"])),
            patience=_patience(settings.patience, values["callback_timeout"]),
            identity=identity or "",
        )
        return None if settings.address == OFF else cls(settings, _server(settings.tls))

    async def start(self, service: Service) -> str:
        """Listen; returns the address. Raises `UsageError` if that is not possible."""
        from yunikorn_service.service import Service as RunningService

        assert isinstance(service, RunningService)
        self._server = self._class(service.core, self.settings)
        return await self._server.start()

    async def stop(self) -> None:
        """Stop the core, send the waiting responses, and end all streams."""
        if self._server is not None:
            await self._server.stop()

    async def reload(self) -> None:
        """Use the current certificate files for new connections."""
        if self._server is not None:
            reload_certificates(self._server.reload_certificates)

    async def report(self, green: bool) -> None:
        """Report through the health service whether the core makes progress."""
        if self._server is not None:
            await self._server.report(green)

    @property
    def hang(self) -> float:
        """Seconds without progress after which the core is reported as hanging."""
        return self.settings.patience.hang

    @contextlib.contextmanager
    def around(self) -> Iterator[None]:
        """Log failed handshakes, unless the user has set another GRPC_VERBOSITY to see the lines of gRPC."""
        is_read = self.settings.tls is not None and os.environ["GRPC_VERBOSITY"] == VERBOSITY
        with handshakes_logged() if is_read else contextlib.nullcontext():
            yield

    def welcome(self, address: str) -> str:
        """Return where the interface is served, and for whom."""
        if self.settings.tls is not None:
            clients = "clients with a certificate" if self.settings.tls.client_authority else "any client"
            return f"at {address} over TLS, for {clients}"
        if self.settings.insecure:
            return f"at {address}: WITHOUT TLS, for any client that can reach it"
        return f"at {address}, without TLS, for this machine only"


def _patience(patience: Patience, callback: float | None) -> Patience:
    if callback is None:
        raise click.BadParameter("the core cannot wait without a limit", param_hint="--callback-timeout")
    return attrs.evolve(patience, callback=callback, hang=max(patience.hang, 2 * callback))


def _server(tls: ServerTls | None) -> type[Server]:
    # Without this default, gRPC prints lines of its own beside our error message.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE" if tls is None else VERBOSITY)
    # gRPC would start its threads in the child that writes a snapshot, and the fork would wait for that.
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
    otherwise = " (or run without a network: --grpc off --demo)"
    with importing_extra("grpc", "to serve over the network", otherwise):
        from yunikorn_service.grpc_server import Server
    return Server


@hookimpl
def yunikorn_doors() -> list[type[ServiceDoor]]:
    """Return the door for resource managers."""
    return [GrpcDoor]
