"""Calls to a Kubernetes API server, with typed objects, rate limit, time limits and typed errors."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, MutableSequence, Sequence, Set
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

import attrs
import msgspec

from yunikorn.errors import YunikornError
from yunikorn_kubernetes.api_server.api_connection import ApiConnection, HttpStream
from yunikorn_kubernetes.api_server.api_resources import PODS, ApiObject, ApiResource
from yunikorn_kubernetes.api_server.rate_limit import RateLimit
from yunikorn_kubernetes.api_server.transport import ServerAnswer, TransportError
from yunikorn_kubernetes.api_server.watch_lines import (
    Bookmark,
    Status,
    WatchEvent,
    WatchLines,
    describe_object,
)

_log = logging.getLogger("yunikorn.kubernetes")

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
"""Media type of patches that merge lists by their keys, such as conditions by type."""
REQUEST_LIMIT = 30.0
"""Seconds for one request."""
LIST_LIMIT = 180.0
"""Seconds for a list, which may have hundreds of megabytes."""
SILENCE_LIMIT = 150.0
"""Seconds without data after which a watch is broken; the server sends a bookmark every minute."""
THROTTLED = 429
THROTTLED_TRIES = 4
LONGEST_PAUSE = 30.0
SLICE = 200
"""Objects of a list that are decoded before other tasks of the loop may run."""

T = TypeVar("T")
A = TypeVar("A", bound=ApiObject)


class ApiError(YunikornError):
    """Refusal or failure of a call.

    `status` is the HTTP status, and 0 if there was no answer. `reason` is the word of the server for
    programs, such as `NotFound`. `retry_after` is the time in seconds that the server asks for, or None.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        retry_after: float | None = None,
        *,
        maybe_executed: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        self.maybe_executed = maybe_executed
        """True if the call may have been executed although it failed: the answer was lost, or 5xx."""

    @property
    def is_not_found(self) -> bool:
        """True if the object does not exist."""
        return self.status == 404

    @property
    def is_conflict(self) -> bool:
        """True if the object exists, has another resource version or UID, or forbids the change as it is."""
        return self.status == 409

    @property
    def is_expired(self) -> bool:
        """True if the server no longer has the resource version that the call began at."""
        return self.status == 410 or self.reason in ("Expired", "Gone")

    @property
    def is_forbidden(self) -> bool:
        """True if the right is missing, or a quota or the state of the namespace forbids the call.

        An API server that has just started also answers so, until it has read all rights.
        """
        return self.status == 403

    @property
    def is_temporary(self) -> bool:
        """True if the same call may succeed later."""
        return self.status in (0, 401, 408, THROTTLED) or self.status >= 500


@attrs.frozen
class ObjectList(Generic[T]):
    """Objects of a list, and the version from which a watch continues."""

    items: list[T]
    resource_version: str
    unreadable: Set[str] = frozenset()
    """Keys of the objects that were left out."""


class _ListMeta(msgspec.Struct, rename="camel", frozen=True):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _ListBody(msgspec.Struct, rename="camel"):
    """List whose items are decoded one by one."""

    metadata: _ListMeta = _ListMeta()
    items: list[msgspec.Raw] | None = None


_list_decoder = msgspec.json.Decoder(_ListBody)
_status_decoder = msgspec.json.Decoder(Status)


def _always() -> bool:
    return True


