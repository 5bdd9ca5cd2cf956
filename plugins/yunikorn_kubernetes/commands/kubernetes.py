"""`yunikorn kubernetes`: the scheduler of a Kubernetes cluster, with core, shim and REST in one process.

Exit status: 0 after a signal, 1 when the shim cannot continue, such as after the loss of its leadership, 2
when the call, a configuration, the credentials or an address cannot be used, 70 when the scheduler died of a
bug, 130 after a second signal.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import click

from yunikorn import __version__
from yunikorn.config.load import check_config
from yunikorn.errors import Problem
from yunikorn.framework.defaults import import_default
from yunikorn.framework.registry import Registry
from yunikorn_commands.extras import importing_extra
from yunikorn_service.commands.door_options import ServiceCommand
from yunikorn_service.commands.service_options import ServiceCall, addresses, shared_options
from yunikorn_service.config_files import ConfigFiles
from yunikorn_service.grpc_door import GrpcDoor
from yunikorn_service.logs import AreaLevels
from yunikorn_service.service import ServiceOptions

DOOR = "yunikorn_kubernetes.commands.kubernetes_door"
SHIM = "yunikorn_kubernetes.shim.network"
READERS = "yunikorn_kubernetes.workloads.chosen_readers"
VOLUME = "/var/lib/yunikorn"
"""Place of a volume for the history."""
NO_HISTORY = (
    f"history: has no effect in a ConfigMap: give the pod a volume at {VOLUME}, or the argument --history"
)

_log = logging.getLogger("yunikorn.kubernetes.config")


class KubernetesCommand(ServiceCommand):
    """Service whose resource manager is the cluster, instead of those that connect over gRPC."""

    without = frozenset({GrpcDoor.name})


@click.command("kubernetes", cls=KubernetesCommand)
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
@shared_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
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
    network = _imported(SHIM)
    call = ServiceCall(ctx, shared)
    made = network.KubernetesOptions(
        kubeconfig,
        context,
        namespace,
        version=__version__,
        config_maps=config is None,
        pod=pod,
        leader_election=leader_election,
        check_queues=partial(_check_queues, call.registry),
        set_levels=AreaLevels().use if not call.levels else lambda _: None,
        choose_readers=partial(_imported(READERS).choose_readers, call.registry),
    )
    service = ServiceOptions(
        ConfigFiles([] if config is None else [config]),
        call.settings,
        [*call.doors, _imported(DOOR).KubernetesDoor(made)],
        allow_rm_config=config is None,
        watch=config is not None,
        stats=call.stats,
        history_file=f"{VOLUME}/history.db" if os.path.ismount(VOLUME) else "",
    )
    return call.serve(service, lambda bound: _welcome(bound, config))


def _check_queues(registry: Registry, text: str) -> Sequence[Problem]:
    """Return the problems of a queue configuration in a ConfigMap."""
    outcome = check_config(text, registry)
    if outcome.config is not None and outcome.config.history is not None:
        _log.warning("%s", NO_HISTORY)
    return outcome.problems


def _imported(module: str) -> ModuleType:
    with importing_extra("kubernetes", "to connect to a cluster"):
        return import_default(module)


def _welcome(bound: Mapping[str, str], config: str | None) -> str:
    source = "the ConfigMaps yunikorn-defaults and yunikorn-configs" if config is None else config
    first = f"yunikorn {__version__} connects to the cluster at {bound['kubernetes']}, configured by {source}"
    return "\n".join([first, *addresses(bound, without="kubernetes")])
