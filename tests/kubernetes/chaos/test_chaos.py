"""Kills and failures of the API server; `python -m tests.kubernetes.chaos` runs more of them."""

from __future__ import annotations

import random
from pathlib import Path

from tests.example_counts import examples
from tests.kubernetes.chaos.faults import KILL, chaos
from tests.kubernetes.cluster import Cluster

KILLS = examples(4)
SEED = 17
FAULTS = ("kill-server", "outage")
"""Faults beside kills of the scheduler: watches continue after the first, and expire in the second.

The command adds those that take longer: leaders, disorder and restarts.
"""


def test_kills_and_failures_of_the_server_break_no_rule(cluster: Cluster, tmp_path: Path) -> None:
    faults = [KILL] * KILLS + [*FAULTS]
    random.Random(SEED).shuffle(faults)
    with chaos(cluster, tmp_path, SEED) as running:
        running.run(faults)
        running.finish()
    assert running.counts[KILL] == KILLS
