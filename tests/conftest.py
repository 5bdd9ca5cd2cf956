"""What all tests share: where the traces are, and how hypothesis works."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from yunikorn.registry import Registry

CHECKOUT = Path(__file__).parent.parent

# Nothing here depends on speed or luck: no deadline, and the same examples in every run. To look for
# new ones: pytest --hypothesis-profile=explore
settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")


@pytest.fixture(scope="session")
def registry() -> Registry:
    """The default plugins, without third parties that happen to be installed. Do not change it."""
    return Registry.load(third_party=False)


@pytest.fixture(scope="session")
def traces() -> Path:
    """The folder of workload traces; the test is skipped where there is none."""
    folder = Path(os.environ.get("YUNIKORN_TRACES", CHECKOUT.parent / "shared" / "traces"))
    if not folder.is_dir():
        pytest.skip("no workload traces here: set YUNIKORN_TRACES to their folder")
    return folder
