"""A server between the scheduler and the API server that disturbs what the scheduler sees.

Events of watches come twice, late, in another order, and again long after; watches are cut. Changes are
refused, and answers to bindings are lost. Nothing is disturbed that an API server guarantees: each event
arrives in the end, and before a bookmark that includes it. So a watch after a cut begins with the latest
events of the one before: the client may not have read all of them, and continues after the latest version.
"""

from __future__ import annotations

import http.client
import json
import queue
import random
import ssl
import threading
from collections import Counter
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

from tests.kubernetes.cluster import Cluster

TWICE, LATE, AGAIN, CUT = 0.2, 0.25, 0.05, 0.01
"""Shares of events that come twice, come late, are followed by an old one, and are followed by a cut."""
REFUSED, LOST = 0.05, 0.1
"""Shares of changes that are refused, and of bindings whose answers are lost."""
HELD = 0.1
"""Seconds after which late events come although no other event overtakes them."""
OLD = 50
"""Events of a watch that may come again."""
_SKIPPED = ("connection", "transfer-encoding", "content-length", "date", "server")
_PASSED = ("authorization", "content-type", "accept", "user-agent")


class Disorder:
    """A disturbing proxy of a cluster's API server; a context manager that ends it."""

    def __init__(self, cluster: Cluster, seed: int, *, disturbs: bool = True) -> None:
        """Create it, with the certificate of the API server; one that does not disturb notes changes only."""
        self.disturbs = disturbs
        self.random = random.Random(seed)
        self.upstream = urlsplit(cluster.url)
        self.trust = ssl.create_default_context(cafile=str(cluster.ca))
        self.counts: Counter[str] = Counter()
        """Number of disturbances by kind."""
        self.changes: list[str] = []
        """Requests for changes, without those of leases."""
        self.unread: dict[str, list[bytes]] = {}
        """Latest events of watches that were cut, by path."""
        self.is_over = threading.Event()
        proxy = self

        class Handler(_Handler):
            disorder = proxy

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cluster.ca, cluster.ca.with_suffix(".key"))
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)

    def __enter__(self) -> Disorder:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def kubeconfig(self, original: Path, path: Path) -> Path:
        """Write a kubeconfig that leads to this proxy; return its path."""
        content = json.loads(original.read_text("utf-8"))
        content["clusters"][0]["cluster"]["server"] = self.url
        path.write_text(json.dumps(content), "utf-8")
        return path

    def happens(self, kind: str, share: float) -> bool:
        """Return True for a share of all cases, and count those."""
        if not self.disturbs:
            return False
        hit = self.random.random() < share
        self.counts[kind] += hit
        return hit


class _Handler(BaseHTTPRequestHandler):
    """One connection of the scheduler."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    disorder: Disorder

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def handle(self) -> None:
        """Serve requests until the connection ends, in whatever way."""
        with suppress(OSError, http.client.HTTPException):
            super().handle()

    def _forward(self) -> None:
        disorder = self.disorder
        changes = self.command != "GET" and "/leases/" not in self.path
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else None
        if changes:
            disorder.changes.append(f"{self.command} {self.path}")
        if changes and disorder.happens("refused", REFUSED):
            self._answer(503, [("Retry-After", "1")], b'{"kind":"Status","code":503,"message":"disorder"}')
            return
        upstream = http.client.HTTPSConnection(
            str(disorder.upstream.hostname), disorder.upstream.port, timeout=60, context=disorder.trust
        )
        try:
            headers = {key: text for key, text in self.headers.items() if key.lower() in _PASSED}
            upstream.request(self.command, self.path, body, headers)
            answer = upstream.getresponse()
            if "watch=" in self.path and answer.status == 200:
                self._stream(answer)
                return
            disorder.unread.pop(urlsplit(self.path).path, None)
            content = answer.read()
            if self.path.endswith("/binding") and disorder.happens("lost", LOST):
                self.close_connection = True
                return
            kept = [(key, text) for key, text in answer.getheaders() if key.lower() not in _SKIPPED]
            self._answer(answer.status, kept, content)
        finally:
            upstream.close()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _forward

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response(status)
        for key, text in headers:
            self.send_header(key, text)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    # -- watches --------------------------------------------------------------------------------------

    def _stream(self, answer: http.client.HTTPResponse) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        arrived: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        reader = threading.Thread(target=_read, args=(answer, arrived), daemon=True)
        reader.start()
        path = urlsplit(self.path).path
        held: list[bytes] = []
        old = self.disorder.unread.pop(path, [])
        try:
            self._send([*old])
            while not self.disorder.is_over.is_set():
                try:
                    line = arrived.get(timeout=HELD)
                except queue.Empty:
                    self._send(held)
                    continue
                if not line:
                    break
                if b'"type":"BOOKMARK"' in line[:30] or b'"type":"ERROR"' in line[:30]:
                    self._send([*held, line])
                    held.clear()
                elif not self._disturb(line, held, old):
                    self.disorder.unread[path] = old
                    return
            self._send(held)
            self.wfile.write(b"0\r\n\r\n")
        finally:
            self.disorder.counts["watches"] += 1

    def _disturb(self, line: bytes, held: list[bytes], old: list[bytes]) -> bool:
        """Send an event in one way or another; return False after a cut."""
        happens = self.disorder.happens
        if happens("late", LATE):
            held.append(line)
        else:
            self._send([line, line] if happens("twice", TWICE) else [line])
            self.disorder.random.shuffle(held)
            self._send(held)
        if old and happens("again", AGAIN):
            self._send([self.disorder.random.choice(old)])
        old.append(line)
        del old[:-OLD]
        if happens("cut", CUT):
            self._send(held)
            return False
        return True

    def _send(self, lines: list[bytes]) -> None:
        """Send lines, and clear the list."""
        for line in lines:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.wfile.flush()
        lines.clear()


def _read(answer: http.client.HTTPResponse, arrived: queue.SimpleQueue[bytes]) -> None:
    with suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
        while line := answer.readline():
            arrived.put(line)
    arrived.put(b"")
