"""Files that a command has written itself and may replace: their last line is a checksum of the others.

A file that was changed by hand, or that the command has not written, is not replaced by accident.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from yunikorn.errors import UsageError

SEAL = "# written by yunikorn; SHA-256 of the lines above: "
"""Beginning of the last line, a comment in YAML."""
_LENGTH = len(SEAL) + 64 + 1
_PIECE = 1 << 20


def is_sealed(path: Path) -> bool:
    """Return True if the file ends in the checksum of its content."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        left = path.stat().st_size - _LENGTH
        while left > 0:
            piece = file.read(min(left, _PIECE))
            if not piece:
                return False
            digest.update(piece)
            left -= len(piece)
        return file.read(_LENGTH + 1) == f"{SEAL}{digest.hexdigest()}\n".encode()


def write_sealed(path: Path, lines: Iterable[str], *, force: bool = False) -> None:
    """Write lines and their checksum; raises `UsageError`, also for an existing file that is not sealed.

    An incomplete file has another name, so that it is not mistaken for the whole. With `force` any file is
    replaced.
    """
    unfinished: Path | None = None
    try:
        if not force and path.exists() and not is_sealed(path):
            raise UsageError(
                f"{path}: exists, and is not as this command has written it: choose another name for "
                "--out, or use --force"
            )
        unfinished, file = _new_file(path)
        with file:
            file.writelines(_sealed(lines))
        unfinished.replace(path)
    except BaseException as error:
        if unfinished is not None:
            with contextlib.suppress(OSError):
                unfinished.unlink()
        if isinstance(error, OSError):
            raise UsageError(f"cannot write {path}: {error.strerror or error}") from error
        raise


def _sealed(lines: Iterable[str]) -> Iterator[str]:
    digest = hashlib.sha256()
    for line in lines:
        if line.startswith(SEAL):
            continue  # the checksum of a description that is written again
        text = f"{line}\n"
        digest.update(text.encode())
        yield text
    yield f"{SEAL}{digest.hexdigest()}\n"


def _new_file(path: Path) -> tuple[Path, IO[str]]:
    """Create a file beside `path` that no other process writes."""
    for number in itertools.count(1):
        unfinished = path.with_name(f"{path.name}.{number}.unfinished")
        with contextlib.suppress(FileExistsError):
            file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            return unfinished, os.fdopen(file, "w", encoding="utf-8", newline="\n")
    raise AssertionError("unreachable")
