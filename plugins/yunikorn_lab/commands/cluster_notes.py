"""Notes about configurations that the nodes of a workload do not fit, printed before a simulation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from yunikorn.config.load import check_config
from yunikorn.errors import Problem, printable
from yunikorn.framework.registry import Registry
from yunikorn_commands.input_source import LINES_SHOWN, describe
from yunikorn_lab.cluster_check import Capacities, check_cluster
from yunikorn_lab.simulation.cluster_size import largest_capacities
from yunikorn_lab.simulation.workload import Workload


def cluster_notes(configs: Iterable[tuple[str, str, Registry]], workload: Workload) -> list[str]:
    """Return what `validate --nodes` says about configurations, given by name, text and registry.

    Variants of one configuration share most findings: each is returned once, with the first name.
    """
    capacities = largest_capacities(workload.nodes, workload.events)
    seen: set[Problem] = set()
    notes: list[str] = []
    for name, text, registry in configs:
        found = [each for each in _findings(text, registry, capacities) if each not in seen]
        notes += [describe(name, each) for each in found[:LINES_SHOWN]]
        if len(found) > LINES_SHOWN:
            notes.append(f"{name}: {len(found) - LINES_SHOWN} more findings like these")
        seen.update(found)
    return [f"note: {printable(note)}" for note in notes]


def _findings(text: str, registry: Registry, capacities: Capacities) -> Iterator[Problem]:
    """Yield what only the comparison with the cluster finds.

    Lines are left out: the text may be part of a ConfigMap, or changed by `--set`.
    """
    alone = check_config(text, registry)
    compared = check_config(text, registry, [partial(check_cluster, capacities)])
    known = set(alone.warnings)
    for one in (*compared.warnings, *compared.hints):
        if one not in known:
            yield one._replace(line=0, column=0)
