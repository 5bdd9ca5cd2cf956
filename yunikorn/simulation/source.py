"""Reading of input files."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from yunikorn.config.document import decode
from yunikorn.errors import ConfigError, Problem
from yunikorn.simulation.input_error import InputError

GZIP = b"\x1f\x8b"


def read_content(path: Path) -> bytes:
    """Return the content of a file, unpacked if it is gzip; raises `InputError` if unreadable or empty."""
    try:
        content = path.read_bytes()
        if content.startswith(GZIP):
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(str(path), [Problem("", f"cannot be read: {reason}")]) from error
    if not content.strip():
        raise InputError(str(path), [Problem("", "is empty")])
    return content


def trace_text(content: bytes, file: str) -> str:
    """Decode the text of a trace or `.machines` file; raises `InputError` for binary content.

    Bytes that are not UTF-8 (names in old headers) become replacement characters, which leaves all numbers
    intact.
    """
    if b"\0" in content:
        raise InputError(file, [Problem("", "is not text: it holds zero bytes")])
    return content.decode("utf-8-sig", errors="replace")


def yaml_text(content: bytes, file: str) -> str:
    """Decode a YAML file; raises `InputError` if it is neither UTF-8 nor UTF-16 with a byte order mark."""
    try:
        return decode(content)
    except ConfigError as error:
        raise InputError(file, error.problems) from error
