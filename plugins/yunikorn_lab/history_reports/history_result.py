"""Result of a report on a history: one document, which the terminal, files and the page read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

import attrs
import msgspec

from yunikorn.errors import UsageError
from yunikorn.quantities import MEMORY, VCORE
from yunikorn_lab.history_reports.report_window import ReportFilter, ReportWindow, spell_time
from yunikorn_lab.reporting.csv_files import CsvFile
from yunikorn_lab.reporting.section import Picture, Section
from yunikorn_lab.reporting.tables import Format, Number, Table

HOUR = 3_600_000
DIGITS = 6
"""Decimal places of hours, seconds and shares."""
UNITS = {VCORE: (1000, "core"), MEMORY: (2**30, "GiB")}
"""Amount and name of the unit of a resource type, where that is not 1."""
UNNAMED = "(none)"
"""Name in tables of a group without a name, such as applications without a tag."""
Row = dict[str, Any]
"""Texts, numbers, and mappings from a name to a number."""


def unit_of(name: str) -> tuple[int, str]:
    """Return how much of a resource type is one unit in reports, and the name of that unit."""
    return UNITS.get(name, (1, name))


def hours(service: Mapping[str, float]) -> dict[str, float]:
    """Return a service (amounts times ms) in hours of units, sorted by resource type."""
    return {name: hours_of(name, service[name]) for name in sort_types(service) if service[name]}


def hours_of(name: str, service: float) -> float:
    """Return the service of one resource type (amount times ms) in hours of units."""
    return round(service / (unit_of(name)[0] * HOUR), DIGITS)


def share(part: float, whole: float) -> float | None:
    """Return a part as a share; None of nothing."""
    return round(part / whole, DIGITS) if whole else None


def seconds_of(milliseconds: float) -> float:
    """Return milliseconds in seconds."""
    return round(milliseconds / 1000, DIGITS)


def money(amount: float | None) -> str:
    """Return an amount of money such as `1,234.50`."""
    return "-" if amount is None else f"{amount:,.2f}"


def sort_types(names: Iterable[str]) -> list[str]:
    """Return names of resource types in the order of columns: cores, memory, and the others by name."""
    return sorted(names, key=lambda name: (name != VCORE, name != MEMORY, name))


@attrs.frozen
class ShownColumn:
    """Column of a table for readers."""

    title: str
    path: tuple[str, ...]
    """Keys of the value in a row."""
    format: Format | None = None
    """Format of a number; None for a text."""

    def cell(self, row: Row) -> str:
        """Return the text of a row's cell."""
        value: Any = row
        for key in self.path:
            value = value.get(key) if isinstance(value, dict) else None
        if self.format is not None:
            return Number(self.format, value)
        return str(value) or UNNAMED


@attrs.frozen
class ResultTable:
    """Rows of a report, all of them, and the columns that readers see."""

    key: str
    title: str
    rows: Sequence[Row]
    columns: Sequence[ShownColumn]
    note: str = ""
    has_examples: bool = False
    """True if the last column holds texts."""
    has_queues: bool = False
    """True if the first column holds queues."""

    def shown(self, most: int, currency: str) -> Table:
        """Return the table for readers, with at most so many rows, and with costs if the rows have them."""
        columns = list(self.columns)
        if any("cost" in row for row in self.rows):
            title = f"cost ({currency})" if currency else "cost"
            columns.insert(len(columns) - self.has_examples, ShownColumn(title, ("cost",), money))
        more = len(self.rows) - most
        left = f"{more:,} more rows are in the CSV and JSON forms." if more > 0 else ""
        return Table(
            self.title,
            [column.title for column in columns],
            [[column.cell(row) for column in columns] for row in self.rows[:most]],
            note=" ".join(filter(None, (self.note, left))),
            has_examples=self.has_examples,
            has_queues=self.has_queues,
            texts=sum(column.format is None for column in self.columns) - self.has_examples,
        )


@attrs.frozen
class HistoryReport:
    """Result of a report."""

    kind: str
    window: ReportWindow
    by: tuple[str, ...]
    wanted: ReportFilter
    verdict: Sequence[str]
    """Sentences that say what stands out, the most important first."""
    tables: Sequence[ResultTable]
    """Tables with rows, the one of the groups first."""
    pictures: Sequence[Picture] = attrs.field(factory=list, eq=False)
    resource: str = ""
    """Resource type of shares and sentences that are of one only."""
    currency: str = ""
    queues: Sequence[str] = ()
    """Queues that pictures give a colour."""

    @property
    def title(self) -> str:
        """Title of the page."""
        since, until = spell_time(self.window.since), spell_time(self.window.until)
        of = " and ".join(part for part in (self.wanted.queue, self.wanted.user) if part)
        return f"{self.kind.capitalize()}{f' of {of}' if of else ''} from {since} to {until}"

    def to_json(self) -> str:
        """Return JSON text with a final newline."""
        whole = {
            "report": self.kind,
            "since": self.window.since,
            "until": self.window.until,
            "by": list(self.by),
            "queue": self.wanted.queue,
            "user": self.wanted.user,
            "resource": self.resource,
            "currency": self.currency,
            "verdict": list(self.verdict),
            "tables": {table.key: list(table.rows) for table in self.tables},
        }
        return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode() + "\n"

    def write_csv(self, file: IO[str], key: str = "") -> None:
        """Write a table, the first one if none is named, with a row for each of its rows."""
        table = next((table for table in self.tables if table.key == key), None)
        if key and table is None:
            known = ", ".join(table.key for table in self.tables)
            raise UsageError(f"--table: the report has no table '{key}'; known: {known}")
        table = table or self.tables[0]
        flat = [dict(_flat(row)) for row in table.rows]
        names = list(dict.fromkeys(name for row in flat for name in row))
        written = CsvFile[dict[str, Any]](file, {name: _reader(name) for name in _together(names)})
        for row in flat:
            written.write(row)

    def sections(self, most: int) -> list[Section]:
        """Return the sections of the page, with at most so many rows in a table."""
        tables = [table.shown(most, self.currency) for table in self.tables if table.rows]
        first = Section(self.kind, self.kind.capitalize(), pictures=self.pictures, tables=tables)
        return [first]


def _reader(name: str) -> Any:
    return lambda row: row.get(name)


def _flat(row: Row, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _together(names: Sequence[str]) -> list[str]:
    """Return names of columns with those of the same mapping beside each other."""
    order = list(dict.fromkeys(name.partition(".")[0] for name in names))
    return sorted(names, key=lambda name: order.index(name.partition(".")[0]))
