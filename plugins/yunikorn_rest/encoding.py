"""JSON text of answers, in small pieces.

An answer may have a hundred megabytes, and the encoder of Python keeps the interpreter's lock for a whole
call. Therefore an object that contains others is encoded member by member. `encoded` suspends itself between
pieces, so that neither the core nor the other tasks of the event loop wait for an answer.

The text is that of Go's `encoding/json`, as far as clients can notice: compact, with sorted keys of mappings,
and with `<`, `>` and `&` escaped, so that it can be embedded in HTML.

Turns of tasks that compute in the event loop.

A task that suspends itself after each slice continues in the next cycle of the loop. Twenty of them would
make each cycle twenty slices long, and a probe waits for some cycles. So one task continues in each cycle.

Parts of a long answer on their way from the core's thread to the event loop.

The event loop turns each part into JSON text while the reading continues. So there are only a few objects at
any time: a hundred thousand would keep Python's garbage collector busy for so long that decisions wait.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

import attrs

from yunikorn.clock import MILLISECOND
from yunikorn_service.fields import ShapeField, members_of
from yunikorn_service.runtime.sliced_reads import STALLED, Stalled

SLICE = 1 * MILLISECOND
"""Time after which a task lets others run (ns)."""


class LoopTurns:
    """Turns of the tasks of one event loop."""

    def __init__(self, stopwatch: Callable[[], int]) -> None:
        """Measure time with `stopwatch` (ns)."""
        self._stopwatch = stopwatch
        self._lock = asyncio.Lock()

    def begin(self) -> int:
        """Return the time until which a task may compute that begins now."""
        return self._stopwatch() + SLICE

    def is_over(self, until: int) -> bool:
        """Return True if a task has to wait for its next turn."""
        return self._stopwatch() >= until

    async def next(self) -> int:
        """Let others run; returns the time until which the task may compute then."""
        async with self._lock:
            await asyncio.sleep(0)
        return self.begin()


PIECE = 32 << 10
"""Number of characters from which a piece is complete."""

_ESCAPES = tuple((char, f"\\u{ord(char):04x}") for char in "<>&\u2028\u2029")
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def json_pieces(value: object) -> Iterator[str]:
    """Yield the JSON text of a shape that contains no `EncodedList`."""
    for text in answer_pieces(value):
        if not isinstance(text, str):
            raise TypeError("an encoded list has no text")
        yield text


def answer_pieces(value: object) -> Iterator[str | EncodedList]:
    """Yield the JSON text of shapes, and of sequences and mappings of them, in order.

    A list that is encoded already is yielded as it is.
    """
    if isinstance(value, (list, tuple)):
        yield "["
        for index, inner in enumerate(value):
            if index:
                yield ","
            yield from answer_pieces(inner)
        yield "]"
    elif isinstance(value, EncodedList):
        yield value
    elif attrs.has(type(value)):
        yield from _shape_pieces(value)
    else:
        yield _encode(_plain(value))


@cache
def _plan(kind: Any) -> tuple[Callable[[Any], tuple[Any, ...]], tuple[ShapeField, ...]]:
    """Return a function that reads all fields of a shape, and the fields."""
    members = members_of(kind)
    read = attrgetter(*(member.attribute for member in members))
    return (read if len(members) > 1 else lambda shape: (read(shape),)), members


def _shape_pieces(shape: Any) -> Iterator[str | EncodedList]:
    kind: Any = type(shape)
    read, fields = _plan(kind)
    plain: dict[str, Any] = {}
    nested: list[tuple[str, object]] = []
    for value, field in zip(read(shape), fields, strict=True):
        if not value and field.is_omitted(value):
            continue
        if field.nested and value is not None:
            nested.append((field.name, value))
        else:
            plain[field.name] = value if type(value) in _SIMPLE else _plain(value)
    text = _encode(plain)
    if not nested:
        yield text
        return
    yield text[:-1] if plain else "{"
    for index, (name, value) in enumerate(nested):
        yield f"{',' if plain or index else ''}{_encode(name)}:"
        yield from answer_pieces(value)
    yield "}"


_SIMPLE = frozenset((str, int, bool))


def _plain(value: object) -> object:
    """Return a value with plain dictionaries, whose keys are sorted; whole floats become integers."""
    if type(value) in _SIMPLE:
        return value
    if isinstance(value, Mapping):
        return {key: _plain(value[key]) for key in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def to_bytes(text: str) -> bytes:
    """Return JSON text in UTF-8, with the characters escaped that Go's encoder escapes.

    They occur only inside strings. A lone surrogate, which no encoding has, becomes `?`.
    """
    for char, escape in _ESCAPES:
        if char in text:
            text = text.replace(char, escape)
    return text.encode("utf-8", "replace")


class PieceWriter:
    """Collects JSON text in pieces of bytes."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self._waiting: list[str] = []
        self._size = 0

    def write(self, text: str | EncodedList) -> None:
        """Add text, or a list that is encoded already."""
        if isinstance(text, EncodedList):
            self.flush()
            self.pieces.extend(text.writer.pieces)
            return
        self._waiting.append(text)
        self._size += len(text)
        if self._size >= PIECE:
            self.flush()

    def flush(self) -> None:
        """Complete the current piece."""
        if self._waiting:
            self.pieces.append(to_bytes("".join(self._waiting)))
            self._waiting, self._size = [], 0


