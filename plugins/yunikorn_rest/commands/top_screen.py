"""Frames of `yunikorn top`: the choice that the keys have made, and the lines of a frame."""

from __future__ import annotations

import attrs
from rich.text import Text

from yunikorn.clock import SECOND
from yunikorn.errors import printable
from yunikorn.quantities import MEMORY, VCORE, ordered
from yunikorn_rest.commands.answer_fields import NONE, amounts, number, share, shown, text
from yunikorn_rest.commands.get import ENDED
from yunikorn_rest.commands.rest_client import Record
from yunikorn_rest.commands.top_feed import Snapshot
from yunikorn_rest.commands.top_layout import Glyphs, TopLayout, bar_width
from yunikorn_rest.commands.top_views import VIEWS, TopView, Totals, UseBar

KEYS = (
    ("Tab, Shift-Tab", "next view, view before"),
    ("1 or t", "queues (the tree)"),
    ("2 or n", "nodes"),
    ("3 or a", "applications"),
    ("s", "next order"),
    ("r", "reverse the order"),
    ("/", "filter by a text; Enter keeps it, Esc removes it"),
    ("up, down, PgUp, PgDn", "scroll; also j, k, Space and b"),
    ("Home, End", "first, last row; also g and G"),
    ("+, -", "fewer, more seconds between refreshes"),
    ("Ctrl-L", "refresh now"),
    ("?", "this help; any key leaves it"),
    ("q, Ctrl-C", "quit"),
)
MOVES = {"up": -1, "k": -1, "down": 1, "j": 1}
LONGEST_FILTER = 100
STALE = 3
"""Number of intervals without an answer from which on the age of the figures is shown."""


@attrs.define
class ViewChoice:
    """View, order, filter and place that the keys have chosen."""

    view: TopView
    order: dict[str, str] = attrs.Factory(
        lambda: {name: next(iter(view.orders)) for name, view in VIEWS.items()}
    )
    backwards: bool = False
    wanted: str = ""
    """Text of the filter."""
    is_typing: bool = False
    """True while the filter is typed."""
    is_help: bool = False
    top: int = 0
    """Number of rows above the first one on the screen."""
    page: int = 10
    """Number of rows on the screen, as of the latest frame."""

    def press(self, key: str) -> bool:
        """Apply a key; returns False if the key ends the program."""
        if self.is_help:
            self.is_help = False
            return key != "q"
        if self.is_typing:
            self._type(key)
            return True
        if key == "q":
            return False
        names = list(VIEWS)
        match key:
            case "tab" | "back-tab":
                at = names.index(self.view.title) + (1 if key == "tab" else -1)
                self._show(names[at % len(names)])
            case "1" | "t":
                self._show(names[0])
            case "2" | "n":
                self._show(names[1])
            case "3" | "a":
                self._show(names[2])
            case "s":
                orders = list(self.view.orders)
                following = (orders.index(self.order[self.view.title]) + 1) % len(orders)
                self.order[self.view.title] = orders[following]
                self.backwards, self.top = False, 0
            case "r":
                self.backwards, self.top = not self.backwards, 0
            case "/":
                self.is_typing = True
            case "escape":
                self.wanted, self.top = "", 0
            case "?" | "h":
                self.is_help = True
            case _:
                self._scroll(key)
        return True

    def _show(self, name: str) -> None:
        if name != self.view.title:
            self.view, self.backwards, self.wanted, self.top = VIEWS[name], False, "", 0

    def _type(self, key: str) -> None:
        match key:
            case "enter":
                self.is_typing = False
            case "escape":
                self.is_typing, self.wanted = False, ""
            case "backspace":
                self.wanted = self.wanted[:-1]
            case "erase":
                self.wanted = ""
            case _:
                if len(key) == 1 and key.isprintable() and len(self.wanted) < LONGEST_FILTER:
                    self.wanted += key
        self.top = 0

    def _scroll(self, key: str) -> None:
        match key:
            case "page-up" | "b":
                self.top -= self.page
            case "page-down" | " ":
                self.top += self.page
            case "home" | "g":
                self.top = 0
            case "end" | "G":
                self.top = 1 << 40
            case _:
                self.top += MOVES.get(key, 0)
        self.top = max(self.top, 0)

    def keep_within(self, rows: int, page: int) -> None:
        """Limit the scrolling to the rows that there are."""
        self.page = max(page, 1)
        self.top = max(0, min(self.top, rows - self.page))


@attrs.frozen
class Moment:
    """Circumstances of a frame."""

    now: int
    """Current time (ns since 1970)."""
    since: float
    """Seconds since the latest answer."""
    interval: float
    """Seconds between refreshes."""


