"""Queue tree of a partition: creation, configuration changes, and dynamic queues."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING

from yunikorn.config.acl import is_queue_name
from yunikorn.config.properties import InForce, read_settings
from yunikorn.model.queue import RECOVERY, ROOT, ClusterSize, Queue
from yunikorn.resources import NOTHING
from yunikorn.states import ACTIVE, DRAINING, QUEUE, STOPPED

if TYPE_CHECKING:
    from yunikorn.accounting.changes import Changes
    from yunikorn.config.properties import QueueSettings
    from yunikorn.config.queues_yaml import QueueConfig
    from yunikorn.resources import Resource


class QueueTree:
    """All queues of a partition by path."""

    def __init__(
        self,
        config: QueueConfig,
        cluster: ClusterSize,
        changes: Changes,
        on_empty: Callable[[Queue], None],
    ) -> None:
        """Create the queues of a configuration; `on_empty` is called with each dynamic or draining queue that
        became empty."""
        self.cluster = cluster
        self._changes = changes
        self.changed: list[Queue] = []
        """Queues that are new or reconfigured, for the scheduling layer to prepare their policies."""
        self._on_empty = on_empty
        self._queues: dict[str, Queue] = {}
        self.lasting_stops: dict[str, None] = {}
        """Paths of queues that an operator stopped, also of queues that do not exist now."""
        changes.readers.pending_bits_dropped.append(self._forget_pending_classes)
        self.root = self._make(ROOT, None, is_leaf=False, managed=True)
        self.configure(config)

    def __iter__(self) -> Iterator[Queue]:
        return iter(self._queues.values())

    def __len__(self) -> int:
        return len(self._queues)

    def queue(self, path: str) -> Queue | None:
        """Return the queue with this path, ignoring case."""
        return self._queues.get(path) or self._queues.get(path.lower())

    def _forget_pending_classes(self, bits: int) -> None:
        for queue in self:
            queue.forget_pending_classes(bits)

    # -- configured queues --------------------------------------------------------------------------

    def configure(self, config: QueueConfig) -> None:
        """Apply a configuration, for the first time or on reload.

        Configured queues that the configuration lacks drain, and are removed when they are empty. Dynamic
        queues stay, and become configured queues if the configuration names them.
        """
        self._configure(self.root, config, InForce({}).below(config.properties))

    def _configure(self, queue: Queue, config: QueueConfig, in_force: InForce) -> None:
        was_managed, queue.managed = queue.managed, True
        self._set_type(queue, is_leaf=not config.parent)
        queue.properties = MappingProxyType(in_force.properties)
        queue.admin_acl, queue.submit_acl = config.admin_acl, config.submit_acl
        queue.limits = config.limits
        queue.max_applications = config.max_applications
        queue.template = config.child_template
        if queue.template is None and queue.parent is not None and not queue.is_leaf:
            queue.template = queue.parent.template
        self._set_quota(queue, config.guaranteed, config.max)
        if queue.state == DRAINING:
            QUEUE.fire(queue, "return")
        self._settle(queue, in_force.settings)
        if not was_managed:
            self._changes.queue_type_changed(queue, "now configured")
        if queue.children or config.queues:
            self._configure_children(queue, config, in_force)

    def _configure_children(self, queue: Queue, config: QueueConfig, in_force: InForce) -> None:
        wanted = {child.name: child for child in config.queues}
        for name, child in list(queue.children.items()):
            if name not in wanted:
                if child.managed:
                    self._drain(child)
                else:
                    _hand_down(child)
        for name, child_config in wanted.items():
            child = queue.children.get(name) or self._make(
                name, queue, is_leaf=not child_config.parent, managed=True
            )
            self._configure(child, child_config, in_force.below(child_config.properties))

    def _set_type(self, queue: Queue, *, is_leaf: bool) -> None:
        # `scheduling.reload` rejects a change of type for a queue that has applications or children.
        if queue.is_leaf != is_leaf:
            queue.is_leaf = is_leaf
            self.changed.append(queue)
            self._changes.queue_type_changed(queue, f"leaf queue: {str(is_leaf).lower()}")

    def _drain(self, queue: Queue) -> None:
        for each in queue.walk():
            if each.managed and each.state != DRAINING:
                QUEUE.fire(each, "remove")
        for each in reversed(list(queue.walk())):
            self.check_empty(each)

    def _settle(self, queue: Queue, settings: QueueSettings) -> None:
        # Equal settings are mostly the same object; the identity check saves time with many queues.
        if (settings is not queue.settings and settings != queue.settings) or queue.order is None:
            queue.settings = settings
            queue.publish_priority()
            queue.mark_dirty()
            self.changed.append(queue)
        stopped = settings.stopped or queue.stopped_by_call
        if stopped and queue.state == ACTIVE:
            QUEUE.fire(queue, "stop")
        elif not stopped and queue.state == STOPPED:
            QUEUE.fire(queue, "start")

    def _set_quota(self, queue: Queue, guaranteed: Resource | None, quota: Resource | None) -> None:
        before = queue.guaranteed, queue.configured_max
        if (guaranteed or NOTHING) == before[0] and (queue.parent is None or quota == before[1]):
            return
        queue.set_quota(guaranteed, quota)
        if queue.parent is None:
            return
        if queue.guaranteed != before[0]:
            self._changes.guarantee_changed(queue)
        # A quota policy may keep another quota in force, and reports each change of it.
        if queue.policy_quota is None and queue.max != before[1]:
            self._changes.quota_changed(queue)

    # -- dynamic queues -----------------------------------------------------------------------------

    def create(self, path: str, user: str, groups: tuple[str, ...]) -> Queue | str:
        """Create the leaf queue `path` with its missing parents; return the reason if impossible."""
        if path == RECOVERY:
            return self._add(RECOVERY.rpartition(".")[2], self.root, is_leaf=True)
        obstacle = self.obstacle(path)
        if obstacle:
            return f"queue {path} cannot be created: {obstacle}"
        queue, missing = self._nearest(path)
        if not queue.submit_allowed(user, groups):
            return f"submit access to queue {queue.path} denied during create of {path}"
        for name in missing[:-1]:
            queue = self._add(name, queue, is_leaf=False)
        return self._add(missing[-1], queue, is_leaf=True)

    def obstacle(self, path: str) -> str:
        """Return why the missing queue `path` cannot be created by any user; empty if it can."""
        if path == RECOVERY:
            return ""
        if not path.lower().startswith(f"{ROOT}."):
            return "it is not below root"
        queue, missing = self._nearest(path)
        if queue.is_leaf:
            return f"{queue.path} is a leaf queue"
        if queue.state == DRAINING:
            return f"{queue.path} is being removed"
        illegal = [name for name in missing if not is_queue_name(name) or f"{ROOT}.{name}" == RECOVERY]
        return f"'{illegal[0]}' is not a queue name" if illegal else ""

    def _nearest(self, path: str) -> tuple[Queue, list[str]]:
        """Return the lowest existing queue on `path`, and the missing names below it."""
        missing = path.lower().split(".")[1:]
        queue = self.root
        while missing and missing[0] in queue.children:
            queue = queue.children[missing.pop(0)]
        return queue, missing

    def _add(self, name: str, parent: Queue, *, is_leaf: bool) -> Queue:
        queue = self._make(name, parent, is_leaf=is_leaf, managed=False)
        queue.template = parent.template
        template = parent.template
        if is_leaf and template is not None and queue.path != RECOVERY:
            queue.max_applications = template.max_applications
            queue.set_quota(template.guaranteed, template.max)
            queue.properties = MappingProxyType(dict(template.properties))
        self._settle(queue, read_settings(queue.properties)[0])
        return queue

    # -- creation and removal -----------------------------------------------------------------------

    def _make(self, name: str, parent: Queue | None, *, is_leaf: bool, managed: bool) -> Queue:
        queue = Queue(name, parent, self.cluster, is_leaf=is_leaf, managed=managed)
        self._queues[queue.path] = queue
        queue.stopped_by_call = queue.path in self.lasting_stops
        if parent is not None:
            parent.children[name] = queue
        self._changes.queue_added(queue)
        return queue

    def check_empty(self, queue: Queue) -> None:
        """Report a queue that is empty and either dynamic or draining."""
        if queue.is_empty and queue.parent is not None and (not queue.managed or queue.state == DRAINING):
            self._on_empty(queue)

    def remove(self, queue: Queue) -> None:
        """Remove an empty queue from the tree, then check if the parent became empty."""
        parent = queue.parent
        if parent is None or not queue.is_empty or (queue.managed and queue.state != DRAINING):
            return
        if self._queues.get(queue.path) is not queue:
            return
        del self._queues[queue.path], parent.children[queue.name]
        parent.sorted_members.remove(queue)
        self._changes.member_left(parent)
        self._changes.queue_removed(queue)
        self.check_empty(parent)


def _hand_down(made: Queue) -> None:
    """Propagate the template of the parent to `made` and all parent queues below."""
    for queue in made.walk():
        if queue.parent is not None and not queue.is_leaf:
            queue.template = queue.parent.template
