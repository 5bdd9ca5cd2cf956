"""Benchmark cases, in the order in which they run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import attrs

from benchmarks import (
    admission_classes,
    backlog,
    books,
    churn,
    cold_start,
    gang_devices,
    gang_trace,
    gangs,
    idle_rms,
    pods,
    preemption,
    recovery,
    reloading,
    simulation,
    stranded,
    throughput,
)
from benchmarks.machine import peak_megabytes, peak_megabytes_of_children, python_build, yardstick
from benchmarks.measurement import Measurement
from benchmarks.pods import Pods
from benchmarks.workload import Workload
from yunikorn_commands.build import kind_of_build


@attrs.frozen
class Case:
    """Workload with a measurement."""

    name: str
    variant: str
    workload: Workload
    measure: Callable[[Workload], Mapping[str, float]]
    counts: str = "tasks_per_s"
    """Name of the main figure, which selects the best of several runs."""

    @property
    def title(self) -> str:
        """Name and variant, the argument of `--case`."""
        return f"{self.name}/{self.variant}" if self.variant else self.name

    def run(self) -> Measurement:
        """Run the case in this process. Raises `BenchmarkFailure` if a decision was wrong."""
        before = yardstick()
        figures = self.measure(self.workload)
        peak = peak_megabytes_of_children() if self.measure is cold_start.seconds else peak_megabytes()
        load = self.workload
        shape: dict[str, int | str] = {
            "python": python_build(),
            "build": kind_of_build(),
            "nodes": load.nodes,
            "tasks": load.tasks,
            "queues": load.queues,
            "applications": load.applications,
            "sizes": load.sizes,
            "app_sort": load.app_sort,
            "node_sort": load.node_sort.partition(",")[0],
            "queue_sort": load.queue_sort,
        }
        return Measurement(self.name, self.variant, shape, figures, peak, (before + yardstick()) / 2)


MEDIUM = Workload(5_000, 50_000, 20, 100, 20, "fair", "fair")
LARGE = Workload(10_000, 100_000, 100, 1_000, 50, "fair", "fair")
ZONED = Workload(5_000, 10_000, 2, 2, 1, "fifo", "fair", one_zone=True)
SELECTORS = ("node-selector", "taints", "any-rack")
TENTH = Workload(5_000, 10_000, 2, 2, 1, "fifo", "fair", one_in=10)
WEIGHTED = "weighted, scores: [{name: fair, weight: 3}, {name: fair, resourceweights: {memory: 1}}]"
"""Node order of two policies, as YAML of `nodesortpolicy`."""
LEAST_LOST_WORK = "{name: least-lost-work, spare: 10, resource: memory}"
UNDECLARED = ("taints", "any-rack", "east-only-silent")


PODS = Pods(5_000, 10_000, 2, 100, 1, "fifo", "fair")
SINGLES = Workload(50, 20_000, 4, 20_000, 4)
MANY_APPS = Workload(5_000, 50_000, 20, 1_000, 1, "fifo", "fair")


def _scheduling() -> list[Case]:
    measure = throughput.tasks_per_second
    cases = [
        Case(f"U-{label}", str(nodes), Workload(nodes, node_sort=policy), measure)
        for label, policy in (("fair", "fair"), ("bin", "binpacking"))
        for nodes in (500, 1_000, 2_000, 5_000)
    ]
    own = attrs.evolve(MEDIUM, app_sort="least-held", queue_sort="most-waiting")
    return [
        *cases,
        Case("U-apps", "", Workload(5_000, applications=100), measure),
        Case("M-fair", "", MEDIUM, measure),
        Case("M-bin", "", attrs.evolve(MEDIUM, node_sort="binpacking"), measure),
        Case("L-fair", "", LARGE, measure),
        Case("L-bin", "", attrs.evolve(LARGE, node_sort="binpacking"), measure),
        Case("M-mixed", "", attrs.evolve(MEDIUM, mixed=True), measure),
        Case("L-mixed", "", attrs.evolve(LARGE, mixed=True), measure),
        Case("E-events", "log", attrs.evolve(MEDIUM, sink="name: log"), measure),
        Case("E-events", "jsonl", attrs.evolve(MEDIUM, sink=f"name: jsonl, path: {os.devnull}"), measure),
        Case("E-events", "ignored", attrs.evolve(MEDIUM, sink="name: ignoring"), measure),
        Case("E-events", "stored", attrs.evolve(MEDIUM, stored=True), measure),
        Case("E-events", "recorded", attrs.evolve(MEDIUM, recorded=True), measure),
        Case("E-events", "unwanted", attrs.evolve(MEDIUM, sink="name: ignoring, wants: []"), measure),
        Case("O-own", "keys", attrs.evolve(own, node_sort="most-free"), measure),
        Case("O-own", "shape", attrs.evolve(own, node_sort="best-fit"), measure),
        Case("O-own", "weighted", attrs.evolve(MEDIUM, node_sort=WEIGHTED), measure),
        Case(
            "A-aware",
            "",
            attrs.evolve(MEDIUM, queues=1, applications=1_000, app_sort="stateaware"),
            measure,
        ),
        Case("A-classes", "many", admission_classes.MANY, measure),
        Case("A-classes", "gone", admission_classes.GONE, admission_classes.after_users_left),
        Case("P-predicates", "declared", attrs.evolve(ZONED, predicates=SELECTORS), measure),
        Case("P-books", "spread", MANY_APPS, books.with_spread),
        Case("P-books", "rack-spread", MANY_APPS, books.with_rack_spread),
        Case("P-books", "licences", MANY_APPS, books.with_licences),
        Case("P-books", "user-seats", MANY_APPS, books.with_user_seats),
        *[
            Case(
                "K-predicates",
                kind,
                Pods(5_000, 10_000, 2, 100, 1, "fifo", "fair", kind=kind),
                pods.tasks_per_second,
            )
            for kind in ("plain", "selector", "spread", "apart")
        ],
        Case("P-predicates", "undeclared", attrs.evolve(ZONED, predicates=UNDECLARED), measure),
        Case("P-predicates", "tenth", attrs.evolve(TENTH, predicates=("one-slot",)), measure),
    ]


def _wire(layout: str) -> Callable[[Workload], Mapping[str, float]]:
    """Return a measurement of throughput over the network; imports its dependencies only when called."""

    def measure(workload: Workload) -> Mapping[str, float]:
        from benchmarks import wire

        return {"ONE": wire.ONE, "SPLIT": wire.SPLIT}[layout](workload)

    return measure


def _beside_rest(*, paced: bool) -> Callable[[Workload], Mapping[str, float]]:
    """Return a measurement of decisions beside REST requests; imports its dependencies only when called."""

    def measure(workload: Workload) -> Mapping[str, float]:
        from benchmarks import rest_load

        return (rest_load.at_a_pace if paced else rest_load.tasks_per_second)(workload)

    return measure


def _gangs() -> list[Case]:
    gang = attrs.evolve(MEDIUM, applications=1_000)
    wide = attrs.evolve(gang, nodes=10_000, tasks=64_000, sizes=1)
    racks = attrs.evolve(wide, nodes=1_000, tasks=8_000, applications=500, rack=10)
    devices = gang_devices.DeviceGangs(10_000, 12_800, 20, 200, 1, "fair", "fair")
    return [
        Case("G-gang", "placeholders", attrs.evolve(gang, app_sort="fifo"), gangs.replacing_placeholders),
        Case("G-gang", "atomic", gang, gangs.placing_as_a_whole),
        *[
            Case("G-gang", name, attrs.evolve(wide, levels=levels), gangs.placing_as_a_whole)
            for name, levels in (("10000", 0), ("10000-1", 1), ("10000-3", 3))
        ],
        *[
            Case(
                "G-gang",
                name,
                attrs.evolve(devices, levels=levels, selector=selector),
                gangs.placing_as_a_whole,
            )
            for name, levels, selector in (
                ("devices-0", 0, ""),
                ("devices-1", 1, ""),
                ("devices-3", 3, ""),
                ("selector-3", 3, gang_devices.SELECTOR),
            )
        ],
        *[
            Case("G-gang", name, attrs.evolve(racks, levels=levels), gangs.placing_as_a_whole)
            for name, levels in (("1000", 0), ("1000-1", 1))
        ],
    ]


def _others() -> list[Case]:
    stuck = attrs.evolve(MEDIUM, tasks=10_000)
    ten = Workload(queues=2, applications=10)
    backlogs = [
        ("500-1000", attrs.evolve(ten, nodes=500, tasks=1_000)),
        ("500-5000", attrs.evolve(ten, nodes=500, tasks=5_000)),
        ("2000-2000", attrs.evolve(ten, nodes=2_000, tasks=2_000)),
        ("scraps", LARGE),
    ]
    busy = attrs.evolve(MEDIUM, tasks=100_000, slack=1 / 0.9, spare=0, samples=60_000)
    full = attrs.evolve(MEDIUM, nodes=1_000, tasks=10_000, queues=5)
    small = Workload(100, 5_000, 2, 2, 1, "fifo", "fair", samples=5_000)
    tree = Workload(1_000, 2_000, 1_000, 1_000, samples=10)
    return [
        Case("T-stranded", "fair", stuck, stranded.tasks_per_second),
        Case("T-stranded", "bin", attrs.evolve(stuck, node_sort="binpacking"), stranded.tasks_per_second),
        *[
            Case("B-backlog", variant, load, backlog.idle_and_release, "release_p50_s")
            for variant, load in backlogs
        ],
        Case("C-churn", "", busy, churn.decision_latency, "decision_p99_s"),
        *_gangs(),
        Case("X-preempt", "standard", full, preemption.tasks_per_second),
        Case(
            "X-preempt",
            "single",
            attrs.evolve(full, nodes=5_000, tasks=50_000),
            preemption.one_at_a_time,
        ),
        Case("X-preempt", "policy", attrs.evolve(full, preemption="least-lost"), preemption.tasks_per_second),
        Case(
            "X-preempt",
            "least-lost-work",
            attrs.evolve(full, preemption=LEAST_LOST_WORK, example="yunikorn-least-lost-work"),
            preemption.tasks_per_second,
        ),
        Case("R-recover", "", LARGE, recovery.registration),
        Case("Q-reload", "", tree, reloading.load_and_reload, "reload_s"),
        *[
            Case(
                "I-idle",
                f"{number}",
                attrs.evolve(small, idle_rms=number),
                idle_rms.decision_latency,
                "decision_p50_s",
            )
            for number in (0, 100, 990)
        ],
        Case("W-wire", "update", MEDIUM, _wire("ONE")),
        Case("W-wire", "split", MEDIUM, _wire("SPLIT")),
        Case("S-rest", "saturated", Workload(1_000, 100_000, 2, 10), _beside_rest(paced=False)),
        Case("S-rest", "paced", Workload(1_000, 800_000, 2, 10), _beside_rest(paced=True)),
        Case("V-virtual", "single", SINGLES, simulation.processor_time, "application_s"),
        *[
            Case(
                "V-virtual",
                f"racks-{name}",
                Workload(1_000, 1_250, 1, 1_250, levels=levels, predicates=predicates),
                gang_trace.decisions_per_second,
                "cpu_s",
            )
            for name, levels, predicates in (
                ("0", 0, ()),
                ("2", 2, ()),
                ("devices", 2, ("dynamic-resources",)),
            )
        ],
        Case("S-start", "", Workload(samples=5), cold_start.seconds, "help_s"),
    ]


CASES: tuple[Case, ...] = (*_scheduling(), *_others())
"""All cases with their default workloads."""
LONG = (
    Case(
        "V-virtual",
        "million",
        Workload(5_000, 1_000_000, 4, 100_000, 20, "fair"),
        simulation.processor_time,
        "application_s",
    ),
)
"""Cases that take minutes; they run only when they are named."""
OWN = Case("own", "", Workload(), throughput.tasks_per_second)
"""Scheduling benchmark whose workload is set by command-line options."""


def find(name: str) -> list[Case]:
    """Return the case with this title, or all variants with this name; empty if there is none."""
    return [case for case in (*CASES, *LONG, OWN) if name in (case.title, case.name)]