class ApiServer:
    """Calls to one API server.

    A call raises `ApiError` unless the server executed it. Answers 429 are tried again, a few times, after
    the pause that the server asks for; other errors are not. `rate_limit` counts all requests. Where
    `may_write` returns False, requests that change something fail without being sent.
    """

    def __init__(
        self,
        connection: ApiConnection,
        *,
        rate_limit: RateLimit | None = None,
        may_write: Callable[[], bool] = _always,
    ) -> None:
        self._connection = connection
        self._rate_limit = rate_limit or RateLimit(0, 0)
        self._may_write = may_write
        self._decoders: dict[type[Any], msgspec.json.Decoder[Any]] = {}

    async def close(self) -> None:
        """Close all connections."""
        await self._connection.close()

    async def list(
        self,
        resource: ApiResource[T],
        namespace: str = "",
        *,
        limit: int = 0,
        resource_version: str = "",
    ) -> ObjectList[T]:
        """Return all objects of a resource, in pages of `limit` objects if that is not 0.

        A `resource_version` of "0" accepts any state that the server has in memory, another one any state
        that is not older, and an empty one requires the latest state. Objects that cannot be decoded are
        logged and left out.
        """
        query = {
            "limit": str(limit) if limit else "",
            "resourceVersion": resource_version,
        }
        items: list[T] = []
        unreadable: set[str] = set()
        while True:
            path = resource.path(namespace) + _query_text(query)
            try:
                answer = await self._call("GET", path, timeout=LIST_LIMIT)
            except ApiError as error:
                if not (query.get("continue") and error.is_expired):
                    raise
                # The state of the first page is gone: read everything at once.
                items.clear()
                unreadable.clear()
                query |= {"limit": "", "continue": "", "resourceVersion": ""}
                continue
            body = _decoded(answer, _list_decoder)
            del answer
            unreadable |= await self._decode_items(resource, body.items or [], items)
            if not body.metadata.continue_:
                return ObjectList(items, body.metadata.resource_version, unreadable)
            # Later pages have the version of the first.
            query |= {"continue": body.metadata.continue_, "resourceVersion": ""}

    async def check_list(self, resource: ApiResource[Any], namespace: str = "") -> None:
        """Raise `ApiError` if the server does not let this process list a resource.

        This is one request for one object; `list` with a limit reads all pages.
        """
        await self._call("GET", resource.path(namespace) + _query_text({"limit": "1"}))

    async def is_ready(self) -> bool:
        """Return True if the server reports that it is ready: it has read all rights, among others.

        Raises `ApiError` if there is no answer, or if the server refuses the credentials.
        """
        try:
            await self._call("GET", "/readyz")
        except ApiError as error:
            if error.status in (0, 401):
                raise
            return False
        return True

    async def _decode_items(
        self, resource: ApiResource[T], raw: Sequence[msgspec.Raw], items: MutableSequence[T]
    ) -> set[str]:
        """Append decoded objects to `items`, and return the keys of the others."""
        decode = self._decoder(resource.struct).decode
        unreadable = set()
        for start in range(0, len(raw), SLICE):
            for item in raw[start : start + SLICE]:
                try:
                    items.append(decode(item))
                except msgspec.DecodeError as error:
                    key = describe_object(bytes(item))
                    unreadable.add(key)
                    _log.error("%s %s is left out: %s", resource.kind, key, error)
            await asyncio.sleep(0)
        return unreadable

    async def watch(
        self,
        resource: ApiResource[A],
        namespace: str = "",
        *,
        resource_version: str,
        timeout_seconds: int = 300,
        silence: float = SILENCE_LIMIT,
        opened: Callable[[], None] | None = None,
    ) -> AsyncGenerator[WatchEvent[A] | Bookmark, None]:
        """Return the changes after `resource_version` until the server ends the watch.

        The iterator is to be closed after use. `opened` is called when the server has accepted the watch. An
        incomplete last line is dropped. Raises `ApiError` if the watch is refused or breaks, or if the server
        reports an error such as 410.
        """
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_seconds),
        }
        await self._rate_limit.acquire()
        lines: WatchLines[A] = WatchLines(resource.kind, resource.struct)
        try:
            async with self._connection.stream(
                resource.path(namespace) + _query_text(query), silence=silence
            ) as stream:
                if stream.status != 200:
                    raise await _refusal(stream)
                if opened is not None:
                    opened()
                async for piece in stream.pieces():
                    for number, event in enumerate(lines.feed(piece), 1):
                        if isinstance(event, Status):
                            raise _error_of(event.code or 500, {}, event)
                        yield event
                        if number % SLICE == 0:
                            await asyncio.sleep(0)
        except TransportError as error:
            raise _lost(error) from error

    async def get(self, resource: ApiResource[T], namespace: str, name: str) -> T:
        """Return an object."""
        return self._object(resource, await self._call("GET", resource.path(namespace, name)))

    async def find(self, resource: ApiResource[T], namespace: str, name: str) -> T | None:
        """Return an object; None if it does not exist."""
        try:
            return await self.get(resource, namespace, name)
        except ApiError as error:
            if not error.is_not_found:
                raise
            return None

    async def create(self, resource: ApiResource[T], namespace: str, body: object) -> T:
        """Create an object from a dictionary or struct, and return it as stored."""
        return self._object(resource, await self._call("POST", resource.path(namespace), body))

    async def replace(self, resource: ApiResource[T], namespace: str, name: str, body: object) -> T:
        """Replace an object.

        Fields that `body` does not have are lost. A resource version in its metadata must be current.
        """
        return self._object(resource, await self._call("PUT", resource.path(namespace, name), body))

    async def patch(
        self,
        resource: ApiResource[T],
        namespace: str,
        name: str,
        body: object,
        *,
        subresource: str = "",
        media_type: str = MERGE_PATCH,
    ) -> T:
        """Change fields of an object; a UID or resource version in the metadata of `body` must match."""
        path = resource.path(namespace, name, subresource)
        return self._object(resource, await self._call("PATCH", path, body, content_type=media_type))

    async def delete(self, resource: ApiResource[T], namespace: str, name: str, *, uid: str = "") -> None:
        """Delete an object; with `uid` no other object of the same name."""
        options: dict[str, object] = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if uid:
            options["preconditions"] = {"uid": uid}
        await self._call("DELETE", resource.path(namespace, name), options)

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        """Bind a pod to a node. A pod that is bound already, or has another UID, is a conflict."""
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._call("POST", PODS.path(namespace, name, "binding"), body)

    # -- requests ----------------------------------------------------------------------------------------

    async def _call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = JSON,
        timeout: float = REQUEST_LIMIT,
    ) -> ServerAnswer:
        """Send a request and return a successful answer; raises `ApiError` for all others."""
        encoded = msgspec.json.encode(body) if body is not None else None
        media_type = content_type if encoded is not None else ""
        tries = 0
        while True:
            await self._rate_limit.acquire()
            if method != "GET" and not self._may_write():
                raise ApiError(0, "NotLeading", "this process does not hold the lease")
            try:
                answer = await self._connection.request(
                    method,
                    path,
                    body=encoded,
                    content_type=media_type,
                    timeout=timeout,
                    may_send=self._may_write if method != "GET" else _always,
                )
            except TransportError as error:
                raise _lost(error) from error
            if answer.status < 300:
                return answer
            refusal = _error_of(answer.status, answer.headers, _status_of(answer))
            tries += 1
            if answer.status != THROTTLED or tries == THROTTLED_TRIES:
                raise refusal
            await asyncio.sleep(min(refusal.retry_after or 1.0, LONGEST_PAUSE))

    def _decoder(self, struct: type[T]) -> msgspec.json.Decoder[T]:
        decoder = self._decoders.get(struct)
        if decoder is None:
            decoder = self._decoders[struct] = msgspec.json.Decoder(struct)
        return decoder

    def _object(self, resource: ApiResource[T], answer: ServerAnswer) -> T:
        return _decoded(answer, self._decoder(resource.struct))


