"""End of a call: the gRPC status and text for each of our errors, and their sending.

Where gRPC cannot send a status, the connection is closed.
"""

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
from urllib.parse import quote, unquote

import attrs
import grpc
import grpc.aio

from yunikorn.errors import ConfigError, UsageError, YunikornError, printable
from yunikorn.interface.configurations import places_and_kinds
from yunikorn_service.runtime.threaded import CoreStopped

LARGEST = 6000
"""Maximum length of a percent-encoded status text in bytes; clients accept headers of 8 KiB."""

LONGEST_NAME = 256
"""Maximum length of a quoted name in characters."""


@attrs.frozen
class CallRefusal(Exception):
    """Error that ends a call with a status code and a text."""

    code: grpc.StatusCode
    text: str
    redacted: str = ""
    """Replacement of `text` in the log, where `text` quotes a secret."""

    @property
    def logged(self) -> str:
        """Text for the log."""
        return self.redacted or self.details

    @property
    def details(self) -> str:
        """Text for the client: printable, and at most `LARGEST` bytes when percent-encoded."""
        text = "\n".join(printable(line) for line in self.text.splitlines())
        if len(quote(text)) <= LARGEST:
            return text
        end = f" ... ({len(text)} characters in total)"
        size = 0
        for kept, char in enumerate(text):
            size += len(quote(char))
            if size > LARGEST - 2 * len(end):
                return text[:kept] + end
        return text


def shown(name: str) -> str:
    """Return a name from a client for use in a text: printable, on one line, and not too long."""
    # Cut before escaping, which would take long for a very long name.
    cut = name[:LONGEST_NAME]
    return printable(cut) + ("..." if len(name) > len(cut) else "")


def refusal_of(error: YunikornError) -> CallRefusal:
    """Return the refusal for an error of ours."""
    if isinstance(error, CoreStopped):
        return CallRefusal(grpc.StatusCode.UNAVAILABLE, str(error))
    if isinstance(error, ConfigError):
        text = f"the configuration cannot be used:\n{error}"
        return CallRefusal(
            grpc.StatusCode.INVALID_ARGUMENT,
            text,
            f"the configuration cannot be used: {places_and_kinds(error)}",
        )
    if isinstance(error, UsageError):
        return CallRefusal(grpc.StatusCode.FAILED_PRECONDITION, str(error))
    return CallRefusal(grpc.StatusCode.INVALID_ARGUMENT, str(error))


def not_registered(rm_id: str) -> CallRefusal:
    """Return the refusal of a stream whose RM has no session."""
    text = "is not registered: call RegisterResourceManager, then open the stream"
    return CallRefusal(grpc.StatusCode.FAILED_PRECONDITION, f"resource manager '{shown(rm_id)}' {text}")


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
