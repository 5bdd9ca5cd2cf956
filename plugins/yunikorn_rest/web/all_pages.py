"""All pages, as endpoints beside those of the REST interface."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import attrs

from yunikorn_rest.app import ErrorPage
from yunikorn_rest.endpoints import Endpoint
from yunikorn_rest.web import (
    application_list_page,
    application_page,
    event_list_page,
    node_pages,
    plugin_list_page,
    queue_pages,
    rack_pages,
    search_page,
    user_pages,
)
from yunikorn_rest.web.chart_board import ChartBoard
from yunikorn_rest.web.overview_page import Overview
from yunikorn_rest.web.page_server import MakeView, PageServer
from yunikorn_rest.web.rendering import live


@attrs.frozen
class Pages:
    """Endpoints of all pages and of their files, and the page of an error."""

    endpoints: tuple[Endpoint, ...]
    error_page: ErrorPage


def pages(stopwatch: Callable[[], int], *, has_history: bool = False) -> Pages:
    """Return the pages for one application; `stopwatch` counts nanoseconds."""
    server, charts = PageServer(stopwatch, has_history=has_history), None
    if has_history:
        # Other processes may lack the libraries that read a history.
        from yunikorn_rest.routes.history_routes import scope_of
        from yunikorn_rest.web.history_charts import section_of
        from yunikorn_rest.web.past_pages import with_past

        charts = ChartBoard(stopwatch, section_of, scope_of)
    found: dict[str, MakeView] = {
        "/": Overview(stopwatch, charts).view,
        "/queues": queue_pages.tree_view,
        "/queue": partial(queue_pages.queue_view, charts),
        "/applications": application_list_page.view,
        "/application": application_page.view,
        "/nodes": node_pages.list_view,
        "/node": partial(node_pages.node_view, charts),
        "/racks": rack_pages.list_view,
        "/rack": rack_pages.rack_view,
        "/users": user_pages.list_view,
        "/user": partial(user_pages.user_view, charts),
        "/events": event_list_page.view,
        "/plugins": plugin_list_page.view,
        "/search": search_page.view,
    }
    if charts is not None:
        found = with_past(found, charts)
    endpoints = (*(server.page(path, make) for path, make in found.items()), *server.files(), live)
    return Pages(endpoints, server.error_page)
