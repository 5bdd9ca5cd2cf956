"""Profiles under the paths of Go's pprof, decoded by the protobuf library."""

from __future__ import annotations

import asyncio
import gzip
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tests.core.kit import RM
from tests.rest.kit import Rest
from yunikorn.clock import stopwatch
from yunikorn_rest.profiler import Profiler, ProfileWriter, Sampler, StackFrame, ValueType, thread_cpu
from yunikorn_rest.routes.profiling_routes import MISSING

MESSAGES = {
    "ValueType": "type:1 unit:2",
    "Label": "key:1 str:2",
    "Sample": "location_id:1* value:2* label:3*Label",
    "Line": "function_id:1 line:2",
    "Location": "id:1 line:4*Line",
    "Function": "id:1 name:2 system_name:3 filename:4 start_line:5",
    "Profile": "sample_type:1*ValueType sample:2*Sample location:4*Location function:5*Function"
    " string_table:6*s duration_nanos:10 period_type:11ValueType period:12 default_sample_type:14",
}
"""Numbers of the fields of the published profile.proto; `*` is a repeated field, and numbers have no type."""


def profile_class() -> Any:
    """Return a class that decodes profiles."""
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="p", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for text in fields.split():
            field_name, _, rest = text.partition(":")
            number = int("".join(filter(str.isdigit, rest)))
            kind = rest.lstrip("0123456789").lstrip("*")
            field = message.field.add(name=field_name, number=number)
            field.label = field.LABEL_REPEATED if "*" in rest else field.LABEL_OPTIONAL
            field.type = (
                field.TYPE_STRING if kind == "s" else field.TYPE_MESSAGE if kind else field.TYPE_INT64
            )
            if field.type == field.TYPE_MESSAGE:
                field.type_name = f".p.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Profile"))


class Decoded:
    """A profile with its texts."""

    def __init__(self, data: bytes) -> None:
        self.whole = profile_class().FromString(gzip.decompress(data))
        texts = self.whole.string_table
        functions = {one.id: one for one in self.whole.function}
        places = {one.id: one.line[0] for one in self.whole.location}
        self.types = [(texts[one.type], texts[one.unit]) for one in self.whole.sample_type]
        self.default = texts[self.whole.default_sample_type]
        self.samples = [
            (
                [texts[functions[places[place].function_id].name] for place in sample.location_id],
                list(sample.value),
                {texts[label.key]: texts[label.str] for label in sample.label},
            )
            for sample in self.whole.sample
        ]
        self.functions = {
            texts[one.name]: (texts[one.filename], one.start_line) for one in self.whole.function
        }


@pytest.fixture
def rest() -> Rest:
    """The REST interface of an empty scheduler."""
    return Rest(RM())


def test_a_profile_has_all_that_was_added() -> None:
    writer = ProfileWriter([ValueType("cpu", "nanoseconds"), ValueType("wall", "nanoseconds")], "wall")
    outer, inner = StackFrame("outer", "a.py", 7, 5), StackFrame("innér", "b.py", 300, 200)
    writer.add([inner, outer], (1 << 40, 0), thread="core")
    writer.add([outer], (3, 128))
    writer.set_period(ValueType("cpu", "nanoseconds"), 10_000_000, 5)
    found = Decoded(writer.data())
    assert found.types == [("cpu", "nanoseconds"), ("wall", "nanoseconds")]
    assert found.default == "wall"
    assert found.samples == [
        (["innér", "outer"], [1 << 40, 0], {"thread": "core"}),
        (["outer"], [3, 128], {}),
    ]
    assert found.functions == {"outer": ("a.py", 5), "innér": ("b.py", 200)}
    assert [one.line[0].line for one in found.whole.location] == [300, 7]
    assert (found.whole.period, found.whole.duration_nanos) == (10_000_000, 5)


@pytest.fixture
def waiting() -> Iterator[threading.Thread]:
    """A thread that waits in a function of its own."""
    ready, end = threading.Event(), threading.Event()

    def waits_for_the_test() -> None:
        ready.set()
        end.wait()

    thread = threading.Thread(target=waits_for_the_test, name="waiting")
    thread.start()
    ready.wait()
    yield thread
    end.set()
    thread.join()


def test_time_is_added_to_the_stacks_of_threads(waiting: threading.Thread) -> None:
    times = iter((0, 10, 30))
    sampler = Sampler(lambda: next(times, 30))
    sampler.sample()
    sampler.sample()
    sampler.start()
    found = Decoded(sampler.stop())
    assert found.types == [("samples", "count"), ("cpu", "nanoseconds"), ("wall", "nanoseconds")]
    samples = [(stack, values) for stack, values, labels in found.samples if labels == {"thread": "waiting"}]
    assert len(samples) == 1
    (stack, (count, _, wall)) = samples[0]
    assert any("waits_for_the_test" in name for name in stack[:4])
    assert count >= 3
    assert wall == 30
    assert all(
        "Sampler" not in stack[0] for stack, _, labels in found.samples if "profile" in labels["thread"]
    )


