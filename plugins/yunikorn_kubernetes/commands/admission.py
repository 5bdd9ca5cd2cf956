"""`yunikorn admission`: the admission controller of a Kubernetes cluster.

Exit status: 0 after a signal, 2 when the call, the credentials, the rights or the address cannot be used.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import click

from yunikorn import __version__
from yunikorn.framework.defaults import import_default
from yunikorn_commands.extras import importing_extra
from yunikorn_commands.output import echo
from yunikorn_service.log_levels import LEVELS
from yunikorn_service.logs import FORMATS, AreaLevels, logging_to, parse_levels

DEFAULT_ADDRESS = "0.0.0.0:9089"
DEFAULT_NAMESPACE = "default"


@click.command("admission")
@click.option("--kubeconfig", default="", metavar="FILE", help="Kubeconfig, outside of the cluster.")
@click.option("--context", default="", metavar="NAME", help="Context of the kubeconfig.")
@click.option(
    "--namespace",
    default=lambda: os.environ.get("NAMESPACE", DEFAULT_NAMESPACE),
    show_default="$NAMESPACE, or default",
    metavar="NAME",
    help="Namespace of the scheduler.",
)
@click.option(
    "--listen",
    default=DEFAULT_ADDRESS,
    show_default=True,
    metavar="HOST:PORT",
    help="Where to serve HTTPS for the API server (port 0: any free port).",
)
@click.option(
    "--url",
    default="",
    metavar="URL",
    help="https://HOST:PORT by which the API server reaches this process, where no service leads to it.",
)
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="File with the token to send to the scheduler, if reading its REST interface needs credentials.",
)
@click.option(
    "--log",
    "levels",
    multiple=True,
    metavar="LEVEL",
    help=f"Log level: {', '.join(LEVELS)}. May be repeated.",
)
@click.option(
    "--log-format", type=click.Choice(FORMATS), default="text", show_default=True, help="Format of the log."
)
def command(
    kubeconfig: str,
    context: str,
    namespace: str,
    listen: str,
    url: str,
    token_file: Path | None,
    levels: tuple[str, ...],
    log_format: str,
) -> int:
    """Prepare pods for the scheduler, and refuse ConfigMaps that it cannot use.

    The API server asks this process about every pod, workload and ConfigMap that is created or updated. Its
    certificates, and the configurations of the webhooks, are made, renewed and repaired by the process.
    """
    host, port = _address(listen)
    if url and not url.startswith("https://"):
        raise click.BadParameter(f"{url} has to begin with https://", param_hint="--url")
    with importing_extra("kubernetes", "to connect to a cluster"):
        process = import_default("yunikorn_kubernetes.admission.process")
    set_levels = (lambda _: None) if levels else AreaLevels().use
    options = process.AdmissionOptions(namespace, host, port, url.rstrip("/"), set_levels, token_file)
    agent = f"yunikorn-admission/{__version__}"
    with logging_to(None, parse_levels(levels), log_format):
        status: int = process.run(options, kubeconfig, context, agent, _welcome(host))
    return status


def _welcome(host: str) -> Callable[[int], None]:
    return lambda port: echo(f"admission controller serves https://{host}:{port}")


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise click.BadParameter(f"{text} is no HOST:PORT, such as {DEFAULT_ADDRESS}", param_hint="--listen")
    return host.strip("[]"), int(port)
