"""Workloads from scenarios, the project's own YAML format (docs/workloads.md describes every key)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs

from yunikorn.config.document import Mapping, compose, show
from yunikorn.config.reading import Findings, Spot, Table
from yunikorn.errors import ConfigError, Problem, UsageError
from yunikorn.resources import INT64_MAX
from yunikorn.simulation.config_events import ConfigEvent
from yunikorn.simulation.generator import MANY, Generated
from yunikorn.simulation.input_error import InputError
from yunikorn.simulation.rng import streams
from yunikorn.simulation.scenario_applications import read_applications
from yunikorn.simulation.scenario_failures import read_failures
from yunikorn.simulation.scenario_file import open_scenario_file
from yunikorn.simulation.scenario_generate import read_plans
from yunikorn.simulation.scenario_nodes import read_events, read_nodes, read_reloads
from yunikorn.simulation.source import read_content, yaml_text
from yunikorn.simulation.workload import NodeEvent, Workload, WorkloadApplication, WorkloadNode

KEYS = ("name", "seed", "nodes", "events", "failures", "applications", "generate")
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
    document = _open(text, file)
    document.only(KEYS)
    drawn = "generate" in document or (cluster is None and "failures" in document)
    if seed is not None and not drawn:
        raise UsageError(f"a seed has no effect: {file} contains no random values (it has no generate)")
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
        seed=seed if drawn else None,
    )


def _read_arrivals(document: Table, seed: int) -> Sequence[WorkloadApplication]:
    wrong = len(document.findings.problems)
    applications = read_applications(document)
    applications.sort(key=lambda application: application.submit)
    plans = read_plans(document, [application.id for application in applications])
    if len(document.findings.problems) != wrong:
        return []
    if not plans:
        if not applications:
            document.findings.problem(document.spot("applications"), "contains no applications")
        return applications
    generated = Generated(applications, plans, seed)
    for index, (plan, size) in enumerate(zip(plans, generated.sizes, strict=True)):
        if size >= MANY and plan.during is not None:
            entry = Spot(f"generate[{index}].during", document.spot("generate").node)
            document.findings.problem(entry, f"expected fewer than {MANY:,} applications in that time")
    return generated


def read_scenario_file(
    path: Path, cluster: ScenarioCluster | None = None, seed: int | None = None
) -> Workload:
    """Read the workload of a scenario file as `read_scenario` does, without holding a long file in memory."""
    written = open_scenario_file(path)
    # Generated ids are checked against all listed ids, so scenarios with `generate` are read as a whole.
    if written is not None and "generate" not in written.head:
        return read_scenario(written.head, str(path), path.name, cluster, seed, listed=written.applications)
    return read_scenario(yaml_text(read_content(path), str(path)), str(path), path.name, cluster, seed)


def read_cluster(text: str, file: str) -> ScenarioCluster:
    """Read a YAML file of nodes and events only; raises `InputError`."""
    document = _open(text, file)
    document.only(CLUSTER_KEYS)
    cluster = _read_cluster(document, file, document.integer("seed", 0, INT64_MAX) or 0)
    _raise_problems(document, file)
    return cluster


def _open(text: str, file: str) -> Table:
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
    return Table("", root, findings)


def _raise_problems(document: Table, file: str) -> None:
    if document.findings.problems:
        ordered = sorted(document.findings.problems, key=lambda problem: (problem.line, problem.column))
        raise InputError(file, ordered)


def _read_cluster(document: Table, file: str, seed: int) -> ScenarioCluster:
    wrong = len(document.findings.problems)
    nodes = read_nodes(document)
    events = read_events(document, nodes)
    if not nodes and not events and len(document.findings.problems) == wrong:
        document.findings.problem(document.spot("nodes"), "contains no nodes")
    busy = {event.node.name for event in events}
    events += read_failures(document, nodes, busy, streams(seed))
    events.sort(key=lambda event: event.at)
    return ScenarioCluster(nodes, events, read_reloads(document, Path(file).parent))
