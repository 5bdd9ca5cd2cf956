"""Base classes of plugins that handle an application as it arrives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Protocol

import attrs

from yunikorn.api.base import Plugin, Wait
from yunikorn.api.views import Application, Queue
from yunikorn.resources import Resource


@attrs.frozen
class Submission:
    """An application as submitted, before it is placed in a queue.

    A submit policy changes it with `attrs.evolve`; `id`, `user`, `groups` and the two attributes of the gang
    cannot be changed.
    """

    id: str
    """Identifier, unique in the partition."""
    user: str
    """Name of the user who submitted the application."""
    groups: tuple[str, ...] = ()
    """Groups of the user, the primary group first."""
    queue_name: str = ""
    """Requested queue, as written; placement rules may use it."""
    tags: Mapping[str, str] = attrs.field(factory=dict)
    """Tags set by the resource manager. Do not modify the mapping; replace it."""
    priority: int | None = None
    """Priority that replaces that of all asks of the application; None leaves the priority of each ask."""
    gang_total: Mapping[str, int] = attrs.field(factory=dict)
    """Total resources of the tasks of the gang; empty without a gang."""
    gang_style: str = ""
    """Gang scheduling style as submitted; empty without one."""


@attrs.frozen
class AskSubmission:
    """A request as submitted, before it waits in its application.

    A submit policy changes its priority with `attrs.evolve`; nothing else of it can be changed.
    """

    key: str
    """Identifier, unique in the application. A known key changes the request that has it."""
    app: Application
    """Application of the request, in its queue. A policy that may block gets a copy without allocations."""
    resource: Resource
    """Resources of each allocation made for the request."""
    count: int = 1
    """Number of allocations wanted."""
    priority: int = 0
    """Priority as submitted, or that which a submit policy has given to the application."""
    tags: Mapping[str, str] = attrs.field(factory=dict)
    """Tags set by the resource manager."""
    task_group: str = ""
    """Name of the task group in a gang; empty without one."""
    placeholder: bool = False
    """True for a placeholder, which reserves room for a real task of its task group."""
    originator: bool = False
    """True for the originator (driver) of the application."""


@attrs.frozen(slots=True)
class Refused:
    """Answer of a placement rule that rejects the application; no later rule is tried."""

    reason: str
    """Reason, as shown to users."""


class QueueTree(Protocol):
    """Read-only view of the queues of a partition.

    In a dry run (`yunikorn place`) these are the queues of the configuration.
    """

    def get(self, path: str) -> Queue | None:
        """Return the queue with this full path, ignoring case, or None."""
        ...

    def children(self, path: str) -> Sequence[Queue]:
        """Return the children of a queue, sorted by name; empty for a leaf or an unknown queue."""
        ...


class SubmitPolicy(Plugin):
    """Base class of policies that check and change applications before they are placed in a queue.

    A policy for requests only leaves applications as they are: its `submit` returns None.
    """

    blocking: ClassVar[bool] = True
    """False if `submit` and `submit_ask` never wait for anything: a service then calls them in the core's
    thread, else in a worker thread (`docs/decisions/archive/0076`)."""
    calls_at_once: ClassVar[int] = 1
    """Maximum number of worker threads that call the policy at the same time."""

    def submit(self, app: Submission) -> Submission | str | None:
        """Return None to leave `app` as it is, a changed copy of `app`, or the reason for a rejection.

        The policies of a partition are called in order; each receives the result of the previous one.
        """
        raise TypeError(f"{type(self).__name__} has no submit(app)")

    def submit_ask(self, ask: AskSubmission) -> AskSubmission | str | None:
        """Return None to leave `ask` as it is, a copy with another priority, or the reason for a rejection.

        Called for each request, also those that come later, and again when a request is changed; not for
        tasks that run already. The policies are called in order, and only those that override this method.
        """
        return None


class AdmissionPolicy(Plugin):
    """Base class of policies that decide when an application may be scheduled."""

    blocking: ClassVar[bool] = False
    """True if `admit` may wait, for example for a network: a service then calls it in a worker thread. The
    argument of `admit` is a copy without allocations, also where there are no workers
    (`docs/decisions/archive/0076`)."""
    calls_at_once: ClassVar[int] = 1
    """Maximum number of worker threads that call `admit` at the same time."""

    def admit(self, app: Application) -> str | Wait | None:
        """Return None to admit `app`, the reason for a rejection, or `Wait` to hold it for now.

        The application has been placed: `app.queue` is its queue. Nothing of a held application is scheduled.
        An admitted application is not asked about again.
        """
        raise TypeError(f"{type(self).__name__} has no admit(app)")


class PlacementRule(Plugin):
    """Base class of rules that choose the queue of an application."""

    blocking: ClassVar[bool] = False
    """True if `place` may wait, for example for a network: a service then calls it in a worker thread. The
    argument is a copy of the application, also where there are no workers, and there is no second one
    (`docs/decisions/archive/0183`)."""
    calls_at_once: ClassVar[int] = 1
    """Maximum number of worker threads that call `place` at the same time."""

    place: ClassVar[Callable[..., str | Refused | None]]
    """Method `place(app)`, or `place(app, queues)` for a rule that depends on the queues of the partition.

    The method returns the name of the queue, None for "no match, try the next rule", or `Refused`. A name
    that starts with `root.`, in any case, is a full path; `root.` alone is root itself. Any other name is
    relative to the queue of the parent rule, or to root. A dot separates levels; use `dotless` for text that
    is a single level. `queues` is a `QueueTree`.
    """


class UserGroupResolver(Plugin):
    """Base class of resolvers that look up the groups of a user."""

    blocking: ClassVar[bool] = True
    """False if `groups` never waits for anything: a service then calls it in the core's thread, else in a
    worker thread (`docs/decisions/archive/0076`)."""
    calls_at_once: ClassVar[int] = 1
    """Maximum number of worker threads that call `groups` at the same time."""

    def groups(self, user: str) -> Sequence[str] | None:
        """Return the groups of a user, the primary group first, or None if there is no such user."""
        raise TypeError(f"{type(self).__name__} has no groups(user)")
