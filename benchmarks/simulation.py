"""Simulations on a virtual clock with all figures of the report: processor time per application.

Applications arrive at random, one at a time, and their tasks run for exponentially distributed times, on a
cluster that is used to 84 %. In the variant `single` an application has one task, so that almost every
arrival, end of a task and end of an application is an instant of its own.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping

from benchmarks.configuration import leaf_names
from benchmarks.failure import BenchmarkFailure
from benchmarks.workload import Workload, node_name
from yunikorn.clock import MILLISECOND, SECOND
from yunikorn.framework.registry import Registry
from yunikorn.resources import multiply
from yunikorn_lab.reporting.full_report import FullReport, study
from yunikorn_lab.simulation.arrivals import Poisson
from yunikorn_lab.simulation.distributions import (
    Constant,
    Distribution,
    DrawnAmounts,
    Exponential,
    Uniform,
    WeightedChoice,
)
from yunikorn_lab.simulation.generator import ApplicationPlan, Generated, TaskPlan
from yunikorn_lab.simulation.workload import Workload as Simulated
from yunikorn_lab.simulation.workload import WorkloadApplication, WorkloadNode

LOAD = 0.84
"""Part of the cluster that the tasks use on average."""
RUNTIME = 600 * SECOND
"""Mean run time of a task (ns)."""
HELD = 16
"""Number of tasks of the largest size that a node holds."""
SEED = 18


def processor_time(load: Workload) -> Mapping[str, float]:
    """Measure the processor time (seconds) of a simulation, per application and in total, with its report."""
    workload, config = simulated(load), load.configuration()
    registry = Registry.load(third_party=load.plugins)
    gc.collect()
    start = time.process_time()
    result = study(config, workload, registry)
    spent = time.process_time() - start
    _verify(load, result)
    return {"application_s": spent / load.applications, "cpu_s": spent}


def simulated(load: Workload) -> Simulated:
    """Return a workload for the simulation, with the dimensions of `load`."""
    asked = load.asked
    largest = {name: max(size[name] for size in asked) for name in asked[0]}
    nodes = [WorkloadNode(node_name(number), multiply(largest, HELD)) for number in range(load.nodes)]
    share = max(
        sum(size[name] for size in asked) / load.sizes / (largest[name] * HELD * load.nodes)
        for name in largest
    )
    mean = load.tasks / load.applications
    tasks: Distribution = Constant(1) if mean == 1 else Uniform(1, 2 * mean - 1)
    plan = ApplicationPlan(
        WorkloadApplication("a", 0, (), user="user"),
        Poisson(round(RUNTIME * mean * share / LOAD)),
        (
            TaskPlan(
                "t",
                DrawnAmounts(tasks, 1, 1, load.tasks),
                WeightedChoice(asked, [1.0] * load.sizes),
                DrawnAmounts(Exponential(RUNTIME), MILLISECOND, MILLISECOND, 100 * RUNTIME),
            ),
        ),
        load.applications,
        queue=WeightedChoice(leaf_names(load.queues), [1.0] * load.queues),
    )
    return Simulated("benchmark", "generated", nodes, Generated((), [plan], SEED), seed=SEED)


def _verify(load: Workload, result: FullReport) -> None:
    counts, tasks = result.report.applications, result.report.tasks
    if counts.finished != load.applications or tasks.ended != tasks.asked:
        raise BenchmarkFailure(
            f"{counts.finished:,} of {load.applications:,} applications finished, "
            f"{tasks.ended:,} of {tasks.asked:,} tasks ended"
        )
