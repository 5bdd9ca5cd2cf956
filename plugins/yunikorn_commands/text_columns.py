"""Tables of the commands of operators: plain columns, which fit the terminal and suit `grep` and `awk`.

A pipe or a file gets full texts. On a terminal that is too narrow, long texts are shortened in their middle,
then columns of little importance are left out.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence

import attrs
import click
from rich.cells import cell_len, set_cell_size

from yunikorn.errors import printable
from yunikorn_commands.output import echo, has_colours, results

GAP = "  "
SHORTEST = 12
"""Width to which texts are shortened at most."""


@attrs.frozen
class TextColumn:
    """A column of a table."""

    title: str
    right: bool = False
    """True to align at the right, for numbers, which are never shortened."""
    whole: bool = False
    """True for texts that are never shortened, because they contain amounts."""
    optional: bool = False
    """True for a column that is left out where the terminal is too narrow."""


def terminal_width() -> int | None:
    """Return the width of the terminal that gets the results; None for a pipe or a file."""
    return max(20, shutil.get_terminal_size().columns) if results().isatty() else None


def print_table(columns: Sequence[TextColumn], rows: Sequence[Sequence[str]], width: int | None) -> None:
    """Print a table with a line of titles; `width` is that of the terminal, None for no limit."""
    lines, left_out = laid_out(columns, rows, width)
    for line in lines:
        echo(line)
    if left_out:
        remark = f"columns left out in this width: {', '.join(left_out)} (--wide shows them)"
        echo(remark, err=True)


def laid_out(
    columns: Sequence[TextColumn], rows: Sequence[Sequence[str]], width: int | None
) -> tuple[list[str], list[str]]:
    """Return the lines of a table, and the titles of the columns that are left out."""
    cells = [
        [printable(column.title).upper() for column in columns],
        *([printable(cell) for cell in row] for row in rows),
    ]
    wanted = [max(cell_len(row[at]) for row in cells) for at in range(len(columns))]
    kept = list(range(len(columns)))
    widths = wanted
    if width is not None:
        for at in reversed(range(len(columns))):
            if sum(_shortest(columns[i], wanted[i]) for i in kept) + len(GAP) * (len(kept) - 1) <= width:
                break
            if columns[at].optional:
                kept.remove(at)
        widths = _fitted(columns, wanted, kept, width - len(GAP) * (len(kept) - 1))
    lines = [GAP.join(_cell(row[at], widths[at], columns[at].right) for at in kept).rstrip() for row in cells]
    left_out = [printable(column.title) for at, column in enumerate(columns) if at not in kept]
    return lines, left_out


def _shortest(column: TextColumn, wanted: int) -> int:
    return (
        wanted
        if column.right or column.whole
        else min(wanted, max(SHORTEST, cell_len(printable(column.title))))
    )


def _fitted(
    columns: Sequence[TextColumn], wanted: Sequence[int], kept: Sequence[int], room: int
) -> list[int]:
    """Return the widths, with the widest texts shortened until the table fits, as far as that is possible."""
    widths = list(wanted)
    while sum(widths[at] for at in kept) > room:
        shrinkable = [at for at in kept if widths[at] > _shortest(columns[at], wanted[at])]
        if not shrinkable:
            break
        widths[max(shrinkable, key=lambda at: widths[at])] -= 1
    return widths


def _cell(text: str, width: int, right: bool) -> str:
    length = cell_len(text)
    if length > width:
        return shortened(text, width)
    blank = " " * (width - length)
    return blank + text if right else text + blank


def shortened(text: str, width: int) -> str:
    """Return a text without its middle, so that it has this width on a terminal."""
    if cell_len(text) <= width:
        return text
    head = (width - 1) // 2
    tail = set_cell_size(text[::-1], width - 1 - head)[::-1]
    return f"{set_cell_size(text, head)}\N{HORIZONTAL ELLIPSIS}{tail}"


def print_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Print names and values, a line for each pair."""
    widest = max((len(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        echo(f"{printable(name) + ':':{widest + 2}}{printable(value)}".rstrip())


def print_heading(title: str) -> None:
    """Print the title of a part, below an empty line."""
    echo()
    echo(click.style(f"{title}:", bold=True) if has_colours(results()) else f"{title}:")


WIDE = click.option("--wide", is_flag=True, help="Neither shorten texts nor leave out columns.")
