"""Routes of events: shapes, ids, limits, streams, slow readers and Server-Sent Events."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import attrs
import httpx
import pytest
from starlette.types import ASGIApp, Message

from tests.core.kit import RM
from tests.rest.kit import Rest
from yunikorn.accounting.event_batch import EventBatch
from yunikorn.api import Event
from yunikorn.clock import ManualClock
from yunikorn.event_types import EventChange, EventDetail, EventType
from yunikorn.framework.registry import Registry
from yunikorn.interface.scheduler import Scheduler
from yunikorn.resources import Resource
from yunikorn_rest import event_json, event_streams
from yunikorn_rest.app import rest_app
from yunikorn_rest.encoding import json_pieces
from yunikorn_rest.event_json import line_of
from yunikorn_rest.event_store import EventStore
from yunikorn_rest.event_streams import CHUNK, CHUNKS, CLOSED, LARGE, EventHub, StreamLimits
from yunikorn_rest.metrics import families
from yunikorn_rest.routes.all_routes import ENDPOINTS

PATIENCE = 30.0
"""Seconds after which a test counts as hanging."""
FIRST = {"InstanceUUID": "uuid"}


class RestContext:
    """The routes over a store that a test fills."""

    def __init__(self, capacity: int = 1000, **limits: int) -> None:
        self.store = EventStore("uuid", capacity)
        self.hub = EventHub(self.store, lambda: 5, StreamLimits(**limits))
        self.rest = Rest(RM())
        self.app: ASGIApp = rest_app(attrs.evolve(self.rest.context, events=self.hub), ENDPOINTS)
        self.rest.app = self.app

    def add(self, *ids: int) -> None:
        """Append one batch of events with these ids."""
        self.store.append(EventBatch([Event("NODE", str(number), timestamp=number + 1) for number in ids]))


@pytest.fixture
def site() -> RestContext:
    return RestContext()


def record(number: int) -> dict[str, Any]:
    return {"type": 3, "objectID": str(number), "timestampNano": number + 1, "resource": {}}


# -- shapes --------------------------------------------------------------------------------------------

ALLOCATED = Event(
    "APP",
    "app-1",
    "uuid-7",
    change="ADD",
    detail="APP_ALLOC",
    resource=Resource({"vcore": 100, "memory": 0, "hugepages-2Mi": 2}),
    timestamp=1_700_000_000_123_456_789,
    application_id="app-1",
    queue="root.a",
    node_id="n1",
)


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (
            ALLOCATED,
            '{"type":2,"objectID":"app-1","timestampNano":1700000000123456789,"eventChangeType":2,'
            '"eventChangeDetail":200,"referenceID":"uuid-7","resource":{"resources":'
            '{"hugepages-2Mi":{"value":2},"memory":{},"vcore":{"value":100}}}}',
        ),
        (
            Event("NODE", "n1", message="schedulable: <true>", change="SET", detail="NODE_SCHEDULABLE"),
            '{"type":3,"objectID":"n1","message":"schedulable: \\u003ctrue\\u003e","eventChangeType":1,'
            '"eventChangeDetail":302,"resource":{}}',
        ),
        (
            Event("QUEUE", "root.a", change="REMOVE"),
            '{"type":4,"objectID":"root.a","eventChangeType":3,"resource":{}}',
        ),
        (Event("PLUGIN", "p", resource=Resource({})), '{"type":1000,"objectID":"p","resource":{}}'),
        (Event("unknown", ""), '{"resource":{}}'),
    ],
)
def test_record_is_as_in_yunikorn(event: Event, text: str) -> None:
    assert line_of(event) == f"{text}\n".encode()


def test_details_of_a_record() -> None:
    own = {
        "rmID": "rm",
        "partition": "gpu",
        "applicationID": "app-1",
        "queueName": "root.a",
        "nodeID": "n1",
    }
    plain = json.loads(line_of(ALLOCATED))
    assert json.loads(line_of(ALLOCATED, ("rm", "gpu"))) == {**plain, **own}
    assert line_of(Event("PLUGIN", "p"), ("", "")) == line_of(Event("PLUGIN", "p"))


def test_details_on_request(site: RestContext) -> None:
    event = Event("REQUEST", "ask", "app", reason="Unschedulable", application_id="app", queue="root.a")
    site.store.append(EventBatch([event], source=("rm", "default")))
    plain = {"type": 1, "objectID": "ask", "referenceID": "app", "resource": {}}
    own = {"rmID": "rm", "partition": "default", "applicationID": "app", "queueName": "root.a"}
    for _ in range(2):
        assert site.rest.json("events/batch")["EventRecords"] == [plain]
        (found,) = site.rest.json("events/batch?details")["EventRecords"]
        assert found == {**plain, **own, "reason": "Unschedulable"}

    async def scenario(connect: Connect) -> None:
        client = connect("events/stream?count=1&details=1")
        assert await client.lines(2) == [FIRST, found]

    with_clients(site, scenario)


def test_record_is_the_shape_of_the_openapi_document() -> None:
    shape = event_json.EventRecord(
        2,
        "app-1",
        "",
        ALLOCATED.timestamp,
        2,
        200,
        "uuid-7",
        event_json.Amounts(
            {name: event_json.Quantity(amount) for name, amount in (ALLOCATED.resource or {}).items()}
        ),
    )
    assert json.loads("".join(json_pieces(shape.resource.resources["vcore"]))) == {"value": 100}
    plain = {key: value for key, value in json.loads(line_of(ALLOCATED)).items() if key != "resource"}
    found = json.loads("".join(json_pieces(attrs.evolve(shape, resource=event_json.Amounts()))))
    assert {key: value for key, value in found.items() if key != "resource"} == plain


def test_every_type_change_and_detail_has_a_number() -> None:
    assert set(event_json.TYPES) == set(EventType)
    assert set(event_json.CHANGES) == set(EventChange)
    assert set(event_json.DETAILS) >= set(EventDetail)
    others = {name: code for name, code in event_json.DETAILS.items() if name != EventDetail.APP_STARTING}
    assert len(set(others.values())) == len(others)


def test_an_application_that_starts_is_running_and_says_that_it_starts(site: RestContext) -> None:
    def record_of(detail: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(line_of(Event("APP", "app", change="SET", detail=detail)))
        return found

    running = record_of("APP_RUNNING")
    assert running["eventChangeDetail"] == 206
    assert record_of("APP_STARTING") == {**running, "designState": "Starting"}


@pytest.mark.parametrize(
    ("message", "size"),
    [("x" * 1024, 1024), ("x" * 1025, 1024), ("ä" * 512, 1024), ("ä" * 513, 1023), ("ä", 2)],
)
def test_message_is_cut_to_its_size_in_bytes(message: str, size: int) -> None:
    found = event_json.cut(message)
    assert len(found.encode()) == size
    assert found == message or found.endswith("...")


# -- batches -------------------------------------------------------------------------------------------


def test_batch_has_the_ids_and_records_from_the_start_on(site: RestContext) -> None:
    assert site.rest.json("events/batch") == {**FIRST, "LowestID": 0, "HighestID": 0, "EventRecords": None}
    site.add(0, 1, 2)
    site.add(3)
    whole = {**FIRST, "LowestID": 0, "HighestID": 3, "EventRecords": [record(number) for number in range(4)]}
    assert site.rest.json("events/batch") == whole
    assert site.rest.get("events/batch").text == json.dumps(whole, separators=(",", ":")) + "\n"
    assert site.rest.json("events/batch?start=2&count=1")["EventRecords"] == [record(2)]
    assert site.rest.json("events/batch?start=3&count=9")["EventRecords"] == [record(3)]
    assert site.rest.json("events/batch?start=4")["EventRecords"] is None
    assert site.rest.json("events/batch?start=18446744073709551615")["EventRecords"] is None


def test_batch_after_the_oldest_events_were_forgotten() -> None:
    site = RestContext(capacity=20)
    site.add(*range(7))
    for number in range(7, 25):
        site.add(number)
    found = site.rest.json("events/batch")
    assert found == {**FIRST, "LowestID": 5, "HighestID": 24, "EventRecords": None}
    found = site.rest.json("events/batch?start=5&count=3")["EventRecords"]
    assert found == [record(number) for number in (5, 6, 7)]


def test_size_of_a_batch_is_limited_without_a_notice() -> None:
    site = RestContext(capacity=5 * CHUNK, records=CHUNK + 5)
    site.add(*range(5 * CHUNK))
    for query in ("", "?count=1000000", "?start=3"):
        found = site.rest.json(f"events/batch{query}")["EventRecords"]
        start = 3 if "start" in query else 0
        assert found == [record(number) for number in range(start, start + CHUNK + 5)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("count=0", '0 is not a valid value for "count"'),
        ("count=000", '0 is not a valid value for "count"'),
        ("count=xyz", 'strconv.ParseUint: parsing "xyz": invalid syntax'),
        ("count=-1", 'strconv.ParseUint: parsing "-1": invalid syntax'),
        ("count=%2B1", 'strconv.ParseUint: parsing "+1": invalid syntax'),
        ("count=%22", 'strconv.ParseUint: parsing "\\"": invalid syntax'),
        ("start=1.5", 'strconv.ParseUint: parsing "1.5": invalid syntax'),
        (
            "start=18446744073709551616",
            'strconv.ParseUint: parsing "18446744073709551616": value out of range',
        ),
        (f"start={'9' * 5000}", f'strconv.ParseUint: parsing "{"9" * 5000}": value out of range'),
        ("start=x&count=y", 'strconv.ParseUint: parsing "y": invalid syntax'),
    ],
)
def test_invalid_parameter(query: str, message: str, site: RestContext) -> None:
    assert site.rest.error(f"events/batch?{query}") == (400, message)


def test_routes_without_a_store() -> None:
    rest = Rest(RM())
    rest.app = rest_app(attrs.evolve(rest.context, events=None), ENDPOINTS)
    for path in ("events/batch?count=x", "events/stream?count=x"):
        assert rest.error(path) == (500, "Event tracking is disabled")


def test_batch_is_compressed_once(site: RestContext) -> None:
    site.add(*range(100))
    answer = site.rest.get("events/batch", accept_encoding="gzip")
    assert answer.headers.get_list("content-encoding") == ["gzip"]
    assert len(answer.json()["EventRecords"]) == 100


def test_events_of_a_scheduler() -> None:
    store = EventStore("uuid")
    rm = RM(scheduler=Scheduler(Registry.load(third_party=False), ManualClock(7), event_receiver=store))
    rest = Rest(rm)
    rest.app = rest_app(attrs.evolve(rest.context, events=EventHub(store, lambda: 0)), ENDPOINTS)
    rm.node("n1", vcore=4)
    rm.app("app", user="ann")
    rm.ask("app", vcore=1)
    rm.schedule()
    found = rest.json("events/batch")["EventRecords"]
    one = {"resources": {"vcore": {"value": 1}}}
    asked = {"type": 2, "objectID": "app", "timestampNano": 7, "eventChangeType": 2, "eventChangeDetail": 201}
    assert {**asked, "referenceID": "ask", "resource": one} in found
    (uuid,) = rm.running
    placed = {"type": 3, "objectID": "n1", "timestampNano": 7, "eventChangeType": 2, "eventChangeDetail": 303}
    assert {**placed, "referenceID": uuid, "resource": one} in found


# -- streams -------------------------------------------------------------------------------------------


class Client:
    """A client of a stream; reads only when it is asked to, if it is `slow`."""

    def __init__(self, app: ASGIApp, path: str, headers: Mapping[str, str], host: str, slow: bool) -> None:
        self.room = asyncio.Event()
        if not slow:
            self.room.set()
        self.gone = asyncio.Event()
        self.status = 0
        self.headers: dict[str, str] = {}
        self.received: asyncio.Queue[bytes] = asyncio.Queue()
        where, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": "GET",
            "path": f"/ws/v1/{where}",
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": (host, 1),
        }
        self.task = asyncio.ensure_future(app(scope, self._receive, self._send))

    async def _receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            return
        await self.room.wait()
        for line in message["body"].splitlines(keepends=True):
            self.received.put_nowait(line)

    async def line(self) -> str:
        """Return the next line without its end."""
        async with asyncio.timeout(PATIENCE):
            return (await self.received.get()).decode().removesuffix("\n")

    async def lines(self, number: int) -> list[Any]:
        """Return the JSON objects of the next lines."""
        return [json.loads(await self.line()) for _ in range(number)]

    async def texts(self, number: int) -> list[str]:
        """Return the next lines."""
        return [await self.line() for _ in range(number)]

    async def end(self) -> None:
        """Disconnect, and wait for the end of the stream."""
        self.gone.set()
        self.room.set()
        await asyncio.wait_for(self.task, PATIENCE)


Connect = Callable[..., Client]


def with_clients(site: RestContext, scenario: Callable[[Connect], Awaitable[None]]) -> None:
    """Run a scenario with a function that opens streams; all are ended at the end, and leave nothing."""

    async def run() -> None:
        clients: list[Client] = []

        def connect(
            path: str = "events/stream", host: str = "1.1.1.1", slow: bool = False, **headers: str
        ) -> Client:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            clients.append(Client(site.app, path, named, host, slow))
            return clients[-1]

        await scenario(connect)
        for client in clients:
            await client.end()
        assert site.hub.streams == []
        assert site.store._wakers == ()

    asyncio.run(run())


def test_stream_begins_with_the_instance_and_continues_with_events(site: RestContext) -> None:
    async def scenario(connect: Connect) -> None:
        site.add(0, 1, 2)
        fresh, history, all_held = (
            connect(),
            connect("events/stream?count=2"),
            connect("events/stream?count=99"),
        )
        assert await fresh.lines(1) == [FIRST]
        assert await history.lines(3) == [FIRST, record(1), record(2)]
        assert await all_held.lines(4) == [FIRST, record(0), record(1), record(2)]
        thread = threading.Thread(target=site.add, args=(3, 4))
        thread.start()
        site.hub._notice()
        for client in (fresh, history, all_held):
            assert await client.lines(2) == [record(3), record(4)]
            assert client.status == 200
            assert client.headers["content-type"] == "application/json; charset=UTF-8"
            assert "content-encoding" not in client.headers
        thread.join()

    with_clients(site, scenario)


def test_history_beyond_the_store_is_all_that_it_has() -> None:
    # YuniKorn 1.9 sends no history in this case.
    site = RestContext(capacity=3)
    site.add(*range(4))
    site.add(4)

    async def scenario(connect: Connect) -> None:
        assert await connect("events/stream?count=10").lines(4) == [FIRST, record(2), record(3), record(4)]

    with_clients(site, scenario)


def test_events_of_another_thread_arrive_once_and_in_order() -> None:
    site, number = RestContext(capacity=10_000), 3 * LARGE

    def work() -> None:
        for first in range(0, LARGE, 5):
            site.add(*range(first, first + 5))
        site.add(*range(LARGE, number))

    async def scenario(connect: Connect) -> None:
        clients = [connect(accept_encoding="gzip") for _ in range(4)]
        for client in clients:
            assert await client.lines(1) == [FIRST]
        await asyncio.to_thread(work)
        for client in clients:
            assert await client.lines(number) == [record(each) for each in range(number)]
            assert client.received.empty()

    with_clients(site, scenario)


def test_streams_are_limited_in_total_and_for_each_address() -> None:
    site = RestContext(streams=5, per_host=2)

    async def refused(client: Client) -> bool:
        await client.task
        body = json.loads(b"".join(client.received.get_nowait() for _ in range(client.received.qsize())))
        return client.status == 503 and body["message"] == "Too many streaming connections"

    async def scenario(connect: Connect) -> None:
        hosts = ("a", "a", "b", "b")
        clients = [connect(host=host) for host in hosts]
        for client in clients:
            await client.lines(1)
        assert await refused(connect(host="a"))
        # The slot is checked before the parameters, as in YuniKorn.
        assert await refused(connect("events/stream?count=x", host="a"))
        last = connect(host="c")
        await last.lines(1)
        assert await refused(connect(host="d"))
        assert [stream.host for stream in site.hub.streams] == ["a", "a", "b", "b", "c"]
        transport = httpx.ASGITransport(site.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as asking:
            dump = (await asking.get("/debug/fullstatedump")).json()
        assert dump["eventStreams"][4] == {"Name": "c", "CreatedAt": "1970-01-01T00:00:00.000000005Z"}
        await clients[0].end()
        assert await connect(host="d").lines(1) == [FIRST]
        assert site.hub.figures()[families.EVENT_STREAMS_REFUSED] == 3

    with_clients(site, scenario)


def test_invalid_count_of_a_stream(site: RestContext) -> None:
    assert site.rest.error("events/stream?count=x") == (400, 'strconv.ParseUint: parsing "x": invalid syntax')
    assert site.hub.streams == []


def test_reader_that_is_too_slow_is_told_what_it_missed() -> None:
    site = RestContext(capacity=50)

    async def scenario(connect: Connect) -> None:
        site.add(*range(3))
        slow, quick = connect("events/stream?count=3", slow=True), connect()
        assert await quick.lines(1) == [FIRST]
        for first in range(3, 103, 10):
            site.add(*range(first, first + 10))
            assert await quick.lines(10) == [record(number) for number in range(first, first + 10)]
        slow.room.set()
        found = await slow.lines(2)
        assert found[0] == FIRST
        assert found[1]["status_code"] == 200
        assert found[1]["message"] == CLOSED
        assert (
            found[1]["description"] == f"{CLOSED}: 53 events were missed, because they were read too slowly"
        )
        await asyncio.wait_for(slow.task, PATIENCE)
        assert site.hub.streams[0].host == "1.1.1.1"
        assert len(site.hub.streams) == 1
        figures = site.hub.figures()
        wanted = (families.EVENTS, families.EVENTS_STORED, families.EVENTS_CAPACITY, families.EVENTS_MISSED)
        assert [figures[one] for one in wanted] == [103, 50, 50, 53]

    with_clients(site, scenario)


def test_thousand_streams_share_one_store() -> None:
    site, every = RestContext(streams=1000, per_host=1000), [record(number) for number in range(50)]

    async def scenario(connect: Connect) -> None:
        clients = [connect("events/stream?count=50", slow=number % 2 == 1) for number in range(1000)]
        for number in range(5):
            site.add(*range(10 * number, 10 * number + 10))
            await asyncio.sleep(0)
        for client in clients:
            client.room.set()
        for client in clients:
            assert (await client.lines(51))[1:] == every
        # Each event was encoded once, and no stream has a queue.
        assert len(site.hub._chunks) == 5 <= CHUNKS

    with_clients(site, scenario)


def test_encoded_events_are_kept_within_bounds(site: RestContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_streams, "CHUNKS", 3)
    for number in range(20):
        site.add(number)
    assert len(site.rest.json("events/batch")["EventRecords"]) == 20
    assert len(site.hub._chunks) == 3


def test_streams_end_with_a_record_when_the_service_stops(site: RestContext) -> None:
    async def scenario(connect: Connect) -> None:
        clients = [connect(), connect(accept="text/event-stream")]
        assert await clients[0].lines(1) == [FIRST]
        site.hub.end_all()
        (last,) = await clients[0].lines(1)
        assert last == {"status_code": 200, "message": CLOSED, "description": CLOSED}
        for client in clients:
            await asyncio.wait_for(client.task, PATIENCE)
        site.add(1)  # without any stream to wake

    with_clients(site, scenario)


def test_core_does_not_notice_that_the_event_loop_has_ended(site: RestContext) -> None:
    async def forget() -> None:
        site.hub.open("host", 0)

    asyncio.run(forget())
    site.add(0)
    site.add(1)


# -- Server-Sent Events --------------------------------------------------------------------------------


def message(number: int) -> list[str]:
    text = json.dumps(record(number), separators=(",", ":"))
    return [f"id: uuid:{number}", f"data: {text}", ""]


BEGIN = ["retry: 3000", "event: instance", 'data: {"InstanceUUID":"uuid"}', ""]


def test_browser_receives_messages_with_ids(site: RestContext) -> None:
    async def scenario(connect: Connect) -> None:
        site.add(0, 1)
        client = connect("events/stream?count=1", accept="text/event-stream")
        assert await client.texts(7) == [*BEGIN, *message(1)]
        site.add(2)
        assert await client.texts(3) == message(2)
        assert client.headers["content-type"] == "text/event-stream"
        assert client.headers["cache-control"] == "no-cache"
        site.hub.end_all()
        assert (await client.texts(3))[0] == "event: closed"

    with_clients(site, scenario)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ("uuid:3", [*BEGIN, *message(4)]),
        ("uuid:4", BEGIN),
        ("uuid:0", [*BEGIN, "event: missed", 'data: {"missed":1}', "", *message(2)]),
        ("uuid:5", BEGIN),
        ("other:1", BEGIN),
        ("uuid:-1", BEGIN),
        ("uuid:" + "9" * 50, BEGIN),
        ("x", BEGIN),
    ],
)
def test_browser_that_reconnects_continues(seen: str, expected: Iterable[str]) -> None:
    site = RestContext(capacity=3)
    site.add(0, 1)
    site.add(2, 3, 4)

    async def scenario(connect: Connect) -> None:
        client = connect(accept="text/event-stream", last_event_id=seen)
        texts = list(expected)
        assert await client.texts(len(texts)) == texts

    with_clients(site, scenario)


def test_browser_receives_comments_while_nothing_happens(
    site: RestContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_streams, "HEARTBEAT", 0.001)

    async def scenario(connect: Connect) -> None:
        client = connect(accept="text/event-stream")
        assert await client.texts(8) == [*BEGIN, ":", "", ":", ""]

    with_clients(site, scenario)