class EncodedList:
    """JSON text of a list."""

    def __init__(self) -> None:
        self.writer = PieceWriter()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, part: object) -> Iterator[None]:
        """Add the text of an element, with a pause after each piece of text."""
        self.writer.write("," if self._length else "[")
        self._length += 1
        for text in answer_pieces(part):
            self.writer.write(text)
            yield

    def end(self) -> None:
        """Complete the list."""
        self.writer.write("]" if self._length else "[]")
        self.writer.flush()


async def encoded(value: object, turns: LoopTurns) -> Sequence[bytes]:
    """Return the JSON text of an answer with a final newline, in pieces, made in turns."""
    writer = PieceWriter()
    until = turns.begin()
    for text in answer_pieces(value):
        writer.write(text)
        if turns.is_over(until):
            until = await turns.next()
    writer.write("\n")
    writer.flush()
    return writer.pieces


T = TypeVar("T")

COMPLETE = object()
"""Part that completes a list."""
MOST = 100
"""Number of parts that wait for the event loop."""
HEAVIEST = 1000
"""Number of objects in these parts."""


class AnswerLists:
    """Lists of one answer, filled by a reading in the core's thread and encoded in the event loop."""

    def __init__(self, turns: LoopTurns) -> None:
        self._turns = turns
        self._loop = asyncio.get_running_loop()
        self._some = asyncio.Event()
        self._waiting: deque[tuple[str | EncodedList, object, int]] = deque()
        self._put = 0
        """Number of objects that the reading has passed on."""
        self._taken = 0
        """Number of those that the event loop has encoded."""
        self._lists: dict[str, EncodedList] = {}
        self._is_over = False

    def put(
        self, part: object, into: str | EncodedList = "", weight: int = 1
    ) -> Generator[Stalled | None, None, None]:
        """Add a part of `weight` objects to the list `into`; stalls while too many wait. Used by the reading.

        The list is one of the answer, by name, or a list inside of a later part, which `COMPLETE` completes.
        """
        self._put += weight
        self._waiting.append((into, part, weight))
        if len(self._waiting) == 1:
            self._loop.call_soon_threadsafe(self._some.set)
        while self._waiting and (len(self._waiting) >= MOST or self._put - self._taken >= HEAVIEST):
            yield STALLED
        yield None

    @property
    def waiting(self) -> int:
        """Number of parts that wait for the event loop."""
        return len(self._waiting)

    def list(self, name: str = "") -> EncodedList:
        """Return a list, which is complete after `encode`. Used by the event loop."""
        found = self._lists.get(name)
        if found is None:
            found = self._lists[name] = EncodedList()
            if self._is_over:
                found.end()
        return found

    async def encode(self, reading: asyncio.Future[T]) -> T:
        """Encode parts until the reading has ended, and return its result."""
        reading.add_done_callback(lambda _: self._some.set())
        until = self._turns.begin()
        while True:
            while self._waiting:
                into, part, weight = self._waiting.popleft()
                self._taken += weight
                target = into if isinstance(into, EncodedList) else self.list(into)
                if part is COMPLETE:
                    target.end()
                    continue
                for _ in target.add(part):
                    if self._turns.is_over(until):
                        until = await self._turns.next()
            if reading.done():
                break
            self._some.clear()
            if not (self._waiting or reading.done()):
                await self._some.wait()
        self._is_over = True
        for one in self._lists.values():
            one.end()
        return reading.result()
