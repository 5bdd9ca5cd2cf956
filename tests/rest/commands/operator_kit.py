"""Test kit of the commands for a running scheduler: the command line against a REST interface in process."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from tests.core.kit import RM, configuration, queue
from tests.rest.kit import Rest
from yunikorn.clock import SECOND

Run = Callable[..., tuple[int, str, str]]
Reply = Callable[[httpx.Request], httpx.Response]


def answered(monkeypatch: pytest.MonkeyPatch, reply: Reply) -> list[str]:
    """Answer all requests by a function; returns the list of the paths with queries."""
    asked: list[str] = []

    def handle(_: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        asked.append(request.url.raw_path.decode())
        return reply(request)

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", handle)
    return asked


def through(rest: Rest) -> Reply:
    """Return the replies of a REST interface."""

    def reply(request: httpx.Request) -> httpx.Response:
        headers = {**request.headers, "accept-encoding": "identity", "host": "localhost:9080"}
        found = rest.request(request.method, request.url.raw_path.decode(), headers, request.read())
        return httpx.Response(found.status_code, headers=found.headers, content=found.content)

    return reply


def small_cluster() -> Rest:
    """A cluster of three nodes with two applications, one of which waits for a part."""
    return Rest(small_rm())


def small_rm() -> RM:
    """Return the resource manager of the small cluster."""
    rm = RM(configuration(queue("a"), queue("b", queue("c"))))
    rm.clock.set(SECOND)
    for number in range(3):
        rm.node(f"n{number}", vcore=4000, memory=8 << 30)
    rm.app("run", "root.a", user="ann")
    rm.app("wait", "root.b.c", user="bob")
    rm.ask("run", "task", 2, vcore=1500, memory=3 << 29)
    rm.ask("wait", "big", 3, vcore=4000)
    rm.schedule()
    return rm
