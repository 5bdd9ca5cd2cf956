"""Pages about the history, and present pages that show it where the core knows nothing any more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import attrs

from yunikorn_history.history_filter import HistoryFilter
from yunikorn_history.page_queries import PageQueries
from yunikorn_rest.answers import RequestRefused
from yunikorn_rest.endpoints import Call
from yunikorn_rest.web import operator_pages, past_application_pages
from yunikorn_rest.web.chart_board import PAGES, ChartBoard, Charted
from yunikorn_rest.web.frame import PageFrame, Unknown
from yunikorn_rest.web.page_server import MakeView, PageContent
from yunikorn_rest.web.past_access import past_of

PastView = Callable[[Call, PageFrame], Awaitable[PageContent | None]]
"""Makes the page of an object that the core does not know; None if the history does not know it either."""
CHARTED: tuple[Charted, ...] = ("queue", "user", "node")
NAMES = 100
"""Largest number of names of past objects on a page."""
STAYS = 20
"""Largest number of times for which a node was there on its page."""


def with_past(present: Mapping[str, MakeView], charts: ChartBoard) -> dict[str, MakeView]:
    """Return the pages of a service that records a history."""
    charted = {f"/{kind}": partial(_past_object, charts, kind) for kind in CHARTED}
    lists = {f"/{kind}s": _or_names(present[f"/{kind}s"], charts, kind) for kind in CHARTED}
    return {
        **present,
        **lists,
        **{path: _or_past(present[path], past) for path, past in charted.items()},
        "/application": _or_past(_with_runs(present["/application"]), past_application_pages.latest_run),
        "/history": past_application_pages.list_view,
        "/run": past_application_pages.run_view,
        "/configurations": operator_pages.config_list_view,
        "/configuration": operator_pages.config_view,
        "/audit": operator_pages.audit_view,
    }


def _or_past(present: MakeView, past: PastView) -> MakeView:
    """Return the page of an object, or what the history has of one that is no longer there."""

    async def view(call: Call) -> PageContent:
        try:
            return await present(call)
        except Unknown as unknown:
            found = await past(call, unknown.frame)
            if found is None:
                raise
            return found

    return view


def _or_names(present: MakeView, charts: ChartBoard, kind: Charted) -> MakeView:
    """Return the page with a list of objects, or names of past ones while there is no partition."""

    async def view(call: Call) -> PageContent:
        try:
            return await present(call)
        except Unknown as unknown:
            if unknown.frame.partitions:
                raise
            path, parameter = PAGES[kind]
            scope = await charts.scope_of(call)
            names = await past_of(call).read(lambda queries: PageQueries(queries).charted(kind, NAMES, scope))
            links = [(name, unknown.frame.url(path, **{parameter: name})) for name in names]
            text = f"{unknown.message} The history has charts of past {kind}s."
            raise Unknown(text if links else unknown.message, unknown.frame, elsewhere=links) from None

    return view


def _with_runs(present: MakeView) -> MakeView:
    """Return the page of an application, with its earlier runs."""

    async def view(call: Call) -> PageContent:
        found = await present(call)
        try:
            runs = await past_application_pages.earlier_runs(call, call.query("id"))
        except RequestRefused:
            return found  # which does not need the history
        return attrs.evolve(found, content={**found.content, "runs": runs})

    return view


async def _past_object(board: ChartBoard, kind: Charted, call: Call, frame: PageFrame) -> PageContent | None:
    name = call.query(PAGES[kind][1])
    name = name.lower() if kind == "queue" else name
    is_known = await past_of(call).read(lambda queries: PageQueries(queries).is_charted(kind, name))
    charts = await board.section(call, frame, kind, name, is_gone=True) if is_known else None
    if charts is None:
        return None
    wanted = HistoryFilter(node=name, limit=STAYS)
    stays = await past_of(call).read(lambda queries: queries.nodes(wanted).records)
    return PageContent(
        template="past-object.html",
        title=name,
        section=f"/{kind}s",
        frame=frame,
        content={
            "kind": kind,
            "name": name,
            "charts": charts,
            "stays": stays if kind == "node" else (),
        },
    )
