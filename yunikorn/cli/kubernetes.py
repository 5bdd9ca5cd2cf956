"""`yunikorn kubernetes`: the scheduler of a Kubernetes cluster, with core, shim and REST in one process.

Exit status: 0 after a signal, 1 when the shim cannot continue, such as after the loss of its leadership, 2
when the call, a configuration, the credentials or an address cannot be used, 70 when the scheduler died of a
bug, 130 after a second signal.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import attrs
import click

from yunikorn import __version__
from yunikorn.cli.allowed_plugins import load_registry
from yunikorn.cli.output import echo
from yunikorn.cli.serve import command as serve_command
from yunikorn.cli.service_options import SharedOptions, metrics_class
from yunikorn.config.load import check_config
from yunikorn.errors import UsageError
from yunikorn.framework.defaults import import_default
from yunikorn.service.config_files import ConfigFiles
from yunikorn.service.descriptors import raise_descriptor_limit
from yunikorn.service.logs import AreaLevels
from yunikorn.service.service import BoundAddresses, ServiceOptions, serve

SHIM = "yunikorn_kubernetes.shim.network"
EXTRA = ("aiohttp", "kubernetes", "msgspec")
"""Packages of the extra `kubernetes`."""


def with_shared_options(command: click.Command) -> click.Command:
    """Add the options that the command shares with `yunikorn serve`."""
    names = {field.name for field in attrs.fields(SharedOptions)}
    command.params += [option for option in serve_command.params if option.name in names]
    return command


@with_shared_options
@click.command("kubernetes")
@click.option(
    "--kubeconfig",
    default="",
    metavar="FILE",
    help="Kubeconfig file.  [default: the credentials of the pod, then KUBECONFIG, then ~/.kube/config]",
)
@click.option("--context", default="", metavar="NAME", help="Context of the kubeconfig file.")
@click.option(
    "--namespace",
    default="",
    envvar="NAMESPACE",
    metavar="NAME",
    help="Namespace of the ConfigMaps and of the lease.  [default: that of the credentials]",
)
@click.option(
    "--pod",
    default="",
    envvar="POD_NAME",
    metavar="NAME",
    help="Pod of this process, which gets the label yunikorn.apache.org/leader while the process leads.",
)
@click.option(
    "--config",
    metavar="FILE",
    help="A queues.yaml, followed while it changes, instead of the ConfigMaps.",
)
@click.option(
    "--leader-election/--no-leader-election",
    default=None,
    help="Wait for a lease, so that several replicas can run.  [default: where the rights suffice]",
)
def command(
    kubeconfig: str,
    context: str,
    namespace: str,
    pod: str,
    config: str | None,
    leader_election: bool | None,
    **shared: Any,
) -> int:
    """Schedule the pods of a cluster whose schedulerName is yunikorn, until a signal ends it.

    Queues and settings are those of the ConfigMaps yunikorn-defaults and yunikorn-configs. Logs are written
    to standard error.
    """
    options = SharedOptions(**shared)
    network = _shim()
    registry = load_registry()
    made = network.KubernetesOptions(
        kubeconfig,
        context,
        namespace,
        version=__version__,
        config_maps=config is None,
        pod=pod,
        leader_election=leader_election,
        check_queues=lambda text: check_config(text, registry).problems,
        set_levels=AreaLevels().use if not options.levels else lambda _: None,
    )
    settings = options.settings()
    web = options.web()
    service = ServiceOptions(
        ConfigFiles([] if config is None else [config]),
        settings,
        lambda core, _: network.KubernetesNetwork(core, made),
        allow_rm_config=config is None,
        watch=config is not None,
        record=options.record,
        record_size=options.record_size,
        stats=options.stats,
        rest=web,
        metrics=metrics_class(options.metrics, web is not None),
    )
    with options.logging():
        raise_descriptor_limit()
        return serve(service, registry, lambda bound: echo(_welcome(bound, config)))


def _shim() -> ModuleType:
    try:
        return import_default(SHIM)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRA:
            raise
        raise UsageError(
            f"{error.name} is not installed, but is needed to connect to a cluster:"
            " pip install 'yunikorn[kubernetes]'"
        ) from error


def _welcome(bound: BoundAddresses, config: str | None) -> str:
    source = "the ConfigMaps yunikorn-defaults and yunikorn-configs" if config is None else config
    lines = [f"yunikorn {__version__} connects to the cluster at {bound.grpc}, configured by {source}"]
    if bound.rest:
        lines.append(f"REST: {bound.rest}/ws/v1")
    return "\n".join(lines)
