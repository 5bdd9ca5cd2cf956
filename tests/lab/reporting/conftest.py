"""Small scenarios, simulated with the real core and observed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from yunikorn.clock import SECOND
from yunikorn.framework.registry import Registry
from yunikorn_lab.reporting.full_report import FullReport, study
from yunikorn_lab.reporting.observations import ApplicationRow
from yunikorn_lab.simulation.scenario_reader import read_scenario

CONFIG = """
partitions:
  - name: default
    preemption: {enabled: false}
    periods: {gangpatience: %s}
    queues:
      - name: root
        submitacl: "*"
        queues:
%s
"""
ONE = "          - {name: a}"


@pytest.fixture
def observe(registry: Registry) -> Callable[..., FullReport]:
    """Return a function that simulates a scenario; `queues` are YAML lines, `until` is in seconds.

    `patience` is the time after which a gang is overdue.
    """

    def run(
        scenario: str,
        queues: str = ONE,
        *,
        until: float | None = None,
        patience: str = "1h",
        rows: Callable[[ApplicationRow], None] | None = None,
        **more: Any,
    ) -> FullReport:
        workload = read_scenario(scenario, "scenario.yaml", "test")
        end = None if until is None else round(until * SECOND)
        return study(CONFIG % (patience, queues), workload, registry, until=end, rows=rows, **more)

    return run
