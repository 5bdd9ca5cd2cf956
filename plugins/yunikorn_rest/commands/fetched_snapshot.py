"""Snapshots that commands fetch from a running scheduler."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from yunikorn.errors import UsageError
from yunikorn_commands.complete_files import replace_file
from yunikorn_commands.extras import importing_extra
from yunikorn_rest.commands.rest_client import RestConnection
from yunikorn_rest.commands.server_options import check_alone, connect

PATH = "/ws/v1/snapshot"
"""Path of the route that sends a snapshot."""


def fetch_snapshot(server: RestConnection, file: Path) -> None:
    """Write a snapshot of a running scheduler to a file, which is complete or unchanged.

    Raises `UsageError` if the server has none, or if what it sends cannot be used.
    """
    with importing_extra("foresight", "for snapshots"):
        from yunikorn_snapshots.forked_snapshot import LONGEST
        from yunikorn_snapshots.snapshot_errors import SnapshotError
        from yunikorn_snapshots.snapshot_file import verified
    try:
        replace_file(file, verified(server.pieces(PATH, LONGEST + 30)))
    except SnapshotError as error:
        raise UsageError(f"what the server sent cannot be used: {error}") from error


@contextlib.contextmanager
def snapshot_file(options: Mapping[str, Any]) -> Iterator[Path]:
    """Provide the file of `--snapshot`, or of a new snapshot of the server, which is deleted at the end.

    `options` are those of `reading_options`. Raises `UsageError`.
    """
    if options.get("snapshot") is not None:
        check_alone()
        yield options["snapshot"]
        return
    with tempfile.TemporaryDirectory(prefix="yunikorn-") as folder:
        file = Path(folder) / "server.snapshot"
        with connect({**options, "snapshot": None}) as server:
            fetch_snapshot(server, file)
        yield file
