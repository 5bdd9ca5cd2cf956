"""`yunikorn workload`: draw a workload from named distributions and a seed, and write it as a scenario.

Exit status: 0 when the scenario was written, 2 when the call or the description cannot be used (then nothing
is written).

The options that define a workload are shared by all commands that run one.

Files that a command has written itself and may replace: their last line is a checksum of the others.

A file that was changed by hand, or that the command has not written, is not replaced by accident.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import IO, Any

import attrs
import click
from click.core import ParameterSource

from yunikorn.errors import UsageError, printable
from yunikorn.resources import INT64_MAX
from yunikorn.text import listed
from yunikorn_commands.extras import importing_extra
from yunikorn_commands.input_files import InputFile, hold
from yunikorn_commands.input_source import InputError, SeedWithoutEffect, read_content, yaml_text
from yunikorn_commands.load_plugins import LOAD_PLUGINS
from yunikorn_commands.mistaken_files import explained, explained_nodes
from yunikorn_commands.option_groups import option, option_group, options_of
from yunikorn_commands.output import echo
from yunikorn_commands.path_types import INPUT, OUT_FILE, InputPath, force_file
from yunikorn_history.history_filter import HistoryFilter
from yunikorn_lab.commands.description import (
    ARRIVALS,
    NODE_SIZE,
    NODES,
    QUEUE,
    RUNTIME,
    SIZE,
    STARTUP,
    by_option,
    describe,
    startup_times,
)
from yunikorn_lab.commands.run_options import PastTime, check_out, parse_date
from yunikorn_lab.reporting.tables import duration
from yunikorn_lab.simulation.adjustments import Adjustments, SyntheticRacks
from yunikorn_lab.simulation.batsim import BatsimOptions
from yunikorn_lab.simulation.distributions import Constant
from yunikorn_lab.simulation.openb import GPU_COUNTS, OpenbOptions
from yunikorn_lab.simulation.reader import FORMATS, HISTORY, SCENARIO, read_workload
from yunikorn_lab.simulation.resampling import RESAMPLINGS, resample, shuffle
from yunikorn_lab.simulation.scenario_reader import read_scenario
from yunikorn_lab.simulation.scenario_writer import scenario_lines
from yunikorn_lab.simulation.slurm import SlurmOptions
from yunikorn_lab.simulation.survey import survey
from yunikorn_lab.simulation.swf import JOBS, MEMORY, SwfOptions
from yunikorn_lab.simulation.trace_dependencies import DEPENDENCIES
from yunikorn_lab.simulation.workload import StartUp, Workload

SEAL = "# written by yunikorn; SHA-256 of the lines above: "
"""Beginning of the last line, a comment in YAML."""
_LENGTH = len(SEAL) + 64 + 1
_PIECE = 1 << 20


def is_sealed(path: Path) -> bool:
    """Return True if the file ends in the checksum of its content."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        left = path.stat().st_size - _LENGTH
        while left > 0:
            piece = file.read(min(left, _PIECE))
            if not piece:
                return False
            digest.update(piece)
            left -= len(piece)
        return file.read(_LENGTH + 1) == f"{SEAL}{digest.hexdigest()}\n".encode()


def write_sealed(path: Path, lines: Iterable[str], *, force: bool = False) -> None:
    """Write lines and their checksum; raises `UsageError`, also for an existing file that is not sealed.

    An incomplete file has another name, so that it is not mistaken for the whole. With `force` any file is
    replaced.
    """
    unfinished: Path | None = None
    try:
        if not force and path.exists() and not is_sealed(path):
            raise UsageError(
                f"{path}: exists, and is not as this command has written it: choose another name for "
                "--out, or use --force"
            )
        unfinished, file = _new_file(path)
        with file:
            file.writelines(_sealed(lines))
        unfinished.replace(path)
    except BaseException as error:
        if unfinished is not None:
            with contextlib.suppress(OSError):
                unfinished.unlink()
        if isinstance(error, OSError):
            raise UsageError(f"cannot write {path}: {error.strerror or error}") from error
        raise


