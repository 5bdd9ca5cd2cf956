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
    most = _most(workload)
    return _limited(workload, f"{{name: spread, attribute: rack, max: {most}}}", most)


def with_rack_spread(workload: Workload) -> dict[str, float]:
    """Measure the same with the example package, which limits the tasks of each of the two zones as well."""
    most = _most(workload)
    limits = f"{{rack: {most}, zone: {workload.tasks}}}"
    return _limited(
        attrs.evolve(workload, example="yunikorn-rack-spread"),
        f"{{name: rack-spread, limits: {limits}}}",
        most,
    )


def _most(workload: Workload) -> int:
    racks = -(-workload.nodes // RACK)
    return -(-workload.tasks // workload.applications // racks) + 1


def _limited(workload: Workload, predicate: str, most: int) -> dict[str, float]:
    """Measure with a predicate that limits the tasks of an application per rack to `most`."""
    load = attrs.evolve(workload, predicates=(predicate,))
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
    predicate = f"{{name: licences, counts: {counts}}}"
    return _counted(attrs.evolve(workload, tags={"licences": "solver, mesher=2"}), predicate)


def with_user_seats(workload: Workload) -> dict[str, float]:
    """Measure with the example package, and as many seats as there are tasks, all for one user."""
    seats = f"{{solver: {workload.tasks}}}"
    load = attrs.evolve(workload, example="yunikorn-user-seats", tags={"seat": "solver"})
    return _counted(load, f"{{name: user-seats, seats: {seats}, per_user: {seats}}}")


def _counted(workload: Workload, predicate: str) -> dict[str, float]:
    load = attrs.evolve(workload, predicates=(predicate,))
    harness = Harness.ready(load)
    figures = hand_in_and_decide(harness, load)
    load.verify(harness.rm.placed)
    return figures