def test_processor_time_belongs_to_work_not_to_the_wait_after_it(waiting: threading.Thread) -> None:
    used = {threading.main_thread().native_id: 0, waiting.native_id: 0}
    sampler = Sampler(lambda: 0, lambda native_id: used.get(native_id))
    sampler.sample()
    used[waiting.native_id] = 5
    sampler.sample()  # the thread waits: its time was used before
    used[threading.main_thread().native_id] = 7
    sampler.sample()
    sampler.start()
    found = Decoded(sampler.stop())
    assert sum(values[1] for _, values, labels in found.samples if labels["thread"] == "waiting") == 0
    assert sum(values[1] for _, values, labels in found.samples if labels["thread"] == "MainThread") == 7


def test_the_interpreter_lets_others_run_more_often_only_meanwhile() -> None:
    before = sys.getswitchinterval()

    async def scenario() -> float:
        profiler = Profiler(stopwatch)
        found: list[float] = []

        async def gone() -> bool:
            found.append(sys.getswitchinterval())
            return True

        await profiler.take(1, gone)
        return found[0]

    assert asyncio.run(scenario()) < before
    assert sys.getswitchinterval() == before


def test_profile_of_time(rest: Rest, waiting: threading.Thread) -> None:
    answer = rest.get("/debug/pprof/profile?seconds=2", accept_encoding="gzip")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert "content-encoding" not in answer.headers
    assert {labels["thread"] for _, _, labels in Decoded(answer.content).samples} >= {"waiting"}


def test_one_profile_at_a_time_which_ends_with_its_client() -> None:
    async def scenario() -> None:
        profiler = Profiler(stopwatch)
        left = asyncio.Event()

        async def gone() -> bool:
            await left.wait()
            return True

        task = asyncio.create_task(profiler.take(60, gone))
        await asyncio.sleep(0)
        assert profiler.busy
        left.set()
        assert Decoded(await task).samples
        assert not profiler.busy
        task = asyncio.create_task(profiler.take(60, gone))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not profiler.busy

    asyncio.run(scenario())


def test_a_second_profile_is_refused(rest: Rest) -> None:
    rest.context.profiler.busy = True
    answer = rest.get("/debug/pprof/profile")
    assert (answer.status_code, answer.text) == (
        503,
        "a profile is being taken; there can be one at a time\n",
    )
    assert answer.headers["retry-after"] == "60"


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        ("0", 'seconds: expected a whole number from 1 on, got "0"'),
        ("x", 'seconds: expected a whole number from 1 on, got "x"'),
        ("61", '61 is not a valid value for "seconds": at most 60'),
    ],
)
def test_durations_are_checked(rest: Rest, seconds: str, message: str) -> None:
    assert rest.error(f"/debug/pprof/profile?seconds={seconds}") == (400, message)


def test_stacks_of_threads(rest: Rest, waiting: threading.Thread) -> None:
    found = Decoded(rest.get("/debug/pprof/goroutine").content)
    assert found.types == [("threads", "count")]
    stacks = {labels["thread"].partition(" ")[0]: stack for stack, values, labels in found.samples}
    assert any("waits_for_the_test" in name for name in stacks["waiting"])
    text = rest.get("/debug/pprof/goroutine?debug=1")
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    assert "waits_for_the_test" in text.text


def test_memory_is_shown_only_where_it_is_traced(rest: Rest) -> None:
    answer = rest.get("/debug/pprof/heap")
    assert answer.status_code == 501
    assert "PYTHONTRACEMALLOC" in answer.text
    tracemalloc.start(2)
    try:
        kept = [bytes(100_000)]
        found = Decoded(rest.get("/debug/pprof/heap").content)
    finally:
        tracemalloc.stop()
    assert kept
    assert found.types == [("inuse_objects", "count"), ("inuse_space", "bytes")]
    assert any(stack[0] == __file__ and values[1] >= 100_000 for stack, values, _ in found.samples)


def test_command_line(rest: Rest) -> None:
    assert rest.get("/debug/pprof/cmdline").text.split("\0") == sys.orig_argv


def test_other_profiles_are_refused_with_the_reason(rest: Rest) -> None:
    for name, reason in MISSING.items():
        answer = rest.get(f"/debug/pprof/{name}")
        assert (answer.status_code, answer.text) == (501, f"{reason}\n"), name
        assert answer.headers["x-go-pprof"] == "1"  # go tool pprof shows the text


def test_all_profiles_are_listed(rest: Rest) -> None:
    assert rest.get("/debug/pprof").headers["location"] == "/debug/pprof/"
    text = rest.get("/debug/pprof/").text
    for name in ("profile", "goroutine", "heap", "cmdline", *MISSING):
        assert name in text


@pytest.mark.skipif(sys.platform != "linux", reason="threads have clocks of their own on Linux only")
def test_processor_time_of_threads() -> None:
    used = thread_cpu(threading.get_native_id())
    assert used is not None
    assert used > 0
    assert thread_cpu((1 << 22) + 1) is None  # no thread has this number


@pytest.mark.parametrize("name", ["", "cmdline", "goroutine", "heap", *MISSING])
def test_pages_of_other_sites_cannot_read_profiles(name: str) -> None:
    answer = Rest(RM()).get(f"/debug/pprof/{name}", origin="http://other.example")
    assert "access-control-allow-origin" not in answer.headers
