"""API server in memory instead of a connection: lists, watches, writes, bindings, and faults on demand."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from yunikorn_kubernetes.api_server.api_connection import ApiConnection, HttpStream
from yunikorn_kubernetes.api_server.transport import ServerAnswer, TransportError

Json = dict[str, Any]
Fault = Callable[[str, str], "ServerAnswer | Exception | None"]

PATH = re.compile(
    r"(?P<api>/api/v1|/apis/[^/]+/[^/]+)(/namespaces/(?P<namespace>[^/]+)(?=/[^/]))?"
    r"/(?P<plural>[^/]+)(/(?P<name>[^/]+)(/(?P<sub>[^/]+))?)?$"
)


def answer(status: int, body: object, **headers: str) -> ServerAnswer:
    """Return an answer with a body in JSON; `retry_after` becomes the header `retry-after`."""
    return ServerAnswer(
        status, {key.replace("_", "-"): value for key, value in headers.items()}, json.dumps(body).encode()
    )


def failure(status: int, reason: str, message: str = "", **headers: str) -> ServerAnswer:
    """Return an answer that describes a failure as Kubernetes does."""
    body = {"kind": "Status", "metadata": {}, "status": "Failure", "code": status, "reason": reason}
    return answer(status, body | {"message": message or reason}, **headers)


class MemoryStream(HttpStream):
    """Open watch; `put` adds bytes, None ends it, and an exception breaks it."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.headers = {}
        self.queue: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()

    def put(self, item: bytes | Exception | None) -> None:
        """Add a piece, the end, or the loss of the connection."""
        self.queue.put_nowait(item)

    async def pieces(self) -> AsyncIterator[bytes]:
        """Return the pieces that were put."""
        while True:
            item = await self.queue.get()
            if item is None:
                return
            if isinstance(item, Exception):
                raise item
            yield item


NEVER = 1e9
"""Seconds until the answer to a request that hangs."""


