"""Tests that events are delivered in order in spite of failures, and that lost events are counted."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from yunikorn_webhook import Webhook
from yunikorn_webhook.courier import Courier, Retries

from yunikorn.api import Context, Event
from yunikorn_testing import EventSinkContract, MakeScheduler, application, ask, node

HANGS = 60
"""Timeout in seconds after which a waiting test fails."""


class TestWebhook(EventSinkContract):
    """Contract test of event sinks; the port has no server, so that all requests fail."""

    sink = Webhook(
        "http://127.0.0.1:9/", {"X-Token": "t"}, retries=1, first_wait=0.0, patience=0.0, timeout=0.5
    )


class Server:
    """HTTP server that records events, and answers with the given status codes, then with 200."""

    def __init__(self, *statuses: int) -> None:
        self.bodies: queue.Queue[list[dict[str, Any]]] = queue.Queue()
        self.headers: dict[str, str] = {}
        left, server = list(statuses), self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.headers = dict(self.headers)
                status = left.pop(0) if left else 200
                self.send_response(status)
                self.end_headers()
                if status == 200:
                    server.bodies.put(body)

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()

    def events(self, count: int) -> list[str]:
        """Return the object ids of the next events, in order of arrival."""
        found: list[str] = []
        while len(found) < count:
            found += [event["objectID"] for event in self.bodies.get(timeout=HANGS)]
        return found

    def close(self) -> None:
        """Stop the server."""
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


@pytest.fixture
def serve() -> Iterator[Any]:
    """Return a factory of servers."""
    made: list[Server] = []

    def make(*statuses: int) -> Server:
        made.append(Server(*statuses))
        return made[-1]

    yield make
    for server in made:
        server.close()


def opened(server: Server, report: Any = lambda *said: None, **options: Any) -> Webhook:
    """Return an opened webhook without delays between retries."""
    sink = Webhook(server.url, **{"first_wait": 0.0, "patience": HANGS, **options})
    sink.opened(Context("", lambda: 0, report=report))
    return sink


def events(count: int, start: int = 0) -> list[Event]:
    """Return `count` events, numbered from `start`."""
    return [Event("APP", f"app-{number}") for number in range(start, start + count)]


def test_events_arrive_in_order_with_their_headers(serve: Any) -> None:
    server = serve()
    sink = opened(server, batch=4, headers={"Authorization": "Bearer abc"})
    sink.send(events(10))
    assert server.events(10) == [f"app-{number}" for number in range(10)]
    sink.closed()
    assert server.headers["Authorization"] == "Bearer abc"
    assert server.headers["Content-Type"] == "application/json"
    assert (sink.counts.delivered, sink.counts.dropped, sink.counts.waiting) == (10, 0, 0)


@pytest.mark.parametrize("status", [500, 503, 429])
def test_failed_delivery_is_retried(status: int, serve: Any) -> None:
    server = serve(status, status, status)
    sink = opened(server)
    sink.send(events(2))
    assert server.events(2) == ["app-0", "app-1"]
    sink.closed()
    assert (sink.counts.delivered, sink.counts.retries) == (2, 3)


def test_batch_is_dropped_after_the_last_retry_and_the_next_is_delivered(
    serve: Any,
) -> None:
    reported: list[tuple[str, object]] = []
    server = serve(500, 500, 500)
    sink = opened(server, lambda *failure: reported.append(failure), retries=2, batch=1)
    sink.send(events(2))
    assert server.events(1) == ["app-1"]
    sink.closed()
    assert (sink.counts.delivered, sink.counts.dropped, sink.counts.retries) == (1, 1, 2)
    ((operation, what),) = reported
    assert operation == "delivering events"
    assert "1 were dropped so far: tried 3 times: HTTP 500" in str(what)


def test_refused_delivery_is_not_retried(serve: Any) -> None:
    server = serve(400)
    sink = opened(server, batch=1)
    sink.send(events(2))
    assert server.events(1) == ["app-1"]
    sink.closed()
    assert (sink.counts.delivered, sink.counts.dropped, sink.counts.retries) == (1, 1, 0)


def test_scheduler_does_not_block_and_dropped_events_are_counted() -> None:
    gate, entered = threading.Event(), threading.Event()
    got: list[str] = []

    def post(batch: Any) -> None:
        entered.set()
        assert gate.wait(HANGS)
        got.extend(event.object_id for event in batch)

    courier = Courier(post, lambda *said: None, 5, 2, Retries(0, 0.0, 0.0))
    courier.start()
    courier.take(events(2))
    assert entered.wait(HANGS)
    courier.take(events(10, start=2))
    assert (courier.counts.waiting, courier.counts.dropped) == (5, 7)
    gate.set()
    courier.stop(HANGS)
    assert got == [f"app-{number}" for number in range(5)]
    assert (courier.counts.delivered, courier.counts.dropped, courier.counts.waiting) == (5, 7, 0)


def test_retry_delays_grow_up_to_the_maximum() -> None:
    retries = Retries(10, 0.5, 30.0)
    assert [retries.wait(tried) for tried in range(1, 10)] == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert retries.wait(10_000) == 30


def test_close_is_bounded_in_time(serve: Any) -> None:
    server = serve(*[500] * 1000)
    sink = opened(server, first_wait=3600.0, longest_wait=3600.0, patience=0.0)
    sink.send(events(3))
    sink.closed()
    # The batch in delivery may be dropped after `closed` returns; it is counted in any case.
    courier = sink._courier
    assert courier is not None
    courier._thread.join(HANGS)
    assert (sink.counts.delivered, sink.counts.dropped) == (0, 3)


@pytest.mark.parametrize("url", ["", "example.org", "ftp://example.org", "http://"])
def test_invalid_url_is_rejected(url: str) -> None:
    with pytest.raises(ValueError, match="expected http://"):
        Webhook(url)


def test_all_events_of_a_cluster_are_delivered(scheduler: MakeScheduler, serve: Any) -> None:
    server = serve()
    options = json.dumps({"name": "webhook", "url": server.url})
    root = '{"name": "root", "submitacl": "*", "queues": [{"name": "default"}]}'
    config = (
        f'{{"partitions": [{{"name": "default", "queues": [{root}]}}], "events": {{"sinks": [{options}]}}}}'
    )
    cluster = scheduler(config, node("n1", vcore=1), plugins=[Webhook])
    cluster.submit(application("app"), ask(vcore=1))
    cluster.run()
    cluster.close()
    found: list[dict[str, Any]] = []
    while not server.bodies.empty():
        found += server.bodies.get_nowait()
    assert {event["objectID"] for event in found} >= {"app", "n1"}
    (placed,) = [event for event in found if event["eventChangeDetail"] == "APP_ALLOC"]
    assert (placed["objectID"], placed["resource"]) == ("app", {"vcore": 1000})
