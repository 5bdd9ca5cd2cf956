"""Tests of the audit that checks all simulations of the tests: it detects errors."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from tests.audit import AuditedSimulation
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import Allocation
from yunikorn.resources import Resource
from yunikorn_lab.simulation import run
from yunikorn_lab.simulation.engine import Simulation
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.report import Report
from yunikorn_lab.simulation.scenario_reader import read_scenario

CONFIG = """
partitions:
  - name: default
    queues: [{name: root, submitacl: "*", queues: [{name: default, resources: {max: {vcore: 2}}}]}]
"""
SCENARIO = """
nodes: [{name: n, resources: {vcore: 3}}]
applications: [{id: a, queue: root.default, tasks: [{count: 3, resources: {vcore: 1}, runtime: 9}]}]
"""


class Forger(Recorder):
    """Changes calls on their way to the audit."""

    def __init__(self, forge: Callable[[Allocation], None]) -> None:
        self._forge = forge

    def allocated(self, moment: int, allocation: Allocation) -> None:
        """Report another placement."""
        self._forge(allocation)


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        ({"resource_per_alloc": Resource(vcore=3001)}, "n is over its vcore"),
        ({"resource_per_alloc": Resource(vcore=2001)}, "root.default is over its"),
        ({"resource_per_alloc": Resource(memory=1)}, "n is over its memory"),
        ({"uuid": "same"}, "same was used twice"),
    ],
)
def test_excess_over_a_limit_is_detected(
    change: dict[str, object], reported: str, registry: Registry
) -> None:
    def forge(allocation: Allocation) -> None:
        for name, value in change.items():
            setattr(allocation, name, value)

    assert vars(run)["Simulation"] is AuditedSimulation
    with pytest.raises(AssertionError, match=reported):
        run.simulate(CONFIG, read_scenario(SCENARIO, "file", "name"), registry, recorder=Forger(forge))


def test_inconsistent_report_is_detected(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    play = Simulation.run

    def miscount(self: Simulation) -> Report:
        report = play(self)
        return attrs.evolve(report, tasks=attrs.evolve(report.tasks, ended=report.tasks.ended + 1))

    monkeypatch.setattr(Simulation, "run", miscount)
    with pytest.raises(AssertionError):
        run.simulate(CONFIG, read_scenario(SCENARIO, "file", "name"), registry)
