"""Options that all commands share that run a service: plugins, certificates, log and doors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from yunikorn.errors import UsageError
from yunikorn_commands.output import echo, results_only
from yunikorn_commands.path_types import SERVICE_FILE
from yunikorn_service.commands.door_options import ServiceCommand
from yunikorn_service.descriptors import raise_descriptor_limit
from yunikorn_service.log_levels import LEVELS
from yunikorn_service.logs import AREAS, FORMATS, logging_to, parse_levels
from yunikorn_service.option_values import parse_seconds
from yunikorn_service.service import ServiceOptions, serve
from yunikorn_service.service_door import ServiceDoor
from yunikorn_service.service_settings import Budget, Patience, ServerSettings, ServerTls

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--plugin-budget",
        default="1s",
        show_default=True,
        metavar="TIME",
        callback=parse_seconds,
        help="How long one call of a plugin may take before the plugin is reported, or never.",
    ),
    click.option(
        "--stats",
        metavar="TIME",
        callback=parse_seconds,
        help=(
            "Count calls, time and refusals of plugins; log them at this interval, on SIGUSR1 and at the end."
        ),
    ),
    click.option("--tls-cert", type=SERVICE_FILE, help="The server's certificate (PEM), with its chain."),
    click.option("--tls-key", type=SERVICE_FILE, help="Its private key (PEM)."),
    click.option(
        "--tls-client-ca", type=SERVICE_FILE, help="Accept only clients with a certificate of this authority."
    ),
    click.option("--insecure-bind", is_flag=True, help="Listen to other machines without TLS."),
    click.option(
        "--log",
        "levels",
        multiple=True,
        metavar="[AREA=]LEVEL",
        help=f"Log level: {', '.join(LEVELS)}; areas: {', '.join(AREAS)}. May be repeated.",
    ),
    click.option(
        "--log-format",
        type=click.Choice(FORMATS),
        default="text",
        show_default=True,
        help="Format of the log.",
    ),
)


def shared_options(function: F) -> F:
    """Add the shared options to a command."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


class ServiceCall:
    """Call of a `ServiceCommand`: the settings of the service, and the doors that it opens."""

    def __init__(self, ctx: click.Context, values: dict[str, Any], patience: Patience | None = None) -> None:
        """Take the values of the shared options and of those of the doors.

        Raises `UsageError` or `click.BadParameter`.
        """
        assert isinstance(ctx.command, ServiceCommand)
        found = ctx.command.doors(ctx)
        by_door = found.split(values)
        self.registry = found.registry
        self.stats: float | None = values["stats"]
        self.levels: tuple[str, ...] = values["levels"]
        self._log_format: str = values["log_format"]
        self.settings = ServerSettings(
            tls=tls_files(values["tls_cert"], values["tls_key"], values["tls_client_ca"]),
            insecure=values["insecure_bind"],
            budget=Budget(call=values["plugin_budget"]),
            patience=patience or Patience(),
        )
        self.doors = found.open(by_door, self.settings)

    def serve(self, options: ServiceOptions, welcome: Callable[[Mapping[str, str]], str]) -> int:
        """Serve until a signal arrives; `welcome` returns the text for the addresses of the doors."""
        with contextlib.ExitStack() as stack:
            for door in options.doors:
                if isinstance(door, ServiceDoor):
                    stack.enter_context(door.around())
            stack.enter_context(self._logging())
            raise_descriptor_limit()
            return serve(options, self.registry, lambda bound: echo(welcome(bound)))

    @contextlib.contextmanager
    def _logging(self) -> Iterator[None]:
        """Write the log of the service as the options say, with the prints of plugins, during the context."""
        with logging_to(None, parse_levels(self.levels), self._log_format), results_only(logged=True):
            yield


def addresses(bound: Mapping[str, str], *, without: str) -> list[str]:
    """Return a line for the address of each door but one."""
    lines = {name: address for name, address in bound.items() if name != without}
    return [f"{name.upper() if name == 'rest' else name}: {address}" for name, address in lines.items()]


def tls_files(certificate: Path | None, key: Path | None, authority: Path | None) -> ServerTls | None:
    """Return the TLS files of a server; None for a server without TLS. Raises `UsageError`."""
    if certificate is None and key is None:
        if authority is not None:
            raise UsageError("--tls-client-ca needs --tls-cert and --tls-key: clients are checked over TLS")
        return None
    if certificate is None or key is None:
        given, missing = ("--tls-key", "--tls-cert") if certificate is None else ("--tls-cert", "--tls-key")
        raise UsageError(f"{given} needs {missing} too")
    return ServerTls(certificate, key, authority)
