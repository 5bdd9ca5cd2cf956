"""Audit log: every change through REST and every refused attempt, with who, what, before and after.

A change has two entries with the same id: `begun` before, `done` or `failed` after it. If the first one
cannot be written, the change is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import attrs

from yunikorn.errors import UsageError, printable
from yunikorn_rest.time_texts import in_milliseconds

_log = logging.getLogger("yunikorn.audit")

BEGUN, DONE, FAILED, REFUSED = "begun", "done", "failed", "refused"
LONGEST = 4000
"""Maximum number of characters of a text in an entry; longer ones are cut off."""


@attrs.frozen(kw_only=True)
class Action:
    """An attempt to change something, and who makes it."""

    address: str
    what: str
    """Such as `stop queue`; method and path of a request that was refused before it was understood."""
    target: Mapping[str, str] = attrs.field(factory=dict)
    """Names of the objects."""
    name: str = ""
    """Name of the credential; empty for an unknown one."""
    role: str = ""


class AuditUnavailable(Exception):
    """The audit log cannot be written, so nothing may be changed."""


class Audit:
    """Audit log of a service: the logger `yunikorn.audit`, and a file of JSON lines if there is one."""

    def __init__(self, file: Path | None, now: Callable[[], int]) -> None:
        """Open the file; raises `UsageError`. `now` returns the time (ns since 1970)."""
        self._file, self._now = file, now
        self._descriptor: int | None = None
        self._lock = asyncio.Lock()
        self._number = 0
        self.listener: Callable[[int, Mapping[str, object]], None] = lambda time, entry: None
        """Called with the time (ns) and the content of each entry."""
        if file is not None:
            try:
                self._open(file)
            except OSError as error:
                raise UsageError(
                    f"--audit-log {file}: cannot be written: {error.strerror or error}"
                ) from error

    async def begin(self, action: Action) -> int:
        """Write that a change begins; returns its id. Raises `AuditUnavailable`."""
        self._number += 1
        number = self._number
        try:
            await self._write(action, BEGUN, {"id": number})
        except OSError as error:
            _log.error("the audit log %s cannot be written: %s", self._file, error.strerror or error)
            raise AuditUnavailable(
                f"nothing was changed: the audit log cannot be written: {error.strerror or error}"
            ) from error
        return number

    async def end(self, action: Action, number: int, *, before: object, after: object, changed: bool) -> None:
        """Write the effect of a change; a failure of the file is logged, since the change is made already."""
        with self._failures_logged(action):
            more = {"id": number, "changed": changed, "before": before, "after": after}
            await self._write(action, DONE, more)

    async def fail(self, action: Action, number: int, reason: str, outcome: str) -> None:
        """Write that a change was not made: `failed` or `refused`."""
        with self._failures_logged(action):
            await self._write(action, outcome, {"id": number, "reason": reason})

    async def refuse(self, action: Action, reason: str) -> None:
        """Write a refused attempt."""
        with self._failures_logged(action):
            await self._write(action, REFUSED, {"reason": reason})

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @contextlib.contextmanager
    def _failures_logged(self, action: Action) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            text = "the audit log %s cannot be written: %s; %s of %s is missing there"
            _log.error(text, self._file, error.strerror or error, action.what, action.name or action.address)

    async def _write(self, action: Action, outcome: str, more: Mapping[str, object]) -> None:
        now = self._now()
        entry = {
            "time": in_milliseconds(now),
            "who": {"name": action.name, "role": action.role, "address": action.address},
            "what": action.what,
            "target": dict(action.target),
            "outcome": outcome,
            **more,
        }
        entry = {key: _cut(value) for key, value in entry.items() if value not in (None, {})}
        target = "".join(f" {key}={value}" for key, value in action.target.items())
        who = f"{action.name or 'unknown'} ({action.role or 'no role'}, {action.address})"
        rest = ", ".join(f"{key}: {_text(value)}" for key, value in entry.items() if key in SHOWN)
        line = f"{who}: {action.what}{target}: {outcome}{f' ({rest})' if rest else ''}"
        _log.log(logging.WARNING if outcome == REFUSED else logging.INFO, "%s", printable(line))
        self.listener(now, entry)
        if self._file is not None:
            data = json.dumps(entry, ensure_ascii=True).encode() + b"\n"
            async with self._lock:
                await asyncio.to_thread(self._append, self._file, data)

    def _append(self, file: Path, data: bytes) -> None:
        """Append a line as a whole, or nothing; raises `OSError`."""
        if self._descriptor is None or not _is_same(file, self._descriptor):
            self.close()
            self._open(file)
        descriptor = self._descriptor
        assert descriptor is not None
        size = os.fstat(descriptor).st_size
        written = self._write_all(descriptor, data)
        if written < len(data):
            os.ftruncate(descriptor, size)
            raise OSError("no space left")

    _write_all = staticmethod(os.write)

    def _open(self, file: Path) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        self._descriptor = os.open(file, flags, 0o640)


SHOWN = ("before", "after", "reason")
"""Fields of an entry that the line of the logger shows."""


def _is_same(file: Path, descriptor: int) -> bool:
    """Return True if the open file still has this name: a rotation renames or removes it."""
    try:
        named, opened = file.stat(), os.fstat(descriptor)
    except OSError:
        return False
    return (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _cut(value: object) -> object:
    if isinstance(value, str) and len(value) > LONGEST:
        return value[:LONGEST] + "..."
    if isinstance(value, dict):
        return {key: _cut(inner) for key, inner in value.items()}
    return value
