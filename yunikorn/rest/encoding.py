"""JSON text of answers, in small pieces.

An answer may have a hundred megabytes, and the encoder of Python keeps the interpreter's lock for a whole
call. Therefore an object that contains others is encoded member by member. `encoded` suspends itself between
pieces, so that neither the core nor the other tasks of the event loop wait for an answer.

The text is that of Go's `encoding/json`, as far as clients can notice: compact, with sorted keys of mappings,
and with `<`, `>` and `&` escaped, so that it can be embedded in HTML.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from yunikorn.clock import MILLISECOND
from yunikorn.rest.fields import members_of

PIECE = 32 << 10
"""Number of characters from which a piece is complete."""
SLICE = 1 * MILLISECOND
"""Time after which an encoding lets other tasks run (ns)."""

_ESCAPES = tuple((char, f"\\u{ord(char):04x}") for char in "<>&\u2028\u2029")
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def json_pieces(value: object) -> Iterator[str]:
    """Yield the JSON text of shapes, and of sequences and mappings of them, in order."""
    if isinstance(value, (list, tuple)):
        yield "["
        for index, inner in enumerate(value):
            if index:
                yield ","
            yield from json_pieces(inner)
        yield "]"
    elif attrs.has(type(value)):
        yield from _shape_pieces(value)
    else:
        yield _encode(_plain(value))


def _shape_pieces(shape: Any) -> Iterator[str]:
    kind: Any = type(shape)
    plain: dict[str, Any] = {}
    nested: list[tuple[str, object]] = []
    for member in members_of(kind):
        value = getattr(shape, member.attribute)
        if not value and member.omitted:
            continue
        if member.nested and value is not None:
            nested.append((member.name, value))
        else:
            plain[member.name] = _plain(value)
    text = _encode(plain)
    if not nested:
        yield text
        return
    yield text[:-1] if plain else "{"
    for index, (name, value) in enumerate(nested):
        yield f"{',' if plain or index else ''}{_encode(name)}:"
        yield from json_pieces(value)
    yield "}"


def _plain(value: object) -> object:
    """Return a value with plain dictionaries, whose keys are sorted."""
    if isinstance(value, Mapping):
        return {key: _plain(value[key]) for key in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value


def to_bytes(text: str) -> bytes:
    """Return JSON text in UTF-8, with the characters escaped that Go's encoder escapes.

    They occur only inside strings. A lone surrogate, which no encoding has, becomes `?`.
    """
    for char, escape in _ESCAPES:
        if char in text:
            text = text.replace(char, escape)
    return text.encode("utf-8", "replace")


async def encoded(value: object, stopwatch: Callable[[], int]) -> Sequence[bytes]:
    """Return the JSON text of an answer with a final newline, in pieces; `stopwatch` counts nanoseconds."""
    found: list[bytes] = []
    waiting: list[str] = []
    size, until = 0, stopwatch() + SLICE
    for text in json_pieces(value):
        waiting.append(text)
        size += len(text)
        if size >= PIECE:
            found.append(to_bytes("".join(waiting)))
            waiting, size = [], 0
        if stopwatch() >= until:
            await asyncio.sleep(0)
            until = stopwatch() + SLICE
    waiting.append("\n")
    found.append(to_bytes("".join(waiting)))
    return found
