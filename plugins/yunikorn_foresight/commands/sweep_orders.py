"""Orders of the runs of a sweep, and the workloads as workers of a Dask cluster get them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import click

from yunikorn.config.load import load_config
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn_commands.config_input import folder_of
from yunikorn_commands.input_files import HeldInput, InputFile, hold, name_of, read_input
from yunikorn_commands.plugin_files import CodePermission
from yunikorn_foresight.dask_executor import DaskExecutor
from yunikorn_foresight.sweep_points import SweepPoint
from yunikorn_foresight.sweep_result import Draw, Objective
from yunikorn_foresight.sweep_runs import ALWAYS, SweepOrder, order_key
from yunikorn_lab.commands.call_provenance import RunInputs
from yunikorn_lab.commands.workload import WorkloadSource
from yunikorn_lab.reporting.provenance import Provenance
from yunikorn_lab.simulation.reader import HISTORY, files_of_workload
from yunikorn_lab.simulation.workload import Workload

OF_SEARCH = (
    "--search",
    "--points",
    "--point-seed",
    "--minimise",
    "--maximise",
    "--trace",
    "--dask",
    "--format",
)
"""Options that choose runs, and do not decide the result of one."""


def held(file: Any) -> Any:
    """Return the input of a further workload; a history is named by a text."""
    return file if isinstance(file, str) else hold(file)


@attrs.frozen
class SweepInput:
    """Everything that the runs of a sweep share."""

    config: Path
    text: str = attrs.field(repr=False)
    registry: Registry = attrs.field(repr=False)
    sources: Sequence[WorkloadSource]
    workloads: Sequence[Workload] = attrs.field(repr=False)
    """The first draw of each source."""
    draws: Sequence[Draw]
    objectives: Sequence[Objective]
    until: int | None
    preempted: str
    queues: frozenset[tuple[str, str]]
    targets: tuple[tuple[str, int], ...]

    @property
    def names(self) -> list[str]:
        """Names of the workloads."""
        return [str(source.workload) for source in self.sources]

    def provenances(self, context: click.Context) -> list[Provenance]:
        """Return the provenance of the unchanged configuration with each workload."""
        found = []
        for source, workload in zip(self.sources, self.workloads, strict=True):
            one = RunInputs(source, workload, context).provenance(self.config, self.text, self.registry)
            options = {name: text for name, text in one.options.items() if name not in OF_SEARCH}
            found.append(attrs.evolve(one, options=options))
        return found

    def orders(
        self, points: Sequence[SweepPoint], draws: Sequence[Draw], provenances: Sequence[Provenance]
    ) -> list[SweepOrder]:
        """Return the orders of points with some draws, draw by draw."""
        figures = tuple(dict.fromkeys([*(one.name for one in self.objectives), *ALWAYS]))
        return [
            SweepOrder(
                point.number,
                workload,
                point.config,
                seed,
                figures,
                order_key(
                    attrs.evolve(
                        provenances[workload],
                        config_text=point.config,
                        seed=provenances[workload].seed if seed is None else seed,
                    ),
                    self.until,
                    self.preempted,
                ),
                self.until,
                self.preempted,
                CodePermission.of_operator(folder_of(self.config)),
                self.queues,
                self.targets,
            )
            for workload, seed in draws
            for point in points
        ]

    def spread(self, cluster: DaskExecutor) -> list[Any]:
        """Send the workloads to the workers of a cluster, and return what stands for them in calls.

        Raises `UsageError` for files that the workers do not have, and for plugins from files.
        """
        loaded = load_config(self.text, self.registry).loaded
        if loaded:
            raise UsageError(
                f"--dask: {name_of(self.config)} loads plugins from files ({loaded[0].name}), which the "
                "workers do not have: install them there as a package"
            )
        found = []
        for source, workload in zip(self.sources, self.workloads, strict=True):
            files = files_of_workload(source.workload, source.nodes, workload.format)
            is_alone = all(role == "workload" for role, _ in files) or source.nodes is not None
            if is_alone and workload.format != HISTORY and not _is_folder(source.workload):
                sent = attrs.evolve(
                    source,
                    workload=_whole(source.workload),
                    nodes=_whole(source.nodes),
                    format_=workload.format,
                )
            else:
                cluster.check_files(file for _, file in files if isinstance(file, Path))
                sent = source
            found.append(cluster.spread(sent))
        return found


def _is_folder(file: InputFile) -> bool:
    return isinstance(file, Path) and file.is_dir()


def _whole(file: Any) -> Any:
    """Return the content of a file, which can be sent to another machine."""
    return HeldInput(str(file), read_input(file)) if isinstance(file, Path) else file
