"""Scrapes of a service: one reading for all who ask, while the core decides; the route; the option."""

from __future__ import annotations

import asyncio
import gzip
import re
import subprocess
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any

import attrs
import pytest

from tests.core.kit import RM
from tests.rest.kit import DirectCore, Rest
from tests.rest.metrics.test_exposition import parsed, values
from tests.service.kit import CONFIG, CollectingCallback, work
from yunikorn.clock import Clock, ManualClock, SystemClock, stopwatch
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import RegisterResourceManagerRequest
from yunikorn.interface.scheduler import Scheduler
from yunikorn_rest import rest_door
from yunikorn_rest.app import rest_app
from yunikorn_rest.metrics.core_figures import CoreFigures
from yunikorn_rest.metrics.service_metrics import ServiceMetrics
from yunikorn_rest.routes.all_routes import ENDPOINTS
from yunikorn_service.async_scheduler import AsyncScheduler
from yunikorn_service.measurements import Measurements
from yunikorn_service.plugin_statistics import PluginStatistics
from yunikorn_service.runtime.threaded import CoreStopped, ThreadedScheduler

PATH = "/ws/v1/metrics"


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in an event loop."""

    @wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(test(*arguments, **named))

    return run


@attrs.frozen
class Inbox:
    """Inbox with fixed numbers."""

    inbox_depth: int = 3
    inbox_capacity: int = 9


# -- scrapes ---------------------------------------------------------------------------------------------


@in_loop
async def test_a_core_that_decides_is_scraped(registry: Registry) -> None:
    statistics, plugin_time = PluginStatistics(stopwatch), {("plugin", "place"): 1.5}

    def make(clock: Clock) -> Scheduler:
        return Scheduler(registry.counting(statistics), clock, measurements=Measurements(stopwatch))

    threaded = ThreadedScheduler(make, SystemClock())
    callback = CollectingCallback()
    async with AsyncScheduler(threaded) as core:
        metrics = ServiceMetrics(core.read, threaded, plugin_time, statistics)
        await core.register_resource_manager(RegisterResourceManagerRequest("rm", config=CONFIG), callback)
        await core.update(work(3000))
        counts = [0.0]
        while counts[-1] < 3000:
            found = parsed(await metrics.scrape())
            counts.append(
                values(found["yunikorn_scheduler_container_allocation_attempt_total"])["allocated",]
            )
        assert counts == sorted(counts)
        assert values(found["yunikorn_decisions_total"])[()] == 3000
        assert values(found["yunikorn_core_steps_total"])[()] >= 3000 / 256
        assert values(found["yunikorn_inbox_capacity_entries"])[()] == 1024
        rounds = found["yunikorn_scheduler_scheduling_cycle_milliseconds"]
        assert rounds.samples[-1].value >= 3000 / 256
        called = found["yunikorn_plugin_calls_total"].samples
        assert "queue-sort" in {sample.labels["kind"] for sample in called}
        assert values(found["yunikorn_plugin_seconds_total"]) == {("place", "plugin"): 1.5}
    with pytest.raises(CoreStopped):
        await metrics.scrape()


@in_loop
async def test_scrapes_at_the_same_time_read_the_core_once() -> None:
    readings: list[asyncio.Future[CoreFigures]] = []

    def read(_: object) -> Awaitable[CoreFigures]:
        readings.append(asyncio.get_running_loop().create_future())
        return readings[-1]

    metrics = ServiceMetrics(read, Inbox())
    first = asyncio.create_task(metrics.scrape())
    gone = asyncio.create_task(metrics.scrape())
    second = asyncio.create_task(metrics.scrape())
    while not readings:
        await asyncio.sleep(0)
    gone.cancel()
    await asyncio.sleep(0)
    (reading,) = readings
    reading.set_result(CoreFigures())
    assert await first == await second
    assert gone.cancelled()
    later = asyncio.create_task(metrics.scrape())
    while len(readings) < 2:
        await asyncio.sleep(0)
    readings[-1].set_result(CoreFigures())
    assert await later
    assert len(readings) == 2


@in_loop
async def test_an_error_of_a_reading_is_that_of_every_scrape_and_the_next_one_succeeds() -> None:
    answers: list[Any] = [RuntimeError("no"), CoreFigures()]

    async def read(_: object) -> CoreFigures:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        found: CoreFigures = answer
        return found

    metrics = ServiceMetrics(read, Inbox())
    first, second = await asyncio.gather(metrics.scrape(), metrics.scrape(), return_exceptions=True)
    assert [str(first), str(second)] == ["no", "no"]
    found = parsed(await metrics.scrape())
    assert values(found["yunikorn_inbox_entries"]) == {(): 3}


# -- the route -------------------------------------------------------------------------------------------


class Measured(Rest):
    """REST interface with metrics."""

    def __init__(self) -> None:
        rm = RM(
            scheduler=Scheduler(
                Registry.load(third_party=False), ManualClock(), measurements=Measurements(stopwatch)
            )
        )
        super().__init__(rm)
        core = DirectCore(rm.scheduler)
        self.metrics = ServiceMetrics(core.read, Inbox())
        self.app = rest_app(attrs.evolve(self.context, metrics=self.metrics), ENDPOINTS)


def test_the_route_has_the_content_type_of_yunikorn_and_counts_its_answers() -> None:
    rest = Measured()
    answer = rest.get(PATH)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == (
        "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
    )
    assert "etag" not in answer.headers
    found = parsed(rest.get(PATH).content)
    assert values(found["promhttp_metric_handler_requests_total"]) == {("200",): 1, ("500",): 0, ("503",): 0}
    assert values(found["promhttp_metric_handler_requests_in_flight"]) == {(): 1}


def test_the_text_is_compressed_exactly_once() -> None:
    rest = Measured()

    async def body() -> tuple[dict[str, str], bytes]:
        """Return headers and body as they are sent; a client of HTTP would decompress the body."""
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            await asyncio.Event().wait()  # the client stays connected

        scope = {
            "type": "http", "method": "GET", "path": PATH, "raw_path": PATH.encode(), "query_string": b"",
            "headers": [(b"host", b"localhost:9080"), (b"accept-encoding", b"gzip")], "root_path": "",
        }  # fmt: skip
        await rest.app(scope, receive, send)
        headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return headers, b"".join(message["body"] for message in sent[1:])

    headers, content = asyncio.run(body())
    assert headers["content-encoding"] == "gzip"
    assert gzip.decompress(content).startswith(b"# HELP yunikorn_")


def test_a_service_without_metrics_answers_how_to_get_them() -> None:
    assert Rest(RM()).error(PATH) == (404, "metrics are off: start the service with --metrics on")


@in_loop
async def test_a_core_that_has_stopped_is_counted_as_unavailable() -> None:
    async def read(_: object) -> CoreFigures:
        raise CoreStopped("the core has been stopped")

    rest = Measured()
    rest.metrics._read = read
    answer = await asyncio.to_thread(rest.get, PATH)
    assert (answer.status_code, rest.metrics._answered) == (503, {"503": 1})


# -- the option ------------------------------------------------------------------------------------------


def test_metrics_are_on_where_rest_is_served() -> None:
    assert rest_door.metrics_class(None, with_rest=True) is ServiceMetrics
    assert rest_door.metrics_class("on", with_rest=True) is ServiceMetrics
    assert rest_door.metrics_class("off", with_rest=True) is None
    assert rest_door.metrics_class(None, with_rest=False) is None


def test_metrics_need_rest() -> None:
    with pytest.raises(UsageError, match="--metrics on needs the REST interface"):
        rest_door.metrics_class("on", with_rest=False)


WITHOUT_CLIENT = """
import sys
from yunikorn_rest import rest_door

sys.modules["prometheus_client"] = None
assert rest_door.metrics_class(None, with_rest=True) is None
rest_door.metrics_class("on", with_rest=True)
"""


def test_metrics_need_their_package(run_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run_python("-c", WITHOUT_CLIENT)
    assert done.returncode == 1
    assert re.search(r"prometheus_client is not installed.*yunikorn\[web\]", done.stderr)
