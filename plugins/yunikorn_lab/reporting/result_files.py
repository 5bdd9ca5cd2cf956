"""Output files of a run. The plots and the HTML page require the extra `plots`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

from yunikorn_lab.reporting import csv_files
from yunikorn_lab.reporting.csv_files import (
    ApplicationsFile,
    TasksFile,
    write_idle,
    write_queues,
    write_topology,
    write_users,
    write_utilisation,
)
from yunikorn_lab.reporting.full_report import FullReport
from yunikorn_lab.reporting.gantt import PICTURE as GANTT
from yunikorn_lab.reporting.gantt import TABLE as GANTT_TABLE
from yunikorn_lab.reporting.gantt import GanttChart, GanttRequest, gantt_recorder, write_table
from yunikorn_lab.reporting.observations import ApplicationRow
from yunikorn_lab.reporting.palette import queue_colours
from yunikorn_lab.reporting.saved_run import LOG, PLACES, RESULT, InputPlaces, pack_result
from yunikorn_lab.reporting.sections.report_sections import report_sections
from yunikorn_lab.reporting.sections.use import CLUSTER, IDLE, NODES, QUEUES, USERS
from yunikorn_lab.reporting.sections.waits import CALIBRATION, LENGTHS, WAITS
from yunikorn_lab.reporting.tables import outcome
from yunikorn_lab.simulation.out_folder import APPLICATIONS as ENDS
from yunikorn_lab.simulation.out_folder import DECISIONS, REPORT, FolderRecorder, OutFolder
from yunikorn_lab.simulation.out_folder import NODES as NODE_EVENTS
from yunikorn_lab.simulation.recorder import Recorders

PAGE = "report.html"
PICTURES = (QUEUES, CLUSTER, IDLE, LENGTHS, WAITS, CALIBRATION, USERS, NODES, GANTT)
"""Files of the plots; a plot without content is not written."""
NEEDED = ("matplotlib", "jinja2")


def missing_extra(page: str = PAGE) -> str:
    """Return a hint on missing dependencies, or an empty string if all are installed."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if not missing:
        return ""
    return (
        f"{page} and the plots are not written: {' and '.join(missing)} "
        f"{'is' if len(missing) == 1 else 'are'} not installed; install with pip install 'yunikorn[plots]'"
    )


def write_pictures(folder: OutFolder, result: FullReport, chart: GanttChart | None = None) -> str:
    """Write plots and page; returns a hint if dependencies are missing, else an empty string."""
    missing = missing_extra()
    if missing:
        return missing
    # Imported here, because runs without pictures need neither matplotlib nor jinja2, which import slowly.
    from yunikorn_lab.reporting.page import write_page

    write_page(
        folder,
        PAGE,
        title=f"Simulation of {result.report.workload} ({outcome(result.report)})",
        verdict=result.verdict,
        sections=report_sections(result, chart),
        colours=queue_colours([result.history]),
    )
    return ""


OUTDATED = (PAGE, PLACES, csv_files.TASKS, csv_files.USERS, csv_files.TOPOLOGY, GANTT_TABLE, *PICTURES)
"""Files of an earlier run that are removed if this run does not write them."""
RESULTS = {
    *OUTDATED,
    REPORT,
    RESULT,
    LOG,
    DECISIONS,
    NODE_EVENTS,
    ENDS,
    csv_files.APPLICATIONS,
    csv_files.IDLE,
    csv_files.QUEUES,
    csv_files.UTILISATION,
}
"""All files of a run."""


class ResultFiles(Recorders):
    """A recorder that writes all files of a run; a context manager.

    Files get their final names together when all are complete (`OutFolder`).
    """

    def __init__(
        self,
        path: Path,
        *,
        tasks: bool = False,
        pictures: bool = True,
        decisions: bool = True,
        gantt: GanttRequest | None = None,
        force: bool = False,
        places: InputPlaces | None = None,
    ) -> None:
        """Select files: `tasks` for tasks.csv, `pictures` for plots and page, `decisions` for JSON lines.

        `gantt` selects a Gantt chart. `force` is as for `OutFolder`. `places` are written, if they are known.
        """
        self._folder = OutFolder(
            path, force=force, outdated=OUTDATED, last=RESULT, is_ours=RESULTS.__contains__
        )
        lines = FolderRecorder(self._folder) if decisions else None
        self._tasks = TasksFile(self._folder) if tasks else None
        self._applications = ApplicationsFile(self._folder)
        self._pictures = pictures
        self._places = places
        self._gantt = None if gantt is None else gantt_recorder(gantt)
        self.gantt_notes: list[str] = []
        """Parts that the Gantt chart does not show; known once the files are written."""
        super().__init__(*filter(None, (lines, self._applications, self._tasks, self._gantt)))

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
        self._folder.part(RESULT).write_bytes(pack_result(result))
        if self._places is not None:
            self._folder.open(PLACES).write(self._places.to_json(self._folder.path))
        history = result.history
        write_utilisation(self._folder.open(csv_files.UTILISATION), history)
        write_idle(self._folder.open(csv_files.IDLE), history)
        write_queues(self._folder.open(csv_files.QUEUES), history)
        if history.users:
            write_users(self._folder.open(csv_files.USERS), history)
        if history.topology:
            write_topology(self._folder.open(csv_files.TOPOLOGY), history)
        chart = None
        if self._gantt is not None:
            chart = self._gantt.chart(result.report.times.stopped, history.origin)
            self.gantt_notes = chart.notes
            write_table(self._folder.open(GANTT_TABLE), chart)
        return write_pictures(self._folder, result, chart) if self._pictures else ""

    def write_log(self, decisions: bytes) -> None:
        """Write a `DecisionLog`, in place of decisions.jsonl."""
        self._folder.part(LOG).write_bytes(decisions)

    def __enter__(self) -> ResultFiles:
        self._folder.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.__exit__(kind, error, trace)
