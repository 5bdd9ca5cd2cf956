"""Answers: headers, errors, compression and conditional requests, in one place for all routes.

Every body is compressed here and nowhere else, so no body is compressed twice. A body is a sequence of
pieces, which are never joined: an answer may have a hundred megabytes.
"""

from __future__ import annotations

import asyncio
import hashlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import attrs
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from yunikorn_rest import shapes
from yunikorn_rest.encoding import json_pieces, to_bytes

T = TypeVar("T")

JSON = "application/json; charset=UTF-8"
TEXT = "text/plain; charset=utf-8"
COMPRESSED_FROM = 1400
"""Size in bytes from which a body is compressed, if the client accepts gzip."""
SMALL = 32 << 10
"""Size in bytes up to which a body is compressed at once, in less than a millisecond."""
FASTEST = 1
GZIP_FORMAT = 31
"""Parameter of zlib for gzip."""


class RequestRefused(Exception):
    """A request that cannot be answered, with the status and the text of the answer."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        self.status, self.message, self.headers = status, message, headers or {}
        super().__init__(f"{status} {message}")


@attrs.frozen(kw_only=True)
class Answer:
    """An answer, which is an ASGI application that sends it."""

    pieces: Sequence[bytes] = ()
    status: int = 200
    content_type: str = JSON
    headers: Mapping[str, str] = attrs.field(factory=dict)
    conditional: bool = False
    """True if the answer has an ETag, and is not sent to a client that has it already."""
    compressible: bool = True
    """False for a body that must be sent as it is."""
    message: str = ""
    """Message of an error, for clients that want a page."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer, compressed if the client accepts that."""
        request = Headers(scope=scope)
        headers = {"content-type": self.content_type, **self.headers}
        size = sum(map(len, self.pieces))
        pieces, status = self.pieces, self.status
        if self.compressible and size >= COMPRESSED_FROM:
            headers["vary"] = "Accept-Encoding"
        if self.conditional:
            headers["etag"] = etag = await _apart(size, _etag, pieces)
            headers["cache-control"] = "no-cache"
            if is_known(request.get("if-none-match", ""), etag):
                pieces, size, status = (), 0, 304
                del headers["content-type"]
        if self.compressible and size >= COMPRESSED_FROM and accepts_gzip(request):
            pieces = await _apart(size, _compressed, pieces)
            headers["content-encoding"] = "gzip"
        if status != 304:
            headers["content-length"] = str(sum(map(len, pieces)))
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        for piece in pieces[:-1]:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        last = pieces[-1] if pieces else b""
        await send({"type": "http.response.body", "body": last, "more_body": False})


def cross_origin(methods: str) -> dict[str, str]:
    """Return the headers that let pages of other origins read the answers of a route."""
    return {
        "access-control-allow-origin": "*",
        "access-control-allow-methods": methods,
        "access-control-allow-headers": "X-Requested-With,Content-Type,Accept,Origin",
    }


def error(status: int, message: str, headers: Mapping[str, str] | None = None) -> Answer:
    """Return the answer for an error of a route."""
    body = shapes.Error(status_code=status, message=message, description=message)
    piece = to_bytes("".join((*json_pieces(body), "\n")))
    return Answer(pieces=(piece,), status=status, headers=headers or {}, message=message)


def plain_error(status: int, text: str, headers: Mapping[str, str] | None = None) -> Answer:
    """Return the answer for a request that belongs to no route."""
    return Answer(
        pieces=(f"{text}\n".encode(),),
        status=status,
        content_type=TEXT,
        headers={"x-content-type-options": "nosniff", **(headers or {})},
        message=text,
    )


def accepts_gzip(request: Headers) -> bool:
    """Return True if a client accepts gzip: the token is present without `q=0`."""
    for value in request.getlist("accept-encoding"):
        for entry in value.split(","):
            token, _, parameters = entry.partition(";")
            if token.strip().lower() == "gzip":
                return parameters.replace(" ", "").lower() != "q=0"
    return False


def is_known(if_none_match: str, etag: str) -> bool:
    """Return True if a client that sent this `If-None-Match` has the answer (weak comparison)."""
    if not if_none_match:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return tags == ["*"] or etag.removeprefix("W/") in tags


async def _apart(size: int, work: Callable[[Sequence[bytes]], T], pieces: Sequence[bytes]) -> T:
    """Return the result of some work on a body, done in another thread if the body is large.

    The change of threads takes longer than the work on a small body.
    """
    return await asyncio.to_thread(work, pieces) if size > SMALL else work(pieces)


def _etag(pieces: Sequence[bytes]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        digest.update(piece)
    # Weak: the compressed body is the same answer.
    return f'W/"{digest.hexdigest()}"'


def _compressed(pieces: Sequence[bytes]) -> list[bytes]:
    # zlib releases the interpreter's lock while it compresses a piece.
    packer = zlib.compressobj(FASTEST, zlib.DEFLATED, GZIP_FORMAT)
    found = [packer.compress(piece) for piece in pieces]
    return [piece for piece in (*found, packer.flush()) if piece]
