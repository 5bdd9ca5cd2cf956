"""Sources of snapshots besides schedulers of ours: state dumps of the Go core, and Kubernetes clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs
import click

from yunikorn.errors import UsageError, YunikornError, printable
from yunikorn.framework.defaults import import_default
from yunikorn_commands.allowed_plugins import load_registry
from yunikorn_commands.config_input import read_config
from yunikorn_commands.extras import importing_extra
from yunikorn_commands.input_files import LARGEST, MIB, read_input, unpacked
from yunikorn_commands.option_groups import option_group
from yunikorn_rest.commands.rest_client import open_server
from yunikorn_rest.commands.server_options import FILE, address_of

with importing_extra("foresight", "for snapshots"):
    from yunikorn_snapshots.dumped_cluster import cluster_of_dump
    from yunikorn_snapshots.other_clusters import OtherCluster, snapshot_of
    from yunikorn_snapshots.snapshot_errors import SnapshotError

CLUSTERS = "yunikorn_kubernetes.cluster_snapshots.cluster_lists"
ROUTES = ("/debug/fullstatedump", "/ws/v1/fullstatedump")
"""Routes of state dumps; the second one is that of versions before 1.6.3."""

source_options = option_group(
    click.option(
        "--state-dump",
        metavar="FILE|URL",
        help="Read a state dump of YuniKorn 1.6 to 1.9: a file, or the address of its REST interface.",
    ),
    click.option(
        "--kubeconfig", type=FILE, help="Read the cluster of a kubeconfig file, whatever schedules it."
    ),
    click.option("--context", default="", metavar="NAME", help="Context of the kubeconfig file."),
    click.option(
        "--scheduler-name",
        default="",
        metavar="NAME",
        help="Take only the pods of this scheduler for applications.  [default: all but those of nodes]",
    ),
    click.option(
        "--config",
        type=FILE,
        help="The queues.yaml that decides.  [default: that of the dump; a queue for each namespace]",
    ),
)
"""Options of the sources, which a command takes as keywords for `OtherSource`."""


@attrs.frozen
class OtherSource:
    """Values of the options."""

    state_dump: str | None
    kubeconfig: Path | None
    context: str
    scheduler_name: str
    config: Path | None

    def is_named(self) -> bool:
        """Return True if a source is named; raises `UsageError` for options that do not go together."""
        if self.state_dump is not None and self.kubeconfig is not None:
            raise UsageError("--state-dump and --kubeconfig are two sources: give one")
        if self.kubeconfig is None and (self.context or self.scheduler_name):
            raise UsageError("--context and --scheduler-name need --kubeconfig")
        if self.state_dump is None and self.kubeconfig is None and self.config is not None:
            raise UsageError("--config needs --state-dump or --kubeconfig")
        return self.state_dump is not None or self.kubeconfig is not None

    def write(self, output: Path, connection: Mapping[str, Any]) -> None:
        """Write the snapshot; raises `UsageError`."""
        registry = load_registry()
        config = "" if self.config is None else read_config(self.config, registry)
        name = f"state dump {self.state_dump}" if self.state_dump is not None else f"{self.kubeconfig}"
        try:
            snapshot_of(self._cluster(config, connection), registry, output)
        except SnapshotError as error:
            raise UsageError(f"{printable(name)} cannot be used: {error}") from error

    def _cluster(self, config: str, connection: Mapping[str, Any]) -> OtherCluster:
        if self.state_dump is not None:
            return cluster_of_dump(_dump(self.state_dump, connection), config)
        with importing_extra("kubernetes", "to connect to a cluster"):
            clusters = import_default(CLUSTERS)
        found: OtherCluster = clusters.cluster_of_kubeconfig(
            f"{self.kubeconfig}", self.context, config, self.scheduler_name
        )
        return found


def _dump(source: str, connection: Mapping[str, Any]) -> bytes:
    if "://" not in source:
        return unpacked(read_input(Path(source)), source)
    parts = urlsplit(source)
    address = address_of({**connection, "server": f"{parts.scheme}://{parts.netloc}"}, connection["timeout"])
    if connection.get("token_file") is None:
        # The token in the variable is one for a scheduler of ours.
        address = attrs.evolve(address, token=None)
    routes = [parts.path] if parts.path.strip("/") else [*ROUTES]
    with open_server(address) as server:
        while True:
            try:
                return b"".join(_bounded(server.pieces(routes.pop(0)), source))
            except YunikornError:
                if not routes:
                    raise


def _bounded(pieces: Iterator[bytes], source: str) -> Iterator[bytes]:
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > LARGEST:
            raise SnapshotError(f"it is larger than {LARGEST // MIB} MiB")
        yield piece
