"""All output files of a run."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from yunikorn.reporting import csv_files
from yunikorn.reporting.csv_files import ApplicationsFile, TasksFile, write_queues, write_utilisation
from yunikorn.reporting.full_report import FullReport
from yunikorn.reporting.observations import ApplicationRow
from yunikorn.reporting.pictures import PAGE, PICTURES, write_pictures
from yunikorn.simulation.decisions import REPORT, FolderRecorder
from yunikorn.simulation.out_folder import OutFolder
from yunikorn.simulation.recorder import Recorders

OUTDATED = (PAGE, csv_files.TASKS, *PICTURES)
"""Files of an earlier run that are removed if this run does not write them."""


class ResultFiles(Recorders):
    """A recorder that writes all files of a run; a context manager.

    Files get their final names together when all are complete (`OutFolder`).
    """

    def __init__(
        self, path: Path, *, tasks: bool = False, pictures: bool = True, decisions: bool = True
    ) -> None:
        """Select files: `tasks` for tasks.csv, `pictures` for plots and page, `decisions` for JSON lines."""
        lines = FolderRecorder(path) if decisions else None
        self._folder = lines.folder if lines is not None else OutFolder(path)
        self._tasks = TasksFile(self._folder) if tasks else None
        self._applications = ApplicationsFile(self._folder)
        self._pictures = pictures
        super().__init__(*filter(None, (lines, self._applications, self._tasks)))

    def begin(self) -> None:
        """Open the files; raises `UsageError` if the folder cannot be written."""
        self._folder.prepare()
        super().begin()

    def __call__(self, row: ApplicationRow) -> None:
        """Write the row of an application at its end, or at the end of the simulation."""
        self._applications.add(row)

    def write(self, result: FullReport) -> str:
        """Write the final files; returns a hint if pictures were left out, else an empty string."""
        if self._tasks is not None:
            self._tasks.close()
        self._folder.open(REPORT).write(result.to_json())
        history = result.account.history
        write_utilisation(self._folder.open(csv_files.UTILISATION), history)
        write_queues(self._folder.open(csv_files.QUEUES), history)
        return write_pictures(self._folder, result) if self._pictures else ""

    def __enter__(self) -> ResultFiles:
        self._folder.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.__exit__(kind, error, trace)
        if kind is None:
            self._folder.remove(OUTDATED)