class Screen:
    """Frames for snapshots and choices."""

    def __init__(self, shown_address: str, partition: str, glyphs: Glyphs) -> None:
        self._title = f"{printable(shown_address)}  {printable(partition)}"
        self._glyphs = glyphs
        self._layout = TopLayout()

    def frame(
        self, snapshot: Snapshot, choice: ViewChoice, at: Moment, width: int, height: int
    ) -> list[Text]:
        """Return the lines of a frame, at most `height`."""
        if choice.is_help:
            return [self._fitted(line, width) for line in _help()][:height]
        above = self.header(snapshot, at, width)
        above.append(self._fitted(self._tabs(choice), width))
        below = [self._fitted(self._keys(choice), width)] if height >= len(above) + 6 else []
        if height < len(above) + 4:  # a tiny window: rows before totals
            above = above[-1:] if height > 3 else []
        page = max(height - len(above) - len(below) - 2, 1)
        rows = self._rows(snapshot, choice, at.now)
        choice.keep_within(len(rows), page)
        visible = rows[choice.top : choice.top + page]
        totals = _totals(snapshot, at.now)
        order = choice.order[choice.view.title]
        content = choice.view.content(visible, totals, order)
        table = self._layout.lines(content, width, self._glyphs, (choice.view.title, order))
        status = self._fitted(_status(snapshot, choice, len(rows), len(visible)), width)
        blank = [Text()] * max(0, page - len(visible))
        return [*above, *table, *blank, status, *below][:height]

    def whole(self, snapshot: Snapshot, choice: ViewChoice, at: Moment, width: int | None) -> list[Text]:
        """Return all rows below the totals, for a pipe or a file; `width` is None for no limit."""
        rows = self._rows(snapshot, choice, at.now)
        totals, order = _totals(snapshot, at.now), choice.order[choice.view.title]
        content = choice.view.content(rows, totals, order)
        table = self._layout.lines(content, width, self._glyphs, choice.view.title)
        return [*self.header(snapshot, at, width or 120)[1:], Text(), *table]

    def header(self, snapshot: Snapshot, at: Moment, width: int) -> list[Text]:
        """Return the lines with the totals of the partition, and with the problem of the server."""
        one = snapshot.partition
        clock = (
            f"{at.now // SECOND // 3600 % 24:02}:{at.now // SECOND // 60 % 60:02}:{at.now // SECOND % 60:02}Z"
        )
        title = Text("yunikorn top  ", "bold")
        title.append(f"{self._title}  {clock}, every {at.interval:g} s", "not bold")
        found = [title, self._use(one, width), _counts(one)]
        if snapshot.problem:
            found.append(Text(f"no answer for {at.since:.0f} s, trying again; old figures:", "bold red"))
            found.append(Text(snapshot.problem, "red"))
        elif at.since > STALE * at.interval + 1:
            found.append(Text(f"waiting for an answer; figures of {at.since:.0f} s ago", "yellow"))
        return [self._fitted(line, width) for line in found]

    def _use(self, partition: Record, width: int) -> Text:
        inner = partition.get("capacity")
        capacity = inner if isinstance(inner, dict) else {}
        size, used = amounts(capacity, "capacity"), amounts(capacity, "usedCapacity")
        line = Text()
        for name in ordered({VCORE, MEMORY, *size}):
            line.append("  " if line else "")
            line.append(f"{printable(name)} ")
            line.append_text(self._glyphs.bar(UseBar(used.get(name, 0), size.get(name, 0)), bar_width(width)))
            line.append(f" {share(used, size, name)}")
        return line

    def _rows(self, snapshot: Snapshot, choice: ViewChoice, now: int) -> list[Record]:
        if snapshot.view != choice.view.title:
            return []
        order = choice.order[choice.view.title]
        return choice.view.select(
            snapshot.found, order, choice.backwards, choice.wanted, _totals(snapshot, now)
        )

    def _tabs(self, choice: ViewChoice) -> Text:
        line = Text()
        for name in VIEWS:
            style = "bold" if name == choice.view.title else "bright_black"
            line.append(f" {name} " if name != choice.view.title else f"[{name}]", style)
        order = choice.order[choice.view.title]
        line.append(f"  by {order}{', reversed' if choice.backwards else ''}")
        return line

    def _keys(self, choice: ViewChoice) -> Text:
        if choice.is_typing:
            return Text("Enter keeps the filter, Esc removes it", "bright_black")
        return Text("q quit  Tab view  s order  / filter  ? help", "bright_black")

    def _fitted(self, line: Text, width: int) -> Text:
        found = line.copy()
        if found.cell_len > width:
            found.truncate(max(width - 1, 0))
            found.append(self._glyphs.ellipsis if width else "")
        return found


def _totals(snapshot: Snapshot, now: int) -> Totals:
    inner = snapshot.partition.get("capacity")
    return Totals(amounts(inner, "capacity") if isinstance(inner, dict) else {}, now)


def _counts(partition: Record) -> Text:
    counts = amounts(partition, "designApplications") or amounts(partition, "applications")
    ended = {*ENDED, "total"}
    states = [(name, count) for name, count in sorted(counts.items()) if count and name not in ended]
    of = f" ({', '.join(f'{shown(name)} {count}' for name, count in states)})" if states else ""
    state = text(partition, "state")
    return Text(
        f"nodes {number(partition, 'totalNodes')}  tasks {number(partition, 'totalContainers')}"
        f"  apps {sum(count for _, count in states)}{of}"
        f"{f'  partition {shown(state)}' if state not in ('', 'Active') else ''}"
    )


def _status(snapshot: Snapshot, choice: ViewChoice, rows: int, visible: int) -> Text:
    if snapshot.view != choice.view.title:
        return Text("reading...", "bright_black")
    place = f"{choice.top + 1}-{choice.top + visible} of {rows}" if rows else NONE
    line = Text(place if rows or not choice.wanted else "nothing matches the filter")
    known = len(snapshot.found)
    if not snapshot.complete:
        line.append(f"  reading, {known} so far", "bright_black")
    elif choice.wanted:
        line.append(f"  ({known} in all)", "bright_black")
    if choice.is_typing or choice.wanted:
        line.append(f"  /{printable(choice.wanted)}{'_' if choice.is_typing else ''}", "bold")
    return line


def _help() -> list[Text]:
    lines = [Text("Keys of yunikorn top", "bold"), Text()]
    lines += [Text(f"  {keys:22}{meaning}") for keys, meaning in KEYS]
    lines += [
        Text(),
        Text("Bars show use as a part of the quota in force, or of the size of a node."),
        Text("The mark in a bar is the guarantee of the queue. Times are UTC."),
        Text("Long lists are read in parts; figures may be some refreshes old."),
    ]
    return lines
