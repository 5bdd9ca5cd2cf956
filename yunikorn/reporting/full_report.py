"""Simulation with the full report: the plain report and the figures of an observer."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import attrs

from yunikorn.clock import SECOND
from yunikorn.framework.registry import Registry
from yunikorn.reporting.application_observation import ApplicationRow
from yunikorn.reporting.figures import Account, Figures, make_account
from yunikorn.reporting.observer import Observer
from yunikorn.reporting.quota_source import CoreQuotaSource
from yunikorn.simulation.engine import Progress
from yunikorn.simulation.explain_requests import ExplainRequest
from yunikorn.simulation.recorder import Recorder, Recorders
from yunikorn.simulation.report import Report
from yunikorn.simulation.run import simulate
from yunikorn.simulation.workload import RESTART, Workload


@attrs.frozen
class FullReport:
    """Complete results of a simulation."""

    report: Report
    account: Account

    @property
    def figures(self) -> Figures:
        """Figures that the full report adds to the plain report."""
        return self.account.figures

    def to_json(self) -> str:
        """Return the plain report and the `figures` as JSON text with a final newline."""
        whole = {**attrs.asdict(self.report), "figures": attrs.asdict(self.figures)}
        return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def study(
    config: str,
    workload: Workload,
    registry: Registry,
    *,
    until: int | None = None,
    recorder: Recorder | None = None,
    rows: Callable[[ApplicationRow], None] | None = None,
    watch: Callable[[Progress], bool] | None = None,
    preempted: str = RESTART,
    questions: Sequence[ExplainRequest] = (),
) -> FullReport:
    """Simulate and observe a workload; options and errors are those of `simulate`.

    `rows` receives the row of each application at its end, and the rows of unfinished applications at the end
    of the simulation.
    """
    quota_source = CoreQuotaSource()
    observer = Observer(quota_source, rows)
    report = simulate(
        config,
        workload,
        registry,
        until=until,
        recorder=Recorders(recorder, observer) if recorder is not None else observer,
        watch=watch,
        preempted=preempted,
        questions=questions,
        meet=quota_source.meet,
    )
    observer.close(round(report.times.stopped * SECOND))
    return FullReport(report, make_account(observer))
