"""Endpoints: a route, the function that answers it, and what the OpenAPI document says about both."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import attrs
from starlette.requests import Request

from yunikorn.framework.registry import Registry
from yunikorn.rest.answers import Answer
from yunikorn.rest.encoding import encoded
from yunikorn.rest.paths import decoded_twice
from yunikorn.runtime.sliced_reads import Reading

if TYPE_CHECKING:
    from yunikorn.metrics.service_metrics import ServiceMetrics

T = TypeVar("T")


class Reader(Protocol):
    """Access to a core, such as `AsyncScheduler`."""

    async def read(self, reading: Reading[T]) -> T:
        """Carry out a reading and return its result; see `yunikorn.runtime.sliced_reads`."""
        ...


@attrs.frozen
class Site:
    """Everything that the routes share."""

    core: Reader
    registry: Registry
    """Plugins that a configuration may name, to validate configurations."""
    stopwatch: Callable[[], int]
    """Time in nanoseconds, to encode answers in slices."""
    metrics: ServiceMetrics | None = None
    """Metrics of the service; None if they are off."""
    large: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(LARGE))
    """Limits the number of answers that are in the making."""


LARGE = 32
"""Maximum number of answers that are read and encoded at the same time; further requests wait."""


@attrs.frozen
class Call:
    """A request, as an endpoint sees it."""

    site: Site
    request: Request

    def text(self, name: str) -> str:
        """Return a parameter of the path, as decoded once."""
        value: str = self.request.path_params[name]
        return value

    def name(self, name: str) -> str:
        """Return a parameter of the path that is decoded twice; raises `Refused`."""
        return decoded_twice(self.text(name))

    def query(self, name: str) -> str:
        """Return a query parameter; empty if it is absent."""
        return self.request.query_params.get(name, "")

    async def read(self, reading: Reading[T]) -> T:
        """Carry out a reading of the core."""
        return await self.site.core.read(reading)

    async def json(self, value: object, *, conditional: bool = True) -> Answer:
        """Return an answer with the JSON text of shapes."""
        return Answer(pieces=await encoded(value, self.site.stopwatch), conditional=conditional)


@attrs.frozen
class Query:
    """Query parameter of an endpoint."""

    name: str
    description: str
    example: str = ""


@attrs.frozen(kw_only=True)
class Endpoint:
    """A route and the function that answers it."""

    path: str
    """Path with parameters in braces, of one segment each."""
    answer: Callable[[Call], Awaitable[Answer]]
    summary: str
    """Description in the OpenAPI document."""
    result: Any
    """Type of the JSON body: a shape, or `list[SHAPE]`; None for another content."""
    method: str = "GET"
    queries: Sequence[Query] = ()
    errors: Sequence[int] = ()
    """Statuses of errors."""
    content_type: str = "application/json"
    body: str = ""
    """Content type of the request's body; empty if there is none."""
