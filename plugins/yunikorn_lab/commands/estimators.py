"""`yunikorn estimators`: print how good estimators of run times are on a recorded workload."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from yunikorn.config.load import load_config
from yunikorn.config.queues_yaml import PluginRef, SchedulerConfig
from yunikorn.errors import UsageError
from yunikorn_commands.allowed_plugins import load_registry
from yunikorn_commands.config_input import folder_of
from yunikorn_commands.extras import importing_extra
from yunikorn_commands.input_files import InputFile, hold
from yunikorn_commands.output import echo, results
from yunikorn_commands.path_types import INPUT
from yunikorn_commands.plugin_files import trusting
from yunikorn_lab.commands.workload import PREFIX, WORKLOAD, WorkloadSource
from yunikorn_lab.reporting.estimator_scores import estimator_scores, scores_json, scores_table
from yunikorn_lab.simulation.workload import Workload

DEFAULT: tuple[PluginRef, ...] = (PluginRef("request"), PluginRef("learned"))
"""Estimators without a configuration."""


@click.command("estimators", short_help="Print how good estimators of run times are.")
@click.option(
    "--calibrate",
    "workload",
    type=WORKLOAD,
    required=True,
    help="The workload with the truth: a trace (SWF, Slurm, Batsim), a scenario, or the history of a "
    "scheduler (history:FILE or history:postgresql://...).",
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A queues.yaml that names the estimators. [default: request and learned]",
)
@click.option("--nodes", type=INPUT, help="The nodes, for a list of jobs of Slurm.")
@click.option("--partition", default="default", show_default=True, help="Partition that names them.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(workload: Any, config: Path | None, nodes: Any, partition: str, as_json: bool) -> None:
    """Print how good estimators of run times are on a recorded workload.

    Each one is asked when a task starts, and learns when it has ended. The table has the share of tasks that
    it knows, the median of estimate divided by truth (bias), the share of estimates between half and twice
    the truth, and the share of tasks that end inside the interval, which should hold 80 %.

    Exit status: 0 when the table was printed, 2 when the input is invalid or no estimator is named.
    """
    registry, refs = load_registry(), DEFAULT
    if config is not None:
        registry = trusting(registry, folder_of(config))
        loaded = load_config(config.read_bytes(), registry)
        refs = _named(config, partition, loaded)
        registry = registry.configured(loaded.disabled, loaded.overriding, loaded.loaded)
    scores = estimator_scores(read_recorded(workload, nodes), refs, registry)
    if as_json:
        echo(scores_json(scores), nl=False)
        return
    from yunikorn_lab.reporting.terminal_output import print_tables, report_console

    print_tables([scores_table(scores)], report_console(None if results().isatty() else 100, results()))


def _named(file: Path, partition: str, config: SchedulerConfig) -> tuple[PluginRef, ...]:
    """Return the estimators of a partition; raises `UsageError` if there are none."""
    found = next((one for one in config.partitions if one.name == partition), None)
    if found is None:
        known = ", ".join(one.name for one in config.partitions)
        raise UsageError(f"{file}: there is no partition '{partition}'; known: {known}")
    if not found.estimators:
        raise UsageError(
            f"{file}: partition '{partition}' names no estimators; add estimators: [request, learned]"
        )
    return found.estimators


def read_recorded(file: Any, nodes: Any) -> Workload:
    """Return the workload of a file or a history; raises `InputError` and `UsageError`."""
    text = str(file)
    if text.startswith(PREFIX):
        with importing_extra("history", f"for --calibrate {PREFIX}..."):
            from yunikorn_lab.simulation.history_workload import hold_history
        held: InputFile = hold_history(text.removeprefix(PREFIX), None)
    else:
        held = hold(file)
    return WorkloadSource(workload=held, nodes=None if nodes is None else hold(nodes)).read()
