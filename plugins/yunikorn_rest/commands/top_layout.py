"""Lines of a table with bars, which fit a width: columns of little importance are left out first."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from yunikorn_commands.text_columns import GAP, SHORTEST, shortened
from yunikorn_rest.commands.top_views import Cell, Content, TopColumn, UseBar

EIGHTHS = " ▏▎▍▌▋▊▉"
WIDE_BAR = 20
LONGEST = 24
"""Width of names that a wide terminal keeps before it has room for further columns."""
ALERT, WARNING = 1.0, 0.9
"""Used parts from which on a bar has another colour."""


class Glyphs:
    """Characters of bars and of shortened texts."""

    def __init__(self, *, ascii_only: bool) -> None:
        self._ascii = ascii_only
        self.mark = "|" if ascii_only else "┃"
        self.ellipsis = "~" if ascii_only else "…"

    def bar(self, bar: UseBar, width: int) -> Text:
        """Return a bar, with a mark at the guarantee; blank without a size."""
        if bar.size <= 0:
            return Text(" " * width)
        part = bar.part()
        full, rest = divmod(round(min(part, 1.0) * width * 8), 8)
        if part > 0 and full == 0:
            rest = max(rest, 1)
        if part < 1 and full == width:
            full, rest = width - 1, 7
        if self._ascii:
            full, rest = full + (1 if rest >= 4 or (rest and not full) else 0), 0
            if part < 1:
                full = min(full, width - 1)
        used = ("#" if self._ascii else "█") * full + (EIGHTHS[rest] if rest else "")
        free = "." if self._ascii else "░"
        whole = used + free * (width - len(used))
        at = min(width - 1, bar.guaranteed * width // bar.size) if 0 < bar.guaranteed <= bar.size else -1
        if at >= len(used):
            whole = whole[:at] + self.mark + whole[at + 1 :]
        found = Text(whole, style="bright_black")
        found.stylize(bar_style(part), 0, len(used))
        return found

    def shown(self, text: str, width: int, right: bool = False) -> str:
        """Return a text in a width, without its middle if it is longer."""
        length = cell_len(text)
        if length <= width:
            blank = " " * (width - length)
            text = blank + text if right else text + blank
        else:
            text = shortened(text, width)
        if self._ascii:
            return text.replace("…", self.ellipsis).encode("ascii", "replace").decode("ascii")
        return text


def bar_style(part: float) -> str:
    """Return the colour of a bar."""
    if part > ALERT:
        return "red"
    return "yellow" if part >= WARNING else "green"


def bar_width(width: int) -> int:
    """Return the width of bars for the width of a terminal."""
    for least, found in ((160, WIDE_BAR), (110, 12), (72, 8)):
        if width >= least:
            return found
    return 6


class TopLayout:
    """Widths of the columns, which do not shrink while the width of the terminal is the same."""

    def __init__(self) -> None:
        self._key: object = None
        self._widest: dict[int, int] = {}

    def lines(self, content: Content, width: int | None, glyphs: Glyphs, key: object) -> list[Text]:
        """Return a line of titles and a line for each row; `width` is None for no limit.

        The widths of earlier contents with the same `key` are the smallest widths.
        """
        if self._key != (key, width, len(content.columns)):
            self._key, self._widest = (key, width, len(content.columns)), {}
        bars = WIDE_BAR if width is None else bar_width(width)
        wanted = []
        for at, column in enumerate(content.columns):
            cells = [row[at] for row in content.rows]
            longest = max((bars if isinstance(cell, UseBar) else cell_len(cell) for cell in cells), default=0)
            has_bars = any(isinstance(cell, UseBar) for cell in cells)
            title = len(column.title) if not has_bars else 0
            self._widest[at] = max(longest, title, 0 if width is None else self._widest.get(at, 0))
            wanted.append(self._widest[at])
        kept, widths = fit(content.columns, wanted, width)
        heading = Text()
        for place, at in enumerate(kept):
            column = content.columns[at]
            heading.append(GAP if place else "")
            heading.append(glyphs.shown(column.title.upper(), widths[at], column.right), "bold")
        found = [heading]
        for row, style in zip(content.rows, content.styles, strict=True):
            line = Text()
            for place, at in enumerate(kept):
                line.append(GAP if place else "")
                _add(line, row[at], widths[at], content.columns[at], style, glyphs)
            line.rstrip()
            found.append(line)
        return found


def _add(line: Text, cell: Cell, width: int, column: TopColumn, style: str, glyphs: Glyphs) -> None:
    if isinstance(cell, UseBar):
        line.append_text(glyphs.bar(cell, width))
    else:
        line.append(glyphs.shown(cell, width, column.right), style or None)


def fit(
    columns: Sequence[TopColumn], wanted: Sequence[int], width: int | None
) -> tuple[list[int], list[int]]:
    """Return the columns that have room, and the widths of all columns."""
    widths = list(wanted)
    if width is None:
        return list(range(len(columns))), widths
    name = max(SHORTEST, min(LONGEST, width // 3))
    least = [
        min(wish, SHORTEST if column.rank else name) if column.shrinks else wish
        for column, wish in zip(columns, wanted, strict=True)
    ]
    kept: list[int] = []
    room = width + len(GAP)
    for at in sorted(range(len(columns)), key=lambda at: (columns[at].rank, at)):
        if kept and least[at] + len(GAP) > room:
            break
        kept.append(at)
        room -= least[at] + len(GAP)
    kept.sort()
    for at in kept:
        widths[at] = least[at]
    for at in kept:  # the room that is left, from the left
        more = max(0, min(wanted[at] - least[at], room))
        widths[at] += more
        room -= more
    return kept, widths
