"""Input of a command: a file, or a stream that can be read only once; both are read up to a maximum size.

A stream is standard input (`-`), a pipe, or a device. It may have no end, so that it is never read without a
bound; the same bound holds for what a compressed file contains.
"""

from __future__ import annotations

import os
import stat
import sys
import zlib
from pathlib import Path
from typing import BinaryIO, TypeAlias

import attrs

from yunikorn.errors import UsageError

DASH = Path("-")
"""Path that stands for standard input."""
STANDARD_INPUT = "standard input"
MIB = 1 << 20
LARGEST = 2048 * MIB
"""Maximum size (bytes) of an input, also after decompression."""
LARGEST_CONFIG = 32 * MIB
"""Maximum size (bytes) of a configuration."""
LARGEST_DEVICE = 16 * MIB
"""Maximum size (bytes) of the content of a device such as a terminal; `/dev/zero` ends here."""
GZIP = b"\x1f\x8b"


class UnreadableInput(UsageError):
    """Input that cannot be read, with the reason."""

    def __init__(self, file: object, reason: str) -> None:
        self.file = str(file)
        self.reason = reason
        super().__init__(f"{file}: {reason}")


@attrs.frozen
class HeldInput:
    """Content of a stream; it answers the questions about a file that readers ask a path."""

    label: str
    """Name in messages."""
    content: bytes = attrs.field(repr=False)

    def __str__(self) -> str:
        return self.label

    @property
    def name(self) -> str:
        """Name of the input."""
        return Path(self.label).name

    @property
    def parent(self) -> Path:
        """Folder for files beside the input: the current one."""
        return Path()

    @property
    def suffix(self) -> str:
        """Empty: a stream has no extension."""
        return ""

    @property
    def suffixes(self) -> list[str]:
        """Empty: a stream has no extension."""
        return []

    def with_name(self, name: str) -> Path:
        """Return the path of a file beside the input."""
        return Path(name)


InputFile: TypeAlias = "Path | HeldInput"


def hold(path: Path, largest: int = LARGEST) -> InputFile:
    """Return the content of a stream, or the path of what can be read several times.

    Raises `UnreadableInput`.
    """
    if path == DASH:
        return HeldInput(STANDARD_INPUT, read_input(path, largest))
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return path  # the reader reports the reason
    return HeldInput(str(path), read_input(path, largest)) if _is_stream(mode) else path


def name_of(file: Path) -> str:
    """Return the name of an input file in messages."""
    return STANDARD_INPUT if file == DASH else str(file)


def read_input(file: InputFile, largest: int = LARGEST) -> bytes:
    """Return the content of a file, or of standard input for `-`; raises `UnreadableInput`."""
    if isinstance(file, HeldInput):
        return file.content
    if file == DASH:
        # Python has no stream if the process was started with standard input closed (`<&-`).
        if sys.stdin is None:
            raise UnreadableInput(STANDARD_INPUT, "is closed: pipe or redirect the input into the command")
        return _read(sys.stdin.buffer, STANDARD_INPUT, largest)
    try:
        with file.open("rb") as stream:
            return _read(stream, str(file), largest)
    except (OSError, ValueError) as error:
        raise UnreadableInput(file, f"cannot be read: {_reason(file, error)}") from error


def unpacked(content: bytes, file: object, largest: int = LARGEST) -> bytes:
    """Return content that may be compressed with gzip without the compression; raises `UnreadableInput`."""
    parts: list[bytes] = []
    left = largest
    try:
        while content.startswith(GZIP):
            reader = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
            parts.append(reader.decompress(content, left + 1))
            left -= len(parts[-1])
            if left < 0:
                raise UnreadableInput(file, _too_large(largest, "after decompression"))
            if not reader.eof:
                raise UnreadableInput(file, "cannot be read: the gzip file is not complete")
            content = reader.unused_data.lstrip(b"\0")
            if not content:
                return b"".join(parts)
            if not content.startswith(GZIP):
                raise UnreadableInput(file, "cannot be read: the gzip file is followed by other content")
    except zlib.error as error:
        raise UnreadableInput(file, f"cannot be read: not a gzip file ({error})") from error
    return content


def _is_stream(mode: int) -> bool:
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def _read(stream: BinaryIO, name: str, largest: int) -> bytes:
    try:
        if stat.S_ISCHR(os.fstat(stream.fileno()).st_mode):
            largest = min(largest, LARGEST_DEVICE)
    except OSError:
        pass  # a stream of a program that calls the command line, without a descriptor
    try:
        content = stream.read(largest + 1)
    except OSError as error:
        raise UnreadableInput(name, f"cannot be read: {error.strerror or error}") from error
    if len(content) > largest:
        raise UnreadableInput(name, _too_large(largest))
    return content


def _too_large(largest: int, when: str = "") -> str:
    size = " ".join(filter(None, [f"{largest // MIB} MiB", when]))
    return f"is larger than {size}, the maximum: is this the right file?"


def _reason(file: Path, error: OSError | ValueError) -> str:
    if file.is_dir():
        return "it is a folder, not a file"
    if file.is_socket():
        return "it is a socket, not a file"
    return getattr(error, "strerror", None) or str(error)
