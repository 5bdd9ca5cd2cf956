"""All pages, as endpoints beside those of the REST interface."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from yunikorn_rest.app import ErrorPage
from yunikorn_rest.endpoints import Endpoint
from yunikorn_rest.web import (
    application_list_page,
    application_page,
    event_list_page,
    live,
    node_pages,
    plugin_list_page,
    queue_pages,
    user_pages,
)
from yunikorn_rest.web.overview_page import Overview
from yunikorn_rest.web.page_server import PageServer


@attrs.frozen
class Pages:
    """Endpoints of all pages and of their files, and the page of an error."""

    endpoints: tuple[Endpoint, ...]
    error_page: ErrorPage


def pages(stopwatch: Callable[[], int]) -> Pages:
    """Return the pages for one application; `stopwatch` counts nanoseconds."""
    server = PageServer(stopwatch)
    found = {
        "/": Overview(stopwatch).view,
        "/queues": queue_pages.tree_view,
        "/queue": queue_pages.queue_view,
        "/applications": application_list_page.view,
        "/application": application_page.view,
        "/nodes": node_pages.list_view,
        "/node": node_pages.node_view,
        "/users": user_pages.list_view,
        "/user": user_pages.user_view,
        "/events": event_list_page.view,
        "/plugins": plugin_list_page.view,
    }
    endpoints = (*(server.page(path, make) for path, make in found.items()), *server.files(), live.live)
    return Pages(endpoints, server.error_page)
