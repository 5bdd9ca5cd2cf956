"""Base classes of policies that order applications, queues and nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import Any, ClassVar

from yunikorn.api.base import Plugin
from yunikorn.api.node_choice import Where
from yunikorn.api.views import Application, Ask, Node, Queue, Task


class AppSortPolicy(Plugin):
    """Base class of policies that order the applications of a leaf queue."""

    gangs: ClassVar[bool] = False
    """True if applications with placeholders may run under the policy.

    Set it, as `gangs = True`, only if the order lets the first gang complete: under an order that changes
    with usage, two gangs could each hold half of their placeholders.
    """

    @property
    def refresh_every(self) -> float | None:
        """Seconds after which all keys are recomputed, for keys that depend on the time; None for never.

        Read once, when the order is created. A policy with a constant value writes `refresh_every = 60.0`.
        """
        return None

    @property
    def half_life(self) -> float | None:
        """Seconds in which half of an application's recorded usage decays, for keys on `app.past.recent`.

        None, if no usage is recorded. Recording starts with the first configuration that uses such a policy,
        with what runs then, and continues across reloads that do not change the half-life.
        """
        return None

    @property
    def usage_by(self) -> Collection[str]:
        """Kinds of owners whose recent usage keys read from `app.usage`; needs a `half_life`.

        `user`, `group`, `queue` and `tag:TAG`. The usage is that of the whole partition.
        """
        return ()

    @property
    def key_range(self) -> tuple[float, float] | None:
        """Lowest and highest key, if keys are numbers, so that the policy can be a factor of `multifactor`.

        Keys outside count as the nearer end. A policy with a constant range writes `key_range = (0.0, 1.0)`.
        """
        return None

    def key(self, app: Application) -> Any:
        """Return the sort key of `app`, any comparable value.

        The smallest key is first; ties are broken by arrival. The core recomputes the key whenever the
        application changes, unless the application is the only one in its queue.
        """
        raise TypeError(f"{type(self).__name__} has no key(app)")

    def ask_key(self, ask: Ask) -> Any:
        """Return the sort key of a request among those of its application that have its priority.

        A number, a text, a tuple of them, or None; all keys must have one form. The smallest key is first;
        ties are broken by creation, then by arrival. The key must depend on the ask alone: the core computes
        it when the ask arrives or is changed, and not again. By default, requests go by creation and arrival.
        """
        return None

    def subject(self, app: Application) -> Hashable:
        """Return what of the policy's books the key of `app` depends on, such as its user.

        Only for policies with `placed` and `released`. A task that is placed or released changes the books of
        the subject of its application; the keys of all applications with this subject are then computed
        again. Must not change. By default, all applications have one subject.
        """
        return None

    def placed(self, task: Task, node: Node) -> Iterable[Hashable] | Where | None:
        """Add a task to the policy's books; implement together with `released`. See `Predicate.placed`.

        Tasks of all queues are added. Returns further subjects that the task changes, or None.
        """
        return None

    def released(self, task: Task, node: Node) -> Iterable[Hashable] | Where | None:
        """Remove a task from the policy's books; undoes `placed` with the same task and node."""
        return None

    def node_added(self, node: Node) -> Iterable[Hashable] | Where | None:
        """Add a node, which runs no task yet; only called for classes that keep books."""
        return None

    def node_removed(self, node: Node) -> Iterable[Hashable] | Where | None:
        """Remove a node, which runs no task any more; only called for classes that keep books."""
        return None

    def admission_class(self, app: Application) -> Hashable:
        """Return the class under which `admission_limits` counts `app`.

        Only for policies that schedule a limited number of applications at a time; see
        `docs/decisions/archive/0041`.
        """
        return None

    def admission_limits(self, counts: Mapping[Hashable, int]) -> Mapping[Hashable, int | None]:
        """Return how many applications of each admission class may be scheduled, first in order; None is all.

        `counts` has the number of applications of each class. A class that is missing in the result is not
        limited.
        """
        return {}


