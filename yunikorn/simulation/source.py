"""The text of an input file."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from yunikorn.errors import Problem
from yunikorn.simulation.input_error import InputError

GZIP = b"\x1f\x8b"


def read_text(path: Path) -> str:
    """The whole file as text, unpacked if it is gzip; raises `InputError` when there is nothing to read.

    Bytes that are not UTF-8 (names in old trace headers) are read as replacement characters.
    """
    try:
        content = path.read_bytes()
        if content.startswith(GZIP):
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(str(path), [Problem("", f"cannot be read: {reason}")]) from error
    text = content.decode("utf-8-sig", errors="replace")
    if not text.strip():
        raise InputError(str(path), [Problem("", "is empty")])
    if "\0" in text:
        raise InputError(str(path), [Problem("", "is not text (it holds zero bytes)")])
    return text
