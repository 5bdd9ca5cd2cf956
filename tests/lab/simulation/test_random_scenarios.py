"""Any configuration with any workload runs to its end, with a bounded number of rounds.

A driver of a core sleeps until the core's next timer. A timer that is due again and again would make the
simulator and the service spin, although no decision is wrong.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.simulation.random_scenarios import Rng
from yunikorn.framework.registry import Registry
from yunikorn.interface.scheduler import Scheduler
from yunikorn_lab.simulation.reader import read_workload
from yunikorn_lab.simulation.run import simulate

AT_ONE_INSTANT = 50
IN_ALL = 2500
"""Five times the maximum of 300 such runs."""
SEEDS = (*range(12), 44, 54, 84, 87, 98, 126, 1797, 4387)
"""With seeds that failed once: preemption retried at one instant, once a second, or alternately."""


class Rounds:
    """Counts the rounds of a simulation: each begins by firing the core's timers."""

    def __init__(self) -> None:
        self.total = self.now = 0
        self._instant = -1

    def watch(self, core: Scheduler) -> None:
        """Count the calls of `fire_timers`."""
        fire = core.fire_timers

        def counted() -> int:
            self.now = self.now + 1 if core.clock.now() == self._instant else 1
            self._instant = core.clock.now()
            self.total += 1
            assert self.now <= AT_ONE_INSTANT, f"the core is called again and again at {self._instant} ns"
            assert self.total <= IN_ALL
            return fire()

        core.fire_timers = counted  # type: ignore[method-assign]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_simulation_terminates(seed: int, registry: Registry, tmp_path: Path) -> None:
    draw = Rng(seed, registry)
    file = tmp_path / "workload.yaml"
    file.write_text(draw.workload)
    rounds = Rounds()
    report = simulate(draw.config, read_workload(file), registry, meet=rounds.watch)
    assert rounds.total > 0
    apps = report.applications
    settled = apps.finished + apps.failed + apps.rejected
    assert apps.submitted == settled + apps.running + apps.waiting
    assert not report.plugin_faults
    assert report.preemptions + report.preempted_placeholders <= 3 * report.tasks.asked, "work takes turns"
