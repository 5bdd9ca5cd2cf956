"""`yunikorn snapshot`: write a snapshot of a running scheduler, or show what is in one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import click

from yunikorn.errors import UsageError, printable
from yunikorn_commands.extras import importing_extra
from yunikorn_commands.output import echo, remark
from yunikorn_commands.text_columns import print_pairs
from yunikorn_rest.commands.answer_fields import NONE, amount_text, shown, time_text
from yunikorn_rest.commands.fetched_snapshot import fetch_snapshot
from yunikorn_rest.commands.server_options import FILE, connect, server_options

with importing_extra("foresight", "for snapshots"):
    from yunikorn_snapshots.commands.snapshot_sources import OtherSource, source_options
    from yunikorn_snapshots.restored_snapshot import read_header
    from yunikorn_snapshots.snapshot_errors import SnapshotError
    from yunikorn_snapshots.snapshot_file import SnapshotHeader, verified

PIECE = 1 << 20


@click.command()
@click.argument("file", required=False, type=FILE)
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="File to write; it is complete or unchanged.",
)
@source_options
@server_options
def command(
    file: Path | None,
    output: Path | None,
    as_json: bool,
    state_dump: str | None,
    kubeconfig: Path | None,
    context: str,
    scheduler_name: str,
    config: Path | None,
    **connection: Any,
) -> None:
    """Write a snapshot of a running scheduler (-o), or show what is in the snapshot FILE.

    A snapshot has everything that decides, and a scheduler that is restored from it decides as the original
    would have. The scheduler goes on meanwhile. The role admin is needed.

    With --state-dump or --kubeconfig, the snapshot is one of a cluster that another scheduler runs. Warnings
    say what it lacks.

    Exit status: 0 when a file was written or shown, 2 otherwise.
    """
    if (file is None) == (output is None):
        raise UsageError("expected -o FILE to write a snapshot, or the FILE of one to show")
    source = OtherSource(state_dump, kubeconfig, context, scheduler_name, config)
    if source.is_named():
        if output is None:
            raise UsageError("expected -o FILE for the snapshot to write")
        source.write(output, connection)
        _show(output, read_header(output), as_json=as_json)
        return
    if output is None:
        assert file is not None
        header = _checked(file)
        _show(file, header, as_json=as_json)
        return
    echo("waiting for the snapshot ...", err=True)
    with connect(connection) as server:
        fetch_snapshot(server, output)
    _show(output, read_header(output), as_json=as_json)


def _checked(file: Path) -> SnapshotHeader:
    """Return the header of a complete snapshot; raises `UsageError` and `SnapshotError`."""
    header = read_header(file)
    try:
        for _ in verified(_pieces(file)):
            pass
    except SnapshotError as error:
        raise UsageError(f"snapshot {file} cannot be used: {error}") from error
    return header


def _pieces(file: Path) -> Iterator[bytes]:
    with file.open("rb") as stream:
        while piece := stream.read(PIECE):
            yield piece


def _show(file: Path, header: SnapshotHeader, *, as_json: bool) -> None:
    size = file.stat().st_size
    if as_json:
        echo(json.dumps({"file": str(file), "bytes": size, **attrs.asdict(header)}))
        return
    print_pairs(
        [
            ("file", shown(str(file))),
            ("size", f"{amount_text('memory', size)} bytes"),
            ("version", shown(header.version)),
            ("time", time_text(header.time)),
            ("resource managers", ", ".join(map(shown, header.rms)) or NONE),
            *((printable(name), f"{count}") for name, count in header.sizes.items()),
        ]
    )
    for warning in header.warnings:
        remark(warning, "warning")
