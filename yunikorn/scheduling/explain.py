"""Why a request waits: everything that stops it at this moment, found when asked, at no cost before.

The checks are those of the cycle, in its order. What is wrong with one request may be several things at
once: all are told, the one that the cycle meets first comes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import attrs

from yunikorn.config.durations import describe_duration
from yunikorn.resources import describe
from yunikorn.states import ACTIVE, STOPPED

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from yunikorn.objects.application import Application
    from yunikorn.objects.ask import Ask
    from yunikorn.objects.node import Node
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler


@attrs.frozen
class Reason:
    """Something that stops a request."""

    summary: str
    """In words that are equal for all requests that the same thing stops, so that they can be counted."""
    detail: str
    """With the numbers of this moment."""


TURN = Reason(
    "nothing: it is tried at the next decision", "nothing stops it: it is tried at the next decision"
)


def why(at: PartitionScheduler, ask: Ask) -> list[Reason]:
    """What stops `ask`, which waits in the partition `at`; empty when nothing does or it does not wait."""
    if not ask.pending or ask.app.queue is None:
        return []
    found = [*of_application(at, ask.app), *_of_rest(at, ask.app), *_of_request(at, ask)]
    turn = _turn(at)
    return found or ([] if turn is TURN else [turn])


def _turn(at: PartitionScheduler) -> Reason:
    """Why a request that nothing stops waits all the same: it is not its turn yet."""
    for gang in at.partition.gangs.overdue.values():
        if gang.overdue:
            summary = "a gang that has waited long goes first"
            return Reason(summary, f"{summary}: that of {gang.app.label}")
    return TURN


def first_reasons(at: PartitionScheduler) -> Iterator[tuple[Ask, Reason]]:
    """Every waiting request of a partition with the first thing that stops it.

    Requests that the same checks answer are looked at once.
    """
    known: dict[Hashable, Reason] = {}
    for app in at.partition.applications.values():
        of_app = next(chain(of_application(at, app), _of_rest(at, app)), None)
        for ask in app.asks.values():
            if not ask.pending:
                continue
            reason = of_app
            if reason is None:
                key = (ask.claim.bit, app.chain[0].path, ask.reserved, app.id if ask.held else "")
                reason = known.get(key)
                if reason is None:
                    reason = known[key] = next(_of_request(at, ask), None) or _turn(at)
            yield ask, reason


# -- the application ------------------------------------------------------------------------------------


def of_application(at: PartitionScheduler, app: Application) -> Iterator[Reason]:
    """What stops all requests of an application alike, but for its back-off."""
    partition = at.partition
    if partition.state != ACTIVE:
        state = partition.state.lower()
        yield Reason(f"partition {at.name} is {state}", f"partition {at.name} is {state}")
    for queue in app.chain:
        if queue.state == STOPPED:
            yield Reason(f"queue {queue.path} is stopped", f"queue {queue.path} is stopped")
    holder = app.held_by
    if holder is not None:
        yield Reason(f"no more applications may run: {holder.label}", app.hold)
    if app.queue is not None and not app.admitted:
        summary = f"others of queue {app.queue.path} go first"
        yield Reason(summary, f"{summary}: {app.label} is {app.state}, and the queue's order lets it wait")


def _of_rest(at: PartitionScheduler, app: Application) -> Iterator[Reason]:
    if app.rest is not None:
        left = describe_duration(max(app.rest.due - at.partition.clock.now(), 0))
        summary = "its application is left alone for a while: its requests found no node"
        yield Reason(summary, f"{summary}; it is tried again in {left}")


# -- quotas and limits ----------------------------------------------------------------------------------


def _of_request(at: PartitionScheduler, ask: Ask) -> Iterator[Reason]:
    if ask.held:
        yield from _of_gang(ask)
        return
    yield from _of_quotas(ask)
    yield from _of_nodes(at, ask)


def _of_gang(ask: Ask) -> Iterator[Reason]:
    gang = ask.app.atomic
    if gang is None:
        summary = "it waits for a placeholder of its task group to make way"
        yield Reason(summary, f"{summary}: {ask.task_group}")
    elif gang.request is None:
        summary = "its gang is not whole yet"
        yield Reason(summary, f"{summary}: it is when its members take {describe(gang.total)}")
    else:
        yield from _of_quotas(gang.request)
        summary = "no room for its whole gang at once"
        yield Reason(summary, f"{summary} (requested {describe(gang.request.resource)})")


def _of_quotas(ask: Ask) -> Iterator[Reason]:
    pairs = ask.shape.pairs
    requested = describe(ask.resource)
    for queue in ask.app.chain:
        if not queue.has_room(pairs):
            too_large = _exceeds(pairs, queue.max or {})
            if queue.parent is None:
                summary = "larger than the whole cluster" if too_large else "the cluster is full"
            elif too_large:
                summary = f"larger than the quota of queue {queue.path}"
            else:
                summary = f"over the quota of queue {queue.path}"
            available = describe(queue.headroom or {})
            yield Reason(summary, f"{summary} (requested {requested}, available {available})")
    for allowance in ask.app.owner:
        if not allowance.has_room(pairs):
            summary = f"over the limit of {allowance.label}"
            available = describe(allowance.headroom)
            yield Reason(summary, f"{summary} (requested {requested}, available {available})")


def _exceeds(pairs: Iterable[tuple[str, int]], most: Mapping[str, int]) -> bool:
    return any(amount > most[name] for name, amount in pairs if name in most)


# -- nodes ----------------------------------------------------------------------------------------------


@attrs.define
class _Survey:
    """What nodes say to a request, counted."""

    nodes: int = 0
    drained: int = 0
    reserved: int = 0
    too_small: int = 0
    """Those that could not take it if they were empty."""
    lacking: Counter[str] = attrs.Factory(Counter)
    """By resource type: nodes with too little of it left."""
    short: int = 0
    refused: Counter[str] = attrs.Factory(Counter)
    """By reason: nodes with room that a predicate refuses."""

    @property
    def summary(self) -> str:
        if not self.nodes:
            return "there are no nodes"
        if self.too_small == self.nodes:
            return "larger than any node"
        if self.refused and not self.short:
            return "no node is allowed: " + "; ".join(sorted(self.refused))
        if self.drained == self.nodes:
            return "all nodes are drained"
        if self.refused:
            return "no node that is allowed has room"
        return "no node has room"

    def detail(self) -> str:
        parts = [f"{count} lack {name}" for name, count in sorted(self.lacking.items())]
        parts += [f"{count} refused: {reason}" for reason, count in sorted(self.refused.items())]
        if self.reserved:
            parts.append(f"{self.reserved} reserved for others")
        if self.drained:
            parts.append(f"{self.drained} drained")
        if self.too_small:
            parts.append(f"{self.too_small} too small even when empty")
        return f"{self.summary} (of {self.nodes} nodes: {', '.join(parts)})" if parts else self.summary


def _of_nodes(at: PartitionScheduler, ask: Ask) -> Iterator[Reason]:
    nodes, required = at.partition.nodes, ask.shape.required
    if required and required not in nodes:
        summary = "its required node is not there"
        yield Reason(summary, f"{summary}: {required}")
        return
    survey = _Survey()
    for node in [nodes[required]] if required else nodes.values():
        if _look(at, ask, node, survey):
            return
    if required:
        summary = "its required node does not take it"
        yield Reason(summary, f"{summary}: {required}: {survey.detail()}")
    elif ask.reserved is not None:
        summary = "it waits for room on the node that is reserved for it"
        yield Reason(summary, f"{summary}: {ask.reserved.id}; {survey.detail()}")
    else:
        yield Reason(survey.summary, survey.detail())


def _look(at: PartitionScheduler, ask: Ask, node: Node, survey: _Survey) -> bool:
    """Whether `node` would take the request now; else it is counted why not."""
    survey.nodes += 1
    pairs = ask.shape.pairs
    survey.too_small += any(node.capacity.get(name, 0) < amount for name, amount in pairs)
    if not node.schedulable and not ask.shape.required:
        survey.drained += 1
        return False
    if node.reservations and ask not in node.reservations and not ask.shape.required:
        survey.reserved += 1
        return False
    lacking = [name for name, amount in pairs if node.available.get(name, 0) < amount]
    if lacking:
        survey.lacking.update(lacking)
        survey.short += 1
        return False
    refusal = at.policies.predicates.judge(ask, node) if at.policies.predicates else None
    if refusal is None:
        return True
    survey.refused[refusal.reason] += 1
    return False
