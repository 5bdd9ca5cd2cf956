"""Simulation of a workload under a configuration, with its own instance of the core."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Sequence
from functools import partial

import attrs

from yunikorn.clock import ManualClock
from yunikorn.config.load import load_config
from yunikorn.framework.creation import same_folder
from yunikorn.framework.plugin_failures import PluginFailure
from yunikorn.framework.registry import Registry
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.application import Application
from yunikorn.model.context import Timeouts
from yunikorn_commands.input_source import InputError
from yunikorn_lab.simulation.counters import RefusalReason, RefusalReasons
from yunikorn_lab.simulation.engine import Progress, Simulation
from yunikorn_lab.simulation.explain_requests import ExplainRequest, ExplainRequests
from yunikorn_lab.simulation.limit_waits import LimitWaits
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.report import Report
from yunikorn_lab.simulation.simulated_rm import RM_ID
from yunikorn_lab.simulation.workload import RESTART, Workload

PERIODS = Timeouts(retention=0)
"""Timeouts without retention: ended applications are never queried, and long traces have many of them."""


@same_folder()
def simulate(
    config: str,
    workload: Workload,
    registry: Registry,
    *,
    until: int | None = None,
    recorder: Recorder | None = None,
    watch: Callable[[Progress], bool] | None = None,
    preempted: str = RESTART,
    questions: Sequence[ExplainRequest] = (),
    meet: Callable[[Scheduler], None] | None = None,
    limits: LimitWaits | None = None,
    before_decision: Callable[[int], bool] | None = None,
) -> Report:
    """Simulate `workload` under `config` (the text of queues.yaml); raises `ConfigError`.

    Raises `InputError` if a configuration that the workload loads later is invalid. `until`, `recorder`,
    `watch`, `preempted` and `before_decision` are as for `Simulation`. `questions` ask why applications wait;
    the report answers them in their order. `meet` receives the core before the simulation starts, for
    recorders that read its queues, and must not change the core. `limits` measures waits caused by quotas and
    limits, for recorders that read what is blocked. A plugin that changes the working directory has no effect
    on the caller.
    """
    workload = with_checked_reloads(workload, config, registry)
    clock = ManualClock()
    core = Scheduler(registry, clock, PERIODS)
    if meet is not None:
        meet(core)
    explain_requests = ExplainRequests(questions, core, clock, RM_ID)
    simulation = Simulation(
        workload,
        core,
        clock,
        config=config,
        until=until,
        recorder=recorder,
        watch=watch,
        limits=limits or LimitWaits(partial(_find, core)),
        preempted=preempted,
        explain_requests=explain_requests,
        before_decision=before_decision,
    )
    return with_findings(simulation.run(), core, RM_ID, explain_requests)


def with_findings(report: Report, core: Scheduler, rm_id: str, explain_requests: ExplainRequests) -> Report:
    """Return the report of a simulation with what its core knows at the end; closes the core."""
    waiting = _what_stops(core, rm_id)
    rejections = with_near_queues(report.rejections, _leaves(core)) if report.rejections else []
    explanations = explain_requests.answer_rest()
    core.close()
    failures = [_describe(failure) for failure in core.failures]
    return attrs.evolve(
        report, rejections=rejections, waiting=waiting, explanations=explanations, plugin_faults=failures
    )


def with_checked_reloads(workload: Workload, config: str, registry: Registry) -> Workload:
    """Return a workload whose configurations are valid, and have the plugins that are loaded for them.

    What `config` loads is used by later configurations, too, and no file is executed during the simulation.
    Raises `ConfigError` with the problems of `config`, or else `InputError`.
    """
    if not workload.reloads:
        return workload
    # Without its plugins, later configurations would be blamed for loading them.
    loaded = load_config(config, registry).loaded
    problems, events = [], []
    for event in workload.reloads:
        code = event.code.with_loaded(loaded)
        outcome = event.source.check(registry.permitting(code))
        if outcome.config is None:
            problems.append(InputError(event.file, outcome.problems))
        else:
            events.append(attrs.evolve(event, code=code.with_loaded(outcome.config.loaded)))
    if problems:
        raise InputError.joined(problems)
    return attrs.evolve(workload, reloads=events)


def _find(core: Scheduler, partition: str, application: str) -> Application | None:
    at = core.partition(RM_ID, partition)
    return None if at is None else at.partition.applications.get(application)


def _leaves(core: Scheduler) -> list[str]:
    """Return the paths of all leaf queues."""
    queues = (queue for _, at in core.all_partitions() for queue in at.partition.queues.root.walk())
    return sorted({queue.path for queue in queues if queue.is_leaf})


def _what_stops(core: Scheduler, rm_id: str) -> list[RefusalReason]:
    """Return the reasons why tasks wait at the end of the simulation."""
    reasons = RefusalReasons()
    for application, tasks, reason in core.first_reasons(rm_id):
        reasons.add(reason.summary, application, tasks)
    return reasons.ranked()


def _describe(failure: PluginFailure) -> str:
    return f"{failure.message} ({failure.count} times)" if failure.count > 1 else failure.message


_MISSING = re.compile(r"queue (root\.[^ ,;()]+) does not exist")
CUTOFF = 0.6
"""Smallest similarity of a near name, from 0 to 1."""


def with_near_queues(reasons: Sequence[RefusalReason], queues: Collection[str]) -> list[RefusalReason]:
    """Return reasons in which the first queue that does not exist is followed by the nearest leaf queue."""

    def named(found: re.Match[str]) -> str:
        near = difflib.get_close_matches(found[1].lower(), queues, n=1, cutoff=CUTOFF)
        return f"{found[0]} (near: {near[0]})" if near else found[0]

    return [attrs.evolve(each, reason=_MISSING.sub(named, each.reason, count=1)) for each in reasons]