def _sealed(lines: Iterable[str]) -> Iterator[str]:
    digest = hashlib.sha256()
    for line in lines:
        if line.startswith(SEAL):
            continue  # the checksum of a description that is written again
        text = f"{line}\n"
        digest.update(text.encode())
        yield text
    yield f"{SEAL}{digest.hexdigest()}\n"


def _new_file(path: Path) -> tuple[Path, IO[str]]:
    """Create a file beside `path` that no other process writes."""
    for number in itertools.count(1):
        unfinished = path.with_name(f"{path.name}.{number}.unfinished")
        with contextlib.suppress(FileExistsError):
            file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            return unfinished, os.fdopen(file, "w", encoding="utf-8", newline="\n")
    raise AssertionError("unreachable")


SWF = SwfOptions()
OPENB = OpenbOptions()
BATSIM = BatsimOptions()
SLURM = SlurmOptions()
PREFIX = f"{HISTORY}:"
OF_HISTORY = ("since", "queue", "user")
"""Options of a history that do not begin with its name."""


class _WorkloadPath(InputPath):
    """Path of a workload, or the text that names a history."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if str(value).startswith(PREFIX) else super().convert(value, param, ctx)


WORKLOAD = _WorkloadPath(dir_okay=True)


def _ratio(_: click.Context, __: click.Parameter, value: str) -> Fraction:
    try:
        return Fraction(value if len(value) <= 40 else "")
    except (ValueError, ZeroDivisionError) as error:
        raise click.BadParameter(f"expected a number such as 10 or 0.25, got '{value[:40]}'") from error


@attrs.frozen(kw_only=True)
class WorkloadSource:
    """Values of the options of a workload; plain data, so that another process can read the same one."""

    workload: InputFile = option(
        required=True,
        type=WORKLOAD,
        help="The workload: a scenario, a trace (SWF, openb, Batsim, Slurm), a folder with openb lists, or "
        "the history of a scheduler (history:FILE or history:postgresql://...).",
    )
    nodes: InputFile | None = option(type=INPUT, help="The nodes, instead of those of the workload.")
    format_: str | None = option(
        type=click.Choice(FORMATS), help="The workload's format, if it is not detected."
    )
    seed: int | None = option(
        type=click.IntRange(0, INT64_MAX), help="Seed of a scenario with `generate`, instead of its own seed."
    )
    resample: str | None = option(
        type=click.Choice(RESAMPLINGS), help="Draw weeks, days or users of a recorded workload with --seed."
    )
    shuffle: int | None = option(
        type=click.IntRange(0, INT64_MAX),
        metavar="SEED",
        help="Shuffle the applications of a list without times.",
    )
    hold: bool = option(default=False, is_flag=True, help="Tasks never end: fill the cluster.")
    speed_up: Fraction = option(
        default=Fraction(1), type=str, metavar="F", callback=_ratio, help="Divide all arrival times by F."
    )
    nodes_fraction: Fraction = option(
        default=Fraction(1),
        type=str,
        metavar="F",
        callback=_ratio,
        help="Use this fraction of the nodes, such as 0.25, or copies of them, such as 2.",
    )
    racks: str | None = option(
        metavar="N[xM]", help="Put the nodes into racks of N nodes, and blocks of M racks: 16 or 16x8."
    )
    gangs: Fraction = option(
        default=Fraction(0),
        type=str,
        metavar="F",
        callback=_ratio,
        help="With --racks: make this part of the applications gangs that ask for a rack or block.",
    )
    startup_delay: str | None = option(
        metavar="TIME|SPEC",
        help="Time from the placement of a task to the begin of its run time, such as 30s or "
        "lognormal,median=20s,sigma=1, for tasks without a time of their own.",
    )
    strict: bool = option(default=False, is_flag=True, help="Refuse a trace with invalid lines.")
    swf_queue: str = option(default=SWF.queue, show_default=True, help="Queue of a trace's jobs.")
    swf_user: str = option(default=SWF.user, show_default=True, help="User of a trace's jobs.")
    swf_group: str = option(default=SWF.group, show_default=True, help="Group of a trace's jobs.")
    swf_memory: str = option(
        default=SWF.memory,
        type=click.Choice(MEMORY),
        show_default=True,
        help="What a trace's memory columns count: per processor, node or job, and the unit.",
    )
    swf_jobs: str = option(
        default=SWF.jobs,
        type=click.Choice(tuple(JOBS)),
        show_default=True,
        help="How the tasks of a trace's job start: all at once, or independently.",
    )
    swf_status: str = option(
        default=SWF.status,
        metavar="STATUS[,STATUS...]",
        show_default=True,
        help="Keep jobs of a trace with these statuses, or leave them out, such as not-cancelled.",
    )
    swf_dependencies: str = option(
        default=SWF.dependencies,
        type=click.Choice(DEPENDENCIES),
        show_default=True,
        help="Which preceding jobs of a trace (column 17) count: auto ignores one that nearly all share.",
    )
    kill_at_limit: bool = option(
        default=SWF.kill_at_limit,
        is_flag=True,
        help="End jobs of a trace at their requested time (column 9).",
    )
    openb_queue: str = option(default=OPENB.queue, show_default=True, help="Queue of a list's pods.")
    openb_user: str = option(default=OPENB.user, show_default=True, help="User of a list's pods.")
    openb_gpus: str = option(
        default=OPENB.gpus,
        type=click.Choice(GPU_COUNTS),
        show_default=True,
        help="How GPUs are counted: in thousandths of all GPUs of a node, or in whole ones.",
    )
    batsim_queue: str = option(default=BATSIM.queue, show_default=True, help="Queue of Batsim jobs.")
    batsim_user: str = option(default=BATSIM.user, show_default=True, help="User of Batsim jobs.")
    slurm_queue: str = option(default=SLURM.queue, show_default=True, help="Queue of Slurm jobs.")
    slurm_user: str = option(default=SLURM.user, show_default=True, help="User of Slurm jobs.")
    slurm_group: str = option(default=SLURM.group, show_default=True, help="Group of Slurm jobs.")
    since: int | None = option(
        metavar="TIME",
        callback=parse_date,
        help="Replay a history from this time on, such as 2026-03-01T12:00, 7d or 'last month'.",
    )
    queue: str = option(default="", help="Applications of a history in this queue and those below.")
    user: str = option(default="", help="Applications of a history of this user.")
    load_plugins: tuple[Path | str, ...] = option(default=(), **LOAD_PLUGINS)
    given: tuple[str, ...] = ()
    """Names of the options that were given on the command line."""

    def read(self) -> Workload:
        """Return the workload after all adjustments; raises `InputError` and `UsageError`."""
        delay = self.startup_delay
        startup = None if delay is None else startup_times(delay)
        racks = None if self.racks is None else SyntheticRacks.of(self.racks, self.gangs)
        if self.gangs and racks is None:
            raise UsageError("--gangs needs racks: give --racks")
        adjustments = Adjustments(self.hold, self.speed_up, self.nodes_fraction, startup, racks)
        adjustments.check()
        self._check_draws()
        try:
            found, drawn = self._read(None if self.resample else self.seed), None
        except SeedWithoutEffect:
            if startup is None or isinstance(startup.distribution, Constant):
                raise
            # Nothing but the start-up times is drawn.
            found, drawn = self._read(None), self.seed
        self._check_options(found.format)
        found = adjustments.apply(self._drawn(found))
        found.reloads = [
            attrs.evolve(event, code=attrs.evolve(event.code, named=self.load_plugins))
            for event in found.reloads
        ]
        return found if drawn is None else attrs.evolve(found, seed=drawn, startup=StartUp(startup, drawn))

    def _read(self, seed: int | None) -> Workload:
        try:
            return self._read_file(seed)
        except InputError as error:
            if self.nodes is not None and error.file == str(self.nodes):
                raise explained_nodes(error, _beginning(self.nodes)) from error
            raise explained(error, _beginning(self.workload), str(self.workload)) from error

    def _read_file(self, seed: int | None) -> Workload:
        return read_workload(
            self.workload,
            format=self.format_ or "",
            nodes=self.nodes,
            swf=SwfOptions(
                self.swf_queue,
                self.swf_user,
                self.swf_group,
                self.swf_memory,
                self.swf_jobs,
                self.swf_status,
                self.kill_at_limit,
                self.swf_dependencies,
            ),
            openb=OpenbOptions(self.openb_queue, self.openb_user, self.openb_gpus),
            batsim=BatsimOptions(self.batsim_queue, self.batsim_user),
            slurm=SlurmOptions(self.slurm_queue, self.slurm_user, self.slurm_group),
            history=HistoryFilter(since=self.since and int(self.since), queue=self.queue, user=self.user),
            strict=self.strict,
            seed=seed,
        )

    def _check_options(self, form: str) -> None:
        """Raise `UsageError` if an option was given that only applies to another format."""
        of = {name: HISTORY if name in OF_HISTORY else name.partition("_")[0] for name in self.given}
        wrong = [name for name, one in of.items() if one in (*FORMATS, HISTORY) and one != form]
        if self.nodes is not None and "openb_gpus" in wrong:
            wrong.remove("openb_gpus")  # the nodes may be an openb list
        if self.strict and form in (SCENARIO, HISTORY):
            wrong.append("strict")
        if wrong:
            options = listed(f"--{name.replace('_', '-')}" for name in wrong)
            applies = "applies" if len(wrong) == 1 else "apply"
            what = "a trace" if wrong == ["strict"] else "another format"
            raise UsageError(f"{options} {applies} to {what}: {self.workload} is a workload of format {form}")

    def _check_draws(self) -> None:
        if self.resample and self.shuffle is not None:
            raise UsageError("--resample and --shuffle exclude each other")
        if self.resample and self.seed is None:
            raise UsageError("--resample draws with a seed: give --seed")

    def _drawn(self, found: Workload) -> Workload:
        if self.resample:
            return resample(found, self.resample, self.seed or 0)
        return found if self.shuffle is None else shuffle(found, self.shuffle)


def _beginning(file: InputFile) -> str:
    """Return the text of a file, to explain an error; empty if it is unreadable."""
    try:
        return read_content(file).decode("utf-8", "replace")
    except InputError:
        return ""


MANY = 500_000
"""Minimum number of applications of which a note says what their simulation takes."""
SECONDS_EACH = 0.0006
"""Approximate processor time of an application with one task, while the cluster has room."""
BYTES_EACH = 180
"""Approximate memory that an application with one task leaves behind."""


def remark_lines(workload: Workload) -> Iterator[str]:
    """Yield the lines about a workload that are printed before its simulation.

    The first line about a large workload comes before the workload is surveyed, which takes a while.
    """
    yield from _size_lines(len(workload.applications))
    surveyed = survey(workload)
    notes = [*workload.remarks, *surveyed.notes, *filter(None, [surveyed.offered_load.note()])]
    yield from (f"note: {printable(note)}" for note in notes)
    yield from (f"warning: {printable(warning)}" for warning in surveyed.warnings)


def _size_lines(applications: int) -> Iterator[str]:
    """Yield a line on what a simulation of many applications takes."""
    if applications >= MANY:
        time, memory = duration(applications * SECONDS_EACH), applications * BYTES_EACH >> 20
        yield (
            f"note: {applications:,} applications: a simulation takes about {time} of processor time and "
            f"{memory:,} MiB of memory, more with several tasks each, or if many wait; --until ends it early"
        )


def workload_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a workload to a command, which receives one argument `source` for them."""
    names = [field.name for field in attrs.fields(WorkloadSource)]

    @functools.wraps(command)
    def call(**arguments: Any) -> Any:
        given = {name: arguments.pop(name) for name in names if name in arguments}
        source_of = click.get_current_context().get_parameter_source
        named = tuple(name for name in given if source_of(name) is ParameterSource.COMMANDLINE)
        end, past = arguments.get("until"), str(given["workload"])
        if isinstance(end, PastTime):
            if not past.startswith(PREFIX):
                raise UsageError(
                    f"--until: a date is for the workload {PREFIX}FILE, expected a simulated time such as 36h"
                )
            arguments["until"] = None
        # A stream is read once, here, and sent to the workers of a comparison.
        if past.startswith(PREFIX):
            with importing_extra("history", f"for --workload {PREFIX}..."):
                from yunikorn_lab.simulation.history_workload import hold_history
            until = int(end) if isinstance(end, PastTime) else None
            given["workload"] = hold_history(past.removeprefix(PREFIX), until)
        given |= {
            name: hold(given[name]) for name in ("workload", "nodes") if isinstance(given.get(name), Path)
        }
        return command(source=WorkloadSource(**given, given=named), **arguments)

    return option_group(*options_of(WorkloadSource))(call)


