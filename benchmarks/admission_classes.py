"""Admission classes: a policy with a limit per user, with many applications or after many users left."""

from __future__ import annotations

from benchmarks.configuration import leaf_names
from benchmarks.harness import Harness
from benchmarks.throughput import hand_in_and_decide
from benchmarks.workload import RM, Workload
from yunikorn.interface.messages import (
    AddApplicationRequest,
    AllocationAsk,
    RemoveApplicationRequest,
    UpdateRequest,
    UserGroupInformation,
)

MANY = Workload(1_000, 10_000, 1, 1_000, 20, "half-per-user", "fair")
"""Workload with all applications in one admission class of one queue."""
GONE = Workload(1_000, 10_000, 1, 1, 1, "half-per-user", "fair", samples=4_000)
"""Workload with one application, after `samples` users have left."""


def after_users_left(workload: Workload) -> dict[str, float]:
    """Measure the throughput after many users each ran and removed an application."""
    harness = Harness.ready(workload)
    leave(harness, workload.samples)
    figures = hand_in_and_decide(harness, workload)
    workload.verify(harness.rm.placed)
    return figures


def leave(harness: Harness, users: int) -> None:
    """Run a task for each of `users` users in the first leaf queue, one after the other, and remove it."""
    leaf, asked = leaf_names(1)[0], GONE.asked[0]
    for number in range(users):
        app_id, ugi = f"gone{number}", UserGroupInformation(f"user{number}", ["group"])
        ask = AllocationAsk("t0", app_id, resource_ask=asked)
        harness.update(
            UpdateRequest(RM, new_applications=[AddApplicationRequest(app_id, leaf, ugi=ugi)], asks=[ask])
        )
        harness.settle()
        harness.update(UpdateRequest(RM, remove_applications=[RemoveApplicationRequest(app_id)]))
    harness.rm.placed.clear()
