"""A scheduler that is restored at any moment of a random history goes on as the original does."""

from __future__ import annotations

import os
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.core import test_everything
from tests.core.predicates import plugins
from tests.core.test_everything import Everything
from tests.core.test_held_everything import HeldEverything
from tests.core.test_permit_everything import PermitEverything
from tests.core.test_quota_everything import QuotaEverything
from tests.core.test_reserving_everything import ReservingEverything
from tests.snapshots.mirrored import check_continuing
from tests.topology.test_random_clusters import PATIENCE, STEPS, History
from yunikorn.clock import ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.model.context import CoreContext, Timeouts
from yunikorn_snapshots import state_names

EXAMPLES = int(os.environ.get("YUNIKORN_SNAPSHOTS", "1"))
MACHINES = [Everything, HeldEverything, PermitEverything, QuotaEverything, ReservingEverything]


@pytest.mark.parametrize("machine", MACHINES)
def test_restored_scheduler_goes_on_as_the_original(
    machine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The plugins of the tests are state, like those of this project.
    monkeypatch.setattr(state_names, "PACKAGES", (*state_names.PACKAGES, "tests.core"))

    class Continuing(machine):  # type: ignore[misc]
        """The same machine, whose history copies repeat."""

        def teardown(self) -> None:
            super().teardown()
            if hasattr(self, "rm"):
                check_continuing(self.rm.recorded, plugins(), self.timeouts, tmp_path)

    run_state_machine_as_test(
        Continuing,
        settings=settings(
            test_everything.TestEverything.settings, max_examples=EXAMPLES, phases=[Phase.generate]
        ),
    )


@pytest.mark.parametrize("seed", range(EXAMPLES))
def test_restored_scheduler_goes_on_with_gangs_on_a_topology(seed: int, tmp_path: Path) -> None:
    history = History(seed)
    for _ in range(STEPS):
        history.step()
    timeouts = Timeouts(reservation=None, gang_patience=PATIENCE)
    check_continuing(history.rm.recorded, Registry.load(third_party=False), timeouts, tmp_path, copies=5)


def test_functions_are_found_in_code_that_was_compiled_otherwise() -> None:
    activate = CoreContext.on(ManualClock()).activate
    assert isinstance(activate, FunctionType)
    place = state_names.place_of(activate)
    bare = activate.__code__.replace(co_linetable=b"")
    assert bare != activate.__code__
    assert place == state_names.place_of(FunctionType(bare, {"__name__": activate.__module__}))
