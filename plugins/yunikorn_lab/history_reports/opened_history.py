"""The history that a report reads: a database, or what a running scheduler shows of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import attrs

from yunikorn_history.database import open_reader
from yunikorn_history.history_copy import HistoryCopy, Listed
from yunikorn_history.history_tables import DAY
from yunikorn_lab.history_reports.price_list import PriceList
from yunikorn_lab.history_reports.report_kinds import records_of
from yunikorn_lab.history_reports.report_source import ReportSource, covered_times, open_window
from yunikorn_lab.history_reports.report_window import LONGEST_IN_HOURS, Grouping, ReportFilter


@attrs.frozen
class ReportRequest:
    """Options of a report, after their check."""

    kind: str
    grouping: Grouping
    wanted: ReportFilter
    since: int | None
    """Begin (ms since 1970); None for that of the history."""
    until: int | None
    prices: PriceList | None
    has_pictures: bool


@contextmanager
def opened_database(location: str, request: ReportRequest) -> Iterator[ReportSource]:
    """Provide the source of a report in a database; raises `HistoryError` and `UsageError`."""
    with closing(open_reader(location)) as reader, reader.reading() as connection:
        window = open_window(connection, request.since, request.until)
        yield ReportSource(connection, window, request.wanted, request.prices, request.has_pictures)


@contextmanager
def opened_copy(listed: Listed, request: ReportRequest, *, is_partial: bool) -> Iterator[ReportSource]:
    """Provide the source of a report with the records that a scheduler lists, as far as it needs them.

    Raises `UsageError`.
    """
    wanted: dict[str, str | int] = {"queue": request.wanted.queue, "user": request.wanted.user}
    with closing(HistoryCopy(listed)) as copy:
        copy.read("runs", {})
        runs = covered_times(copy.connection) or [(0, 0)]
        first, latest = runs[0][0], runs[-1][1]
        begin = max(first, request.since or 0)
        end = min(latest, latest if request.until is None else request.until) + DAY
        levels = ("hour", "day") if end - begin <= LONGEST_IN_HOURS + 2 * DAY else ("day",)
        for bucket in levels:
            copy.read("partition", {"since": begin // DAY * DAY, "until": end, "bucket": bucket})
        window = open_window(copy.connection, request.since, request.until)
        bucket = "day" if window.length == DAY else "hour"
        kinds = records_of(request.kind, request.grouping, request.wanted, is_partial=is_partial)
        if any(wanted.values()):
            copy.read("apps", wanted, 1)  # so that what is there, though not in this time, is known
        for queue in request.prices.queues if request.prices is not None else ():
            copy.read("queues", {"queue": queue, "bucket": "day"}, 1)  # likewise
        for kind in kinds:
            time: dict[str, str | int] = {"since": window.since, "until": window.until}
            if kind == "apps":
                time |= {"since": max(window.since - DAY, 0), **wanted}  # tasks of a failed one end later
            elif kind == "tasks":
                time |= {**wanted, "preempted": "true" if request.kind == "preemption" else ""}
            elif kind == "usage":
                time |= {**wanted, "bucket": bucket}
            else:
                time |= {"bucket": bucket}
            copy.read(kind, time)
        yield ReportSource(
            *(copy.connection, window, request.wanted, request.prices, request.has_pictures, is_partial)
        )
