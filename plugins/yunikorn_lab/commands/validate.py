"""`yunikorn validate`: check configurations, and list all of their problems."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from yunikorn.errors import UsageError
from yunikorn_commands.allowed_plugins import load_registry
from yunikorn_commands.config_input import ConfigInput
from yunikorn_commands.input_files import UnreadableInput, hold
from yunikorn_commands.load_plugins import code_of_data, load_plugins_option
from yunikorn_commands.output import echo
from yunikorn_commands.path_types import INPUT
from yunikorn_lab.cluster_check import check_cluster
from yunikorn_lab.commands.check_formats import FORMATS, JSON, TEXT, Checked, print_checked
from yunikorn_lab.config_effects import check_effects

if TYPE_CHECKING:
    from yunikorn.config.load import ConfigCheck
    from yunikorn.resources import Tally

INVALID = 1
UNUSABLE = 2


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=INPUT)
@click.option("--json", "as_json", is_flag=True, help="Same as --format json.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help=(
        "Text; one line of JSON for each file; SARIF for code scanning; or workflow commands, which GitHub"
        " shows beside the lines of a change.  [default: text]"
    ),
)
@click.option("--fail-on-warning", is_flag=True, help="Exit with status 1 also if there are only warnings.")
@click.option(
    "--strict-yunikorn",
    "strict",
    is_flag=True,
    help="Also refuse what YuniKorn 1.9 would refuse or ignore, such as keys and plugins it does not have.",
)
@click.option(
    "--nodes",
    type=INPUT,
    help="Also compare guarantees, maxima and limits with these nodes: any file of `simulate --nodes`.",
)
@load_plugins_option
@click.pass_context
def command(
    context: click.Context,
    files: tuple[Path, ...],
    as_json: bool,
    form: str | None,
    fail_on_warning: bool,
    strict: bool,
    nodes: Path | None,
    load_plugins: tuple[Path | str, ...],
) -> None:
    """Check configurations: queues.yaml files, or ConfigMaps of Apache YuniKorn; - reads standard input.

    Every problem is listed with its place in the file. Warnings are about what is valid, but probably a
    mistake. Plugins that a configuration loads from files are not loaded here, because that runs their code,
    and names that they may offer are only warned of; see --load-plugins.

    Exit status: 0 when all files are valid, 1 when something is invalid (with --fail-on-warning: or has
    warnings), 2 when a file cannot be read or the options are invalid.
    """
    if as_json and form not in (None, JSON):
        raise UsageError(f"--json and --format {form} contradict each other: give one of them")
    registry = load_registry()
    checks: list[ConfigCheck] = [check_effects]
    if nodes is not None:
        checks.append(partial(check_cluster, _capacities(nodes)))
    checked: list[Checked] = []
    status = 0
    for file in files:
        try:
            given = ConfigInput.read(file)
        except UnreadableInput as error:
            echo(f"Error: {error}", err=True)
            status = UNUSABLE
            continue
        outcome = given.check(registry.permitting(code_of_data(file, load_plugins)), checks)
        if strict:
            outcome = outcome.strictly()
        checked.append(Checked(given.file, given.name, outcome))
        is_fine = outcome.valid and not (fail_on_warning and outcome.warnings)
        status = max(status, 0 if is_fine else INVALID)
    print_checked(checked, JSON if as_json else form or TEXT)
    context.exit(status)


def _capacities(nodes: Path) -> dict[str, Tally]:
    """Return for each partition and resource type the most that the nodes of a file have at any time."""
    # The reader of simulations, which only this option needs, takes a third of the start of the command.
    from yunikorn_lab.simulation.cluster_size import largest_capacities
    from yunikorn_lab.simulation.reader import read_node_file

    cluster = read_node_file(hold(nodes))
    return largest_capacities(cluster.nodes, cluster.events)
