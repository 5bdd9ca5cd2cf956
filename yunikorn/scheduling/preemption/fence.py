"""Fences: the subtree in which a request may preempt, and the eligible priorities per leaf.

The rules are those of YuniKorn 1.9; see "Preemption" in docs/scheduling.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from yunikorn.resources import NOTHING, Resource, smaller_of

if TYPE_CHECKING:
    from yunikorn.model.queue import Queue
    from yunikorn.scheduling.preemption.snapshot import Pairs, PreemptionSnapshot


class VictimLeaf(NamedTuple):
    """A leaf that may contain victims."""

    queue: Queue
    priority: int
    """Highest priority of eligible allocations, from the point of view of this leaf."""
    fenced: bool
    """True if a priority fence applies: priorities within the leaf are then ignored."""


def fence_root(leaf: Queue, pairs: Pairs, snapshot: PreemptionSnapshot) -> Queue:
    """Return the first ancestor that is the root, is fenced, or lacks quota for the request.

    In a queue that lacks quota, its own or an inherited one, only victims below that queue make room.
    """
    for queue in leaf.chain:
        if queue.parent is None or queue.settings.preemption_policy == "fence":
            return queue
        most, used = effective_max(queue), snapshot.used(queue)
        if any(name in most and used.get(name, 0) + amount > most[name] for name, amount in pairs):
            return queue
    return leaf


def effective_max(queue: Queue) -> Resource:
    """Return the smallest quota of the queue and its ancestors, including the size of the cluster."""
    most = NOTHING
    for each in queue.chain:
        most = smaller_of(each.max or NOTHING, most)
    return most


def reaches(leaf: Queue, root: Queue, priority: int, *, less: bool = False) -> Iterator[VictimLeaf]:
    """Yield the leaves below `root`, except `leaf`, in which a request of `priority` may preempt.

    With `less`, the priority of a fenced queue must be below that of the request, and not only equal.
    """
    on_path: dict[Queue, int] = {}
    for queue in leaf.chain:
        # Priority relative to the children of this queue; its own offset affects all of them equally.
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
