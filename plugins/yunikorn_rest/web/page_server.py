"""Answers with pages: from a request to the HTML of a page, of an error, or of a file."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any

import attrs
from starlette.requests import Request

from yunikorn.clock import MILLISECOND, SECOND
from yunikorn.errors import YunikornError
from yunikorn_rest.answers import TEXT, Answer, RequestRefused
from yunikorn_rest.app import STOPPING
from yunikorn_rest.endpoints import Call, Endpoint, Route
from yunikorn_rest.web.frame import PageFrame, Unknown
from yunikorn_rest.web.rendering import FOLDER, HEADERS, HTML, YEAR, Renderer, StaticFile, StaticFiles
from yunikorn_service.background import begin_shared
from yunikorn_service.runtime.threaded import CoreStopped

_log = logging.getLogger("yunikorn.rest")

KEPT = 64
"""Number of pages that are kept for other readers."""
FRESH = 900 * MILLISECOND
"""Time for which a page is the answer to other readers, too (ns)."""
LONGEST = 15 * SECOND
"""The same for a page that takes long to make."""
SHARE = 10
"""A page is made again only after so many times the time that it takes."""
API = ("/ws/", "/debug/", "/livez", "/readyz")
"""Begins of the paths that are for programs."""


@attrs.frozen(kw_only=True)
class PageContent:
    """Content of a page: a template and everything that it shows."""

    template: str
    title: str
    """Title without the name of the product."""
    section: str
    """Path of the section in the navigation."""
    frame: PageFrame
    content: Mapping[str, Any]
    live: bool = True
    """True if the page is updated while it is shown."""


MakeView = Callable[[Call], Awaitable[PageContent]]


@attrs.define(eq=False)
class _Made:
    """A page that is being made, or is finished."""

    task: asyncio.Task[Answer]
    until: int | None = None
    """Time until which the page is fresh; None while it is being made."""


class PageServer:
    """Pages of one application, and the files that they need."""

    def __init__(self, stopwatch: Callable[[], int], *, has_history: bool) -> None:
        """Create without pages; `stopwatch` counts nanoseconds."""
        self._stopwatch, self._has_history = stopwatch, has_history
        self._files = StaticFiles()
        self._renderer = Renderer(self._files, stopwatch)
        self._made: OrderedDict[str, _Made] = OrderedDict()

    def page(self, path: str, make: MakeView) -> Endpoint:
        """Return the endpoint of a page."""

        async def answer(call: Call) -> Answer:
            try:
                return await self._shared(call, make)
            except RequestRefused as refused:
                return await self._refusal(refused)
            except CoreStopped:
                return self._error(503, STOPPING)
            except YunikornError as problem:
                return self._error(500, str(problem))
            except Exception as bug:
                _log.error("page %s failed: %s: %s", path, type(bug).__name__, bug, exc_info=bug)
                return self._error(500, f"The page cannot be shown: {type(bug).__name__}.")

        return Route(path, content_type="text/html", cross_origin=False)(answer, "Page for a browser")

    def files(self) -> list[Endpoint]:
        """Return the endpoints of all files."""
        return [self._file(one) for one in self._files.by_name.values()]

    def error_page(self, request: Request, answer: Answer) -> Answer:
        """Return the page of an error for a client that wants HTML, else the answer itself."""
        if answer.status < 400 or answer.content_type == HTML or not wants_html(request):
            return answer
        path, is_unknown = request.scope["path"], answer.content_type == TEXT and answer.status == 404
        if is_unknown and path.lower().startswith(API):
            return answer
        message = f"There is no page {path}." if is_unknown else answer.message
        page = self._error(answer.status, message)
        return attrs.evolve(page, headers={**answer.headers, **page.headers})

    async def _shared(self, call: Call, make: MakeView) -> Answer:
        """Return a page, which readers share that ask for it at nearly the same time."""
        # Of the history, a reader may see less than another one.
        reader = call.caller.name if self._has_history else ""
        key = f"{reader} {call.request.scope['path']}?{call.request.url.query}"
        made = self._made.get(key)
        if made is None or (made.until is not None and self._stopwatch() >= made.until):
            made = self._made[key] = _Made(begin_shared(self._make(call, make)))
            self._made.move_to_end(key)
            begun, current = self._stopwatch(), made
            current.task.add_done_callback(lambda _: self._finish(key, current, begun))
            while len(self._made) > KEPT:
                self._made.popitem(last=False)
        # A reader who leaves does not stop the page for the others.
        return await asyncio.shield(made.task)

    def _finish(self, key: str, made: _Made, begun: int) -> None:
        now = self._stopwatch()
        made.until = now + min(max(FRESH, SHARE * (now - begun)), LONGEST)
        if made.task.cancelled() or made.task.exception() is not None:
            made.until = now

    async def _make(self, call: Call, make: MakeView) -> Answer:
        view = await make(call)
        pieces = await self._renderer.render(
            view.template,
            {
                "frame": view.frame,
                "now": view.frame.now,
                "title": view.title,
                "section": view.section,
                "live": view.live,
                "path": call.request.scope["path"],
                "has_history": self._has_history,
                "searched": "",
                **view.content,
            },
        )
        return Answer(pieces=pieces, content_type=HTML, headers=HEADERS, conditional=True)

    async def _refusal(self, refused: RequestRefused) -> Answer:
        if not isinstance(refused, Unknown):
            return self._error(refused.status, refused.message)
        suggestions = await asyncio.to_thread(refused.suggestions)
        return self._error(404, refused.message, refused.frame, suggestions)

    def _error(
        self,
        status: int,
        message: str,
        frame: PageFrame | None = None,
        suggestions: list[tuple[str, str]] | None = None,
    ) -> Answer:
        frame = frame or PageFrame()
        context = {
            "frame": frame,
            "now": frame.now,
            "title": HTTPStatus(status).phrase,
            "section": "",
            "live": False,
            "path": "/",
            "has_history": self._has_history,
            "searched": "",
            "status": status,
            "message": message,
            "suggestions": suggestions or [],
        }
        body = self._renderer.render_at_once("error.html", context)
        headers = {**HEADERS, "cache-control": "no-store"}
        return Answer(pieces=(body,), status=status, content_type=HTML, headers=headers)

    def _file(self, one: StaticFile) -> Endpoint:
        headers = {**HEADERS, "cache-control": f"public, max-age={YEAR}, immutable"}
        found = Answer(pieces=(one.content,), content_type=one.content_type, headers=headers)

        async def answer(_: Call) -> Answer:
            return found

        route = Route(f"{FOLDER}/{one.name}", content_type=one.content_type, cross_origin=False)
        return route(answer, "File of the pages")


def wants_html(request: Request) -> bool:
    """Return True if a client names HTML among the types that it accepts, as browsers do."""
    return "text/html" in request.headers.get("accept", "").lower()
