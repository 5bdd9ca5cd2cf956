"""Reading of the history for pages, and pages with lists of records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from yunikorn_history.history_filter import HistoryFilter
from yunikorn_history.queries import HistoryPage, HistoryQueries
from yunikorn_rest.answers import RequestRefused
from yunikorn_rest.endpoints import Call
from yunikorn_rest.kept_history import KeptHistory
from yunikorn_rest.web.frame import frame_of
from yunikorn_rest.web.page_server import PageContent

ROWS = 50
"""Number of records of a page."""


def past_of(call: Call) -> KeptHistory:
    """Return the history of a service that records one."""
    assert call.context.past is not None
    return call.context.past


def wanted_id(call: Call, path: str) -> int:
    """Return the number of what a page shows; raises `RequestRefused`."""
    text = call.query("id")
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise RequestRefused(400, f"The address names nothing: {path}?id=NUMBER.")
    return int(text)


def records_after(call: Call, wanted: HistoryFilter) -> HistoryFilter:
    """Return the filter for the part of a list that a request wants, which is the first one by default."""
    parts = call.query("after").split("-")
    is_position = len(parts) == 2 and all(one.isascii() and one.isdigit() and len(one) < 19 for one in parts)
    return attrs.evolve(wanted, limit=ROWS, after=tuple(map(int, parts)) if is_position else None)


async def page_of_records(
    call: Call,
    template: str,
    title: str,
    read: Callable[[HistoryQueries, HistoryFilter], HistoryPage[Any]],
    wanted: HistoryFilter,
    content: Callable[[tuple[Any, ...]], dict[str, Any]] = lambda rows: {"rows": rows},
) -> PageContent:
    """Return a page with a part of a list of records."""
    wanted = records_after(call, wanted)
    found = await past_of(call).read(lambda queries: read(queries, wanted))
    return PageContent(
        template=template,
        title=title,
        section="/history",
        frame=await frame_of(call),
        live=False,
        content={
            "after": "-".join(map(str, found.following or ())),
            "is_first": wanted.after is None,
            **content(found.records),
        },
    )
