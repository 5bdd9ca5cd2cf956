"""A placement rule for YuniKorn: queues from a file that is maintained elsewhere.

partitions:
  - name: default
    placementrules:
      - name: mapping_file
        path: /etc/yunikorn/teams.txt
        create: true

The file has one mapping per line; the first matching line applies. The file may change while the scheduler
runs: the rule reads the file again after a change.

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
"""Modification time, size and inode of a file, which change with the file."""


@attrs.define(eq=False)
class MappingFile(PlacementRule):
    """The queue that a file names for the user, one of the groups, or a tag."""

    name = "mapping_file"
    path: Path
    """File with the mappings; it must be readable when the scheduler starts."""
    check_every: float = attrs.field(default=1.0, validator=attrs.validators.ge(0))
    """Minimum time between checks for a change of the file, in seconds."""
    _now: Callable[[], int] | None = attrs.field(init=False, default=None, repr=False)
    _report: Report | None = attrs.field(init=False, default=None, repr=False)
    _looked: int | None = attrs.field(init=False, default=None, repr=False)
    _stamp: Stamp | None = attrs.field(init=False, default=None, repr=False)
    _mappings: tuple[Mapping, ...] | None = attrs.field(init=False, default=None, repr=False)

    def opened(self, context: Context) -> None:
        """Read the file at once, so that an unreadable file is reported at the start."""
        self._now, self._report = context.now, context.report
        self._look()

    def reloaded(self, context: Context) -> None:
        """Check for a change of the file."""
        self._now, self._report = context.now, context.report
        self._look()

    def place(self, app: Application) -> str | None:
        """Return the queue of the first matching mapping, or None.

        Raises the error of the file as long as the file was never read successfully.
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
        """Read the file if it has changed; report an error and keep the previous mappings."""
        if self._mappings is None:
            self._read()
            return
        try:
            if self._stamp_of_file() != self._stamp:
                self._read()
                _log.info("mapping_file: read %s again: %d mappings", self.path, len(self._mappings))
        except (OSError, ValueError) as error:
            stamp = self._stamp_if_any()
            if stamp != self._stamp and self._report is not None:
                self._report(f"reading {self.path} again; the previous mappings still apply", error)
            self._stamp = stamp

    def _read(self) -> None:
        stamp = self._stamp_of_file()
        mappings = read_mappings(self.path.read_text("utf-8"))
        # Assign both only after all fallible steps, so that the mappings are always those of one version.
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
    """Return the rule of this package."""
    return [MappingFile]
