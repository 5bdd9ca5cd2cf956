"""`yunikorn plan`: what another configuration would change in a scheduler.

The exit status is for pipelines: 0 if nothing changes, 2 if something does, 1 if the configuration is refused
or there is no answer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import click

from yunikorn.config.load import load_config
from yunikorn.errors import ConfigError, UsageError, YunikornError, printable
from yunikorn.interface.scheduler import Scheduler
from yunikorn.text import listed, suggest
from yunikorn_commands.allowed_plugins import load_registry
from yunikorn_commands.config_input import ConfigInput, folder_of
from yunikorn_commands.config_source import LocatedText
from yunikorn_commands.differences import differences
from yunikorn_commands.extras import importing_extra
from yunikorn_commands.input_files import name_of
from yunikorn_commands.input_source import describe
from yunikorn_commands.output import echo
from yunikorn_commands.path_types import INPUT
from yunikorn_commands.plugin_files import CodePermission, trusting
from yunikorn_foresight.plan_placements import live_submissions, past_submissions, placement_changes
from yunikorn_foresight.plan_result import REFUSED, Plan
from yunikorn_foresight.plan_state import leaving_queues, new_excesses
from yunikorn_lab.commands.diff import in_words
from yunikorn_lab.commands.run_options import executor_for, parse_moment, progress_of_runs, working
from yunikorn_lab.commands.snapshot_option import assume_runtime_option, restored_from, snapshot_option
from yunikorn_lab.commands.workload import WorkloadSource, workload_options
from yunikorn_lab.reporting.comparison import Drawn, compare
from yunikorn_lab.reporting.comparison_texts import judge_comparison
from yunikorn_lab.reporting.variants import VariantPlan
from yunikorn_lab.simulation.workload import FOREVER, ConfigEvent
from yunikorn_rest.commands.server_options import server_options

with importing_extra("foresight", "for plans"):
    from yunikorn_foresight.whatif import WhatIf
    from yunikorn_lab.simulation.continuation import FirstChanges
with importing_extra("web", "to ask a scheduler"):
    from yunikorn_rest.commands.fetched_snapshot import snapshot_file

NOW, PLANNED = "now", "planned"
"""Names of both configurations."""
TEXT, MARKDOWN, JSON = "text", "markdown", "json"


class _WithStatus(click.UsageError):
    """Error of an option, whose status is that of a refusal."""

    exit_code = REFUSED

    def __init__(self, error: click.UsageError) -> None:
        super().__init__(error.format_message(), error.ctx)


class PlanCommand(click.Command):
    """Command whose status 2 says that something changes, and nothing else."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the options; an error of them has the status 1."""
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            raise _WithStatus(error) from error


@click.command("plan", cls=PlanCommand, short_help="Show what a queues.yaml would change in a scheduler.")
@click.argument("file", type=INPUT)
@click.option("--effects", is_flag=True, hidden=True)
@click.option("--rm", default="", metavar="ID", help="Resource manager whose configuration it is.")
@click.option(
    "--style",
    type=click.Choice((TEXT, MARKDOWN, JSON)),
    default=TEXT,
    show_default=True,
    help="Sentences, Markdown for a pull request, or JSON as with --json.",
)
@click.option(
    "--for",
    "horizon",
    default="24h",
    show_default=True,
    metavar="TIME",
    callback=parse_moment,
    help="Time ahead that is simulated with both configurations; 0 for none.",
)
@assume_runtime_option
@snapshot_option("plan against its scheduler instead of a running one")
@workload_options
@server_options
def command(
    file: Path,
    effects: bool,
    rm: str,
    style: str,
    horizon: int,
    assume_runtime: int | None,
    source: WorkloadSource,
    as_json: bool,
    **options: Any,
) -> int:
    """Show what the queues.yaml FILE would change in a running scheduler, or in that of a --snapshot.

    The plan has the differences in the language of queues; queues, users and groups that use more than they
    may at once; where recent submissions go; and, with --workload, what would have been different then, such
    as last week with history:FILE --since.

    Exit status: 0 when nothing changes, 2 when something does, 1 when the configuration is refused, and for
    any other error.
    """
    try:
        with snapshot_file(options) as snapshot:
            asked = str(options["snapshot"] or options["server"])
            plan = _plan(file, snapshot, asked, rm, source, horizon, assume_runtime)
            plan = attrs.evolve(plan, has_changes=not effects)
    except YunikornError as error:
        if effects:
            raise  # `apply`, which has shown the differences, says what is missing
        for line in str(error).splitlines():
            echo(f"Error: {printable(line)}", err=True)
        return REFUSED
    form = JSON if as_json else style
    echo(
        {TEXT: plan.to_text, MARKDOWN: plan.to_markdown, JSON: plan.to_json}[form](),
        nl=False,
    )
    return plan.status


