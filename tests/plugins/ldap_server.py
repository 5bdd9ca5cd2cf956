"""A scripted LDAP server on a socket: binds, searches by one name, and misbehaves as told."""

from __future__ import annotations

import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import attrs

START_TLS = b"1.3.6.1.4.1.1466.20037"
BIND, SEARCH, UNBIND, EXTENDED = 0x60, 0x63, 0x42, 0x77
EQUALITY = 0xA3

Entry = tuple[str, dict[str, list[bytes]]]


def tlv(tag: int, *parts: bytes) -> bytes:
    """Encode one element of BER."""
    content = b"".join(parts)
    size = len(content)
    length = bytes([size]) if size < 128 else b"\x84" + size.to_bytes(4, "big")
    return bytes([tag]) + length + content


def elements(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Decode the elements in a content."""
    at = 0
    while at < len(content):
        tag, size, at = content[at], content[at + 1], at + 2
        if size & 0x80:
            more = size & 0x7F
            size, at = int.from_bytes(content[at : at + more], "big"), at + more
        yield tag, content[at : at + size]
        at += size


def result(tag: int, code: int = 0, message: bytes = b"") -> bytes:
    """Encode a result of an operation."""
    return tlv(tag, tlv(0x0A, bytes([code])), tlv(4), tlv(4, message))


@attrs.define
class LdapServer:
    """Script of a server, and what it received."""

    entries: dict[str, list[Entry]] = attrs.field(factory=dict)
    """Entries by the name that a search asks for."""
    password: bytes = b"secret"
    tls: ssl.SSLContext | None = None
    implicit_tls: bool = False
    silent: bool = False
    """True to answer nothing."""
    dripping: threading.Event | None = None
    """Set to send a search result one byte at a time, without ever ending, until the event is set."""
    hang_up_after: int | None = None
    """Number of operations of a connection after which the server closes it."""
    search_result: int = 0
    binds: list[tuple[bytes, bytes]] = attrs.field(factory=list)
    searches: list[bytes] = attrs.field(factory=list)
    """The encoded filters."""
    asked_for: list[list[bytes]] = attrs.field(factory=list)
    connections: int = 0
    encrypted: int = 0
    port: int = 0
    _server: Any = None

    def __enter__(self) -> LdapServer:
        script = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with suppress(OSError):
                    script.serve(self.request)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            block_on_close = False

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.dripping is not None:
            self.dripping.set()
        self._server.shutdown()
        self._server.server_close()

    def serve(self, connected: socket.socket) -> None:
        """Serve one connection until its end."""
        self.connections += 1
        while self.silent and connected.recv(4096):
            pass
        if self.implicit_tls:
            connected = self._encrypt(connected)
        done = 0
        while (message := _read(connected)) is not None:
            (_, number), (tag, content) = list(elements(message))[:2]
            if tag == UNBIND:
                break
            for answer in self._answers(tag, content):
                encoded = tlv(0x30, tlv(2, number), answer)
                if self.dripping is not None and tag == SEARCH:
                    self._drip(connected)
                connected.sendall(encoded)
            if tag == EXTENDED and self.tls is not None:
                connected = self._encrypt(connected)
            done += 1
            if done == self.hang_up_after:
                break
        connected.close()

    def _encrypt(self, connected: socket.socket) -> socket.socket:
        assert self.tls is not None
        wrapped = self.tls.wrap_socket(connected, server_side=True)
        self.encrypted += 1
        return wrapped

    def _drip(self, connected: socket.socket) -> None:
        assert self.dripping is not None
        connected.sendall(b"\x30\x84\x00\xff\xff\xff")
        while not self.dripping.wait(0.005):
            connected.sendall(b"\x00")

    def _answers(self, tag: int, content: bytes) -> list[bytes]:
        parts = list(elements(content))
        if tag == BIND:
            name, password = parts[1][1], parts[2][1]
            self.binds.append((name, password))
            return [result(0x61, 0 if password == self.password else 49, b"" if self.password else b"?")]
        if tag == EXTENDED:
            return [result(0x78, 0 if self.tls is not None else 2)]
        kind, encoded = parts[6]
        self.searches.append(tlv(kind, encoded))
        self.asked_for.append([value for _, value in elements(parts[7][1])])
        found = [one for name in _asserted(kind, encoded) for one in self.entries.get(name, ())]
        return [*map(_entry, found), result(0x65, self.search_result)]


def _entry(entry: Entry) -> bytes:
    name, attributes = entry
    encoded = [
        tlv(0x30, tlv(4, key.encode()), tlv(0x31, *(tlv(4, value) for value in values)))
        for key, values in attributes.items()
    ]
    return tlv(0x64, tlv(4, name.encode()), tlv(0x30, *encoded))


def _asserted(kind: int, encoded: bytes) -> list[str]:
    """Return the values of the equality matches in a filter."""
    if kind == EQUALITY:
        _, (_, value) = elements(encoded)
        return [value.decode()]
    if kind & 0x20:
        return [value for tag, inner in elements(encoded) for value in _asserted(tag, inner)]
    return []


def _read(connected: socket.socket) -> bytes | None:
    """Return the content of the next message, or None at the end."""
    data = b""
    while True:
        if len(data) > 1:
            size, begin = data[1], 2
            if size & 0x80:
                begin += size & 0x7F
                size = int.from_bytes(data[2:begin], "big")
            if len(data) >= begin and len(data) >= begin + size:
                return data[begin : begin + size]
        more = connected.recv(4096)
        if not more:
            return None
        data += more
