"""The fence: how far up a request may look for victims, and which priorities it may displace where.

Source: facts §9.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from yunikorn.resources import NOTHING, Resource, smaller_of

if TYPE_CHECKING:
    from yunikorn.objects.queue import Queue
    from yunikorn.scheduling.preemption.snapshot import Pairs, PreemptionSnapshot


class VictimLeaf(NamedTuple):
    """A leaf in which there may be victims."""

    queue: Queue
    priority: int
    """Work of this priority or less may go."""
    fenced: bool
    """The leaf stands behind a priority fence: then the priorities inside do not matter."""


def fence_root(leaf: Queue, pairs: Pairs, snapshot: PreemptionSnapshot) -> Queue:
    """The first queue on the way up that is the root, is fenced, or is too small for the request.

    Too small means that a quota, its own or one above, has no room: only work below it makes any.
    """
    for queue in leaf.chain:
        if queue.parent is None or queue.settings.preemption_policy == "fence":
            return queue
        most, used = effective_max(queue), snapshot.used(queue)
        if any(name in most and used.get(name, 0) + amount > most[name] for name, amount in pairs):
            return queue
    return leaf


def effective_max(queue: Queue) -> Resource:
    """The smallest quota here and above, the size of the cluster included."""
    most = NOTHING
    for each in queue.chain:
        most = smaller_of(each.max or NOTHING, most)
    return most


def reaches(leaf: Queue, root: Queue, priority: int, *, less: bool = False) -> Iterator[VictimLeaf]:
    """The leaves below `root`, but for `leaf`, whose work a request of `priority` in `leaf` may displace.

    With `less` a fenced queue must count for less than the request, not just for no more.
    """
    on_path: dict[Queue, int] = {}
    for queue in leaf.chain:
        # As the queues below this one are compared: its own offset moves all of them alike.
        on_path[queue] = priority
        if queue is root:
            break
        settings = queue.settings
        priority = settings.priority_offset + (0 if settings.priority_fence else priority)
    yield from _below(root, VictimLeaf(root, on_path[root], False), leaf, on_path, less)


def _below(
    queue: Queue, here: VictimLeaf, leaf: Queue, on_path: dict[Queue, int], less: bool
) -> Iterator[VictimLeaf]:
    if queue is leaf:
        return
    if queue.is_leaf:
        if queue.settings.preemption_policy != "disabled":
            yield here
        return
    for child in queue.children.values():
        offset = child.settings.priority_offset
        if child in on_path:
            victim_leaf = VictimLeaf(child, on_path[child], here.fenced)
        elif child.settings.priority_fence:
            if offset > here.priority or (less and offset == here.priority):
                continue
            victim_leaf = VictimLeaf(child, here.priority, True)
        else:
            victim_leaf = VictimLeaf(child, here.priority - offset, here.fenced)
        yield from _below(child, victim_leaf, leaf, on_path, less)
