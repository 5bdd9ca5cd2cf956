"""Files that are complete or unchanged: they get their names when their last byte is written."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO


def replace_file(file: Path, pieces: Iterable[bytes]) -> int:
    """Write a file, and give it its name when it is complete; returns its size in bytes."""
    if file.exists() and not file.is_file():  # a pipe or a device
        with file.open("wb") as stream:
            return write_pieces(pieces, stream)
    with _complete_or_absent(file) as stream:
        return write_pieces(pieces, stream)


def write_pieces(pieces: Iterable[bytes], stream: BinaryIO) -> int:
    """Write to a stream; returns the number of bytes."""
    size = 0
    for piece in pieces:
        stream.write(piece)
        size += len(piece)
    stream.flush()
    return size


@contextlib.contextmanager
def _complete_or_absent(file: Path) -> Iterator[BinaryIO]:
    try:
        handle, name = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".part", dir=file.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from error
    try:
        with open(handle, "wb") as stream:
            yield stream
        os.replace(name, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
