"""Steps of a decision: executed Python byte-code instructions, counted by purpose.

    python -m benchmarks.steps --case U-fair/1000 --case M-fair

Steps approximate time: one takes about six nanoseconds on the machine of the table in README.md. Unlike time,
steps are equal in every run and on every machine with the same version of Python, so that small changes are
visible. Steps of compiled modules are not counted.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import attrs
import click

from benchmarks.cases import find
from benchmarks.harness import Harness
from benchmarks.machine import python_build
from benchmarks.workload import Workload

COUNTED = 500
"""Number of counted decisions, in the middle of the workload."""

PARTS = (
    ("keys and scores of policies", ("yunikorn_policies/", "extension.py")),
    (
        "who is next: queues and applications",
        ("sorted_members.py", "member_order.py"),
    ),
    ("which node: order and search", ("node_order.py", "node_orders.py", "fit_index.py")),
    (
        "telling the resource manager",
        (
            "interface/delivery.py",
            "rm_partitions.py",
            "outbox.py",
            "changes.py",
            "client_session.py",
            "harness.py",
            "<attrs",
        ),
    ),
    ("accounting", ("yunikorn/model/", "yunikorn/accounting/")),
    ("the cycle itself", ("yunikorn/",)),
)
"""Purposes of code by file name; the first match counts."""


def part_of(code: CodeType) -> str:
    """Return the purpose of a code object."""
    if (
        code.co_name in ("reorder", "_resort_queues", "_resort_applications")
        and "cycle.py" in code.co_filename
    ):
        return PARTS[1][0]
    return next((name for name, files in PARTS if any(one in code.co_filename for one in files)), "other")


def steps_of(call: Callable[[], object]) -> Counter[CodeType]:
    """Return the number of steps of a call by code object."""
    counts: Counter[CodeType] = Counter()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode":
            counts[frame.f_code] += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return counts


def count_steps(
    workload: Workload, decisions: int = COUNTED, harness: Harness | None = None
) -> dict[str, float]:
    """Return the steps per decision by purpose, in the middle of a workload for which `harness` is ready."""
    harness = harness or Harness.ready(workload)
    for update in workload.ask_updates():
        harness.update(update)
    harness.scheduler.schedule(workload.tasks // 2)
    taken = 0

    def decide() -> None:
        nonlocal taken
        taken = harness.scheduler.schedule(decisions)

    counts = steps_of(decide)
    found: dict[str, float] = {name: 0.0 for name, _ in PARTS}
    for code, count in counts.items():
        part = part_of(code)
        found[part] = found.get(part, 0.0) + count / max(1, taken)
    return found


@click.command()
@click.option("--case", "names", multiple=True, default=("U-fair/1000", "M-fair"), metavar="NAME")
@click.option("--metrics", is_flag=True, help="Count and measure for metrics.")
@click.option("--stats", is_flag=True, help="Count and measure the calls of plugins.")
def main(names: tuple[str, ...], metrics: bool, stats: bool) -> None:
    """Count the steps of a decision in these cases."""
    click.echo(python_build())
    for name in names:
        for case in find(name):
            workload = attrs.evolve(case.workload, metrics=metrics or case.workload.metrics, stats=stats)
            found = count_steps(workload)
            click.echo(f"{case.title}: {sum(found.values()):,.0f} steps per decision")
            for part, steps in found.items():
                click.echo(f"  {steps:7,.0f}  {part}")


if __name__ == "__main__":
    main()
