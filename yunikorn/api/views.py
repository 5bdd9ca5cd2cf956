"""Read-only views of the objects of the scheduler, and the events it records."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

import attrs

from yunikorn.resources import Resource


class UsageView:
    """Decayed usage of users, groups, queues and tags in a partition, for sort policies with `usage_by`."""

    def recent(self, kind: str, name: str) -> Mapping[str, float]:
        """Return allocated resources times seconds by type, like `PastService.recent`; empty for no usage.

        `kind` is one of those that the policy names in `usage_by`: `user`, `group`, `queue` with a full path,
        which includes the queues below, or `tag:TAG` with a value of that tag of applications. Raises
        `ValueError` for another kind.
        """
        raise ValueError(f"set usage_by and half_life of the policy to read usage by {kind}")


NO_USAGE = UsageView()
"""Usage for a policy that reads none."""


class Queue(Protocol):
    """Read-only view of a queue."""

    @property
    def path(self) -> str:
        """Full path in lower case, such as `root.a.b`."""
        ...

    @property
    def guaranteed(self) -> Mapping[str, int]:
        """Guaranteed resources from the configuration; empty if there are none."""
        ...

    @property
    def max(self) -> Mapping[str, int] | None:
        """Quota in force: that of the quota policy of the queue, else the configured one; or None.

        A resource type that is missing is unlimited.
        """
        ...

    @property
    def configured_max(self) -> Mapping[str, int] | None:
        """Quota from the configuration, or None; None for root."""
        ...

    @property
    def unused_by_siblings(self) -> Mapping[str, int]:
        """Amounts that the siblings leave of their configured max: neither used nor requested by them.

        What other siblings use above their own configured max is subtracted. Only for quota policies with
        `watches_siblings`; else empty.
        """
        ...

    @property
    def fair_max(self) -> Mapping[str, int]:
        """Cluster size, overlaid by the quotas of the queues from root down to this one.

        Fair shares are computed relative to this amount.
        """
        ...

    @property
    def total(self) -> Mapping[str, int]:
        """Total capacity of all nodes of the partition."""
        ...

    @property
    def allocated(self) -> Mapping[str, int]:
        """Resources allocated in this queue and below, including placeholders."""
        ...

    @property
    def pending(self) -> Mapping[str, int]:
        """Resources of the pending asks in this queue and below; computed on every access."""
        ...

    @property
    def demand(self) -> Mapping[str, int]:
        """Sum of `allocated` and `pending`; kept up to date, so cheaper to read than `pending`."""
        ...

    @property
    def recent(self) -> Mapping[str, float]:
        """Decayed usage of this queue: allocated resources times seconds, per resource type.

        Half of the sum decays every `half_life` seconds of the policy that orders this queue among its
        siblings. Empty if that policy has no `half_life`.
        """
        ...

    @property
    def usage(self) -> UsageView:
        """Recent usage by owner, for the policy that orders this queue among its siblings."""
        ...

    @property
    def priority(self) -> int:
        """Priority that the parent uses: that of the pending asks, after this queue's policy and offset."""
        ...

    @property
    def properties(self) -> Mapping[str, str]:
        """Effective properties, including those inherited from the queues above."""
        ...

    @property
    def parent(self) -> Queue | None:
        """Parent queue; None for root."""
        ...

    @property
    def is_leaf(self) -> bool:
        """True if the queue has applications, False if it has queues below."""
        ...


@attrs.frozen(slots=True)
class PastService:
    """Service that an application has received so far, and its tasks that have ended.

    After a restart of the scheduler there is only the service of what runs, from its start.
    """

    served: Mapping[str, float] = MappingProxyType({})
    """Allocated resources times seconds, by type, ended allocations and placeholders included.

    Grows with time alone, so a sort policy that reads it sets `refresh_every`."""
    recent: Mapping[str, float] = MappingProxyType({})
    """Decayed usage: like `served`, but half of the sum decays every `half_life` seconds of the sort policy.

    Empty if the policy that orders the application in its queue has no `half_life`."""
    ended: int = 0
    """Number of tasks that have ended in any way; without placeholders."""
    completed: int = 0
    """Number of these tasks that the resource manager ended by itself: neither preempted nor timed out."""
    completed_time: int = 0
    """Sum of the run times of the completed tasks (ns)."""


