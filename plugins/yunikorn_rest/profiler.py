"""Profiles of this process: time by function, the stacks of all threads, and allocated memory.

Time is sampled. A thread looks at the stacks of all others a hundred times a second, and adds to each stack
the time since the last look, and the processor time that its thread has used since then.

A look needs the interpreter's lock, so it happens where a thread lets others run, which would mostly be where
it waits. Two things prevent that. The interpreter meanwhile interrupts threads after a tenth of a millisecond
instead of five. And the processor time of a thread that is seen waiting was used before; it is added to the
next stack in which the thread is seen at work.

Profiles in the format of pprof: a gzipped protobuf message, `profile.proto` of github.com/google/pprof.

Only two kinds of fields occur in this format, numbers and blocks of bytes. They are written here, so that the
extra `web` needs no protobuf library.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import sys
import threading
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Iterable, Sequence
from types import CodeType, FrameType
from typing import Final

import attrs

from yunikorn.clock import MILLISECOND, SECOND

CONTENT_TYPE: Final = "application/octet-stream"

_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _TEXTS = 1, 2, 4, 5, 6
_DURATION, _PERIOD_TYPE, _PERIOD, _DEFAULT_TYPE = 10, 11, 12, 14
"""Numbers of fields of the message `Profile`; those of its parts are at their use."""


@attrs.frozen
class StackFrame:
    """A place in the code."""

    function: str
    file: str
    line: int = 0
    first_line: int = 0
    """Line of the definition of the function."""


@attrs.frozen
class ValueType:
    """Meaning of a value of all samples, such as `cpu` in `nanoseconds`."""

    name: str
    unit: str


class ProfileWriter:
    """Collects samples, and writes them as a profile."""

    def __init__(self, types: Sequence[ValueType], default: str = "") -> None:
        """`types` are those of the values of each sample; `default` is the name of the one that is shown."""
        self._texts: dict[str, int] = {"": 0}
        self._functions: dict[tuple[str, str], int] = {}
        self._locations: dict[StackFrame, int] = {}
        self._parts: list[bytes] = [_block(_SAMPLE_TYPE, self._type(one)) for one in types]
        if default:
            self._parts.append(_number(_DEFAULT_TYPE, self._text(default)))

    def add(self, stack: Iterable[StackFrame], values: Sequence[int], **labels: str) -> None:
        """Add a sample: its stack, innermost frame first, and a value for each type."""
        places = b"".join(_varint(self._location(frame)) for frame in stack)
        text = _block(1, places) + _block(2, b"".join(map(_varint, values)))
        for key, label in labels.items():
            text += _block(3, _number(1, self._text(key)) + _number(2, self._text(label)))
        self._parts.append(_block(_SAMPLE, text))

    def set_period(self, kind: ValueType, period: int, duration: int) -> None:
        """Set the distance of two samples, and the duration of the profile (ns)."""
        self._parts.append(_block(_PERIOD_TYPE, self._type(kind)))
        self._parts.append(_number(_PERIOD, period) + _number(_DURATION, duration))

    def data(self) -> bytes:
        """Return the profile, compressed: readers expect gzip, whatever HTTP adds."""
        texts = (_block(_TEXTS, text.encode("utf-8", "replace")) for text in self._texts)
        return gzip.compress(b"".join((*self._parts, *texts)), mtime=0)

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def _type(self, kind: ValueType) -> bytes:
        return _number(1, self._text(kind.name)) + _number(2, self._text(kind.unit))

    def _location(self, frame: StackFrame) -> int:
        known = self._locations.get(frame)
        if known is None:
            known = self._locations[frame] = len(self._locations) + 1
            line = _number(1, self._function(frame)) + _number(2, frame.line)
            self._parts.append(_block(_LOCATION, _number(1, known) + _block(4, line)))
        return known

    def _function(self, frame: StackFrame) -> int:
        key = (frame.function, frame.file)
        known = self._functions.get(key)
        if known is None:
            known = self._functions[key] = len(self._functions) + 1
            name = self._text(frame.function)
            text = _number(1, known) + _number(2, name) + _number(3, name)
            text += _number(4, self._text(frame.file)) + _number(5, frame.first_line)
            self._parts.append(_block(_FUNCTION, text))
        return known


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _block(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


PERIOD = 10 * MILLISECOND
"""Time between two samples (ns)."""
DEEPEST = 256
"""Maximum number of frames of a stack; the outermost ones are left out."""
SWITCH_INTERVAL = 0.0001
"""Seconds after which the interpreter interrupts a thread while a profile is taken."""
WAITS = {
    ("selectors", "select"),
    ("threading", "wait"),
    ("threading", "_wait_for_tstate_lock"),
    ("concurrent.futures.thread", "_worker"),
}
"""Module and name of functions in which threads wait."""
PRESENCE = 0.5
"""Seconds after which a profile notices that the client has gone."""

Stack = tuple[tuple[CodeType, int], ...]
"""Code and line of each frame, innermost first."""


def stack_of(frame: FrameType | None) -> Stack:
    """Return the stack that ends in a frame."""
    found: list[tuple[CodeType, int]] = []
    while frame is not None and len(found) < DEEPEST:
        found.append((frame.f_code, frame.f_lineno or 0))
        frame = frame.f_back
    return tuple(found)


def frames_of(stack: Stack) -> list[StackFrame]:
    """Return a stack as a profile has it, with the names of functions."""
    return [StackFrame(code.co_qualname, code.co_filename, line, code.co_firstlineno) for code, line in stack]


def stacks() -> dict[str, Stack]:
    """Return the stacks of all threads, by the name of the thread."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return {
        f"{names.get(ident, '?')} ({ident})": stack_of(frame)
        for ident, frame in sys._current_frames().items()
    }


