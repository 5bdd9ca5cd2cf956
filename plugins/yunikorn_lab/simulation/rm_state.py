"""State of the simulated resource manager: applications, asks and tasks, with their messages and figures.

Devices of nodes and tasks in a scenario, as the texts by which the predicate `dynamic-resources` decides.

The names of attribute and tag, and the forms of Kubernetes, are those of docs/kubernetes/predicates.md.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

import attrs

from yunikorn.clock import MILLISECOND
from yunikorn.errors import YunikornError
from yunikorn.interface.callback import Callback
from yunikorn.interface.constants import GANG_STEP_TAG
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    RegisterResourceManagerRequest,
    RegisterResourceManagerResponse,
    UpdateRequest,
    UserGroupInformation,
)
from yunikorn.model.gang import ATOMIC
from yunikorn_lab.simulation.rng import Rng
from yunikorn_lab.simulation.statistics import Summary, Waits, seconds
from yunikorn_lab.simulation.workload import FOREVER, WorkloadApplication, WorkloadTaskGroup

SLICES = "yunikorn.apache.org/resource-slices"
"""Attribute of a node."""
CLAIMS = "yunikorn.apache.org/resource-claims"
"""Tag of an ask."""
KEPT = 1024
"""Number of texts that equal tasks share."""
Counts = tuple[tuple[str, int], ...]


def slices_text(node: str, devices: Counts) -> str:
    """Return one slice for each class of devices of a node; the class is also their driver."""
    return _compact(
        [
            {
                "metadata": {"name": f"{node}-{device_class}"},
                "spec": {
                    "driver": device_class,
                    "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                    "nodeName": node,
                    "devices": [{"name": f"{device_class}-{number}"} for number in range(count)],
                },
            }
            for device_class, count in devices
        ]
    )


@lru_cache(maxsize=KEPT)
def claims_text(claims: Counts) -> str:
    """Return one claim with a request for each class."""
    requests = [
        {"name": f"request-{number}", "exactly": {"deviceClassName": device_class, "count": count}}
        for number, (device_class, count) in enumerate(claims)
    ]
    classes = {
        device_class: {"selectors": [{"cel": {"expression": f"device.driver == {json.dumps(device_class)}"}}]}
        for device_class, _ in claims
    }
    claim = {"podClaim": "claims", "spec": {"devices": {"requests": requests}}}
    return _compact({"claims": [claim], "classes": classes})


def _compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


class ProtocolError(YunikornError):
    """An impossible response of the core: an allocation without an ask, or an identifier used twice."""


@attrs.define(eq=False)
class SentAsk:
    """An ask for tasks of one group, as sent to the core."""

    key: str
    group: WorkloadTaskGroup
    waiting: int
    """Number of tasks or placeholders that are not allocated yet."""
    asked: int
    """Time at which the ask was sent (ns)."""


@attrs.define(eq=False)
class Submitted:
    """A submitted application that has not ended."""

    plan: WorkloadApplication
    unfinished: int
    """Number of tasks that have neither ended nor been refused."""
    asks: dict[str, SentAsk] = attrs.Factory(dict)
    places: dict[str, SentAsk] = attrs.Factory(dict)
    """Asks for the placeholders of a gang, by key."""
    running: int = 0
    kept: int = 0
    """Number of allocated placeholders."""
    ended: int = 0
    failed: int = 0
    """Number of tasks that were preempted and are not restarted."""
    restarts: int = 0
    places_lost: int = 0
    """Number of placeholders that lost their allocation and were asked for again."""
    whole: bool = False
    """True if all members of a gang have been allocated at one time, or if the gang was given up."""
    started: bool = False
    """True if a task or a placeholder has been allocated at any time."""
    first_start: int | None = None
    """Start time of the first task (ns)."""
    failing: bool = False
    """True once the core fails the application; lost tasks are not asked for again."""
    startups: dict[str, Rng] = attrs.Factory(dict)
    """Random streams of the start-up times of its tasks, by task group."""
    queue: str = ""
    """Queue assigned by the core; known from the first allocation on."""
    members: dict[str, Running] = attrs.Factory(dict)
    """Running tasks of a rigid job by uuid; only on a cluster whose nodes differ in speed."""
    late: dict[int, LateRequest] = attrs.Factory(dict)
    """Requests that follow later, by their time (ns)."""
    completed: bool = False
    """True once the core has completed the application, although requests follow."""

    @property
    def waiting(self) -> int:
        """Number of tasks that are not allocated."""
        return self.unfinished - self.running

    @property
    def is_unplaced_gang(self) -> bool:
        """True for an Atomic gang of which no member has been placed: all of them must find room at once."""
        return self.plan.gang == ATOMIC and self.first_start is None

    def ask(self, key: str, group: WorkloadTaskGroup, count: int, moment: int) -> SentAsk:
        """Note an ask for `count` tasks of `group`."""
        self.asks[key] = SentAsk(key, group, count, moment)
        return self.asks[key]


class RegisteringCore(Protocol):
    """The part of the scheduler interface that a registration uses."""

    def register_resource_manager(
        self, request: RegisterResourceManagerRequest, callback: Callback
    ) -> RegisterResourceManagerResponse:
        """Register a resource manager."""
        ...


@attrs.define(eq=False)
class LateRequest:
    """Tasks that an application requests at one time after its submission."""

    owner: Submitted
    groups: list[WorkloadTaskGroup] = attrs.Factory(list)


@attrs.define(eq=False)
class Running:
    """A running task."""

    owner: Submitted
    ask: SentAsk
    allocation: Allocation
    started: int
    speed: float = 1.0
    """Speed of its node; of the slowest node for a task of a rigid job."""
    startup: int = 0
    """Time (ns) from its placement to the begin of its run time."""

    @property
    def end(self) -> int:
        """Time at which the task has completed its run time (ns)."""
        runtime = self.ask.group.runtime
        takes = runtime if self.speed == 1.0 else round(runtime / self.speed)
        return self.started + self.startup + takes

    def ran(self, moment: int) -> int:
        """Return the time for which the task has run at `moment`, without its start-up (ns)."""
        return max(moment - self.started - self.startup, 0)

    def rest(self, moment: int) -> WorkloadTaskGroup:
        """Return the group of the task, with the run time and the time limit that are left at `moment`."""
        group = self.ask.group
        runtime, timeout = group.runtime, group.timeout
        if runtime != FOREVER:
            runtime = max(runtime - round(self.ran(moment) * self.speed), 0)
        if timeout:
            timeout = max(timeout - (moment - self.started), 1)
        return attrs.evolve(group, runtime=runtime, timeout=timeout)


PLACEHOLDER = "~placeholder"
"""Marker in the key of a placeholder ask, after the name of its task group."""


def submission(plan: WorkloadApplication) -> AddApplicationRequest:
    """Create the request for an application without its asks; gangs include their scheduling style."""
    tags = dict(plan.tags)
    if steps := {group.name: group.step for group in plan.tasks if group.step}:
        tags[GANG_STEP_TAG] = json.dumps(steps)
    request = AddApplicationRequest(
        plan.id,
        plan.queue,
        plan.partition,
        UserGroupInformation(plan.user, list(plan.groups)),
        tags,
        _milliseconds(plan.patience if plan.has_placeholders else plan.timeout),
    )
    if plan.gang:
        request.gang_scheduling_style, request.placeholder_ask = plan.gang, plan.total
    return request


def ask_for(plan: WorkloadApplication, key: str, group: WorkloadTaskGroup, count: int) -> AllocationAsk:
    """Create an ask for `count` tasks of a group."""
    return AllocationAsk(
        key,
        plan.id,
        plan.partition,
        group.resources,
        count,
        group.priority,
        execution_timeout_ms=_milliseconds(group.timeout),
        tags=_tags(group),
        task_group_name=(group.task_group or group.name) if plan.gang else "",
    )


def _tags(group: WorkloadTaskGroup) -> dict[str, str]:
    found = dict(group.tags)
    if group.claims:
        found[CLAIMS] = claims_text(tuple(group.claims.items()))
    return found


def ask_for_tasks(record: Submitted, groups: Sequence[WorkloadTaskGroup], moment: int) -> list[AllocationAsk]:
    """Create the asks for all tasks of some groups, and enter them into the record of the application."""
    for group in groups:
        record.ask(group.name, group, group.count, moment)
    return [ask_for(record.plan, group.name, group, group.count) for group in groups]


def ask_for_places(
    record: Submitted, groups: Sequence[WorkloadTaskGroup], moment: int
) -> list[AllocationAsk]:
    """Create the asks for placeholders of all tasks of some groups, and enter them into the record."""
    return [ask_for_place(record, group, group.count, moment) for group in groups]


def ask_for_place(record: Submitted, group: WorkloadTaskGroup, count: int, moment: int) -> AllocationAsk:
    """Create an ask for `count` placeholders of a group, and enter it into the application's record."""
    again = f"~{record.places_lost}" if record.places_lost else ""
    key = f"{group.name}{PLACEHOLDER}{again}"
    record.places[key] = SentAsk(key, group, count, moment)
    ask = ask_for(record.plan, key, group, count)
    # Only the task has a run time; the placeholder timeout of the application limits its placeholders.
    ask.placeholder, ask.execution_timeout_ms = True, 0
    return ask