class Application(Protocol):
    """Read-only view of an application."""

    @property
    def id(self) -> str:
        """Identifier, unique in the partition."""
        ...

    @property
    def user(self) -> str:
        """Name of the user who submitted the application."""
        ...

    @property
    def groups(self) -> Sequence[str]:
        """Groups of the user, the primary group first."""
        ...

    @property
    def queue_name(self) -> str:
        """Queue requested at submission, as written."""
        ...

    @property
    def queue(self) -> Queue | None:
        """Queue the application is placed in; None during placement."""
        ...

    @property
    def tags(self) -> Mapping[str, str]:
        """Tags set by the resource manager."""
        ...

    @property
    def state(self) -> str:
        """State, such as `New`, `Accepted`, `Starting` or `Running`; see `docs/states.md`."""
        ...

    @property
    def arrival(self) -> int:
        """Number in the order of arrival in the partition, unique and increasing."""
        ...

    @property
    def submitted(self) -> int:
        """Submission time: arrival in the core, or the earliest creation time of its asks (ns)."""
        ...

    @property
    def priority(self) -> int:
        """Highest priority of the pending asks; the lowest int32 if there are none."""
        ...

    @property
    def allocated(self) -> Mapping[str, int]:
        """Allocated resources, including placeholders."""
        ...

    @property
    def pending(self) -> Mapping[str, int]:
        """Resources of the pending asks; computed on every access."""
        ...

    @property
    def demand(self) -> Mapping[str, int]:
        """Sum of `allocated` and `pending`; kept up to date, so cheaper to read than `pending`."""
        ...

    @property
    def fair_total(self) -> Mapping[str, int]:
        """Denominator of the fair share: per type, the queue's guarantee, else the partition's total."""
        ...

    @property
    def waiting_since(self) -> int:
        """Time of the last allocation, or of submission if there is no allocation yet (ns)."""
        ...

    @property
    def allocations(self) -> Mapping[str, Allocation]:
        """Allocations by uuid, including placeholders."""
        ...

    @property
    def allocations_by_node(self) -> Mapping[str, Sequence[Allocation]]:
        """Allocations by the id of their node; computed on every access."""
        ...

    @property
    def usage(self) -> UsageView:
        """Recent usage by owner, for the policy that orders the application in its queue."""
        ...

    @property
    def past(self) -> PastService:
        """Service that the application has received, and its ended tasks; made on every access."""
        ...


class Task(Protocol):
    """Read-only view of what requests and allocations have in common: one task of an application."""

    @property
    def key(self) -> str:
        """Identifier of the request, unique in the application."""
        ...

    @property
    def app(self) -> Application:
        """Application that the task belongs to; for a foreign task an owner with an empty id and no queue."""
        ...

    @property
    def foreign(self) -> bool:
        """True for a task that is not scheduled here; only plugins with `counts_foreign` get such tasks."""
        ...

    @property
    def resource(self) -> Resource:
        """Resources of each allocation made for the request."""
        ...

    @property
    def priority(self) -> int:
        """Priority; a higher value is more urgent."""
        ...

    @property
    def tags(self) -> Mapping[str, str]:
        """Tags set by the resource manager."""
        ...

    @property
    def task_group(self) -> str:
        """Name of the task group in a gang; empty without one."""
        ...

    @property
    def placeholder(self) -> bool:
        """True for a placeholder, which reserves room for a real task of its task group."""
        ...

    @property
    def originator(self) -> bool:
        """True for the originator (driver) of the application."""
        ...

    @property
    def execution_timeout(self) -> int:
        """Maximum run time once placed (ns); 0 means unlimited."""
        ...


class Ask(Task, Protocol):
    """Read-only view of a request for resources."""

    @property
    def created(self) -> int:
        """Creation time (ns)."""
        ...

    @property
    def required_node(self) -> str:
        """Id of the only node that may run the task; empty without this requirement."""
        ...


