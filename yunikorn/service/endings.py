"""End of a call: sending the final status, or closing the connection where gRPC cannot send a status."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import socket
import stat
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import grpc
import grpc.aio

from yunikorn.errors import printable
from yunikorn.service.call_refusals import CallRefusal

_log = logging.getLogger("yunikorn.grpc")

Context = grpc.aio.ServicerContext[Any, Any]

OPEN_FILES = "/dev/fd"
"""Folder that lists the descriptors of this process, on systems that have such a folder."""


async def send_headers(context: Context) -> None:
    """Send the initial metadata of a stream, and wait until the metadata is sent.

    Otherwise gRPC sends the metadata with the first message, and cannot end the call in the meantime.
    """
    await context.send_initial_metadata(())


async def refuse(context: Context, refusal: CallRefusal, what: str) -> None:
    """End a stream with a status, and log the refusal; `what` names the stream in the log."""
    _log.info("%s ends with %s: %s", printable(what), refusal.code.name, refusal.logged)
    await end_with(context, refusal, what)


async def end_with(context: Context, refusal: CallRefusal, what: str) -> None:
    """End a call with a status.

    If gRPC cannot end the call, its connection is closed: otherwise the client would wait without end.
    """
    try:
        await context.abort(refusal.code, refusal.details)
    except (grpc.aio.AbortError, asyncio.CancelledError):
        raise
    except Exception as error:
        if not _is_over(error):
            _close_connection(context.peer(), f"{printable(what)} cannot be ended: {error}")
        raise


def _is_over(error: Exception) -> bool:
    """Return True if the status was not sent because the call had ended already."""
    return type(error).__name__ == "ExecuteBatchError" and "grpc_call_start_batch" not in str(error)


def _close_connection(peer: str, why: str) -> None:
    closed = 0
    for connection in _connections_with(peer):
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
            closed += 1
    _log.error("%s: %s", why, f"closed the connection with {peer}" if closed else "its connection stays open")


def _connections_with(peer: str) -> Iterator[socket.socket]:
    """Yield the sockets of this process that are connected to `peer`, in gRPC's form `ipv4:HOST:PORT`."""
    host, _, port = unquote(peer).partition(":")[2].rpartition(":")
    if not (host and os.path.isdir(OPEN_FILES)):  # a Unix socket has no peer address
        return
    wanted = (_plain(host.strip("[]")), port)
    for name in os.listdir(OPEN_FILES):
        with contextlib.suppress(OSError):  # closed meanwhile, or not connected
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(name))) as copy:
                found = copy.getpeername()
                if isinstance(found, tuple) and (_plain(found[0]), str(found[1])) == wanted:
                    yield copy


def _plain(host: str) -> str:
    """Return the IPv4 form of an IPv4-mapped IPv6 address, and other addresses unchanged."""
    try:
        mapped = getattr(ipaddress.ip_address(host), "ipv4_mapped", None)
    except ValueError:
        return host
    return host if mapped is None else str(mapped)
