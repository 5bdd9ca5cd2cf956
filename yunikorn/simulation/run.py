"""A simulation from a configuration and a workload, with a core of its own."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from yunikorn.clock import ManualClock
from yunikorn.interface.scheduler import Scheduler
from yunikorn.registry import Registry
from yunikorn.scheduling.faults import Fault
from yunikorn.simulation.engine import Progress, Simulation
from yunikorn.simulation.ledger import Reason, Reasons
from yunikorn.simulation.recorder import Recorder
from yunikorn.simulation.report import Report
from yunikorn.simulation.resource_manager import RM_ID
from yunikorn.simulation.workload import Workload


def simulate(
    config: str,
    workload: Workload,
    registry: Registry,
    *,
    until: int | None = None,
    recorder: Recorder | None = None,
    watch: Callable[[Progress], bool] | None = None,
) -> Report:
    """Play `workload` under `config` (the text of queues.yaml); raises `ConfigError`.

    `until`, `recorder` and `watch` are as for `Simulation`.
    """
    clock = ManualClock()
    core = Scheduler(registry, clock)
    simulation = Simulation(workload, core, clock, config=config, until=until, recorder=recorder, watch=watch)
    report = simulation.run()
    waiting = _what_stops(core)
    core.close()
    faults = [_describe(fault) for fault in core.faults]
    return attrs.evolve(report, waiting=waiting, plugin_faults=faults)


def _what_stops(core: Scheduler) -> list[Reason]:
    """Why tasks still wait, at the moment the simulation ends."""
    reasons = Reasons()
    for application, tasks, reason in core.first_reasons(RM_ID):
        reasons.add(reason.summary, application, tasks)
    return reasons.ranked()


def _describe(fault: Fault) -> str:
    return f"{fault.message} ({fault.count} times)" if fault.count > 1 else fault.message
