"""Tables of report sections on the terminal.

Tables of the full report as rows of text, shared by the terminal output and the HTML page.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs
from rich import box
from rich.console import Console
from rich.table import Table

from yunikorn.errors import printable
from yunikorn.reporting.format import amount, index, percent, ratio, spell_time
from yunikorn.reporting.full_report import Figures
from yunikorn.reporting.group_counts import GroupReport
from yunikorn.reporting.sample import Summary


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


MOST = 10
"""Maximum number of listed users, those with the highest usage; queues are all listed."""


@attrs.frozen
class Section:
    """A table; the first column holds text, the others numbers."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    note: str = ""


def sections(figures: Figures) -> list[Section]:
    """Return all tables with at least one row."""
    found = [
        _overall(figures),
        _groups("Queues", "queue", figures.queues),
        _guarantees(figures.queues),
        _groups("Sizes (part of the cluster that an application asks for)", "size", figures.sizes),
        _users(figures.users),
        _fragmentation(figures),
    ]
    return [section for section in found if section.rows]


def _overall(figures: Figures) -> Section:
    fairness = figures.fairness
    rows = [
        ["applications (last task)", *_times(figures.whole_wait)],
        ["bounded slowdown", *_ratios(figures.slowdown)],
    ]
    by_queue = f"queues {index(fairness.slowdown_of_queues)}, users {index(fairness.slowdown_of_users)}"
    by_use = f"queues {index(fairness.use_of_queues)}, users {index(fairness.use_of_users)}"
    note = f"Jain's index of fairness: of slowdown {by_queue}; of use {by_use}"
    columns = ["of", "measured", "mean", "median", "95 %", "largest"]
    return Section("Waiting and slowdown", columns, rows if figures.wait else [], note)


def _times(found: Summary | None) -> list[str]:
    if found is None:
        return ["0", *[spell_time(None)] * 4]
    return [str(found.count), *map(spell_time, (found.mean, found.median, found.p95, found.max))]


def _ratios(found: Summary | None) -> list[str]:
    if found is None:
        return ["0", *[ratio(None)] * 4]
    return [str(found.count), *map(ratio, (found.mean, found.median, found.p95, found.max))]


def _groups(title: str, column: str, groups: list[GroupReport]) -> Section:
    several = len({group.partition for group in groups}) > 1
    rows = [
        [
            f"{group.partition}: {group.name}" if several else group.name,
            str(group.applications),
            str(group.finished),
            spell_time(group.wait.mean if group.wait else None),
            spell_time(group.whole_wait.mean if group.whole_wait else None),
            spell_time(group.whole_wait.max if group.whole_wait else None),
            ratio(group.slowdown.mean if group.slowdown else None),
            ratio(group.slowdown.p95 if group.slowdown else None),
            percent(group.use),
        ]
        for group in groups
    ]
    columns = [column, "apps", "done", "first task", "all tasks", "longest", "slowdown", "95 %", "use"]
    return Section(title, columns, rows)


def _users(users: list[GroupReport]) -> Section:
    ranked = sorted(users, key=lambda user: (-user.use, user.name))
    found = _groups("Users, highest use first", "user", ranked[:MOST])
    more = len(users) - MOST
    return attrs.evolve(found, note=f"{more} more users are in report.json") if more > 0 else found


def _guarantees(queues: list[GroupReport]) -> Section:
    rows = [
        [
            group.name,
            amount(name, kept.guaranteed),
            percent(kept.used),
            percent(kept.kept),
        ]
        for group in queues
        for name, kept in group.guarantees.items()
    ]
    columns = ["queue", "guaranteed", "use of guarantee", "guarantee met"]
    return Section("Guarantees", columns, rows)


def _fragmentation(figures: Figures) -> Section:
    several = len(figures.fragmentation) > 1
    rows = [
        [
            f"{partition}: {name}" if several else name,
            percent(found.of_free),
            percent(found.of_capacity),
            percent(found.at_end),
            percent(found.at_end_of_capacity),
        ]
        for partition, types in figures.fragmentation.items()
        for name, found in types.items()
        if found.of_free is not None
    ]
    columns = [
        "free but unusable",
        "of free",
        "of capacity",
        "of free at the end",
        "of capacity at the end",
    ]
    return Section("Fragmentation", columns, rows)
