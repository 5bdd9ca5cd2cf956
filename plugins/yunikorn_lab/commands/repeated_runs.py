"""Repeats finished runs from their folders, for the reasons of their divergences.

A run is repeated only if everything that decided it is the same: its provenance is made again and compared.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor
from pathlib import Path

import attrs
import click

from yunikorn import __version__
from yunikorn.config.load import load_config
from yunikorn.errors import YunikornError
from yunikorn.framework.installed import chosen_plugins
from yunikorn.framework.registry import Registry
from yunikorn_commands.allowed_plugins import load_registry
from yunikorn_commands.input_files import InputFile
from yunikorn_commands.load_plugins import LOAD_PLUGINS_OPTION
from yunikorn_commands.plugin_files import CodePermission
from yunikorn_commands.signals import ending_early
from yunikorn_lab.commands.run_options import preempted_option, until_option
from yunikorn_lab.commands.workload import WorkloadSource, workload_options
from yunikorn_lab.reporting.comparison import (
    DivergenceReason,
    find_reasons,
    is_explained_by_the_first,
)
from yunikorn_lab.reporting.finished_folders import DivergedRun, FinishedRun
from yunikorn_lab.reporting.provenance import (
    NODES,
    WORKLOAD,
    Provenance,
    differences,
    file_digest,
    find_provenance,
    workload_files,
)
from yunikorn_lab.reporting.runs import Order, RunFailed
from yunikorn_lab.reporting.saved_run import InputPlaces, read_places
from yunikorn_lab.reporting.workers import HereAndNow, WorkerPool
from yunikorn_lab.simulation.reader import files_of_workload
from yunikorn_lab.simulation.resampling import AUTO, ORDER
from yunikorn_lab.simulation.workload import Workload

_STOPPING = "interrupted: comparing without the reasons that are still missing (Ctrl-C again ends at once)"


class CannotRepeat(YunikornError):
    """A finished run that cannot be repeated; the message is the reason, and what to do."""


@attrs.frozen
class RunRepeater:
    """Finds the reasons of divergences by repeating runs.

    Files of `given` replace the places of inputs. The folder of a run is only data, so `given` also says what
    its configuration may load.
    """

    given: WorkloadSource
    make_executor: Callable[[int], WorkerPool | HereAndNow]
    """Returns an executor for a number of runs."""

    def __call__(self, first: FinishedRun, diverged: Sequence[DivergedRun]) -> list[DivergenceReason]:
        """Return the reasons; those of runs that cannot be repeated are unknown."""
        first_order: Order | None = None
        orders: list[Order | None] = []
        problems = []
        for one in diverged:
            of_first = is_explained_by_the_first(one.divergence)
            order, problem = self._try(first if of_first else one.run)
            problems.append(problem)
            orders.append(None if of_first else order)
            first_order = (order if of_first else None) or first_order
        found = self._find(first_order, orders, diverged)
        return [
            attrs.evolve(reason, unknown=reason.unknown or problem)
            for reason, problem in zip(found, problems, strict=True)
        ]

    def _try(self, run: FinishedRun) -> tuple[Order | None, str]:
        """Return the order that repeats a run, or why there is none."""
        try:
            return self._order(run), ""
        except YunikornError as error:
            return None, str(error)

    def _find(
        self, first: Order | None, orders: list[Order | None], diverged: Sequence[DivergedRun]
    ) -> list[DivergenceReason]:
        divergences = [one.divergence for one in diverged]
        if first is None and not any(orders):
            return [DivergenceReason()] * len(orders)
        executor = self.make_executor(len(orders))
        with ending_early(_STOPPING, executor.stop) as signals, executor:
            try:
                return find_reasons(orders, divergences, executor, lambda: bool(signals.number), first=first)
            except (RunFailed, BrokenExecutor) as error:
                return [DivergenceReason(unknown=str(error))] * len(orders)

    def _order(self, run: FinishedRun) -> Order:
        """Return the order that repeats a run; raises `CannotRepeat`, and errors of its inputs."""
        recorded = run.result.provenance
        if recorded is None:
            raise CannotRepeat("its inputs are unknown")
        if recorded.version != __version__:
            raise CannotRepeat(
                f"the run was made by yunikorn {recorded.version}, and this is {__version__}: run it again"
            )
        places = read_places(run.folder)
        source, until, preempted = _parse(
            recorded, self._workload(recorded, places), self._nodes(recorded, places)
        )
        code = CodePermission.of_data(
            places.config.parent if places and places.config else None, self.given.load_plugins
        )
        source = attrs.evolve(source, load_plugins=self.given.load_plugins)
        workload = source.read()
        registry = load_registry().permitting(code)
        load_config(recorded.config_text, registry)
        _check(recorded, _again(recorded, source, workload, registry))
        return Order(
            run.name,
            recorded.config_text,
            source,
            until=until,
            preempted=preempted,
            code=code,
        )

    def _workload(self, recorded: Provenance, places: InputPlaces | None) -> InputFile:
        found = self.given.workload or (places and places.workload)
        return _checked(recorded, WORKLOAD, found or None)

    def _nodes(self, recorded: Provenance, places: InputPlaces | None) -> InputFile | None:
        if not any(one.role == NODES for one in recorded.inputs):
            return None
        found = self.given.nodes or (places and places.nodes)
        return _checked(recorded, NODES, found or None)


Parsed = tuple[WorkloadSource, int | None, str]
"""Workload, end and treatment of preempted tasks of a run."""


@click.command()
@workload_options
@until_option("End")
@preempted_option
def _run(source: WorkloadSource, until: int | None, preempted: str) -> Parsed:
    """Parse the options that decide a run."""
    # Options are recorded with their defaults, and these are given for every format.
    return attrs.evolve(source, given=()), until, preempted


def _parse(recorded: Provenance, workload: InputFile, nodes: InputFile | None) -> Parsed:
    """Return the recorded options as they were parsed, with these files."""
    given = dict(recorded.options)
    if recorded.seed is not None and "--shuffle" not in given:
        given["--seed"] = str(recorded.seed)
    if given.get("--resample") == ORDER:
        given["--resample"] = AUTO
    flags = {name for one in _run.params if getattr(one, "is_flag", False) for name in one.opts}
    known = {name for one in _run.params for name in one.opts}
    arguments = [
        name if name in flags else f"{name}={value}"
        for name, value in given.items()
        if name in known and name != LOAD_PLUGINS_OPTION
    ]
    source, until, preempted = _run.main(["--workload=.", *arguments], standalone_mode=False)
    return attrs.evolve(source, workload=workload, nodes=nodes), until, preempted


def _checked(recorded: Provenance, role: str, file: InputFile | None) -> InputFile:
    """Return the file of a role if it is that of the run; raises `CannotRepeat`."""
    one = next(each for each in recorded.inputs if each.role == role)
    give = f"give the file of that run with --{role} FILE"
    if file is None:
        raise CannotRepeat(f"the folder does not name the place of {one.name}: {give}")
    if isinstance(file, Path) and not file.exists():
        raise CannotRepeat(f"{file} does not exist: {give}")
    if file_digest(file) != one.sha256:
        raise CannotRepeat(f"{file} is not the {role} of the run, it has another checksum: {give}")
    return file


def _again(
    recorded: Provenance, source: WorkloadSource, workload: Workload, registry: Registry
) -> Provenance:
    files = files_of_workload(source.workload, source.nodes, workload.format)
    return find_provenance(
        Path(recorded.config),
        recorded.config_text,
        registry,
        inputs=workload_files(files, workload),
        options=recorded.options,
        seed=workload.seed,
        settings=recorded.settings,
        only=chosen_plugins(os.environ),
        reloads=workload.reloads,
    )


def _check(recorded: Provenance, again: Provenance) -> None:
    """Raise `CannotRepeat` if the run would be another one."""
    found = [one for one in differences(recorded, again) if one.one != one.other]
    if found:
        changed = "; ".join(f"{one.what}: {one.other} instead of {one.one}" for one in found)
        raise CannotRepeat(f"its inputs have changed ({changed}): run it again")
