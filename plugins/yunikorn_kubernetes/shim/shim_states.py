"""State machines of the shim: application, task, node and scheduler, drawn by `yunikorn states`.

The tables of applications and tasks are those of Apache YuniKorn's Kubernetes shim 1.9, with the events of
the same names. The machines of nodes and of the scheduler are those of its release 0.12.2, whose
documentation ("Scheduler Object States") has all four; later releases replaced these two by a sequence of
calls. Three rows are ours, see docs/decisions/archive/0128-states-of-the-shim.md: an application may fail
while it is resuming, a task whose binding failed waits again, and a bound pod that is first seen enters
`Bound`.
"""

from __future__ import annotations

import logging
from typing import Any

from yunikorn.errors import StateError
from yunikorn.states import Lifecycle, Stateful, TableLifecycle

_log = logging.getLogger("yunikorn.kubernetes.states")

NEW, SUBMITTED, ACCEPTED, RESERVING = "New", "Submitted", "Accepted", "Reserving"
RESUMING, RUNNING, REJECTED, COMPLETED = "Resuming", "Running", "Rejected", "Completed"
FAILING, FAILED, KILLING, KILLED = "Failing", "Failed", "Killing", "Killed"

APPLICATION = TableLifecycle(
    "kubernetes application",
    NEW,
    (
        NEW,
        SUBMITTED,
        ACCEPTED,
        RESERVING,
        RESUMING,
        RUNNING,
        REJECTED,
        COMPLETED,
        FAILING,
        FAILED,
        KILLING,
        KILLED,
    ),
    (
        ("SubmitApplication", (NEW,), SUBMITTED),
        ("AcceptApplication", (SUBMITTED,), ACCEPTED),
        ("TryReserve", (ACCEPTED,), RESERVING),
        ("UpdateReservation", (RESERVING,), RESERVING),
        ("ResumingApplication", (RESERVING,), RESUMING),
        ("AppTaskCompleted", (RESUMING,), RESUMING),
        ("RunApplication", (ACCEPTED, RESERVING, RESUMING, RUNNING), RUNNING),
        ("ReleaseAppAllocation", (RUNNING, ACCEPTED, RESERVING), RUNNING),
        ("ReleaseAppAllocation", (FAILING,), FAILING),
        ("ReleaseAppAllocation", (RESUMING,), RESUMING),
        ("CompleteApplication", (RUNNING,), COMPLETED),
        ("RejectApplication", (SUBMITTED,), REJECTED),
        ("FailApplication", (SUBMITTED, ACCEPTED, RUNNING, RESERVING, RESUMING), FAILING),
        ("FailApplication", (FAILING, REJECTED), FAILED),
        ("KillApplication", (ACCEPTED, RUNNING, RESERVING), KILLING),
        ("KilledApplication", (KILLING,), KILLED),
    ),
)

PENDING, SCHEDULING, ALLOCATED, BOUND = "Pending", "Scheduling", "Allocated", "Bound"

_ALL_OF_TASKS = (NEW, PENDING, SCHEDULING, ALLOCATED, REJECTED, BOUND, KILLING, KILLED, FAILED, COMPLETED)
TASK = TableLifecycle(
    "kubernetes task",
    NEW,
    _ALL_OF_TASKS,
    (
        ("InitTask", (NEW,), PENDING),
        ("SubmitTask", (PENDING,), SCHEDULING),
        ("TaskAllocated", (SCHEDULING,), ALLOCATED),
        ("TaskAllocated", (COMPLETED,), COMPLETED),
        ("TaskBound", (ALLOCATED,), BOUND),
        ("CompleteTask", _ALL_OF_TASKS, COMPLETED),
        ("KillTask", (PENDING, SCHEDULING, ALLOCATED, BOUND), KILLING),
        ("TaskKilled", (KILLING,), KILLED),
        ("TaskRejected", (NEW, PENDING, SCHEDULING), REJECTED),
        ("TaskFail", (NEW, PENDING, SCHEDULING, REJECTED, ALLOCATED), FAILED),
        ("BindFailed", (ALLOCATED,), SCHEDULING),
        ("FoundBound", (NEW, PENDING, SCHEDULING, ALLOCATED, REJECTED, FAILED), BOUND),
    ),
)

TERMINATED = frozenset({REJECTED, KILLED, FAILED, COMPLETED})
"""States of tasks for which nothing more is scheduled."""
UNALLOCATED = frozenset({NEW, PENDING, SCHEDULING})
"""States of tasks whose pods have no node."""

RECOVERING, HEALTHY, DRAINING = "Recovering", "Healthy", "Draining"

NODE = TableLifecycle(
    "kubernetes node",
    NEW,
    (NEW, RECOVERING, ACCEPTED, HEALTHY, REJECTED, DRAINING),
    (
        ("RecoverNode", (NEW,), RECOVERING),
        ("NodeAccepted", (RECOVERING,), ACCEPTED),
        ("NodeReady", (ACCEPTED,), HEALTHY),
        ("NodeRejected", (NEW, RECOVERING), REJECTED),
        ("DrainNode", (HEALTHY, ACCEPTED), DRAINING),
        ("RestoreNode", (DRAINING,), HEALTHY),
    ),
)

REGISTERING, REGISTERED, STOPPED = "Registering", "Registered", "Stopped"

SCHEDULER = Lifecycle(
    "kubernetes scheduler",
    NEW,
    (NEW, REGISTERING, REGISTERED, RECOVERING, RUNNING, STOPPED),
    (
        ("RegisterScheduler", (NEW,), REGISTERING),
        ("RegisterSchedulerSucceed", (REGISTERING,), REGISTERED),
        ("RegisterSchedulerFailed", (REGISTERING,), STOPPED),
        ("RecoverScheduler", (REGISTERED,), RECOVERING),
        ("RecoverSchedulerSucceed", (RECOVERING,), RUNNING),
        ("RecoverSchedulerFailed", (RECOVERING,), STOPPED),
    ),
)

LIFECYCLES: tuple[Lifecycle[Any], ...] = (APPLICATION, TASK, NODE, SCHEDULER)


def fire(lifecycle: Lifecycle[Any], thing: Stateful, event: str, reason: str = "") -> bool:
    """Apply an event; return True if the state allows it.

    An event that the state does not allow is logged with the object, its state and the event, and dropped:
    notices of the API server and of the core may cross each other.
    """
    try:
        lifecycle.fire(thing, event, reason)
    except StateError as error:
        _log.error("%s%s", error, f" ({reason})" if reason else "")
        return False
    return True