def _query_text(query: Mapping[str, str]) -> str:
    present = {key: value for key, value in query.items() if value}
    return "?" + urlencode(present) if present else ""


def _decoded(answer: ServerAnswer, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(answer.body)
    except msgspec.DecodeError as error:
        # The call was executed, so a change must not be repeated as if it had failed.
        raise ApiError(0, "InvalidAnswer", f"unreadable answer: {error}", maybe_executed=True) from error


def _status_of(answer: ServerAnswer) -> Status:
    """Return the status in the body of a failure, or one made of its text: proxies send no JSON."""
    try:
        return _status_decoder.decode(answer.body)
    except msgspec.DecodeError:
        return Status(message=bytes(answer.body[:500]).decode("utf-8", "replace").strip())


def _error_of(code: int, headers: Mapping[str, str], status: Status) -> ApiError:
    pause = headers.get("retry-after", "")
    seconds = float(pause) if pause.isdecimal() else None
    if seconds is None and status.details is not None and status.details.retry_after_seconds:
        seconds = float(status.details.retry_after_seconds)
    message = status.message or status.reason or "no message"
    return ApiError(code, status.reason, f"{code} {message}", seconds, maybe_executed=code >= 500)


def _lost(error: TransportError) -> ApiError:
    return ApiError(0, "NoAnswer", f"no answer from the API server: {error}", maybe_executed=error.sent)


async def _refusal(stream: HttpStream) -> ApiError:
    body = bytearray()
    async for piece in stream.pieces():
        body += piece
    return _error_of(stream.status, stream.headers, _status_of(ServerAnswer(stream.status, {}, body)))
