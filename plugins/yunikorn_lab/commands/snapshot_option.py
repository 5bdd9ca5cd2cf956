"""Options of simulations that begin with a snapshot of a scheduler."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from yunikorn.errors import UsageError
from yunikorn_commands.config_input import folder_of
from yunikorn_commands.config_source import LocatedText
from yunikorn_commands.extras import importing_extra
from yunikorn_commands.input_files import name_of
from yunikorn_commands.option_groups import Decorator
from yunikorn_commands.plugin_files import CodePermission
from yunikorn_lab.commands.run_options import parse_moment
from yunikorn_lab.simulation.known_run_times import EstimatedRunTimes
from yunikorn_lab.simulation.workload import FOREVER, ConfigEvent, Workload
from yunikorn_snapshots.snapshot_errors import SnapshotError

if TYPE_CHECKING:
    from yunikorn.framework.registry import Registry
    from yunikorn.interface.scheduler import Scheduler
    from yunikorn_lab.simulation.report import Report
    from yunikorn_lab.simulation.workload import WorkloadApplication


def snapshot_option(use: str) -> Decorator:
    """Return the option `--snapshot` for a command, whose help says what it is used for."""
    return click.option(
        "--snapshot",
        type=click.Path(dir_okay=False, path_type=Path),
        help=f"A snapshot of a scheduler: {use}.",
    )


assume_runtime_option = click.option(
    "--assume-runtime",
    metavar="TIME",
    callback=parse_moment,
    help="With --snapshot: run time of tasks that no estimator knows, such as 2h; by default they never end.",
)


def restored_from(path: Path, registry: Registry) -> Scheduler:
    """Return the scheduler of a snapshot; raises `UsageError` if there is none that can be used."""
    with importing_extra("foresight", "for snapshots"):
        from yunikorn_lab.simulation.continuation import restored
    try:
        return restored(path, registry)
    except SnapshotError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise UsageError(f"cannot read snapshot {path}: {error.strerror or error}") from error


@attrs.frozen
class SnapshotRun:
    """A simulation that begins with a snapshot."""

    text: str
    """Configuration after the changes."""
    plan: Workload
    """Workload that arrives later, with the nodes of the snapshot."""
    known: list[WorkloadApplication]
    """Applications of the snapshot, without their tasks."""
    run: Callable[..., Report]
    """Function `continued` with this snapshot."""
    run_times: EstimatedRunTimes

    @classmethod
    def of(
        cls,
        path: Path,
        registry: Registry,
        plan: Workload | None,
        config: tuple[Path, str] | None,
        assumed: int | None,
    ) -> SnapshotRun:
        """Restore a snapshot; raises `UsageError` for what cannot be used.

        `config` is another configuration, with its text.
        """
        scheduler = restored_from(path, registry)
        from yunikorn_lab.simulation.continuation import (
            FirstChanges,
            continued,
            waiting_and_running,
            with_changes,
        )

        run_times = EstimatedRunTimes(FOREVER if assumed is None else assumed)
        changes = FirstChanges()
        if config is not None:
            permission = CodePermission.of_operator(folder_of(config[0]))
            changes = FirstChanges(
                config=ConfigEvent(0, name_of(config[0]), LocatedText(config[1]), permission)
            )
        arrivals = plan or Workload(path.name, "snapshot", [], [])
        planned = with_changes(scheduler, FirstChanges(), arrivals)
        first = next(scheduler.sessions(), None)
        text = config[1] if config else scheduler.configuration(first.rm_id).text if first else ""
        return cls(
            text,
            planned,
            list(waiting_and_running(scheduler)),
            partial(continued, scheduler, run_times, changes=changes),
            run_times,
        )
