"""Workloads from scenarios, the project's own YAML format (docs/workloads.md describes every key).

`yunikorn workload` writes such files. The head, up to `applications:`, is read like any scenario. The
applications are read once for validation and again in every simulation, and are never all in memory. This
reader refuses nothing: it leaves files with any unusual content to the general reader of scenarios, which
handles every form and reports errors.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

import attrs

from yunikorn.config.document import Mapping, compose, show
from yunikorn.config.yaml_reading import Findings, YamlTable
from yunikorn.errors import ConfigError, Problem, QuantityError
from yunikorn.resources import INT64_MAX
from yunikorn_commands.input_files import GZIP, HeldInput, InputFile
from yunikorn_commands.input_source import InputError, SeedWithoutEffect, describe, read_content, yaml_text
from yunikorn_lab.simulation.arrivals import Arrivals
from yunikorn_lab.simulation.dependencies import ScenarioDependencies, find_cycles
from yunikorn_lab.simulation.distributions import Constant, DrawnAmounts
from yunikorn_lab.simulation.generator import ApplicationPlan, Generated
from yunikorn_lab.simulation.rng import streams
from yunikorn_lab.simulation.scenario_entries import (
    check_total,
    read_applications,
    read_events,
    read_failures,
    read_nodes,
    read_reloads,
    too_many_applications,
)
from yunikorn_lab.simulation.scenario_generate import known_count, read_plans
from yunikorn_lab.simulation.scenario_keys import (
    APPLICATION,
    MAX_COUNT,
    NAME,
    NOBODY,
    TASK,
    Unusual,
    convert_keys,
)
from yunikorn_lab.simulation.scenario_values import read_count, read_startup
from yunikorn_lab.simulation.workload import (
    ConfigEvent,
    NodeEvent,
    StartUp,
    Workload,
    WorkloadApplication,
    WorkloadNode,
    WorkloadTaskGroup,
)

KEYS = ("name", "seed", "startup", "nodes", "events", "failures", "applications", "generate")
CLUSTER_KEYS = ("name", "seed", "nodes", "events", "failures")


@attrs.frozen
class ScenarioCluster:
    """Nodes, node events, and configurations that are loaded during the simulation."""

    nodes: list[WorkloadNode]
    events: list[NodeEvent] = attrs.Factory(list)
    reloads: list[ConfigEvent] = attrs.Factory(list)


def read_scenario(
    text: str,
    file: str,
    name: str,
    cluster: ScenarioCluster | None = None,
    seed: int | None = None,
    listed: Sequence[WorkloadApplication] | None = None,
) -> Workload:
    """Read the workload of a scenario; raises `InputError` that lists all problems.

    `listed` are the applications of a long scenario of which `text` is only the head. A given `cluster`
    replaces the nodes and node events of the scenario. A given `seed` replaces the seed of the scenario;
    raises `UsageError` if the scenario draws nothing.
    """
    document = _open_text(text, file)
    document.only(KEYS)
    startup = read_startup(document) if "startup" in document else None
    drawn = (
        "generate" in document
        or (cluster is None and "failures" in document)
        or (startup is not None and not isinstance(startup.distribution, Constant))
    )
    if seed is not None and not drawn:
        raise SeedWithoutEffect(
            f"a seed has no effect: {file} contains no random values (it has no generate)"
        )
    own = document.integer("seed", 0, INT64_MAX)
    seed = (own or 0) if seed is None else seed
    if cluster is None:
        cluster = _read_cluster(document, file, seed)
    else:
        reloads = [*read_reloads(document, Path(file).parent), *cluster.reloads]
        cluster = attrs.evolve(cluster, reloads=sorted(reloads, key=lambda event: event.at))
    applications = _read_arrivals(document, seed) if listed is None else listed
    _raise_problems(document, file)
    return Workload(
        document.text("name") or name,
        "scenario",
        cluster.nodes,
        applications,
        cluster.events,
        reloads=cluster.reloads,
        remarks=[describe(event.file, each) for event in cluster.reloads for each in event.source.warnings],
        seed=seed if drawn else None,
        startup=StartUp(startup, seed),
    )


def _read_arrivals(document: YamlTable, seed: int) -> Sequence[WorkloadApplication]:
    wrong = len(document.findings.problems)
    listed, planned = document.tables("applications"), document.tables("generate")
    counts = [read_count(table, MAX_COUNT) for table in listed]
    fits = check_total(
        [*listed, *planned], [*counts, *map(known_count, planned)], MAX_COUNT, too_many_applications
    )
    entries = ScenarioDependencies(is_complete=fits)
    applications = read_applications(listed, counts if fits else [0] * len(counts), entries)
    applications.sort(key=lambda application: application.submit)
    plans = read_plans(planned, [application.id for application in applications], entries)
    if len(document.findings.problems) != wrong:
        return []
    if not plans:
        if not applications:
            document.problem("applications", "contains no applications")
        return applications
    generated = Generated(applications, plans, seed)
    if _check_plans(planned, plans, [plan.known_size() for plan in plans], len(applications)):
        _check_plans(planned, plans, generated.sizes, len(applications))
    return generated


def _check_plans(
    tables: Sequence[YamlTable], plans: Sequence[ApplicationPlan], sizes: Sequence[int], total: int
) -> bool:
    """Return True if the sizes of the plans and the listed applications are not too many in `total`."""
    for table, plan, size in zip(tables, plans, sizes, strict=True):
        total += size
        if total > MAX_COUNT:
            table.problem("count" if plan.during is None else "during", too_many_applications(total))
            return False
    return True


def read_scenario_file(
    path: InputFile, cluster: ScenarioCluster | None = None, seed: int | None = None
) -> Workload:
    """Read the workload of a scenario file as `read_scenario` does, without holding a long file in memory."""
    # A stream is in memory already.
    written = None if isinstance(path, HeldInput) else open_scenario_file(path)
    # Generated ids are checked against all listed ids, so scenarios with `generate` are read as a whole.
    if written is not None and "generate" not in written.head:
        return read_scenario(written.head, str(path), path.name, cluster, seed, listed=written.applications)
    return read_scenario(yaml_text(read_content(path), str(path)), str(path), path.name, cluster, seed)


def read_cluster(text: str, file: str) -> ScenarioCluster:
    """Read a YAML file of nodes and events only; raises `InputError`."""
    document = _open_text(text, file)
    if "partitions" in document and "nodes" not in document:
        document.problem("partitions", "this is a queues.yaml: expected a file with nodes")
        _raise_problems(document, file)
    document.only(CLUSTER_KEYS)
    cluster = _read_cluster(document, file, document.integer("seed", 0, INT64_MAX) or 0)
    _raise_problems(document, file)
    return cluster


def read_startup_text(text: str) -> DrawnAmounts:
    """Read the start-up times of a scenario with this key only; raises `InputError`."""
    document = _open_text(text, "startup")
    found = read_startup(document)
    _raise_problems(document, "startup")
    return found


def _open_text(text: str, file: str) -> YamlTable:
    findings = Findings()
    try:
        root, problems = compose(text)
    except ConfigError as error:
        raise InputError(file, error.problems) from error
    findings.problems.extend(problems)
    if root is None:
        raise InputError(file, [Problem("", "contains only comments")])
    if not isinstance(root, Mapping):
        what = f"expected a mapping with the keys {', '.join(KEYS)}, got {show(root)}"
        raise InputError(file, [Problem("", what, root.line, root.column)])
    return YamlTable("", root, findings)


def _raise_problems(document: YamlTable, file: str) -> None:
    if document.findings.problems:
        ordered = sorted(document.findings.problems, key=lambda problem: (problem.line, problem.column))
        raise InputError(file, ordered)


def _read_cluster(document: YamlTable, file: str, seed: int) -> ScenarioCluster:
    wrong = len(document.findings.problems)
    nodes = read_nodes(document)
    if not nodes and len(document.findings.problems) != wrong:
        # Events name nodes, and each would be reported as one of an unknown node.
        return ScenarioCluster([])
    events = read_events(document, nodes)
    if not nodes and not events and len(document.findings.problems) == wrong:
        document.problem("nodes", "contains no nodes")
    busy = {event.node.name for event in events}
    events += read_failures(document, nodes, busy, streams(seed))
    events.sort(key=lambda event: event.at)
    return ScenarioCluster(nodes, events, read_reloads(document, Path(file).parent))


START = "applications:"
ENTRY = '- {"'
_DEFAULTS = {"submit": 0, "user": NOBODY}
LONGEST_HEAD = 2_000_000
"""Maximum number of lines before the applications."""


@attrs.frozen
class ScenarioFile:
    """A scenario whose applications are read on demand."""

    head: str
    """Text of the scenario up to the applications."""
    applications: FileApplications


def open_scenario_file(path: Path) -> ScenarioFile | None:
    """Open the scenario at `path`; returns None unless it has one application per line in the usual form."""
    try:
        with _open(path) as file:
            head = _read_head(file)
            size = _check(_entries(file))
    except (OSError, EOFError, ValueError, Unusual):
        return None
    return ScenarioFile(head, FileApplications(path, head.count("\n") + 1, size))


class FileApplications(Arrivals):
    """The applications of a file, in the order of the file, which is the order of submission."""

    def __init__(self, path: Path, skip: int, size: int) -> None:
        """Prepare the iteration; `skip` is the number of lines before the first application."""
        self._path = path
        self._place = path.absolute()  # a plugin may change the working directory
        self._skip = skip
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[WorkloadApplication]:
        left = self._size
        try:
            with _open(self._place) as file:
                for application in islice(_entries(islice(file, self._skip, None)), left):
                    yield application
                    left -= 1
        except (OSError, EOFError, ValueError, Unusual) as error:
            raise self._changed() from error
        if left:
            raise self._changed()

    def _changed(self) -> InputError:
        what = "has changed since the simulation started: the file must not change during the run"
        return InputError(str(self._path), [Problem("", what)])


def _open(path: Path) -> IO[str]:
    with path.open("rb") as file:
        packed = file.read(len(GZIP)) == GZIP
    return gzip.open(path, "rt", encoding="utf-8") if packed else path.open(encoding="utf-8")


def _read_head(file: Iterator[str]) -> str:
    lines: list[str] = []
    for line in islice(file, LONGEST_HEAD):
        if line.rstrip() == START:
            return "".join(lines)
        lines.append(line)
    raise Unusual


def _entries(lines: Iterator[str]) -> Iterator[WorkloadApplication]:
    for line in lines:
        if line.startswith(ENTRY):
            yield _convert(json.loads(line[2:], object_pairs_hook=_once, **_AS_TEXT))
        elif line.strip():
            raise Unusual


_AS_TEXT: dict[str, Any] = {"parse_int": str, "parse_float": str}
"""Options that keep numbers as text, because a scenario's amounts and times are parsed from text."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Unusual
    return found


