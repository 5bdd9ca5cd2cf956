"""TLS handshakes that fail, in the log: gRPC says so on standard error only.

gRPC has no way to be asked about connections that never came about. Its library writes a line to standard
error for each of them, if it is asked for information; so does it about much else. A service that uses TLS
reads these lines, logs failed handshakes, and passes on what is not gRPC's.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import logging
import os
import re
import sys
import threading
from collections import Counter
from collections.abc import Iterator

from yunikorn.errors import printable

_log = logging.getLogger("yunikorn.grpc")

VERBOSITY = "INFO"
"""The level of gRPC at which failed handshakes are written."""
OFTEN = 10
"""Failures for one reason that are all logged; after these, at each doubling."""
REASONS = 100
"""Reasons that are counted apart."""
PATIENCE = 1.0
"""Seconds for the last lines at the end."""

_OF_GRPC = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w./-]+:\d+\] ")
_NOTHING_SAID = ": Invalid certificate verification context"
"""The end of lines about handshakes that did not get as far as a certificate."""
_FAILED = re.compile(r"\] Handshake failed with error (?:\w+: )?(?:error:\w+:[\w ]*:\w*:)?(.*)")


class Handshakes:
    """Logs failed handshakes out of the lines of gRPC."""

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()

    def take(self, line: str) -> bool:
        """Take a line of standard error; returns False for one that is not gRPC's."""
        if not _OF_GRPC.match(line):
            return False
        failed = _FAILED.search(line)
        if failed is None:
            _log.debug("the library of gRPC: %s", line.partition("] ")[2])
        else:
            self._failed(failed[1].removesuffix(_NOTHING_SAID).strip())
        return True

    def _failed(self, reason: str) -> None:
        if reason not in self._times and len(self._times) >= REASONS:
            reason = "other reasons"
        self._times[reason] += 1
        times = self._times[reason]
        if times <= OFTEN or times & (times - 1) == 0:
            counted = f" ({times} times so far)" if times > 1 else ""
            _log.warning("a TLS handshake failed: %s%s", printable(reason), counted)


@contextlib.contextmanager
def handshakes_logged() -> Iterator[None]:
    """Log failed handshakes of this process, for as long as this holds.

    Standard error of the process goes through here, and that of Python past it: what Python writes when it
    crashes must not wait for a thread. Without standard error (`2>&-`) there is no log to write to, and gRPC
    writes to the null device.
    """
    before = sys.stderr
    if before is None:
        _occupy(2)
        yield
        return
    kept = os.dup(2)
    reading, writing = os.pipe()
    before.flush()
    sys.stderr = io.TextIOWrapper(
        os.fdopen(os.dup(kept), "wb", 0), errors="backslashreplace", line_buffering=True, write_through=True
    )
    os.dup2(writing, 2)
    os.close(writing)
    faulthandler.enable(sys.stderr)
    reader = threading.Thread(target=_read, args=(reading, kept), name="yunikorn-handshakes", daemon=True)
    reader.start()
    try:
        yield
    finally:
        faulthandler.disable()
        os.dup2(kept, 2)
        sys.stderr, ours = before, sys.stderr
        ours.close()
        # A child process that still runs may keep the other end open.
        reader.join(PATIENCE)


def _occupy(descriptor: int) -> None:
    """Open the null device as this descriptor if it is closed: gRPC would write to the next file opened."""
    try:
        os.fstat(descriptor)
    except OSError:
        opened = os.open(os.devnull, os.O_WRONLY)
        if opened != descriptor:
            os.dup2(opened, descriptor)
            os.close(opened)


def _read(reading: int, kept: int) -> None:
    handshakes = Handshakes()
    with open(reading, encoding="utf-8", errors="backslashreplace") as lines, os.fdopen(kept, "wb", 0) as out:
        for line in lines:
            if not handshakes.take(line.rstrip("\n")):
                out.write(line.encode("utf-8", "backslashreplace"))
