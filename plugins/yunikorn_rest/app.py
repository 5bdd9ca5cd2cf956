"""The ASGI application: from a request to the endpoint that answers it."""

from __future__ import annotations

import html
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from urllib.parse import quote

import attrs
from starlette.requests import Request
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from yunikorn.errors import YunikornError
from yunikorn_rest.answers import TEXT, Answer, RequestRefused, cross_origin, error, plain_error
from yunikorn_rest.endpoints import SAFE, Call, Endpoint, RestContext, Spelling
from yunikorn_rest.guards import unless_gone
from yunikorn_rest.route_access import address_of
from yunikorn_service.runtime.threaded import CoreStopped

_log = logging.getLogger("yunikorn.rest")

STOPPING = "the scheduler is stopping"
CROWDED = "too many requests at the same time"
_NO_PARTITION = re.compile(r"/ws/v1/partition//.", re.IGNORECASE)


ErrorPage = Callable[[Request, Answer], Answer]
"""Makes a page of an error, for a client that wants HTML; returns other answers as they are."""


def rest_app(
    context: RestContext, endpoints: Iterable[Endpoint], error_page: ErrorPage = lambda _, answer: answer
) -> ASGIApp:
    """Return the ASGI application with these endpoints."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in endpoints:
        by_method = by_path.setdefault(endpoint.path, {})
        if endpoint.method in by_method:
            raise ValueError(f"two endpoints for {endpoint.method} {endpoint.path}")
        by_method[endpoint.method] = endpoint
    paths = {path: _Path(context, by_method, error_page) for path, by_method in by_path.items()}
    # A class instead of a function as endpoint gets the requests of all methods.
    routes = [Route(path, answering) for path, answering in paths.items()]
    router = Router(routes, redirect_slashes=False, default=_Elsewhere(Spelling(by_path), error_page))
    return _Entrance({path: answering for path, answering in paths.items() if "{" not in path}, router)


class _Entrance:
    """Passes requests on: for a path without parameters directly, which a router would search, else to it."""

    def __init__(self, fixed: Mapping[str, ASGIApp], router: Router) -> None:
        self._fixed, self._router = fixed, router

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._fixed.get(scope["path"], self._router)(scope, receive, send)


class _Path:
    """The endpoints of one path."""

    def __init__(
        self, context: RestContext, by_method: Mapping[str, Endpoint], error_page: ErrorPage
    ) -> None:
        self._context, self._by_method, self._error_page = context, by_method, error_page
        self._allowed = ", ".join(sorted({*by_method, "OPTIONS"}))
        # Pages of other origins may read, but not change anything.
        open_to_all = [one.method for one in by_method.values() if one.cross_origin and not one.changes]
        methods = ", ".join(sorted({*open_to_all, "OPTIONS"}))
        self._headers = cross_origin(methods) if open_to_all else {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        endpoint = self._by_method.get(request.method)
        if endpoint is None:
            await self._without_endpoint(request.method)(scope, receive, send)
            return
        if endpoint.is_unlimited:
            await self._pass_on(endpoint, request, send)
            return
        with self._context.places.taken(address_of(request)) as is_taken:
            if is_taken:
                await self._pass_on(endpoint, request, send)
            else:
                await plain_error(503, CROWDED, {"retry-after": "1"})(scope, receive, send)

    def _without_endpoint(self, method: str) -> Answer:
        if method == "OPTIONS":
            return Answer(content_type=TEXT, headers={"allow": self._allowed, **self._headers})
        return plain_error(405, "Method Not Allowed", {"allow": self._allowed})

    async def _pass_on(self, endpoint: Endpoint, request: Request, send: Send) -> None:
        receive, work = request.receive, self._answer(endpoint, request)
        # A change is not interrupted, and a body has to be received.
        answer = await (unless_gone(receive, work) if request.method == "GET" else work)
        if answer is not None:
            await self._error_page(request, answer)(request.scope, receive, send)

    async def _answer(self, endpoint: Endpoint, request: Request) -> Answer:
        headers = self._headers
        try:
            caller = await self._context.gate.admit(request, endpoint.access)
            answer = await endpoint.answer(Call(self._context, request, caller))
        except RequestRefused as refused:
            return error(refused.status, refused.message, {**headers, **refused.headers})
        except CoreStopped:
            return error(503, STOPPING, headers)
        except YunikornError as problem:
            return error(500, str(problem), headers)
        except Exception as bug:
            _log.error(
                "%s %s failed: %s: %s", request.method, endpoint.path, type(bug).__name__, bug, exc_info=bug
            )
            return error(500, f"the request failed: {type(bug).__name__}", headers)
        return attrs.evolve(answer, headers={**headers, **answer.headers})


class _Elsewhere:
    """Answers requests for paths without an endpoint: by a redirect to the correct spelling, or an error."""

    def __init__(self, spelling: Spelling, error_page: ErrorPage) -> None:
        self._spelling, self._error_page = spelling, error_page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._answer(scope)
        await self._error_page(Request(scope, receive), answer)(scope, receive, send)

    def _answer(self, scope: Scope) -> Answer:
        if scope["type"] != "http":
            raise ValueError(f"{scope['type']} is not supported")
        path, method = scope["path"], scope["method"]
        if _NO_PARTITION.match(path):
            return error(404, "Partition not found", cross_origin("GET, OPTIONS"))
        corrected = self._spelling.corrected(path)
        if corrected is None:
            return plain_error(404, "404 page not found")
        return redirect(corrected, scope["query_string"], permanent=method == "GET")


def redirect(path: str, query: bytes, *, permanent: bool) -> Answer:
    """Return a redirect to another path of this server, with the query of the request."""
    target = quote(path, safe=SAFE)
    if query:
        target += "?" + quote(query.decode("latin-1"), safe=SAFE + "?%")
    status = HTTPStatus.MOVED_PERMANENTLY if permanent else HTTPStatus.TEMPORARY_REDIRECT
    body = f'<a href="{html.escape(target)}">{status.phrase}</a>.\n\n'
    return Answer(
        pieces=(body.encode(),),
        status=status,
        content_type="text/html; charset=utf-8",
        headers={"location": target},
    )
