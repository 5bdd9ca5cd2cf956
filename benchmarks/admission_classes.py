"""Admission classes: a policy that admits a number of applications of each user, with many of them or after
many left.
"""

from __future__ import annotations

from benchmarks.configuration import leaf_names
from benchmarks.stand import Stand
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
"""All applications in one admission class of one queue."""
GONE = Workload(1_000, 10_000, 1, 1, 1, "half-per-user", "fair", samples=4_000)
"""One application, after as many users as there are samples have left."""


def after_users_left(workload: Workload) -> dict[str, float]:
    """The throughput, after users each had an application and removed it."""
    stand = Stand.ready(workload)
    leave(stand, workload.samples)
    figures = hand_in_and_decide(stand, workload)
    workload.verify(stand.rm.placed)
    return figures


def leave(stand: Stand, users: int) -> None:
    """Have so many users, one after the other, run a task in the first leaf queue and leave."""
    leaf, asked = leaf_names(1)[0], GONE.asked[0]
    for number in range(users):
        app_id, ugi = f"gone{number}", UserGroupInformation(f"user{number}", ["group"])
        ask = AllocationAsk("t0", app_id, resource_ask=asked)
        stand.update(
            UpdateRequest(RM, new_applications=[AddApplicationRequest(app_id, leaf, ugi=ugi)], asks=[ask])
        )
        stand.settle()
        stand.update(UpdateRequest(RM, remove_applications=[RemoveApplicationRequest(app_id)]))
    stand.rm.placed.clear()
