"""Recognition of a gRPC server, for an address that was meant to be that of REST."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator

PATIENCE = 2.0
"""Seconds to connect, and to wait for the first bytes."""
HEADER = 9
"""Size of the header of a frame of HTTP/2 (RFC 9113, section 4.1)."""
SETTINGS = 4
"""Type of the frame that a server sends first."""


def speaks_http2(host: str, port: int, *, tls: bool) -> bool:
    """Return True if a server sends what HTTP/2 begins with, as those of gRPC do at once."""
    with contextlib.suppress(OSError), _connected(host, port, tls=tls) as connected:
        head = b""
        while len(head) < HEADER and (more := connected.recv(HEADER - len(head))):
            head += more
        return head[3:4] == bytes([SETTINGS]) and head[4:] == bytes(5)
    return False


@contextlib.contextmanager
def _connected(host: str, port: int, *, tls: bool) -> Iterator[socket.socket]:
    with socket.create_connection((host, port), PATIENCE) as plain:
        if not tls:
            yield plain
            return
        # The certificate does not matter: nothing is sent.
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        with context.wrap_socket(plain, server_hostname=host) as wrapped:
            yield wrapped
