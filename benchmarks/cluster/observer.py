"""Observer of pods: a process of its own that notes when a watch reports pods as created and as bound.

Both times are of the same watch and of the monotonic clock, so the delay of the watch cancels out.
"""

from __future__ import annotations

import http.client
import multiprocessing
import ssl
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import msgspec

from benchmarks.failure import BenchmarkFailure
from tests.kubernetes.cluster import Cluster

HOUR = 3600
"""Seconds after which a watch ends."""


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Event(msgspec.Struct):
    type: str
    object: _Pod


Note = tuple[str, str, float]
"""Name of a pod, its node or an empty text, and the time in seconds."""


class _Watch:
    """Watch of all pods that continues where the server has ended it."""

    def __init__(self, sender: Connection, version: str) -> None:
        self._sender, self._version = sender, version
        self._decoder = msgspec.json.Decoder(_Event)
        self._seen: set[tuple[str, bool]] = set()
        self.is_lost = False
        """True once the server no longer has the changes that follow."""

    def follow(self, connection: http.client.HTTPSConnection, token: str) -> None:
        """Send a list of notes for each piece of the watch, until the server ends it.

        The server ends the watch of a client that is too slow, as on a busy machine.
        """
        path = f"/api/v1/pods?watch=1&resourceVersion={self._version}&timeoutSeconds={HOUR}"
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        rest = b""
        while piece := response.read1(1 << 20):
            now = time.monotonic()
            *lines, rest = (rest + piece).split(b"\n")
            notes = [note for line in lines if (note := self._note(self._decoder.decode(line), now))]
            if notes:
                self._sender.send(notes)

    def _note(self, event: _Event, now: float) -> Note | None:
        """Return a note of a pod that is new, or bound for the first time."""
        if event.type == "ERROR":
            self.is_lost = True
            return None
        self._version = event.object.metadata.resource_version
        name, node = event.object.metadata.name, event.object.spec.node_name
        if event.type == "DELETED":
            self._seen -= {(name, False), (name, True)}
        elif (name, bool(node)) not in self._seen:
            self._seen.add((name, bool(node)))
            return name, node, now
        return None


def observe(sender: Connection, url: str, token: str, ca: str, version: str) -> None:
    """Send notes of all changes after `version`, for as long as the server has them."""
    address = urlsplit(url)
    context = ssl.create_default_context(cafile=ca)
    assert address.hostname is not None
    watch = _Watch(sender, version)
    while not watch.is_lost:
        connection = http.client.HTTPSConnection(
            address.hostname, address.port, timeout=HOUR, context=context
        )
        watch.follow(connection, token)
        connection.close()
    sender.close()


class Observer:
    """Times of pods since the start of the observer; a context manager that ends its process."""

    def __init__(self, cluster: Cluster) -> None:
        """Create an observer that begins with the present state of the cluster."""
        version = cluster.kubectl.request("GET", "/api/v1/pods", limit="1")["metadata"]["resourceVersion"]
        spawning = multiprocessing.get_context("spawn")
        self._receiver, sender = spawning.Pipe(duplex=False)
        arguments = (sender, cluster.url, cluster.token, str(Path(cluster.ca)), version)
        self._process = spawning.Process(target=observe, args=arguments, daemon=True)
        self._process.start()
        sender.close()
        self._changed = threading.Condition()
        self._is_over = False
        self.created: dict[str, float] = {}
        """Times of creation by the name of the pod."""
        self.bound: dict[str, float] = {}
        """Times of binding."""
        self.nodes: dict[str, str] = {}
        """Nodes of bound pods."""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            while True:
                notes: list[Note] = self._receiver.recv()
                with self._changed:
                    for name, node, at in notes:
                        self._note(name, node, at)
                    self._changed.notify_all()
        except (EOFError, OSError):
            with self._changed:
                self._is_over = True
                self._changed.notify_all()

    def _note(self, name: str, node: str, at: float) -> None:
        self.created.setdefault(name, at)
        if node:
            self.bound[name] = at
            self.nodes[name] = node

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()
        self._reader.join()
        self._receiver.close()

    def wait_until_created(self, count: int, timeout: float) -> None:
        """Wait until so many pods have been created. Raises `BenchmarkFailure`."""
        self._wait("created", self.created, count, timeout)

    def wait_until_bound(self, count: int, timeout: float) -> None:
        """Wait until so many pods have been bound. Raises `BenchmarkFailure`."""
        self._wait("bound", self.bound, count, timeout)

    def _wait(self, what: str, times: dict[str, float], count: int, timeout: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or len(times) >= count, timeout)
            if len(times) < count:
                why = "the watch has ended" if self._is_over else f"after {timeout:g} s"
                raise BenchmarkFailure(f"{len(times)} of {count} pods are {what}: {why}")
