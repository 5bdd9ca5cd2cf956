"""Logging of failed TLS handshakes, which gRPC reports on standard error only.

gRPC has no API for connections that were never established. At the log level INFO, its library writes a line
to standard error for each of them, among lines about other things. A service that uses TLS reads these lines,
logs the failed handshakes, and passes on all lines that are not from gRPC.
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
"""Log level at which gRPC reports failed handshakes."""
OFTEN = 10
"""Number of failures per reason that are all logged; later ones are logged when their number doubles."""
REASONS = 100
"""Maximum number of reasons that are counted separately."""
PATIENCE = 1.0
"""Seconds to wait for the last lines when the logging ends."""

_OF_GRPC = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w./-]+:\d+\] ")
_NOTHING_SAID = ": Invalid certificate verification context"
"""End of lines about handshakes that failed before a certificate was checked."""
_FAILED = re.compile(r"\] Handshake failed with error (?:\w+: )?(?:error:\w+:[\w ]*:\w*:)?(.*)")


class Handshakes:
    """Logger of failed handshakes, fed with the lines of standard error."""

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()

    def take(self, line: str) -> bool:
        """Process a line of standard error; returns False if the line is not from gRPC."""
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
    """Log failed handshakes of this process while the context is active.

    The standard error of the process (descriptor 2) is read by a thread here. `sys.stderr` bypasses that
    thread, because the traceback of a crash must not wait for a thread. Without standard error (`2>&-`) there
    is no log to write to, and gRPC writes to the null device.
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
        # A child process that still runs may keep the write end of the pipe open.
        reader.join(PATIENCE)


def _occupy(descriptor: int) -> None:
    """Open the null device as this descriptor if closed; gRPC would write to the next opened file."""
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