class QueueSortPolicy(Plugin):
    """Base class of policies that order the children of a parent queue."""

    @property
    def refresh_every(self) -> float | None:
        """Seconds after which all keys are recomputed, for keys that depend on the time; None for never.

        Read once, when the order is created. A policy with a constant value writes `refresh_every = 60.0`.
        """
        return None

    @property
    def half_life(self) -> float | None:
        """Seconds in which half of a queue's recorded usage decays, for keys on `queue.recent`; else None.

        Recording starts with the first configuration that uses such a policy, and continues across reloads
        that do not change the half-life.
        """
        return None

    @property
    def usage_by(self) -> Collection[str]:
        """Kinds of owners whose recent usage keys read from `queue.usage`; needs a `half_life`.

        `user`, `group`, `queue` and `tag:TAG`. The usage is that of the whole partition.
        """
        return ()

    def key(self, queue: Queue) -> Any:
        """Return the sort key of `queue`, any comparable value; the smallest is first, ties are by name."""
        raise TypeError(f"{type(self).__name__} has no key(queue)")


class NodeSortPolicy(Plugin):
    """Base class of policies that order the nodes of a partition."""

    counts_foreign: ClassVar[bool] = False
    """True if `placed` and `released` are called for foreign tasks as well, which are not scheduled here."""

    @property
    def refresh_every(self) -> float | None:
        """Seconds after which all scores are recomputed, for scores that depend on the time; None for never.

        Read once, when the order is created. A policy with a constant value writes `refresh_every = 60.0`.
        """
        return None

    @property
    def score_range(self) -> tuple[float, float] | None:
        """Lowest and highest score, so that several policies can be combined by weights; None if unknown.

        Scores outside count as the nearer end. Read after construction and after `opened`. A policy with a
        constant range writes `score_range = (0.0, 1.0)`.
        """
        return None

    normalised: ClassVar[bool] = False
    """True if several policies are combined by weights, and the lowest and highest score of the present nodes
    shall count as 0 and 1, instead of the ends of `score_range`.

    For scores whose range is not known beforehand, such as numbers of tasks. See
    `docs/decisions/archive/0201`.
    """

    def ask_class(self, ask: Ask) -> Hashable:
        """Return the properties of a request, besides its resources, on which scores depend.

        Requests of equal resources and values share one order of nodes; `score(node, ask_class)` finds the
        value in `ask_class.value`. For policies whose `score` takes two arguments.
        """
        return None

    @property
    def classes_version(self) -> int:
        """Number that changes whenever `ask_class` may return other values for known requests.

        See `Predicate.classes_version`.
        """
        return 0

    def score_changes(self, ask_class: Any) -> list[str]:
        """Return the ids of nodes whose scores for an ask class have changed because of other nodes.

        For scores that depend on other nodes, through books. Called before each search for a node. Return the
        same list as before, with further ids at its end: the core then computes the scores of those nodes
        again. After another list, it computes the scores of all nodes again. `ask_class` is that of
        `score(node, ask_class)`, or None for a policy with `score(node)`.
        """
        return []

    score: ClassVar[Callable[..., float]]
    """Method `score(node)`, or `score(node, ask_class)` for an order that depends on the request.

    The lowest score is first; ties are broken by node id.
    """

    def placed(self, task: Task, node: Node) -> None:
        """Add a task to the policy's books; implement together with `released`. See `Predicate.placed`.

        Afterwards the score of this node is computed again, but those of other nodes only if
        `score_changes` names them.
        """

    def released(self, task: Task, node: Node) -> None:
        """Remove a task from the policy's books; undoes `placed` with the same task and node."""

    def node_added(self, node: Node) -> None:
        """Add a node, which runs no task yet; only called for classes that keep books."""

    def node_removed(self, node: Node) -> None:
        """Remove a node, which runs no task any more; only called for classes that keep books."""
