"""The door through which a service records its history in a database.

Everything that reads or writes a database is imported when the door is opened, because most services have no
history. Options of the command line and the key `history` of a configuration have the same form.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import attrs
import cattrs
import click

from yunikorn.api import Service, hookimpl
from yunikorn.errors import UsageError
from yunikorn.interface.commands import CreditUsage
from yunikorn_commands.extras import importing_extra
from yunikorn_history.history_address import check_location, is_url
from yunikorn_service.option_values import NEVER, OFF, bytes_of, seconds_of
from yunikorn_service.service_door import CoreParts, ServiceDoor, option

DAY_SECONDS = 86_400
LONGEST_DAYS = 999_999
NO = ("off", "false", "no", "n")
"""Texts of false in YAML, in small letters."""
SMALLEST_SIZE = "16Mi"
"""Minimum size of a history: tables, names and the present hour of a small cluster fit well."""


@attrs.define(eq=False, kw_only=True)
class HistoryDoor(ServiceDoor):
    """Record what runs in a database, for `history` and `report`."""

    name = "history"
    path: str = ""
    """File of SQLite, which is made at the first start; `off` for none, empty for that of `--history`."""
    url: str = ""
    """Address of a PostgreSQL database, in place of a file: `postgresql://USER@HOST/DATABASE`."""
    keep: str = "400d"
    """Age of what is removed, such as `90d`, or `never`."""
    size: str = ""
    """Size of the database from which on the oldest is removed, at least 16Mi, such as `2Gi`; no limit by
    default."""
    tags: tuple[str, ...] = ("namespace",)
    """Tags of applications to keep."""
    _given: Mapping[str, Any] = attrs.field(init=False, factory=dict)
    """Options of the command line."""
    _recording: Any = attrs.field(init=False, default=None)
    """`RecordingThread`, which is imported when the door is opened; None for a closed door."""
    _target: str = attrs.field(init=False, default="")

    def __attrs_post_init__(self) -> None:
        """Raise the problems of all options, as the conversion of options does."""
        problems = []
        checks: dict[str, Callable[[], object]] = {
            "path": self._check_path,
            "url": self._check_url,
            "keep": lambda: _age_of(self.keep),
            "size": lambda: self.size and bytes_of(self.size, SMALLEST_SIZE),
        }
        for name, check in checks.items():
            try:
                check()
            except ValueError as error:
                error.add_note(cattrs.AttributeValidationNote(f"Structuring {name}", name, str))
                problems.append(error)
        if problems:
            raise cattrs.ClassValidationError("While reading a history", problems, type(self))

    @property
    def names_place(self) -> bool:
        """True unless the place of the database is left to others."""
        return bool(self.path.strip() or self.url)

    def _check_path(self) -> None:
        if not self.path.strip():
            return
        if self.path.lower() in NO and self.path != OFF:
            raise ValueError(f"got {self.path!r}: write off for no history, ./{self.path} for a file")
        if "://" in self.path:
            raise ValueError(f"expected a file, got {self.path!r}: write url for the address of a database")
        check_location(str(Path(self.path).absolute()))

    def _check_url(self) -> None:
        if self.url and self.path:
            raise ValueError("a history is in a file or in a database: leave path or url out")
        if self.url and not is_url(self.url):
            raise ValueError(f"expected postgresql://USER@HOST/DATABASE, got {self.url!r}")
        if self.url:
            check_location(self.url)

    @classmethod
    def flags(cls) -> Sequence[click.Option]:
        """Return the database, and what it keeps for how long."""
        return (
            option(
                "--history",
                metavar="FILE-OR-URL",
                help="Record what runs in the SQLite database FILE, or in PostgreSQL at postgresql://...; off"
                " for none.  [default: history of the configuration]",
            ),
            option(
                "--history-keep",
                metavar="AGE",
                help="Remove history that is older, such as 90d, or never.  [default: 400d]",
            ),
            option(
                "--history-size",
                metavar="SIZE",
                help="Remove the oldest history from a larger database, such as 2Gi; at least 16Mi."
                "  [default: no limit]",
            ),
            option(
                "--history-tags",
                metavar="NAME[,NAME]",
                help="Tags of applications to keep.  [default: namespace]",
            ),
        )

    @classmethod
    def of_flags(cls, values: Mapping[str, Any], _: object) -> Self | None:
        """Return the door, which is closed unless an option or a configuration names a database."""
        target, tags = values["history"], values["history_tags"]
        given = {name: values[f"history_{name}"] for name in ("keep", "size")}
        given = {name: value for name, value in given.items() if value is not None}
        if tags is not None:
            given["tags"] = tuple(filter(None, map(str.strip, tags.split(","))))
        problems = []
        if target is not None and not target.strip():
            problems.append("--history: expected a file or a URL, got an empty text")
        elif target is not None:
            given |= {"path": "", "url": target} if is_url(target) else {"path": target, "url": ""}
        try:
            cls(**{"path": OFF} | given)
        except cattrs.ClassValidationError as error:
            problems += _by_option(error)
        if problems:
            raise UsageError("\n".join(problems))
        door = cls(path=OFF)
        door._given = given
        return door

    def prepare(self, parts: CoreParts) -> None:
        """Receive the events of the core; raises `UsageError` for a database that cannot be used."""
        configured = parts.configured.get(self.name)
        if not isinstance(configured, HistoryDoor):
            configured = HistoryDoor(path=parts.history_file or OFF)
        elif not configured.names_place:
            # The other options of a file hold for a history that an option or a volume gives.
            configured = attrs.evolve(configured, path=parts.history_file)
        chosen = attrs.evolve(configured, **self._given)
        if not chosen.names_place:
            raise UsageError(
                "history of the configuration names no database: write path: FILE, url:"
                " postgresql://USER@HOST/DATABASE, or path: off for no history, or give --history FILE-OR-URL"
            )
        if chosen.path == OFF:
            if "path" not in self._given:
                for name in self._given:
                    raise UsageError(
                        f"--history-{name} needs --history FILE-OR-URL, or path or url below history: in the"
                        " configuration"
                    )
            return
        with importing_extra("postgresql" if chosen.url else "history", "for a history"):
            from yunikorn_history.recorded_history import HistorySettings, RecordedHistory
            from yunikorn_history.recording_thread import RecordingThread
        self._target = chosen.url or str(Path(chosen.path).absolute())
        size = bytes_of(chosen.size, SMALLEST_SIZE) if chosen.size else None
        settings = HistorySettings(self._target, _age_of(chosen.keep), size, frozenset(chosen.tags))
        self._recording = RecordingThread(settings, parts.clock)
        parts.event_receivers.append(self._recording.events)
        parts.history = RecordedHistory(self._target, self._recording.status, self._recording.audited)

    async def start(self, service: Service) -> str:
        """Begin to write."""
        if self._recording is None:
            return ""
        from yunikorn_service.service import Service as RunningService

        assert isinstance(service, RunningService)
        await self._recording.start(service)
        from yunikorn_history.past_usage import credit_late, credit_past_usage

        apply, loop = service.core.carry_out, asyncio.get_running_loop()

        def credit(usage: CreditUsage) -> None:
            loop.call_soon_threadsafe(lambda: service.run_in_background(credit_late(apply, usage)))

        later = partial(setattr, self._recording, "past_usage", credit)
        # Not now: until the process has the lease, another one may add usage.
        service.core.preparation = partial(credit_past_usage, apply, self._target, service.now(), later)
        return str(self._recording.shown)

    def closed(self) -> None:
        """Write the rest, after the end of the core."""
        if self._recording is not None:
            self._recording.finish()


def _by_option(problems: cattrs.ClassValidationError) -> Iterator[str]:
    """Yield problems of options with the names of the options."""
    for error, note in problems.group_exceptions()[0]:
        named = "--history" if note.name in ("path", "url") else f"--history-{note.name}"
        yield f"{named}: {error}"


def _age_of(text: str) -> float:
    """Return an age such as `90d` in seconds; raises `ValueError`."""
    days = re.fullmatch(r"(\d{1,6})d", f"{LONGEST_DAYS}d" if text == NEVER else text)
    if days is not None and int(days[1]):
        return float(int(days[1]) * DAY_SECONDS)
    try:
        return seconds_of(text)
    except ValueError:
        raise ValueError(f"expected an age such as 90d or 12h, or never, got {text!r}") from None


@hookimpl
def yunikorn_doors() -> list[type[ServiceDoor]]:
    """Return the history."""
    return [HistoryDoor]
