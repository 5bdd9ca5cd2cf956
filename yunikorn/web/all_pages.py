"""All pages, as endpoints beside those of the REST interface."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from yunikorn.rest.app import ErrorPage
from yunikorn.rest.endpoints import Endpoint
from yunikorn.web import application, applications, events, live, nodes, plugins, queues, users
from yunikorn.web.overview import Overview
from yunikorn.web.page_server import PageServer


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
        "/queues": queues.tree_view,
        "/queue": queues.queue_view,
        "/applications": applications.view,
        "/application": application.view,
        "/nodes": nodes.list_view,
        "/node": nodes.node_view,
        "/users": users.list_view,
        "/user": users.user_view,
        "/events": events.view,
        "/plugins": plugins.view,
    }
    endpoints = (*(server.page(path, make) for path, make in found.items()), *server.files(), live.live)
    return Pages(endpoints, server.error_page)