def add_application(request: UpdateRequest, record: Submitted, moment: int) -> None:
    """Add an application to `request`, with the asks for its placeholders if any, else for its tasks."""
    request.new_applications.append(submission(record.plan))
    asks = ask_for_places if record.plan.has_placeholders else ask_for_tasks
    request.asks.extend(asks(record, record.plan.first_tasks, moment))


def _milliseconds(time: int) -> int:
    # Rounded up, because 0 means no limit.
    return -(-time // MILLISECOND)


PREEMPTED = "preempted"
REQUEUED = "requeued"
"""Reason of the loss of a preempted task that starts again, whatever the setting for preempted tasks."""
SUSPENDED = "suspended"
"""Reason of the loss of an allocation whose task continues later."""
RESTARTS = (PREEMPTED, REQUEUED)
"""Reasons of preempted tasks whose work is lost."""
PREEMPTIONS = (*RESTARTS, SUSPENDED)
"""Reasons of preempted tasks."""


@attrs.frozen
class LostWork:
    """Tasks that lost their allocation for one reason, and the total run time lost with it (seconds)."""

    reason: str
    tasks: int
    seconds: float


class LostWorkTotals:
    """Lost work by reason."""

    def __init__(self) -> None:
        self.preempted_places = 0
        """Number of preempted placeholders, which had done no work."""
        self._found: dict[str, tuple[int, int]] = {}

    def add(self, reason: str, ran: int) -> None:
        """Count a task that lost its allocation after running for `ran` nanoseconds."""
        tasks, time = self._found.get(reason, (0, 0))
        self._found[reason] = tasks + 1, time + ran

    def tasks(self, *reasons: str) -> int:
        """Return the number of tasks lost for these reasons."""
        return sum(self._found.get(reason, (0, 0))[0] for reason in reasons)

    def listed(self) -> list[LostWork]:
        """Return the totals in alphabetical order of the reasons."""
        return [
            LostWork(reason, tasks, seconds(time)) for reason, (tasks, time) in sorted(self._found.items())
        ]


@attrs.frozen
class GangReport:
    """Figures on gangs; `submitted` is the sum of `whole`, `given_up` and `waiting`."""

    submitted: int
    whole: int
    """Gangs of which all tasks were allocated at one time, placeholders included."""
    given_up: int
    """Gangs that were resumed without their members, failed, were rejected, or ended before being whole."""
    waiting: int
    wait: Summary | None
    """Time from the first ask to the moment at which the gang was whole."""


class GangFigures:
    """Counters of gangs."""

    def __init__(self) -> None:
        self.submitted = 0
        self.given_up = 0
        self.waits = Waits()

    def report(self) -> GangReport | None:
        """Return the figures, or None if there were no gangs."""
        if not self.submitted:
            return None
        wait = self.waits.summary()
        whole = wait.count if wait is not None else 0
        waiting = self.submitted - whole - self.given_up
        return GangReport(self.submitted, whole, self.given_up, waiting, wait)


def partition_name(partition: str) -> str:
    """Return the partition's name; the empty name stands for `default`."""
    return partition or "default"
