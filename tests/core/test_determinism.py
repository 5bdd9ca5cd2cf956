"""Equal input gives equal output, byte for byte, also in a process with another hash seed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.core.test_storm import STEPS, Storm
from tests.core.twins import ReservingTwins, RetryingTwins, Twins

CHECKOUT = Path(__file__).parents[2]


def print_stories() -> None:
    """Print all responses to the resource manager in a few storms."""
    for kind in (Twins, RetryingTwins, ReservingTwins):
        for seed in range(3):
            storm = Storm(kind, seed, ask_classes=12)
            storm.twins.rm.heard()
            for _ in range(STEPS):
                storm.step()
                sys.stdout.write(f"{storm.twins.rm.responses!r}\n")
                storm.twins.rm.heard()


def test_decisions_are_independent_of_the_hash_seed(
    run_python: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    # The checkout comes last, for the tests package alone: the installed yunikorn is tested.
    code = f"import sys; sys.path.append({str(CHECKOUT)!r}); "
    code += "from tests.core.test_determinism import print_stories; print_stories()"
    told = [run_python("-c", code, cwd=tmp_path, PYTHONHASHSEED=seed) for seed in ("1", "2")]
    assert [one.returncode for one in told] == [0, 0], told[0].stderr
    assert told[0].stdout.count("Allocation(") > 100
    assert told[0].stdout == told[1].stdout
