"""Profiles in the format of pprof: a gzipped protobuf message, `profile.proto` of github.com/google/pprof.

Only two kinds of fields occur in this format, numbers and blocks of bytes. They are written here, so that the
extra `web` needs no protobuf library.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

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
