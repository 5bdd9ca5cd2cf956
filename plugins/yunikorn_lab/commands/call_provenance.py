"""Provenance of the results of a command: its options as given, and checksums of its input files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from yunikorn.config.durations import spell_duration
from yunikorn.framework.installed import chosen_plugins
from yunikorn.framework.registry import Registry
from yunikorn_commands.input_files import DASH, HeldInput, InputFile, name_of
from yunikorn_lab.commands.run_options import PastTime
from yunikorn_lab.commands.workload import WorkloadSource
from yunikorn_lab.reporting.provenance import (
    NODES,
    WORKLOAD,
    InputChecksum,
    Provenance,
    find_provenance,
    workload_files,
)
from yunikorn_lab.reporting.saved_run import InputPlaces, place_of
from yunikorn_lab.simulation.reader import files_of_workload
from yunikorn_lab.simulation.workload import Workload

_ELSEWHERE = {"config", "configs", "settings", "workload", "nodes", "seed", "seeds", "folders", "snapshot"}
"""Parameters that the provenance has in fields of their own."""
_NO_EFFECT = {
    "out",
    "force",
    "tasks",
    "no_plots",
    "as_json",
    "no_reasons",
    "jobs",
    "help",
    "gantt",
    "start",
    "stop",
    "names",
    "load_plugins",
}
"""Parameters that choose where results go, and not what they are."""


class RunInputs:
    """Options of the current command and the files of its workload, for the provenance of its runs."""

    def __init__(self, source: WorkloadSource, workload: Workload, context: click.Context) -> None:
        """Read the files of a `workload` that `source` has read, and the options of the command."""
        files: list[tuple[str, InputFile]] = []
        if source.workload is not None:
            files = files_of_workload(source.workload, source.nodes, workload.format)
        if context.params.get("snapshot") is not None:
            files.append(("snapshot", context.params["snapshot"]))
        self._files: list[InputChecksum] = workload_files(files, workload)
        self._places = {role: place_of(file) for role, file in files}
        self._options = _options(context)
        if workload.resampled and source.shuffle is None:
            self._options["--resample"] = workload.resampled
        if source.shuffle is not None and source.seed is not None:
            self._options["--seed"] = str(source.seed)  # the seed of the workload is that of the shuffle
        self._seed = workload.seed
        self._reloads = workload.reloads

    def places(self, config: Path) -> InputPlaces:
        """Return the places of the inputs of a run under a configuration."""
        file = None if config == DASH else config.resolve()
        return InputPlaces(file, self._places.get(WORKLOAD), self._places.get(NODES))

    def provenance(
        self, config: Path, text: str, registry: Registry, settings: Sequence[str] = ()
    ) -> Provenance:
        """Return the provenance of a run under a valid configuration; see `find_provenance`."""
        return find_provenance(
            Path(name_of(config)),
            text,
            registry,
            inputs=self._files,
            options=self._options,
            seed=self._seed,
            settings=settings,
            only=chosen_plugins(os.environ),
            reloads=self._reloads,
        )


def _options(context: click.Context) -> dict[str, str]:
    found = {}
    for parameter in context.command.params:
        name = parameter.name or ""
        text = _text(name, context.params.get(name))
        if text and name not in _ELSEWHERE and name not in _NO_EFFECT:
            found[max(parameter.opts, key=len)] = text
    return found


def _text(name: str, value: Any) -> str:
    if value is None or value is False or value == ():
        return ""
    if value is True:
        return "yes"
    if name == "until" and not isinstance(value, PastTime):
        return spell_duration(value)
    if isinstance(value, (Path, HeldInput)):
        return value.name
    if isinstance(value, (list, tuple)):
        return ", ".join(_text("", one) for one in value)
    return str(value)
