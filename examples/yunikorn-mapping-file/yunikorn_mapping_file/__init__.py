"""A placement rule for YuniKorn: queues from a file that somebody else keeps.

partitions:
  - name: default
    placementrules:
      - name: mapping_file
        path: /etc/yunikorn/teams.txt
        create: true

The file has a line for each mapping; the first that holds is taken. What it says may change while the
scheduler runs: it is read again when it changed.

    # who                 where
    user ann              root.science.physics
    group staff           root.staff
    tag team=games        root.games
    *                     root.default
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

import attrs

from yunikorn.api import Application, Context, PlacementRule, hookimpl
from yunikorn_mapping_file.mapping import Mapping, read_mappings

SECOND = 1_000_000_000
_log = logging.getLogger("yunikorn.plugins")
Report = Callable[[str, BaseException | str], None]
Stamp = tuple[int, int, int]
"""By which a file that changed is known: its time, its size, and which file it is."""


@attrs.define(eq=False)
class MappingFile(PlacementRule):
    """The queue that a file names for the user, one of the groups, or a tag."""

    name = "mapping_file"
    path: Path
    """The file; the scheduler must be able to read it when it starts."""
    check_every: float = attrs.field(default=1.0, validator=attrs.validators.ge(0))
    """Seconds for which it is not looked at again whether the file changed."""
    _now: Callable[[], int] | None = attrs.field(init=False, default=None, repr=False)
    _report: Report | None = attrs.field(init=False, default=None, repr=False)
    _looked: int | None = attrs.field(init=False, default=None, repr=False)
    _stamp: Stamp | None = attrs.field(init=False, default=None, repr=False)
    _mappings: tuple[Mapping, ...] | None = attrs.field(init=False, default=None, repr=False)

    def opened(self, context: Context) -> None:
        """Read the file now, so that one that cannot be read is found at once."""
        self._now, self._report = context.now, context.report
        self._look()

    def reloaded(self, context: Context) -> None:
        """A new configuration is a reason to look, too."""
        self._now, self._report = context.now, context.report
        self._look()

    def place(self, app: Application) -> str | None:
        """The queue of the first mapping that holds, None if none does.

        Raises what is wrong with the file as long as it has never been read: nobody is placed by half a file.
        """
        if self._is_due():
            self._look()
        if self._mappings is None:
            self._read()
        for mapping in self._mappings or ():
            if mapping.holds(app):
                return mapping.queue
        return None

    def _is_due(self) -> bool:
        now = self._now() if self._now is not None else 0
        due = self._looked is None or now - self._looked >= self.check_every * SECOND
        if due:
            self._looked = now
        return due

    def _look(self) -> None:
        """Read the file if it changed; what is wrong then is reported, and what it said before stays."""
        if self._mappings is None:
            self._read()
            return
        try:
            if self._stamp_of_file() != self._stamp:
                self._read()
                _log.info("mapping_file: %s was read again: %d mappings", self.path, len(self._mappings))
        except (OSError, ValueError) as error:
            stamp = self._stamp_if_any()
            if stamp != self._stamp and self._report is not None:
                self._report(f"reading {self.path} again, what it said before holds", error)
            self._stamp = stamp

    def _read(self) -> None:
        stamp = self._stamp_of_file()
        mappings = read_mappings(self.path.read_text("utf-8"))
        # Only now, when nothing can fail any more: all of the new file, or all of the old one.
        self._stamp, self._mappings = stamp, mappings

    def _stamp_of_file(self) -> Stamp:
        found = os.stat(self.path)
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _stamp_if_any(self) -> Stamp | None:
        try:
            return self._stamp_of_file()
        except OSError:
            return None


@hookimpl
def yunikorn_placement_rules() -> list[type[PlacementRule]]:
    """What this package offers."""
    return [MappingFile]
