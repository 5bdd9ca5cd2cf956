"""`yunikorn dump`: write the whole state of a running scheduler as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from yunikorn_commands.complete_files import replace_file, write_pieces
from yunikorn_commands.output import echo, results
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
            write_pieces(pieces, results().buffer)
            return
        size = replace_file(Path(output), pieces)
    echo(f"{output}: {amount_text('memory', size)} bytes of state", err=True)
