"""`yunikorn dump`: write the whole state of a running scheduler as JSON."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click

from yunikorn.cli.output import echo, results
from yunikorn_rest.commands.answer_fields import amount_text
from yunikorn_rest.commands.server_options import connect, connection_options

PATH = "/debug/fullstatedump"
STANDARD_OUTPUT = "-"


@click.command()
@click.option(
    "--output",
    "-o",
    default=STANDARD_OUTPUT,
    metavar="FILE",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="File to write; - is standard output.  [default: -]",
)
@connection_options
def command(output: str, **connection: Any) -> None:
    """Write the whole state of a running scheduler as one JSON object.

    A file is complete or unchanged: it is replaced when the last byte has arrived. Exit status: 0 when the
    state was written, 2 otherwise.
    """
    with connect(connection) as server:
        pieces = server.pieces(PATH)
        if output == STANDARD_OUTPUT:
            _write(pieces, results().buffer)
            return
        size = _replace(Path(output), pieces)
    echo(f"{output}: {amount_text('memory', size)} bytes of state", err=True)


def _replace(file: Path, pieces: Iterable[bytes]) -> int:
    """Write a file, and give it its name when it is complete; return its size in bytes."""
    if file.exists() and not file.is_file():  # a pipe or a device
        with file.open("wb") as stream:
            return _write(pieces, stream)
    with _complete_or_absent(file) as stream:
        return _write(pieces, stream)


@contextlib.contextmanager
def _complete_or_absent(file: Path) -> Iterator[BinaryIO]:
    try:
        handle, name = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".part", dir=file.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from error
    try:
        with open(handle, "wb") as stream:
            yield stream
        os.replace(name, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _write(pieces: Iterable[bytes], stream: BinaryIO) -> int:
    size = 0
    for piece in pieces:
        stream.write(piece)
        size += len(piece)
    stream.flush()
    return size
