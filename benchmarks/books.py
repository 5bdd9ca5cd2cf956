"""Throughput with predicates that keep books of running tasks, and a check that no limit was exceeded."""

from __future__ import annotations

from collections import Counter

import attrs

from benchmarks.failure import BenchmarkFailure
from benchmarks.harness import Harness
from benchmarks.throughput import hand_in_and_decide
from benchmarks.workload import RACK, Workload


def with_spread(workload: Workload) -> dict[str, float]:
    """Measure with the smallest number of tasks of an application per rack that leaves room for all."""
    racks = -(-workload.nodes // RACK)
    most = -(-workload.tasks // workload.applications // racks) + 1
    spread = f"{{name: spread, attribute: rack, max: {most}}}"
    load = attrs.evolve(workload, predicates=(spread,))
    harness = Harness.ready(load)
    figures = hand_in_and_decide(harness, load)
    load.verify(harness.rm.placed)
    counts = Counter(
        (int(key[1:]) % load.applications, int(node[1:]) // RACK)
        for key, (_, node) in harness.rm.placed.items()
    )
    if max(counts.values()) > most:
        raise BenchmarkFailure(f"a rack has {max(counts.values())} tasks of an application, at most {most}")
    return figures


def with_licences(workload: Workload) -> dict[str, float]:
    """Measure with as many licences of two kinds as all tasks use together."""
    counts = f"{{solver: {workload.tasks}, mesher: {2 * workload.tasks}}}"
    load = attrs.evolve(
        workload,
        predicates=(f"{{name: licences, counts: {counts}}}",),
        tags={"licences": "solver, mesher=2"},
    )
    harness = Harness.ready(load)
    figures = hand_in_and_decide(harness, load)
    load.verify(harness.rm.placed)
    return figures
