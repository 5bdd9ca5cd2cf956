"""Chaos as a command: `python -m tests.kubernetes.chaos --kills 200 --seed 1`."""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.kubernetes.chaos.faults import FAULTS, KILL, chaos
from tests.kubernetes.cluster import Cluster

AUDIT = "audit.log"


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.kubernetes.chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="kills of the scheduler (default: 200)")
    parser.add_argument("--seed", type=int, default=1, help="seed of load and faults (default: 1)")
    parser.add_argument(
        "--rounds", type=int, default=1, help="how often each other fault happens (default: 1)"
    )
    parser.add_argument(
        "--faults", nargs="*", choices=FAULTS, default=FAULTS, help="the other faults (default: all)"
    )
    parser.add_argument("--outage", type=float, default=30.0, help="seconds without API server (default: 30)")
    given = parser.parse_args()
    faults = [KILL] * given.kills + [*given.faults] * given.rounds
    random.Random(given.seed).shuffle(faults)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="yunikorn-chaos-") as name:
        folder = Path(name)
        with (
            Cluster(folder, api_server_flags=_audit(folder)) as cluster,
            chaos(cluster, folder, given.seed, outage=given.outage, report=_report) as running,
        ):
            try:
                running.run(faults)
                running.finish()
            except AssertionError as error:
                _report(f"{error}\n{_deletions(folder, str(error))}")
                return 1
    starts = running.starts
    _report(
        f"seed {given.seed}: all rules kept, {time.monotonic() - began:.0f} s; faults: {dict(running.counts)}"
    )
    _report(f"changes: {running.changes}")
    if starts:
        _report(
            f"start to first decision: median {statistics.median(starts):.1f} s, at most {max(starts):.1f} s"
        )
    return 0


def _audit(folder: Path) -> list[str]:
    """Return flags with which the API server notes who deletes which pod."""
    rule = {
        "level": "Request",
        "verbs": ["delete", "deletecollection"],
        "resources": [{"resources": ["pods"]}],
    }
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [rule],
    }
    (folder / "audit-policy").write_text(json.dumps(policy), "utf-8")
    return [f"--audit-policy-file={folder / 'audit-policy'}", f"--audit-log-path={folder / AUDIT}"]


def _deletions(folder: Path, text: str) -> str:
    """Return who has deleted the pods that a text names."""
    found = []
    for line in (folder / AUDIT).read_text("utf-8").splitlines():
        entry = json.loads(line)
        if entry["objectRef"].get("name", "?") in text:
            status = entry.get("responseStatus", {}).get("code")
            told = entry["stageTimestamp"], entry["objectRef"]["name"], entry["user"]["username"], status
            found.append(f"deleted: {told} {entry.get('userAgent')} {entry.get('requestObject')}")
    return "\n".join(found)


def _report(text: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
