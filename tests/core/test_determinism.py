"""Equal input gives equal output, byte for byte, also in a process with another hash seed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.core.compared_scheduler import (
    ComparedScheduler,
    ReservingComparedScheduler,
    RetryingComparedScheduler,
)
from tests.core.test_storm import STEPS, Storm

CHECKOUT = Path(__file__).parents[2]


def print_histories() -> None:
    """Print all responses to the resource manager in a few storms."""
    for kind in (ComparedScheduler, RetryingComparedScheduler, ReservingComparedScheduler):
        for seed in range(3):
            storm = Storm(kind, seed, ask_classes=12)
            storm.compared.rm.take_response()
            for _ in range(STEPS):
                storm.step()
                sys.stdout.write(f"{storm.compared.rm.responses!r}\n")
                storm.compared.rm.take_response()


def test_decisions_are_independent_of_the_hash_seed(
    run_python: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    # The checkout comes last, for the tests package alone: the installed yunikorn is tested.
    code = f"import sys; sys.path.append({str(CHECKOUT)!r}); "
    code += "from tests.core.test_determinism import print_histories; print_histories()"
    reported = [run_python("-c", code, cwd=tmp_path, PYTHONHASHSEED=seed) for seed in ("1", "2")]
    assert [one.returncode for one in reported] == [0, 0], reported[0].stderr
    assert reported[0].stdout.count("Allocation(") > 100
    assert reported[0].stdout == reported[1].stdout