def _check(applications: Iterator[WorkloadApplication]) -> int:
    """Return the number of applications.

    Raises `Unusual` unless ids are unique, times ascend, and all predecessors exist and end before.
    """
    names: set[str] = set()
    after: dict[str, tuple[str, ...]] = {}
    latest = 0
    for application in applications:
        if application.after:
            after[application.id] = application.after
        if application.submit < latest:
            raise Unusual
        latest = application.submit
        before = len(names)
        names.add(application.id)
        if len(names) == before:
            raise Unusual
    known = all(name in names for before in after.values() for name in before)
    if not names or not known or find_cycles(after):
        raise Unusual
    return len(names)


def _convert(found: dict[str, Any]) -> WorkloadApplication:
    """Convert an application; raises `Unusual` for anything but plain valid values."""
    try:
        tasks = tuple([_convert_task(each) for each in found.pop("tasks")])
        made = WorkloadApplication(**{**_DEFAULTS, **convert_keys(found, APPLICATION)}, tasks=tasks)
    except (KeyError, TypeError, ValueError, QuantityError, AttributeError) as error:
        raise Unusual from error
    has_wrong_time = made.timeout if made.has_placeholders else made.patience
    has_wrong_time = has_wrong_time or (made.think and not made.after)
    if (
        has_wrong_time
        or made.has_wrong_least
        or made.has_wrong_step
        or not tasks
        or len({group.name for group in tasks}) < len(tasks)
    ):
        raise Unusual
    return made


def _convert_task(found: dict[str, Any]) -> WorkloadTaskGroup:
    name = NAME.convert(found.pop("name"))
    return WorkloadTaskGroup(name, **{"count": 1, **convert_keys(found, TASK)})
