"""Route of snapshots: everything that decides, in a file from which a scheduler goes on elsewhere."""

from __future__ import annotations

import asyncio
import os
from typing import BinaryIO

import attrs
from starlette.types import Receive, Scope, Send

from yunikorn_commands.extras import MissingExtra
from yunikorn_rest.answers import Answer, RequestRefused
from yunikorn_rest.endpoints import Call, Route
from yunikorn_rest.route_access import RouteAccess
from yunikorn_snapshots.snapshot_errors import SnapshotError, SnapshotNotYet

CONTENT_TYPE = "application/octet-stream"
PIECE = 256 << 10
"""Number of bytes that are read and sent at a time."""
AGAIN = {"retry-after": "10"}
BUSY = "a snapshot is being taken; there can be one at a time: try again in a moment"


@attrs.frozen(kw_only=True)
class FileAnswer(Answer):
    """Answer with the content of a file, which is read while it is sent, and closed."""

    file: BinaryIO

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file as it is."""
        with self.file as file:
            size = os.fstat(file.fileno()).st_size
            headers = {"content-type": self.content_type, "content-length": str(size), **self.headers}
            raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
            await send({"type": "http.response.start", "status": self.status, "headers": raw})
            while piece := await asyncio.to_thread(file.read, PIECE):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})


@Route(
    "/ws/v1/snapshot",
    content_type=CONTENT_TYPE,
    errors=(409, 500, 501, 503),
    cross_origin=False,
    access=RouteAccess.ADMIN,
)
async def snapshot(call: Call) -> Answer:
    """Snapshot of everything that decides, as a file; one at a time."""
    taking = call.context.snapshots
    if taking.is_busy:
        raise RequestRefused(503, BUSY, AGAIN)
    try:
        file = await taking.take(call.context.core)
    except SnapshotNotYet as error:
        raise RequestRefused(503, f"no snapshot can be taken now: {error}", AGAIN) from error
    except SnapshotError as error:
        raise RequestRefused(409, f"no snapshot can be taken: {error}") from error
    except MissingExtra as error:
        raise RequestRefused(501, str(error)) from error
    except OSError as error:
        why = f"{error.strerror or error}: let TMPDIR of the scheduler name a folder with room"
        raise RequestRefused(500, f"the snapshot cannot be written: {why}") from error
    headers = {
        "content-disposition": 'attachment; filename="yunikorn.snapshot"',
        "cache-control": "no-store",
    }
    return FileAnswer(file=file, content_type=CONTENT_TYPE, headers=headers)


ENDPOINTS = (snapshot,)
