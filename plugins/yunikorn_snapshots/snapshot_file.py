"""Files of snapshots: a line that describes the snapshot, and compressed rows with a checksum.

    YUNIKORN-SNAPSHOT {"format": 1, "version": "0.9.0", "time": ..., "rows": ..., ...}
    chunk: length (4 bytes), compressed MessagePack     ... until a length of 0, then SHA-256 of all before

A file is written under another name and renamed, so that half of a file is never read.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import attrs
import msgspec

from yunikorn_snapshots.snapshot_errors import MARK, SnapshotError

FORMAT = 1
ROWS_AT_ONCE = 20_000
LONGEST_HEADER = 65_536
LARGEST_CHUNK = 1 << 28
"""Largest size of a chunk, compressed or not (bytes)."""
MOST_TIMES = 50
"""Largest size of all parts without compression, as a multiple of the size of the file; real ones have 7."""
MOST_LISTS = 5
"""Largest number of rows and references for each byte of the file; real files have fewer than one."""
SPARE = 1 << 20
"""Number of bytes, and of lists, that every file may have."""
MOST_LAYOUTS = 10_000
_NO_LIST = bytes(byte for byte in range(256) if not (0x90 <= byte <= 0x9F or byte in (0xDC, 0xDD)))
"""Bytes that do not begin a list in MessagePack."""
NO_SNAPSHOT = "it is no snapshot: it does not begin with YUNIKORN-SNAPSHOT"


@attrs.frozen
class SnapshotHeader:
    """First line of a snapshot."""

    version: str
    """Version of the scheduler that wrote the snapshot."""
    time: int
    """Time of the scheduler's clock (ns)."""
    sizes: dict[str, int] = attrs.field(factory=dict)
    """Numbers of partitions, nodes, applications, allocations and pending requests, for people."""
    warnings: list[str] = attrs.field(factory=list)
    """Parts of the state that the snapshot lacks."""
    rms: list[str] = attrs.field(factory=list)
    """Ids of the resource managers."""


class SnapshotWriter:
    """Writer of one file."""

    def __init__(self, file: BinaryIO, header: SnapshotHeader) -> None:
        """Write the header."""
        self._file, self._digest = file, hashlib.sha256()
        line = json.dumps({"format": FORMAT, **attrs.asdict(header)}, separators=(",", ":"))
        self._write(MARK + line.encode() + b"\n")

    def _write(self, data: bytes) -> None:
        self._digest.update(data)
        self._file.write(data)

    def write_rows(self, rows: Iterable[list[Any]]) -> int:
        """Write rows in chunks, and return their number."""
        chunk: list[list[Any]] = []
        count = 0
        for row in rows:
            chunk.append(row)
            if len(chunk) == ROWS_AT_ONCE:
                self.write(chunk)
                count += len(chunk)
                chunk = []
        if chunk:
            self.write(chunk)
        return count + len(chunk)

    def write(self, part: Any) -> None:
        """Write one chunk."""
        try:
            packed = msgspec.msgpack.encode(part)
        except (OverflowError, UnicodeEncodeError):
            packed = msgspec.msgpack.encode(_in_full(part))
        data = zlib.compress(packed, 1)
        self._write(len(data).to_bytes(4, "big") + data)

    def close(self) -> None:
        """End the file."""
        self._write(bytes(4))
        self._file.write(self._digest.digest())


def _in_full(part: Any) -> Any:
    """Return a part of a snapshot without large numbers and texts that UTF-8 cannot express."""
    if type(part) is list:
        return [_in_full(one) for one in part]
    if type(part) is int and not -(2**63) <= part < 2**64:
        return ["int", str(part)]
    if type(part) is str:
        try:
            part.encode()
        except UnicodeEncodeError:
            return ["str", part.encode("utf-8", "surrogatepass")]
    return part


def part_of(path: Path, process: int) -> Path:
    """Return the name under which a process writes a file until it is complete."""
    return path.with_name(f".{path.name}.{process}.part")


def saved(path: Path, write: Any) -> None:
    """Let `write` fill a file under another name, and rename the file; nothing is left of a failure."""
    beside = part_of(path, os.getpid())
    try:
        with beside.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def verified(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Pass on the bytes of a file as they arrive; raise `SnapshotError` unless they are a snapshot.

    What is inside is not read, so the memory that is needed does not depend on the file.
    """
    digest, last = hashlib.sha256(), b""
    begin: bytes | None = b""
    for piece in pieces:
        if begin is not None:
            begin += piece
            if len(begin) >= len(MARK):
                _check_mark(begin)
                begin = None
        last += piece
        digest.update(last[: -digest.digest_size])
        last = last[-digest.digest_size :]
        yield piece
    _check_mark(MARK if begin is None else begin)
    if last != digest.digest():
        raise SnapshotError("its checksum is wrong: it was changed, or is incomplete")


def _check_mark(begin: bytes) -> None:
    if not begin.startswith(MARK):
        raise SnapshotError(NO_SNAPSHOT)


class SnapshotReading:
    """Reader of one file; every check that fails raises `SnapshotError`."""

    def __init__(self, file: BinaryIO) -> None:
        """Read the header."""
        self._file, self._digest = file, hashlib.sha256()
        self._left = MOST_TIMES * _size_of(file) + SPARE
        self._lists = MOST_LISTS * _size_of(file) + SPARE
        _check_mark(self._take(len(MARK)))
        line = file.readline(LONGEST_HEADER)
        self._digest.update(line)
        try:
            said = json.loads(line)
            form = said.pop("format")
            if form != FORMAT:
                raise SnapshotError(
                    f"it has format {form!r}, and this version reads format {FORMAT}: use version"
                    f" {said.get('version')} of YuniKorn, which wrote it"
                )
            self.header = msgspec.convert(said, SnapshotHeader)
        except (
            ValueError,
            KeyError,
            AttributeError,
            TypeError,
            RecursionError,
            msgspec.ValidationError,
        ) as error:
            raise SnapshotError(f"its first line cannot be read: {error}") from error

    def _take(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) != size:
            raise SnapshotError("it is truncated")
        self._digest.update(data)
        return data

    def parts(self) -> Iterator[Any]:
        """Yield the chunks; the last step checks the checksum."""
        while size := int.from_bytes(self._take(4), "big"):
            if size > LARGEST_CHUNK:
                raise SnapshotError(f"a part of it is larger than {LARGEST_CHUNK} bytes")
            yield self._unpacked(self._take(size))
        found = self._digest.digest()
        if self._file.read(len(found) + 1) != found:
            raise SnapshotError("its checksum is wrong: it was changed, or is incomplete")

    def _unpacked(self, data: bytes) -> Any:
        """Return the content of a chunk, after a check of how much memory it would take."""
        most = min(LARGEST_CHUNK, self._left)
        try:
            decompressor = zlib.decompressobj()
            packed = decompressor.decompress(data, most)
            if decompressor.unconsumed_tail or not decompressor.eof:
                raise SnapshotError(f"a part of it is larger than {most} bytes, or truncated")
            self._left -= len(packed)
            # Texts may have such bytes, too, so these are at least as many as lists.
            self._lists -= len(packed.translate(None, _NO_LIST))
            if self._lists < 0:
                raise SnapshotError("it has more objects than a file of its size can have")
            return msgspec.msgpack.decode(packed)
        except (zlib.error, msgspec.DecodeError, RecursionError) as error:
            raise SnapshotError(f"a part of it cannot be read: {error}") from error


def _size_of(file: BinaryIO) -> int:
    """Return the size of a file, and begin at its begin."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return size
