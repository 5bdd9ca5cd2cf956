"""`yunikorn estimate`: when waiting applications start, or how good such estimates are on a workload.

Exit status: 0 when the estimates were printed, 2 when the call or the input cannot be used.
"""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path
from typing import Any

import attrs
import click

from yunikorn.errors import ConfigError, UsageError
from yunikorn.framework.registry import Registry
from yunikorn_commands.allowed_plugins import load_registry
from yunikorn_commands.config_input import folder_of, read_config
from yunikorn_commands.extras import importing_extra
from yunikorn_commands.input_files import name_of
from yunikorn_commands.input_source import InputError
from yunikorn_commands.output import echo, notes, results
from yunikorn_commands.path_types import INPUT
from yunikorn_commands.plugin_files import trusting
from yunikorn_commands.text_columns import TextColumn, print_table, terminal_width
from yunikorn_lab.commands.estimators import read_recorded
from yunikorn_lab.commands.run_options import parse_moment
from yunikorn_lab.commands.snapshot_option import restored_from
from yunikorn_lab.commands.workload import WORKLOAD
from yunikorn_lab.simulation.workload import FOREVER
from yunikorn_rest.commands.answer_fields import shown
from yunikorn_rest.commands.server_options import connect, reading_options

with importing_extra("foresight", "for start estimates"):
    from yunikorn_foresight.estimate_calibration import calibrate
    from yunikorn_foresight.estimate_scores import scores_json, scores_of, scores_table
    from yunikorn_foresight.estimate_texts import EstimateTexts
    from yunikorn_foresight.forked_work import ForesightError
    from yunikorn_foresight.start_estimates import EstimateOptions, StartEstimates, start_estimates
    from yunikorn_snapshots.forked_snapshot import LONGEST
    from yunikorn_snapshots.snapshot_errors import SnapshotError
    from yunikorn_snapshots.snapshot_file import verified

COLUMNS = [
    TextColumn("application"),
    TextColumn("queue", optional=True),
    TextColumn("user", optional=True),
    TextColumn("waiting", right=True),
    TextColumn("starts (80 %)", whole=True),
    TextColumn("expected", whole=True),
    TextColumn("all placed", whole=True),
    TextColumn("by all limits", whole=True),
]


@click.command("estimate", short_help="Estimate when waiting applications start.")
@click.argument("apps", nargs=-1)
@reading_options
@click.option("--replays", type=click.IntRange(2, 1000), help="Number of replays. [default: 20, or 10]")
@click.option("--horizon", metavar="TIME", callback=parse_moment, help="How far to look. [default: 7d]")
@click.option(
    "--within", metavar="TIME", callback=parse_moment, help="Real time for all replays. [default: 30s]"
)
@click.option(
    "--assume-runtime",
    metavar="TIME",
    callback=parse_moment,
    help="Run time of tasks that no estimator knows, such as 2h; by default they never end.",
)
@click.option("--jobs", type=click.IntRange(1, 1024), default=2, show_default=True, help="Parallel replays.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of all that is drawn.")
@click.option(
    "--calibrate",
    "workload",
    type=WORKLOAD,
    help="Print how good estimates are on this workload (a trace, a scenario, a history) under --config.",
)
@click.option("--config", type=INPUT, help="With --calibrate: the queues.yaml to schedule under.")
@click.option("--nodes", type=INPUT, help="With --calibrate: the nodes, for a list of jobs of Slurm.")
@click.option(
    "--most", type=click.IntRange(1), default=300, show_default=True, help="Waits to estimate at most."
)
def command(
    apps: tuple[str, ...],
    snapshot: Path | None,
    as_json: bool,
    replays: int | None,
    horizon: int | None,
    within: int | None,
    assume_runtime: int | None,
    jobs: int,
    seed: int,
    workload: Any,
    config: Path | None,
    nodes: Any,
    most: int,
    **connection: Any,
) -> None:
    """Estimate when waiting applications start: a table of all, or a sentence for each of APPS.

    The scheduler goes on in copies of the process, with run times drawn from its estimators. Intervals hold
    the start in four cases of five. The last column is the start if all tasks run to their limits.

    With --calibrate, a workload is simulated, and each of its waits (up to --most) is estimated at its
    submission: the table compares the estimates with the truth, and with simple predictors.
    """
    if workload is not None:
        _calibrate(workload, config, nodes, replays or 10, most, seed, jobs, as_json=as_json)
        return
    if config is not None or nodes is not None:
        raise UsageError("--config and --nodes apply to --calibrate: give it a workload")
    registry = load_registry()
    defaults = EstimateOptions()
    options = EstimateOptions(
        replays or defaults.replays,
        horizon or defaults.horizon,
        within or defaults.budget,
        jobs,
        seed,
        FOREVER if assume_runtime is None else assume_runtime,
    )
    try:
        found = _estimated(snapshot, connection, registry, apps, options)
    except ForesightError as error:
        raise UsageError(str(error)) from error
    notes(found.notes)
    _show(found, as_json=as_json, in_words=bool(apps))


def _estimated(
    snapshot: Path | None,
    connection: dict[str, Any],
    registry: Registry,
    apps: tuple[str, ...],
    options: EstimateOptions,
) -> StartEstimates:
    if snapshot is not None:
        return start_estimates(restored_from(snapshot, registry), apps, options)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "running.snapshot"
        with connect(connection) as server:
            try:
                file.write_bytes(b"".join(verified(server.pieces("/ws/v1/snapshot", LONGEST + 30))))
            except SnapshotError as error:
                raise UsageError(f"the snapshot of the server cannot be used: {error}") from error
        return start_estimates(restored_from(file, registry), apps, options)


def _calibrate(
    workload: Any,
    config: Path | None,
    nodes: Any,
    replays: int,
    most: int,
    seed: int,
    jobs: int,
    *,
    as_json: bool,
) -> None:
    if config is None:
        raise UsageError("--calibrate needs the configuration to schedule under: give --config")
    registry = trusting(load_registry(), folder_of(config))
    text, plan = read_config(config, registry), read_recorded(workload, nodes)
    try:
        scores = scores_of(calibrate(text, plan, registry, replays=replays, most=most, seed=seed, jobs=jobs))
    except ConfigError as error:
        raise InputError(name_of(config), error.problems) from error
    except ForesightError as error:
        raise UsageError(str(error)) from error
    if as_json:
        echo(scores_json(scores), nl=False)
        return
    from yunikorn_lab.reporting.terminal_output import print_tables, report_console

    print_tables([scores_table(scores)], report_console(None if results().isatty() else 100, results()))


# -- results ---------------------------------------------------------------------------------------------


def _show(found: StartEstimates, *, as_json: bool, in_words: bool) -> None:
    if as_json:
        for one in found.applications:
            echo(json.dumps(_plain({"moment": found.moment, "replays": found.replays, **attrs.asdict(one)})))
        return
    if not found.applications:
        echo("no application waits for room")
        return
    clock = EstimateTexts(found.moment, found.horizon)
    if in_words:
        for one in found.applications:
            echo(f"{shown(one.application)}: {clock.sentence(one)}")
        return
    rows = [
        [
            shown(one.application),
            shown(one.queue),
            shown(one.user),
            f"{one.waiting}",
            clock.interval(one.first),
            clock.text(one.first.median),
            clock.text(one.whole.median),
            "-" if one.latest is None else clock.text(one.latest),
        ]
        for one in found.applications
    ]
    print_table(COLUMNS, rows, terminal_width())


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: null for what is beyond the horizon."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
