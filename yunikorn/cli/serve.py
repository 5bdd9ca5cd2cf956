"""`yunikorn serve`: the scheduler as a service, for resource managers on this machine or others.

Exit status: 0 after a signal, 2 when the call, a configuration or the address cannot be used, 70 when the
scheduler died of a bug, 130 after a second signal, which ends the service at once.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from yunikorn import __version__
from yunikorn.cli.allowed_plugins import load_registry
from yunikorn.cli.output import echo
from yunikorn.cli.service_options import OFF, SharedOptions, metrics_class
from yunikorn.clock import SECOND
from yunikorn.config.durations import parse_duration
from yunikorn.errors import QuantityError, UsageError
from yunikorn.quantities import parse_quantity
from yunikorn.rest.log_levels import LEVELS
from yunikorn.service.certificates import VERBOSITY, handshakes_logged
from yunikorn.service.config_files import ConfigFiles
from yunikorn.service.demo import GROUP
from yunikorn.service.descriptors import raise_descriptor_limit
from yunikorn.service.logs import AREAS, FORMATS
from yunikorn.service.service import BoundAddresses, Network, ServiceOptions, serve
from yunikorn.service.service_settings import (
    DEFAULT_ADDRESS,
    DEFAULT_REST,
    EVENT_LIMITS,
    LIMITS,
    Patience,
    RMLimits,
    ServerSettings,
    ServerTls,
    ServiceLimits,
)

if TYPE_CHECKING:
    from yunikorn.runtime.async_scheduler import AsyncScheduler

FILE = click.Path(dir_okay=False, path_type=Path)
NEVER = "never"
SMALLEST_PART = 64 << 10
"""Minimum size in bytes at which a recording may continue in another file."""


def _seconds(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    if value is None or value == NEVER:
        return None
    try:
        nanoseconds = parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    if nanoseconds <= 0:
        raise click.BadParameter(f"has to be longer than 0s, not {value}")
    return nanoseconds / SECOND


def _bytes(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    try:
        size = parse_quantity("bytes", value)
    except QuantityError as error:
        raise click.BadParameter(str(error)) from error
    if size < SMALLEST_PART:
        raise click.BadParameter(f"has to be at least 64Ki, not {value}")
    return size


@click.command("serve")
@click.option(
    "--config",
    "configs",
    multiple=True,
    metavar="[GROUP=]FILE",
    help="A queues.yaml, for a policy group or by default; or a folder of GROUP.yaml. May be repeated.",
)
@click.option(
    "--grpc",
    "address",
    default=DEFAULT_ADDRESS,
    show_default=True,
    metavar="ADDRESS",
    help="Where to listen: HOST:PORT (port 0: any free port), unix:PATH, or off.",
)
@click.option(
    "--rest",
    metavar="ADDRESS",
    help="Where to serve REST: HOST:PORT (port 0: any free port), or off."
    f"  [default: {DEFAULT_REST} if the extra web is installed]",
)
@click.option(
    "--rest-host",
    "rest_hosts",
    multiple=True,
    metavar="NAME",
    help="Another host name under which clients may reach REST on a loopback address. May be repeated.",
)
@click.option(
    "--metrics",
    type=click.Choice(("on", OFF)),
    help="Count and measure for Prometheus, at /ws/v1/metrics of REST.  [default: on if REST is served]",
)
@click.option(
    "--event-limit",
    "event_limits",
    multiple=True,
    metavar="NAME=NUMBER",
    help=f"Limits of events that REST serves: {', '.join(EVENT_LIMITS)}. May be repeated.",
)
@click.option("--rest-open", is_flag=True, help="Let other machines read REST without credentials.")
@click.option(
    "--rest-credentials",
    type=FILE,
    metavar="FILE",
    help="Let the operators in FILE change things over REST (see `yunikorn token`).",
)
@click.option(
    "--audit-log",
    type=FILE,
    metavar="FILE",
    help="Append changes over REST, and refused ones, to FILE as JSON lines.",
)
@click.option("--watch", is_flag=True, help="Reload configurations when their files change.")
@click.option("--allow-rm-config", is_flag=True, help="Let resource managers send their configuration.")
@click.option(
    "--session-timeout",
    default="5m",
    show_default=True,
    metavar="TIME",
    callback=_seconds,
    help="How long to wait for a resource manager whose connection was lost, or never.",
)
@click.option(
    "--callback-timeout",
    default="5s",
    show_default=True,
    metavar="TIME",
    callback=_seconds,
    help="How long to wait for the answer of a resource manager to a callback, such as a predicate.",
)
@click.option(
    "--callback-default",
    type=click.Choice(("refuse", "accept")),
    default="refuse",
    show_default=True,
    help="Predicate result for a node if that answer does not arrive.",
)
@click.option(
    "--plugin-budget",
    default="1s",
    show_default=True,
    metavar="TIME",
    callback=_seconds,
    help="How long one call of a plugin may take before the plugin is reported, or never.",
)
@click.option(
    "--stats",
    metavar="TIME",
    callback=_seconds,
    help="Count calls, time and refusals of plugins; log them at this interval, on SIGUSR1 and at the end.",
)
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="NAME=NUMBER",
    help=f"Limits of one resource manager: {', '.join(LIMITS)}; or NAME=none. May be repeated.",
)
@click.option("--tls-cert", type=FILE, help="The server's certificate (PEM), with its chain.")
@click.option("--tls-key", type=FILE, help="Its private key (PEM).")
@click.option("--tls-client-ca", type=FILE, help="Accept only clients with a certificate of this authority.")
@click.option(
    "--rm-identity",
    type=click.Choice(("cn", "san")),
    help="Let a client use only the rmID that its certificate names: as common or alternative name.",
)
@click.option("--insecure-bind", is_flag=True, help="Listen to other machines without TLS.")
@click.option("--record", type=FILE, metavar="FILE", help="Record incoming messages in FILE, for `replay`.")
@click.option(
    "--record-size",
    metavar="SIZE",
    callback=_bytes,
    help="Rename a recording of this size, such as 1Gi, to FILE.1, FILE.2 ..., and continue in a new file.",
)
@click.option("--demo", is_flag=True, help="Run a built-in resource manager with sample nodes and jobs.")
@click.option(
    "--log",
    "levels",
    multiple=True,
    metavar="[AREA=]LEVEL",
    help=f"Log level: {', '.join(LEVELS)}; areas: {', '.join(AREAS)}. May be repeated.",
)
@click.option(
    "--log-format", type=click.Choice(FORMATS), default="text", show_default=True, help="Format of the log."
)
def command(
    configs: tuple[str, ...],
    address: str,
    watch: bool,
    allow_rm_config: bool,
    session_timeout: float | None,
    callback_timeout: float | None,
    callback_default: str,
    limits: tuple[str, ...],
    rm_identity: str | None,
    demo: bool,
    **shared: Any,
) -> int:
    """Serve the scheduler interface over gRPC, and REST, until a signal ends it.

    SIGTERM and Ctrl-C shut the service down in order. SIGHUP reloads configurations and certificates, and
    starts a new recording if the file was renamed. Logs are written to standard error.
    """
    given = SharedOptions(**shared)
    if callback_timeout is None:
        raise click.BadParameter("the core cannot wait without a limit", param_hint="--callback-timeout")
    patience = Patience(session=session_timeout, callback=callback_timeout)
    patience = attrs.evolve(patience, hang=max(patience.hang, 2 * callback_timeout))
    if rm_identity and given.tls_client_ca is None:
        raise UsageError("--rm-identity needs --tls-client-ca: without it clients show no certificate")
    settings = attrs.evolve(
        given.settings(),
        address=address,
        accept_unanswered=callback_default == "accept",
        limits=ServiceLimits(per_rm=RMLimits.parse(limits)),
        patience=patience,
        identity=rm_identity or "",
    )
    web = given.web()
    files = ConfigFiles(configs)
    network = None if address == OFF else _network(settings.tls)
    options = ServiceOptions(
        files,
        settings,
        network,
        allow_rm_config,
        watch,
        demo,
        given.record,
        given.record_size,
        given.stats,
        web,
        metrics_class(given.metrics, web is not None),
    )
    # A user who sets another GRPC_VERBOSITY wants the lines of gRPC on standard error as they are.
    reads = network is not None and settings.tls is not None and os.environ["GRPC_VERBOSITY"] == VERBOSITY
    handshakes = handshakes_logged() if reads else contextlib.nullcontext()
    with handshakes, given.logging():
        raise_descriptor_limit()
        return serve(options, load_registry(), lambda bound: echo(_welcome(options, bound)))


def _network(tls: ServerTls | None) -> Callable[[AsyncScheduler, ServerSettings], Network]:
    # Without this default, gRPC prints lines of its own beside our error message.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE" if tls is None else VERBOSITY)
    try:
        from yunikorn.service.grpc_server import Server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("grpc", "grpc_health", "grpc_reflection", "google"):
            raise
        raise UsageError(
            f"{error.name} is not installed, but is needed to serve over the network:"
            " pip install 'yunikorn[grpc]' (or run without a network: --grpc off --demo)"
        ) from error
    return Server


def _welcome(options: ServiceOptions, addresses: BoundAddresses) -> str:
    settings, bound = options.settings, addresses.grpc
    if not bound:
        where = "without a network"
    elif settings.tls is not None:
        clients = "clients with a certificate" if settings.tls.client_authority else "any client"
        where = f"at {bound} over TLS, for {clients}"
    elif settings.insecure:
        where = f"at {bound}: WITHOUT TLS, for any client that can reach it"
    else:
        where = f"at {bound}, without TLS, for this machine only"
    groups = ", ".join(group or "default" for group in options.files.paths())
    lines = [f"yunikorn {__version__} serves the scheduler interface {where}"]
    if addresses.rest:
        lines.append(f"REST: {addresses.rest}/ws/v1")
    if groups:
        lines.append(f"policy groups: {groups}")
    if options.demo:
        if groups and GROUP not in options.files.paths():
            lines.append(f"the demo has queues of its own: it would use those of --config {GROUP}=FILE")
        lines.append("the log shows the jobs of the demo; Ctrl-C ends it")
    elif bound:
        lines.append("next: connect a resource manager (docs/shims.md); docs/serve.md describes the settings")
    return "\n".join(lines)