@attrs.define
class Spent:
    """Time spent in one stack."""

    samples: int = 0
    cpu: int = 0
    """Processor time (ns)."""
    wall: int = 0
    """Time (ns), waiting included."""


class Sampler:
    """Samples the stacks of all threads, in a thread of its own, between `start` and `stop`."""

    def __init__(self, stopwatch: Callable[[], int], cpu: Callable[[int], int | None] | None = None) -> None:
        """`cpu` returns the processor time of a thread (ns), or None if it is unknown."""
        self._stopwatch, self._cpu_of = stopwatch, cpu or thread_cpu
        self._spent: dict[tuple[str, Stack], Spent] = {}
        self._cpu: dict[int, int] = {}
        self._begun = self._latest = stopwatch()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="yunikorn-profile", daemon=True)

    def start(self) -> None:
        """Begin to sample."""
        self._begun = self._latest = self._stopwatch()
        self._thread.start()

    def end(self) -> None:
        """End the sampling, without waiting for the thread."""
        self._end.set()

    def stop(self) -> bytes:
        """End the sampling, and return the profile."""
        self.end()
        self._thread.join()
        types = [ValueType("samples", "count"), CPU, ValueType("wall", "nanoseconds")]
        writer = ProfileWriter(types, "cpu" if any(one.cpu for one in self._spent.values()) else "wall")
        for (name, stack), spent in self._spent.items():
            writer.add(frames_of(stack), (spent.samples, spent.cpu, spent.wall), thread=name)
        writer.set_period(CPU, PERIOD, self._latest - self._begun)
        return writer.data()

    def _run(self) -> None:
        more = True
        while more:
            more = not self._end.wait(PERIOD / SECOND)
            self.sample()

    def sample(self) -> None:
        """Look at all threads once, except at this one."""
        now = self._stopwatch()
        passed, self._latest = now - self._latest, now
        frames = sys._current_frames()
        for thread in threading.enumerate():
            frame = frames.get(thread.ident or 0)
            if frame is None or thread is self._thread:
                continue
            spent = self._spent.setdefault((thread.name, stack_of(frame)), Spent())
            spent.samples += 1
            spent.wall += passed
            spent.cpu += self._cpu_since(thread.native_id, is_waiting=waits(frame))

    def _cpu_since(self, native_id: int | None, *, is_waiting: bool) -> int:
        """Return the processor time of a thread since it was last seen at work (ns)."""
        used = None if native_id is None else self._cpu_of(native_id)
        if used is None or native_id is None:
            return 0
        before = self._cpu.setdefault(native_id, used)
        if is_waiting:
            return 0
        self._cpu[native_id] = used
        return max(0, used - before)


CPU = ValueType("cpu", "nanoseconds")


def waits(frame: FrameType) -> bool:
    """Return True if a thread whose innermost frame this is waits, or has nothing to do."""
    return (frame.f_globals.get("__name__"), frame.f_code.co_name) in WAITS


def thread_cpu(native_id: int) -> int | None:
    """Return the processor time of a thread (ns), or None if the system does not tell.

    Linux derives the number of a thread's clock from the thread's id, and refuses one that has ended.
    `time.pthread_getcpuclockid` would crash for such a thread; files of /proc would be slow, because a system
    call that lets other threads run gets the interpreter back only milliseconds later.
    """
    if sys.platform != "linux":
        return None
    with contextlib.suppress(OSError, OverflowError):
        return time.clock_gettime_ns((~native_id << 3) | 6)
    return None


class Profiler:
    """Takes profiles of time, one at a time."""

    def __init__(self, stopwatch: Callable[[], int], second: float = 1.0) -> None:
        """`second` is the duration of a second, which tests shorten."""
        self._stopwatch, self._second = stopwatch, second
        self.busy = False
        """True while a profile is taken."""

    async def take(self, seconds: int, gone: Callable[[], Awaitable[bool]]) -> bytes:
        """Return a profile of the next seconds, fewer if `gone` says that the client has left."""
        self.busy = True
        sampler, interval = Sampler(self._stopwatch), sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_INTERVAL)
        try:
            sampler.start()
            left = seconds * self._second
            while left > 0 and not await gone():
                pause = min(left, PRESENCE)
                await asyncio.sleep(pause)
                left -= pause
        finally:
            # At once: the loop may end before the thread is waited for.
            sampler.end()
            try:
                data = await asyncio.shield(asyncio.to_thread(sampler.stop))
            finally:
                sys.setswitchinterval(interval)
                self.busy = False
        return data


def thread_profile() -> bytes:
    """Return the stacks of all threads as a profile, with the value 1 for each thread."""
    writer = ProfileWriter([ValueType("threads", "count")])
    for name, stack in stacks().items():
        writer.add(frames_of(stack), (1,), thread=name)
    return writer.data()


def heap_profile() -> bytes:
    """Return the allocated memory by the place of the allocation; `tracemalloc` must be tracing.

    No other code runs while tracemalloc copies its records.
    """
    writer = ProfileWriter(
        [ValueType("inuse_objects", "count"), ValueType("inuse_space", "bytes")], "inuse_space"
    )
    for one in tracemalloc.take_snapshot().statistics("traceback"):
        stack = [
            StackFrame(place.filename, place.filename, place.lineno) for place in reversed(one.traceback)
        ]
        writer.add(stack, (one.count, one.size))
    return writer.data()