class MemoryServer(ApiConnection):
    """Objects by collection and key, a version for each change, and all open watches."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], dict[str, Json]] = {}
        """Objects by API path and plural, then by `namespace/name`."""
        self.version = 100
        self.oldest = 100
        """Version below which a watch is refused as expired."""
        self.history: dict[tuple[str, str], list[tuple[int, str, Json]]] = {}
        self.streams: list[tuple[tuple[str, str], MemoryStream]] = []
        self.calls: list[tuple[str, str]] = []
        """Method and path with query of all calls."""
        self.bodies: list[Json] = []
        """Bodies of all writes, in the order of the calls."""
        self.before: Fault = lambda method, path: None
        """Fault instead of an execution."""
        self.after: Fault = lambda method, path: None
        """Fault after the execution, which replaces the answer."""
        self.delay = 0.0
        self._hangs: list[bool] = []
        """Requests that get no answer: True for one that is executed."""
        self.running = 0
        self.most_running = 0

    def hang(self, *, executed: bool = False) -> None:
        """Let the next request have no answer, although it may be executed."""
        self._hangs.append(executed)

    # -- changes from outside ----------------------------------------------------------------------------

    def put(self, plural: str, body: Json, *, api: str = "/api/v1", silent: bool = False) -> Json:
        """Create or change an object; `silent` changes are not reported to watches."""
        meta = body.setdefault("metadata", {})
        key = f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]
        stored = self.objects.setdefault((api, plural), {})
        self.version += 1
        meta["resourceVersion"] = str(self.version)
        meta.setdefault("uid", stored[key]["metadata"]["uid"] if key in stored else f"uid-{self.version}")
        kind = "MODIFIED" if key in stored else "ADDED"
        stored[key] = body
        self._record((api, plural), kind, body, silent=silent)
        return body

    def remove(self, plural: str, key: str, *, api: str = "/api/v1", silent: bool = False) -> None:
        """Delete an object."""
        body = json.loads(json.dumps(self.objects[api, plural].pop(key)))
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self._record((api, plural), "DELETED", body, silent=silent)

    def pod(self, name: str, namespace: str = "default", node: str = "", **more: Any) -> Json:
        """Create or change a pod."""
        body: Json = {"metadata": {"name": name, "namespace": namespace}, "spec": {}, "status": {}}
        if node:
            body["spec"]["nodeName"] = node
        body["metadata"] |= more
        return self.put("pods", body)

    def _record(self, collection: tuple[str, str], kind: str, body: Json, *, silent: bool) -> None:
        text = json.loads(json.dumps(body))
        self.history.setdefault(collection, []).append((self.version, kind, text))
        if not silent:
            self.send(collection[1], kind, text)

    def send(self, plural: str, kind: str, body: Json) -> None:
        """Send an event to all watches of a resource."""
        line = json.dumps({"type": kind, "object": body}).encode() + b"\n"
        for (_, watched), stream in self.streams:
            if watched == plural:
                stream.put(line)

    def bookmark(self, plural: str) -> None:
        """Send a bookmark of the present version, with the nulls that a real server sends."""
        self.send(
            plural,
            "BOOKMARK",
            {"metadata": {"resourceVersion": str(self.version)}, "spec": {"containers": None}},
        )

    def compact(self) -> None:
        """Forget all former versions."""
        self.oldest = self.version

    def break_streams(self, error: Exception | None = None) -> None:
        """End all watches, by an error if one is given."""
        for _, stream in self.streams:
            stream.put(error)
        self.streams.clear()

    # -- transport ---------------------------------------------------------------------------------------

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = "",
        timeout: float = 0.0,
        may_send: Callable[[], bool] = lambda: True,
    ) -> ServerAnswer:
        """Execute a request, with the faults of `before` and `after`."""
        self.calls.append((method, path))
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await asyncio.sleep(self.delay)
            if not may_send():
                raise TransportError("the request may not be sent any more", sent=False)
            if (fault := self.before(method, path)) is not None:
                return _raised(fault)
            if self._hangs:
                if self._hangs.pop():
                    self._execute(method, path, json.loads(body) if body else None)
                await asyncio.sleep(NEVER)
            done = self._execute(method, path, json.loads(body) if body else None)
            if (fault := self.after(method, path)) is not None:
                return _raised(fault)
            return done
        finally:
            self.running -= 1

    def _execute(self, method: str, path: str, body: Json | None) -> ServerAnswer:
        url = urlsplit(path)
        match = PATH.match(unquote(url.path))
        assert match is not None, path
        collection = (match["api"], match["plural"])
        stored = self.objects.setdefault(collection, {})
        key = f"{match['namespace']}/{match['name']}" if match["namespace"] else match["name"] or ""
        if body is not None:
            self.bodies.append(body)
        if not match["name"]:
            return self._collection(
                method, collection, match["namespace"] or "", dict(parse_qsl(url.query)), body
            )
        if key not in stored:
            return failure(404, "NotFound", f'{match["plural"]} "{match["name"]}" not found')
        return self._object(method, collection, key, match["sub"] or "", body)

    def _collection(
        self,
        method: str,
        collection: tuple[str, str],
        namespace: str,
        query: Mapping[str, str],
        body: Json | None,
    ) -> ServerAnswer:
        stored = self.objects[collection]
        if method == "POST":
            assert body is not None
            body["metadata"].setdefault("namespace", namespace)
            if f"{namespace}/{body['metadata']['name']}" in stored:
                return failure(409, "AlreadyExists")
            return answer(201, self.put(collection[1], body, api=collection[0]))
        found = [
            each for key, each in sorted(stored.items()) if key.startswith(f"{namespace}/") or not namespace
        ]
        start, limit = int(query.get("continue", "0")), int(query.get("limit", "0"))
        meta = {"resourceVersion": str(self.version)}
        if limit and start + limit < len(found):
            meta["continue"] = str(start + limit)
        return answer(200, {"metadata": meta, "items": found[start : start + limit] if limit else found})

    def _object(
        self, method: str, collection: tuple[str, str], key: str, sub: str, body: Json | None
    ) -> ServerAnswer:
        api, plural = collection
        stored = self.objects[collection][key]
        meta = ((body or {}).get("preconditions") or (body or {}).get("metadata")) or {}
        for field, name in (("uid", "uid"), ("resourceVersion", "resourceVersion")):
            if meta.get(field) and meta[field] != stored["metadata"][name]:
                return failure(409, "Conflict", f"{field} does not match")
        if method == "GET":
            return answer(200, stored)
        if method == "DELETE":
            self.remove(plural, key, api=api)
            return answer(200, {"kind": "Status", "status": "Success"})
        assert body is not None
        changed = json.loads(json.dumps(stored))
        if sub == "binding":
            if changed["spec"].get("nodeName"):
                return failure(409, "Conflict", f"pod is already assigned to {changed['spec']['nodeName']}")
            changed["spec"]["nodeName"] = body["target"]["name"]
        elif method == "PATCH":
            _merge(changed, body)
        else:
            changed = body | {"metadata": stored["metadata"] | body["metadata"]}
        return answer(200, self.put(plural, changed, api=api))

    @asynccontextmanager
    async def stream(self, path: str, *, silence: float) -> AsyncIterator[HttpStream]:
        """Open a watch: changes after its version come first."""
        self.calls.append(("WATCH", path))
        await asyncio.sleep(self.delay)
        fault = self.before("WATCH", path)
        if isinstance(fault, Exception):
            raise fault
        match = PATH.match(urlsplit(path).path)
        assert match is not None
        collection = (match["api"], match["plural"])
        stream = MemoryStream(200 if fault is None else fault.status)
        if fault is not None:
            stream.headers = fault.headers
            stream.put(bytes(fault.body))
            stream.put(None)
        else:
            self._begin(stream, collection, int(dict(parse_qsl(urlsplit(path).query))["resourceVersion"]))
        self.streams.append((collection, stream))
        try:
            yield stream
        finally:
            self.streams = [each for each in self.streams if each[1] is not stream]

    def _begin(self, stream: MemoryStream, collection: tuple[str, str], version: int) -> None:
        if version < self.oldest:
            status = json.loads(failure(410, "Expired", f"too old resource version: {version}").body)
            stream.put(json.dumps({"type": "ERROR", "object": status}).encode() + b"\n")
            stream.put(None)
            return
        for changed, kind, body in self.history.get(collection, []):
            if changed > version:
                stream.put(json.dumps({"type": kind, "object": body}).encode() + b"\n")

    async def close(self) -> None:
        """Do nothing."""


def _raised(fault: ServerAnswer | Exception) -> ServerAnswer:
    if isinstance(fault, Exception):
        raise fault
    return fault


def _merge(target: Json, patch: Json) -> None:
    """Apply a strategic merge patch: conditions are merged by type, and null removes a field."""
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        elif name == "conditions":
            merged = {each["type"]: each for each in target.get(name, [])}
            for each in value:
                merged[each["type"]] = merged.get(each["type"], {}) | each
            target[name] = list(merged.values())
        elif isinstance(value, dict):
            _merge(target.setdefault(name, {}), value)
        else:
            target[name] = value


def lost() -> TransportError:
    """Return the error of a connection that broke after the request was sent."""
    return TransportError("connection reset")


def refused() -> TransportError:
    """Return the error of a server that does not listen."""
    return TransportError("connection refused", sent=False)