SPEC = "NAME,OPTION=VALUE,..."
SIZES = "TYPE=AMOUNT"
SEED = click.IntRange(0, INT64_MAX)
words = " ".join


@click.command("workload")
@click.argument("description", required=False, type=INPUT)
@click.option("--seed", type=click.IntRange(0, INT64_MAX), help="Random seed. [default: the file's, or 0]")
@click.option("--applications", type=int, metavar="N", help="Maximum number of applications.")
@click.option("--during", metavar="TIME", help="Time during which applications arrive.")
@click.option("--arrivals", metavar=SPEC, help=f"Distribution of arrivals. [default: {ARRIVALS}]")
@click.option("--tasks", metavar=SPEC, help="Number of tasks per application. [default: 1]")
@click.option("--size", multiple=True, metavar=SIZES, help=f"Resources of a task. [default: {words(SIZE)}]")
@click.option("--runtime", metavar=SPEC, help=f"Runtime of a task. [default: {RUNTIME}]")
@click.option(
    STARTUP,
    metavar=f"TIME|{SPEC}",
    help="Time from the placement of a task to the begin of its run time. [default: 0]",
)
@click.option("--queue", metavar=SPEC, help=f"Queue of an application. [default: {QUEUE}]")
@click.option("--user", metavar=SPEC, help="User of an application. [default: no user]")
@click.option("--gang", metavar="STYLE", help="Gang style of an application: Soft, Hard or Atomic.")
@click.option("--nodes", metavar="N", type=int, help=f"Number of nodes. [default: {NODES}]")
@click.option(
    "--node-size", multiple=True, metavar=SIZES, help=f"Resources of a node. [default: {words(NODE_SIZE)}]"
)
@click.option("--short", is_flag=True, help="Write the description itself, not the generated workload.")
@click.option("--out", type=OUT_FILE, help="Write to this file, not to standard output.")
@force_file
def command(
    description: Path | None,
    seed: int | None,
    short: bool,
    out: Path | None,
    force: bool,
    **options: object,
) -> int:
    """Generate a random workload and write it as a scenario, one line for each application.

    DESCRIPTION is a scenario with `generate`; without it, the options describe one: 1000 applications if
    neither --applications nor --during is given. A distribution is written as its name and its options:
    lognormal,median=10m,sigma=1.2 or choice,1=5,4=3 (each value with its weight) or zipf,names=user,count=20.
    Equal calls give equal scenarios, on every machine.
    """
    check_out(out, "file", force=force)
    given = {name: value for name, value in options.items() if value not in (None, ())}
    if description is not None:
        if given:
            option = next(iter(given)).replace("_", "-")
            raise UsageError(f"--{option} cannot be used with a description: change the description instead")
        file, text = str(description), yaml_text(read_content(description), str(description))
    else:
        file, text = "options", describe(given, seed or 0)
    workload = _read(text, file, description, seed)
    _write(text.splitlines() if short else scenario_lines(workload), out, force=force)
    return 0


def _read(text: str, file: str, description: Path | None, seed: int | None) -> Workload:
    if description is not None:
        try:
            return read_scenario(text, file, description.name, seed=seed)
        except InputError as error:
            raise explained(error, text, file, has_config=False) from error
    try:
        return read_scenario(text, file, "workload")
    except InputError as error:
        raise UsageError("\n".join(map(by_option, error.problems))) from error


def _write(lines: Iterable[str], out: Path | None, *, force: bool) -> None:
    if out is None:
        for line in lines:
            echo(line)
        return
    write_sealed(out, lines, force=force)
