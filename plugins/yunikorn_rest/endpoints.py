"""Endpoints: a route, the function that answers it, and what the OpenAPI document says about both.

Paths of requests: decoding of names, and corrected paths of requests that only nearly match a route.

Servers decode the percent escapes of a path once; an escaped slash therefore separates segments. Names of
queues, users and groups are decoded a second time, like a query, as YuniKorn does: a client that sends a name
with `/` or `%` escapes it twice.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import posixpath
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote_to_bytes

import attrs
from starlette.requests import ClientDisconnect, Request
from starlette.routing import compile_path

from yunikorn.framework.registry import Registry
from yunikorn.interface.scheduler import Scheduler
from yunikorn_rest.answers import Answer, RequestRefused
from yunikorn_rest.encoding import AnswerLists, LoopTurns, encoded
from yunikorn_rest.event_streams import EventHub
from yunikorn_rest.guards import SharedPlaces
from yunikorn_rest.health_check import HealthBoard
from yunikorn_rest.kept_history import KeptHistory
from yunikorn_rest.paced_work import PacedWork
from yunikorn_rest.profiler import Profiler
from yunikorn_rest.route_access import NOBODY, AccessGate, Caller, RouteAccess
from yunikorn_rest.sampled_history import SampledHistory
from yunikorn_rest.taken_snapshots import SnapshotTaking
from yunikorn_service.background import begin_shared
from yunikorn_service.log_levels import LogLevels
from yunikorn_service.runtime.sliced_reads import CoreReader, Reading, Slices

if TYPE_CHECKING:
    from yunikorn_rest.metrics.service_metrics import ServiceMetrics
    from yunikorn_rest.operator_actions import OperatorChanges


SAFE = "/:@!$&'()*+,;=-._~"
"""Characters that need no escape in a path."""
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def decoded_twice(value: str) -> str:
    """Return a name decoded like a query value; raises `RequestRefused` for an invalid escape."""
    bad = _BAD_ESCAPE.search(value)
    if bad is not None:
        raise RequestRefused(400, f'invalid URL escape "{value[bad.start() : bad.start() + 3]}"')
    return unquote_to_bytes(value.replace("+", " ")).decode("utf-8", "replace")


class Spelling:
    """Finds the correct spelling of paths with other letter case, `//`, `..`, or another final slash."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._known = []
        for pattern in patterns:
            regex, template, _ = compile_path(pattern)
            self._known.append((re.compile(regex.pattern, re.IGNORECASE), template))

    def corrected(self, path: str) -> str | None:
        """Return the path that was probably meant, or None if no route is near."""
        clean = posixpath.normpath("/" + path.lstrip("/"))
        for meant in (path.rstrip("/"), f"{path}/", clean, f"{clean}/"):
            for regex, template in self._known:
                found = regex.match(meant)
                if found is not None:
                    corrected = template.format(**found.groupdict())
                    if corrected != path:
                        return corrected
        return None


T = TypeVar("T")


@attrs.frozen
class RestContext:
    """Everything that the routes share."""

    core: CoreReader
    registry: Registry
    """Plugins that a configuration may name, to validate configurations."""
    stopwatch: Callable[[], int]
    """Time in nanoseconds, to encode answers in slices."""
    metrics: ServiceMetrics | None = None
    """Metrics of the service; None if they are off."""
    events: EventHub | None = attrs.field(default=None, kw_only=True)
    """Streams of events, and the store that they read; None if no events are kept."""
    gate: AccessGate = attrs.field(factory=AccessGate)
    """Check of credentials; everything may be read and nothing changed by default."""
    steering: OperatorChanges | None = None
    """Core and audit log for the routes that change something; None if changes are off."""
    log_levels: LogLevels = attrs.field(factory=lambda: LogLevels(()))
    """Log levels of the process."""
    core_alive: Callable[[], bool] = lambda: True
    """Returns False after the core has stopped."""
    unready: Callable[[], str] = lambda: ""
    """Returns why the service is not ready although its core is; empty if it is ready."""
    patience: float = 30.0
    """Seconds in which the body of a request must arrive."""
    history: SampledHistory = attrs.field(factory=SampledHistory)
    past: KeptHistory | None = None
    """History in a database; None if none is kept."""
    health: HealthBoard = attrs.field(
        default=attrs.Factory(lambda context: HealthBoard(context.stopwatch), takes_self=True)
    )
    profiler: Profiler = attrs.field(
        default=attrs.Factory(lambda context: Profiler(context.stopwatch), takes_self=True)
    )
    snapshots: SnapshotTaking = attrs.field(
        default=attrs.Factory(lambda context: SnapshotTaking(context.stopwatch), takes_self=True)
    )
    places: SharedPlaces = attrs.field(factory=lambda: SharedPlaces(PLACES))
    """Limits the number of requests in progress, apart from probes, metrics and streams."""
    turns: LoopTurns = attrs.field(
        default=attrs.Factory(lambda context: LoopTurns(context.stopwatch), takes_self=True)
    )
    """Turns of the tasks that make answers in the event loop."""
    computing: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(1))
    """Limits the number of other threads that make answers at the same time."""
    explaining: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(EXPLANATIONS))
    """Limits the number of explanations at the same time."""
    checking: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(1))
    """Limits the number of health checks at the same time."""
    validating: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(1))
    """Limits the number of validations at the same time, for clients with credentials."""
    open_work: PacedWork = attrs.field(factory=PacedWork)
    """Validations for clients without credentials."""
    dumping: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(1))
    """Limits the number of state dumps at the same time."""
    reading: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(READINGS))
    """Limits the number of readings at the same time."""


