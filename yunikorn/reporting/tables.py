"""Sections of a report as tables on a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.table import Table

from yunikorn.errors import printable
from yunikorn.reporting.sections import Section


def print_sections(sections: Iterable[Section], console: Console) -> None:
    """Print each as a table, its note below it."""
    for section in sections:
        table = Table(
            title=printable(section.title),
            title_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            padding=(0, 1, 0, 0),
        )
        for number, name in enumerate(section.columns):
            # A first column that folds keeps the numbers beside it whole.
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