def _plan(
    file: Path,
    snapshot: Path,
    asked: str,
    rm: str,
    source: WorkloadSource,
    horizon: int,
    assumed: int | None,
) -> Plan:
    folder = next((one for one in source.load_plugins if isinstance(one, Path)), None)
    registry = load_registry().permitting(CodePermission.of_data(folder, source.load_plugins))
    code = CodePermission.of_operator(folder_of(file))
    given = ConfigInput.read(file)
    text = given.source().text
    outcome = given.check(trusting(registry, folder_of(file)))
    plan = Plan(name_of(file), asked)
    if outcome.config is None or outcome.problems:
        return attrs.evolve(plan, problems=[describe(given.name, one) for one in outcome.problems])
    before, after = restored_from(snapshot, registry), restored_from(snapshot, registry)
    manager = _manager(before, rm)
    old_text = before.configuration(manager).text
    old = load_config(old_text, registry)
    lines = [one.text for one in in_words(differences(old, outcome.config), old, outcome.config)]
    try:
        after.reload_configuration(manager, text, code)
    except ConfigError as error:
        return attrs.evolve(plan, problems=[describe(given.name, one) for one in error.problems])
    if not lines:
        return plan
    past = None if source.workload is None else source.read()
    submissions = live_submissions(before) if past is None else past_submissions(past)
    new = (text, trusting(registry, folder_of(file)))
    moved, count = placement_changes((old_text, registry), new, submissions)
    plan = attrs.evolve(
        plan,
        differences=lines,
        leaving=leaving_queues(before, after),
        excesses=new_excesses(before, after),
        placements=moved,
        submissions=count,
    )
    if horizon:
        event = ConfigEvent(0, name_of(file), LocatedText(text), code)
        changes = FirstChanges(rm=manager, config=event)
        assumption = FOREVER if assumed is None else assumed
        answer = WhatIf(before, changes, tuple(lines), None, horizon, assumption).answer()
        plan = attrs.evolve(plan, ahead_title="Ahead", ahead=[*answer.sentences(), *answer.remarks])
    if past is None:
        return plan
    return attrs.evolve(plan, past_title=f"With {source.workload}", past=_past(file, old_text, text, source))


def _manager(scheduler: Scheduler, rm: str) -> str:
    """Return the id of the resource manager whose configuration is planned; raises `UsageError`."""
    known = [one.rm_id for one in scheduler.sessions()]
    if rm and rm not in known:
        raise UsageError(f"there is no resource manager {rm!r}{suggest(rm, known)}; known: {listed(known)}")
    if not known:
        raise UsageError("the scheduler has no resource manager, and so no configuration in use")
    if not rm and len({scheduler.configuration(one).text for one in known}) > 1:
        raise UsageError(f"resource managers have different configurations: give --rm, of {listed(known)}")
    return rm or known[0]


def _past(file: Path, old: str, new: str, source: WorkloadSource) -> list[str]:
    """Run a recorded workload under both configurations, and return the verdict."""
    plans = [VariantPlan(NOW, old), VariantPlan(PLANNED, new, folder_of(file))]
    executor = executor_for(None, len(plans))
    with working(executor, None), progress_of_runs() as on_progress:
        return judge_comparison(
            compare(plans, [Drawn(source)], executor, on_progress=on_progress, with_reasons=False)
        )


for _option in command.params:
    if _option.name == "workload":
        _option.required = False
