"""The door through which a service leaves a recording of all its input and output, for `yunikorn replay`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from yunikorn.api import Service, hookimpl
from yunikorn_commands.extras import importing_extra
from yunikorn_commands.path_types import SERVICE_FILE
from yunikorn_service.option_values import parse_bytes
from yunikorn_service.service_door import CoreParts, ServiceDoor, option

if TYPE_CHECKING:
    from yunikorn_service.recording.recording_writer import RecordingWriter

_log = logging.getLogger("yunikorn.service")


class RecordingDoor(ServiceDoor):
    """Record incoming messages."""

    name = "record"

    def __init__(self, file: Path, size: int | None) -> None:
        self._file, self._size = file, size
        self._writer: RecordingWriter | None = None
        self._core: Any = None

    @classmethod
    def flags(cls) -> Sequence[click.Option]:
        """Return the file and its size."""
        return (
            option(
                "--record",
                type=SERVICE_FILE,
                metavar="FILE",
                help="Record incoming messages in FILE, for `replay`.",
            ),
            option(
                "--record-size",
                metavar="SIZE",
                callback=parse_bytes,
                help=(
                    "Rename a recording of this size, such as 1Gi, to FILE.1, FILE.2 ..., and continue in a"
                    " new file."
                ),
            ),
        )

    @classmethod
    def of_flags(cls, values: Mapping[str, Any], _: object) -> Self | None:
        """Return the recording of `--record`."""
        file, size = values["record"], values["record_size"]
        if file is None:
            if size is not None:
                raise click.BadParameter("needs --record FILE", param_hint="--record-size")
            return None
        return cls(file, size)

    def prepare(self, parts: CoreParts) -> None:
        """Open the file, and let the core be a scheduler that records its calls; raises `UsageError`."""
        with importing_extra("grpc", "for --record"):
            from yunikorn_service.recording.recording_scheduler import RecordingScheduler
            from yunikorn_service.recording.recording_writer import RecordingWriter
        self._writer = RecordingWriter(self._file, _log.error, self._size)
        parts.make = partial(RecordingScheduler, self._writer)

    async def start(self, service: Service) -> str:
        """Keep the core, whose thread alone may write to the recording."""
        self._core = service.core
        return ""

    async def reload(self) -> None:
        """Continue in a new file, if the present one was renamed."""
        writer = self._writer
        if self._core is not None and writer is not None:
            self._core.threaded.notify(lambda core: writer.reopen(core.clock.now()))

    def closed(self) -> None:
        """Close the file, after the end of the core."""
        if self._writer is not None:
            self._writer.close()


@hookimpl
def yunikorn_doors() -> list[type[ServiceDoor]]:
    """Return the recording."""
    return [RecordingDoor]
