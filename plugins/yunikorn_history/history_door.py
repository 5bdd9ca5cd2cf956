"""The door through which a service records its history in a database.

Everything that reads or writes a database is imported when the door is opened, because most services have no
history.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import click

from yunikorn.api import Service, hookimpl
from yunikorn_commands.extras import importing_extra
from yunikorn_service.option_values import parse_bytes, parse_seconds
from yunikorn_service.service_door import CoreParts, ServiceDoor, option

DAY_SECONDS = 86_400
DEFAULT_TAGS = "namespace"


class HistoryDoor(ServiceDoor):
    """Record what runs in a database, for `history` and `report`."""

    name = "history"

    def __init__(self, settings: Any) -> None:
        """Create a closed door with its `HistorySettings`."""
        self._settings = settings
        self._recording: Any = None
        """`RecordingThread`, which is imported when the door is opened."""

    @classmethod
    def flags(cls) -> Sequence[click.Option]:
        """Return the database, and what it keeps for how long."""
        return (
            option(
                "--history",
                metavar="FILE-OR-URL",
                callback=_parse_target,
                help="Record what runs in the SQLite database FILE, or in PostgreSQL at postgresql://...",
            ),
            option(
                "--history-keep",
                metavar="AGE",
                callback=_parse_age,
                help="Remove history that is older, such as 90d.  [default: 400d]",
            ),
            option(
                "--history-size",
                metavar="SIZE",
                callback=parse_bytes,
                help="Remove the oldest history from a larger database, such as 2Gi.  [default: no limit]",
            ),
            option(
                "--history-tags",
                metavar="NAME[,NAME]",
                help=f"Tags of applications to keep.  [default: {DEFAULT_TAGS}]",
            ),
        )

    @classmethod
    def of_flags(cls, values: Mapping[str, Any], _: object) -> Self | None:
        """Return the history of `--history`."""
        target = values["history"]
        if target is None:
            for name in ("history_keep", "history_size", "history_tags"):
                if values[name] is not None:
                    hint = f"--{name.replace('_', '-')}"
                    raise click.BadParameter("needs --history FILE-OR-URL", param_hint=hint)
            return None
        from yunikorn_history.recorded_history import HistorySettings

        tags = DEFAULT_TAGS if values["history_tags"] is None else values["history_tags"]
        names = frozenset(filter(None, map(str.strip, tags.split(","))))
        return cls(HistorySettings(target, values["history_keep"], values["history_size"], names))

    def prepare(self, parts: CoreParts) -> None:
        """Receive the events of the core; raises `UsageError` for a database that cannot be used."""
        extra = "postgresql" if "://" in self._settings.target else "history"
        with importing_extra(extra, "for --history"):
            from yunikorn_history.recorded_history import RecordedHistory
            from yunikorn_history.recording_thread import RecordingThread
        self._recording = RecordingThread(self._settings, parts.clock)
        parts.event_receivers.append(self._recording.events)
        parts.history = RecordedHistory(
            self._settings.target, self._recording.status, self._recording.audited
        )

    async def start(self, service: Service) -> str:
        """Begin to write."""
        assert self._recording is not None
        from yunikorn_service.service import Service as RunningService

        assert isinstance(service, RunningService)
        await self._recording.start(service)
        from yunikorn_history.past_usage import credit_past_usage

        # Not now: until the process has the lease, another one may add usage.
        service.core.preparation = partial(credit_past_usage, service.core.carry_out, self._settings.target)
        return str(self._recording.shown)

    def closed(self) -> None:
        """Write the rest, after the end of the core."""
        if self._recording is not None:
            self._recording.finish()


def _parse_target(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """Return an absolute path, or an address; None for no value."""
    if value is None:
        return None
    if not value.strip():
        raise click.BadParameter("expected a file or a URL, got an empty text")
    scheme, colon, _rest = value.partition(":")
    # An address is judged when the database is opened, like that of any other command.
    return value if colon and "/" not in scheme else str(Path(value).absolute())


def _parse_age(ctx: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """Return an age such as `90d` in seconds; None for no value."""
    days = re.fullmatch(r"(\d{1,6})d", value or "")
    if days is not None and int(days[1]):
        return float(int(days[1]) * DAY_SECONDS)
    return parse_seconds(ctx, parameter, value)


@hookimpl
def yunikorn_doors() -> list[type[ServiceDoor]]:
    """Return the history."""
    return [HistoryDoor]
