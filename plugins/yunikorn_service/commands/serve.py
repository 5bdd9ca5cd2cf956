"""`yunikorn serve`: the scheduler as a service, for resource managers on this machine or others.

Exit status: 0 after a signal, 2 when the call, a configuration or the address cannot be used, 70 when the
scheduler died of a bug, 130 after a second signal, which ends the service at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from yunikorn import __version__
from yunikorn_service.commands.door_options import ServiceCommand
from yunikorn_service.commands.service_options import ServiceCall, addresses, shared_options
from yunikorn_service.config_files import ConfigFiles
from yunikorn_service.demo import GROUP
from yunikorn_service.grpc_door import GrpcDoor
from yunikorn_service.option_values import parse_seconds
from yunikorn_service.service import ServiceOptions
from yunikorn_service.service_settings import Patience


@click.command("serve", cls=ServiceCommand)
@click.option(
    "--config",
    "configs",
    multiple=True,
    metavar="[GROUP=]FILE",
    help="A queues.yaml, for a policy group or by default; or a folder of GROUP.yaml. May be repeated.",
)
@click.option("--watch", is_flag=True, help="Reload configurations when their files change.")
@click.option("--allow-rm-config", is_flag=True, help="Let resource managers send their configuration.")
@click.option(
    "--session-timeout",
    default="5m",
    show_default=True,
    metavar="TIME",
    callback=parse_seconds,
    help="How long to wait for a resource manager whose connection was lost, or never.",
)
@click.option("--demo", is_flag=True, help="Run a built-in resource manager with sample nodes and jobs.")
@shared_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    configs: tuple[str, ...],
    watch: bool,
    allow_rm_config: bool,
    session_timeout: float | None,
    demo: bool,
    **shared: Any,
) -> int:
    """Serve the scheduler interface over gRPC, and REST, until a signal ends it.

    SIGTERM and Ctrl-C shut the service down in order. SIGHUP reloads configurations and certificates, and
    starts a new recording if the file was renamed. Logs are written to standard error.
    """
    call = ServiceCall(ctx, shared, Patience(session=session_timeout))
    options = ServiceOptions(
        ConfigFiles(configs), call.settings, call.doors, allow_rm_config, watch, demo, call.stats
    )
    return call.serve(options, lambda bound: _welcome(options, bound))


def _welcome(options: ServiceOptions, bound: Mapping[str, str]) -> str:
    network = next((door for door in options.doors if isinstance(door, GrpcDoor)), None)
    where = "without a network" if network is None else network.welcome(bound[GrpcDoor.name])
    groups = ", ".join(group or "default" for group in options.files.paths())
    lines = [
        f"yunikorn {__version__} serves the scheduler interface {where}",
        *addresses(bound, without=GrpcDoor.name),
    ]
    if groups:
        lines.append(f"policy groups: {groups}")
    if options.demo:
        if groups and GROUP not in options.files.paths():
            lines.append(f"the demo has queues of its own: it would use those of --config {GROUP}=FILE")
        lines.append("the log shows the jobs of the demo; Ctrl-C ends it")
    elif network is not None:
        lines.append("next: connect a resource manager (docs/shims.md); docs/serve.md describes the settings")
    return "\n".join(lines)
