"""A simulated trace of single tasks, jobs and gangs on synthetic racks: decisions per second of CPU time."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Mapping
from fractions import Fraction

import attrs

from benchmarks.failure import BenchmarkFailure
from benchmarks.workload import Workload
from yunikorn.framework.registry import Registry
from yunikorn.interface.constants import GANG_TOPOLOGY_TAG
from yunikorn_lab.reporting.full_report import study
from yunikorn_lab.simulation.adjustments import SyntheticRacks
from yunikorn_lab.simulation.arrivals import Changed
from yunikorn_lab.simulation.scenario_reader import read_scenario
from yunikorn_lab.simulation.workload import WorkloadApplication

RACKS, GANGS = "10x10", Fraction(2, 5)
"""Nodes of a rack and racks of a block; part of the applications that are gangs."""
DEVICES = 8
"""Devices of a node; each task claims one."""


def decisions_per_second(load: Workload) -> Mapping[str, float]:
    """Measure a simulation; without levels, the same gangs may be anywhere."""
    workload = SyntheticRacks.of(RACKS, GANGS).apply(read_scenario(_scenario(load), "trace", "trace"))
    if not load.levels:
        workload.applications = Changed(workload.applications, _anywhere)
    registry = Registry.load(third_party=load.plugins)
    gc.collect()
    start = time.process_time()
    report = study(_configuration(load), workload, registry).report
    spent = time.process_time() - start
    if report.applications.finished != load.applications:
        raise BenchmarkFailure(f"{report.applications.finished:,} of {load.applications:,} finished")
    return {"decisions_per_s": report.decisions / spent, "cpu_s": spent}


def _configuration(load: Workload) -> str:
    root = {"name": "root", "submitacl": "*", "queues": [{"name": "default"}]}
    topology = {"topology": ["block", "rack"]} if load.levels else {}
    return json.dumps(
        {
            "partitions": [
                {"name": "default", "predicates": list(load.predicates), "queues": [root], **topology}
            ]
        }
    )


def _scenario(load: Workload) -> str:
    """Return applications of 1 to 64 tasks that arrive at random and use half of the cluster."""
    node = {"name": "node", "count": load.nodes, "resources": {"vcore": 64}, "devices": {"gpu": DEVICES}}
    tasks = {
        "name": "main",
        "count": {"distribution": "choice", "values": {"1": 6, "4": 2, "16": 1, "64": 1}},
        "resources": {"vcore": 8},
        "claims": {"gpu": 1},
        "runtime": {"distribution": "exponential", "mean": "20m"},
    }
    arrivals = {"process": "poisson", "every": f"{10_000 / load.nodes:g}s"}
    many = {"id": "job", "count": load.applications, "arrivals": arrivals, "queue": "root.default"}
    return json.dumps({"seed": 32, "nodes": [node], "generate": [{**many, "tasks": [tasks]}]})


def _anywhere(application: WorkloadApplication) -> WorkloadApplication:
    tags = {name: text for name, text in application.tags.items() if name != GANG_TOPOLOGY_TAG}
    return attrs.evolve(application, tags=tags)