class Allocation(Task, Protocol):
    """Read-only view of resources of a node that are assigned to an application."""

    @property
    def uuid(self) -> str:
        """Identifier, unique in the partition."""
        ...

    @property
    def node(self) -> Node:
        """Node that runs the task."""
        ...

    @property
    def placed(self) -> int:
        """Time of placement (ns); after a recovery, as `created`."""
        ...

    @property
    def created(self) -> int:
        """Creation time of the request as the resource manager reports it, else `placed` (ns)."""
        ...


class AskClass(Protocol):
    """Common properties of a class of equivalent requests, for node sorting."""

    @property
    def resource(self) -> Resource:
        """Resources of each request of the class."""
        ...

    @property
    def value(self) -> Hashable:
        """Result of the policy's `ask_class(ask)` for each request of the class; None if there is none."""
        ...


class Node(Protocol):
    """Read-only view of a node."""

    @property
    def id(self) -> str:
        """Identifier, unique in the partition."""
        ...

    @property
    def attributes(self) -> Mapping[str, str]:
        """Attributes set by the resource manager."""
        ...

    @property
    def capacity(self) -> Mapping[str, int]:
        """Total resources; contains no zero entries."""
        ...

    @property
    def allocated(self) -> Mapping[str, int]:
        """Resources of the allocations that this scheduler made or recovered."""
        ...

    @property
    def occupied(self) -> Mapping[str, int]:
        """Resources used by anything that this scheduler did not place."""
        ...

    @property
    def available(self) -> Mapping[str, int]:
        """Capacity minus allocated and occupied; may be negative after the node has shrunk."""
        ...

    @property
    def allocations(self) -> Mapping[str, Allocation]:
        """Allocations on the node by uuid, including placeholders."""
        ...


@attrs.frozen(slots=True)
class Event:
    """Event of the scheduler, with the fields of YuniKorn's event protocol."""

    type: str
    """`REQUEST`, `APP`, `NODE`, `QUEUE`, `USERGROUP`, or `PLUGIN` (not in YuniKorn) for a plugin failure."""
    object_id: str
    """Key of the ask, id of the application, node or user, path of the queue, or name of the plugin."""
    reference_id: str = ""
    message: str = ""
    change: str = "NONE"
    """Kind of change: `NONE`, `SET`, `ADD` or `REMOVE`."""
    detail: str = "DETAILS_NONE"
    """Detail of the change, such as `APP_ALLOC`."""
    resource: Mapping[str, int] | None = None
    timestamp: int = 0
    """Time of the event (ns)."""
    reason: str = ""
    """Machine-readable reason such as `InsufficientQueueResources`, for events whose `detail` gives none."""
    application_id: str = ""
    """Application of the allocation or ask that the event is about (not in YuniKorn)."""
    queue: str = ""
    """Path of that application's queue (not in YuniKorn)."""
    node_id: str = ""
    """Node of the allocation that the event is about (not in YuniKorn)."""


class ResourceManager(Protocol):
    """Resource manager of a partition, called through its callback.

    An operation that the callback does not implement is skipped: it refuses nothing, and events are dropped.
    An exception of the callback propagates from these methods. The report of the failure names the resource
    manager.
    """

    @property
    def answers_at_once(self) -> bool:
        """True if the callback prefers one call for many nodes."""
        ...

    @property
    def preemption_modes(self) -> Collection[str]:
        """Modes of preemption that the resource manager can carry out; `end` is always among them."""
        ...

    def refusal(self, ask: Ask, node: Node, *, allocate: bool) -> str | None:
        """Return None if the callback accepts the request on the node, else its reason.

        `allocate` is True for an allocation, False for a reservation.
        """
        ...

    def refusals(self, ask: Ask, nodes: Sequence[Node], *, allocate: bool) -> Sequence[str | None]:
        """Return the answers of `refusal` for several nodes, one per node, in order."""
        ...

    def send_events(self, batch: Sequence[Event]) -> None:
        """Send events to the callback, oldest first."""
        ...
