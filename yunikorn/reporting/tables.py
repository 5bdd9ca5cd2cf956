"""Tables of report sections on the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.table import Table

from yunikorn.errors import printable
from yunikorn.reporting.sections import Section


def print_sections(sections: Iterable[Section], console: Console) -> None:
    """Print each section as a table, with its note below."""
    for section in sections:
        table = Table(
            title=printable(section.title),
            title_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            padding=(0, 1, 0, 0),
        )
        for number, name in enumerate(section.columns):
            # Only the first column folds, so that numbers are never split.
            table.add_column(
                printable(name),
                justify="right" if number else "left",
                no_wrap=number > 0,
                overflow="fold",
                min_width=0 if number else 14,
            )
        for row in section.rows:
            table.add_row(*map(printable, row))
        console.print(table)
        if section.note:
            console.print(f"{printable(section.note)}\n")