PLACES = 400
"""Maximum number of requests in progress; one address alone may have half of them."""
EXPLANATIONS = 2
"""Maximum number of explanations at the same time, each of which may evaluate all nodes a thousand times."""
READINGS = 32
"""Maximum number of readings at the same time; further requests wait."""


@attrs.frozen
class Call:
    """A request, as an endpoint sees it."""

    context: RestContext
    request: Request
    caller: Caller = NOBODY
    """Client that makes the request."""

    def text(self, name: str) -> str:
        """Return a parameter of the path, as decoded once."""
        value: str = self.request.path_params[name]
        return value

    def name(self, name: str) -> str:
        """Return a parameter of the path that is decoded twice; raises `RequestRefused`."""
        return decoded_twice(self.text(name))

    def query(self, name: str) -> str:
        """Return a query parameter; empty if it is absent."""
        return self.request.query_params.get(name, "")

    async def read(self, reading: Reading[T]) -> T:
        """Carry out a reading of the core."""
        async with self.context.reading:
            return await self.context.core.read(reading)

    async def apart(self, work: Callable[[], T]) -> T:
        """Return the result of some work, done in another thread when no other work is.

        Threads of Python share one processor with the core, so that more of them only delay the core. Nothing
        stops a thread, so the work of a client that has gone still keeps others waiting.
        """
        computing = self.context.computing
        await computing.acquire()
        working = begin_shared(asyncio.to_thread(work))
        working.add_done_callback(lambda _: computing.release())
        return await asyncio.shield(working)

    async def gather(self, reading: Callable[[Scheduler, AnswerLists], Slices[T]]) -> tuple[T, AnswerLists]:
        """Carry out a reading that passes parts of its answer on, and return its result and the parts."""
        gathering = AnswerLists(self.context.turns)
        async with self.context.reading:
            task = begin_shared(self.context.core.read(lambda core: reading(core, gathering)))
            try:
                return await gathering.encode(task), gathering
            finally:
                task.cancel()

    async def body(self, most: int, remark: str = "") -> bytes:
        """Return the body of the request.

        Raises `RequestRefused` if it is too slow, or too large, with a remark about that.
        """
        found = bytearray()
        try:
            async with asyncio.timeout(self.context.patience):
                async for part in self.request.stream():
                    found += part
                    if len(found) > most:
                        raise RequestRefused(413, f"the body is larger than {most} bytes{remark}")
        except TimeoutError:
            raise RequestRefused(
                408, f"the body has not arrived within {self.context.patience:g} s"
            ) from None
        except ClientDisconnect:
            raise RequestRefused(400, "the body is incomplete") from None
        return bytes(found)

    async def json(self, value: object, *, conditional: bool = True) -> Answer:
        """Return an answer with the JSON text of shapes."""
        return Answer(pieces=await encoded(value, self.context.turns), conditional=conditional)


Handler = Callable[[Call], Awaitable[Answer]]
"""Function that answers the requests of a route."""
COUNT: Mapping[str, object] = {"type": "integer", "minimum": 1, "maximum": 2**64 - 1}
"""JSON schema of a number from 1 on."""


@attrs.frozen
class Query:
    """Query parameter of an endpoint."""

    name: str
    description: str
    example: str = ""
    schema: Mapping[str, object] = attrs.field(factory=lambda: {"type": "string"})
    """JSON schema of the value."""


@attrs.frozen
class Route:
    """A route of the server, and what clients may send there and get from there.

    A route is the decorator of the function that answers its requests; the first line of the docstring is the
    description in the OpenAPI document.
    """

    path: str
    """Path with parameters in braces, of one segment each."""
    result: Any = None
    """Type of the JSON body: a shape, or `list[SHAPE]`; None for another content."""
    method: str = "GET"
    queries: Sequence[Query] = ()
    errors: Sequence[int] = ()
    """Statuses of errors."""
    plain_errors: bool = False
    """True if errors may also be plain text."""
    content_type: str = "application/json"
    other_content_type: str = ""
    """Content type of another form of the answer; empty if there is none."""
    body: str = ""
    """Content type of the request's body; empty if there is none."""
    body_schema: Mapping[str, object] = attrs.field(factory=lambda: {"type": "string"})
    """JSON schema of the request's body."""
    cross_origin: bool = True
    """True if pages of other origins may read the answers."""
    access: RouteAccess = RouteAccess.READ
    """Credentials that the route needs."""
    is_unlimited: bool = False
    """True if the number of requests in progress does not matter: they are cheap, or limited elsewhere."""

    @property
    def changes(self) -> bool:
        """True if requests change something."""
        return self.method != "GET" and self.access not in (RouteAccess.OPEN, RouteAccess.READ)

    def __call__(self, answer: Handler, summary: str = "") -> Endpoint:
        """Return the endpoint that answers requests by a function, described by its docstring by default."""
        described = summary or _summary(answer)
        return Endpoint(**attrs.asdict(self, recurse=False), answer=answer, summary=described)

    def reads(self, reading: Callable[[Call, Scheduler], Slices[object]]) -> Endpoint:
        """Return the endpoint that answers requests with the JSON text of what a reading returns."""

        async def answer(call: Call) -> Answer:
            return await call.json(await call.read(functools.partial(reading, call)))

        return self(answer, _summary(reading))


def _summary(function: Callable[..., object]) -> str:
    """Return the first line of a docstring, without its full stop."""
    return (inspect.getdoc(function) or "").partition("\n")[0].removesuffix(".")


@attrs.frozen
class Endpoint(Route):
    """A route and the function that answers it."""

    answer: Handler = attrs.field(kw_only=True)
    summary: str = attrs.field(kw_only=True)
    """Description in the OpenAPI document."""
