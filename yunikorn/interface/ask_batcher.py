"""Asks of an update: the plain ones of an application as a batch, all others one by one.

A plain ask has a key, a size, a count and a priority, and no other field set, like most asks of a large
application. The checks for plain asks are stricter than `ask_fault`; an ask that fails them is handled one by
one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from yunikorn.interface.checks import LONGEST_NAME, amount_fault
from yunikorn.interface.messages import AllocationAsk
from yunikorn.model.ask import INT32_MAX, INT32_MIN
from yunikorn.resources import above_zero

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from yunikorn.accounting.ask_batch import AskBatch
    from yunikorn.interface.messages import Allocation
    from yunikorn.interface.session import Session
    from yunikorn.resources import Resource
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler

E = TypeVar("E")


class AskBatcher:
    """Batcher of an RM's asks, which keeps the order of the update."""

    def __init__(
        self,
        session: Session,
        one_by_one: Callable[[AllocationAsk], None],
        place: Callable[[Allocation], None],
    ) -> None:
        """Send asks that are not plain to `one_by_one`, and allocations that are no plain asks to `place`."""
        self._session = session
        self._one_by_one = one_by_one
        self._place = place
        self._at: PartitionScheduler | None = None
        self._gathering: AskBatch | None = None
        self._names: tuple[object, object] = ("", "")
        """Partition and application of the batch."""
        self._once = False
        """True if the key of an allocated request does not create another ask."""

    def take(self, asks: Sequence[AllocationAsk]) -> None:
        """Add these asks."""
        self._once = False
        self._take(zip(asks, asks, strict=True), self._one_by_one)

    def take_allocations(self, allocations: Iterable[Allocation]) -> None:
        """Add the allocations of the newer layout, some of which are asks."""
        self._once = True
        self._take(((one, _plain_ask_of(one)) for one in allocations), self._place)

    def _take(
        self, entries: Iterable[tuple[E, AllocationAsk | None]], one_by_one: Callable[[E], None]
    ) -> None:
        """Process entries, each with the ask that it may be."""
        sound: Resource | None = None
        known: dict[int, Resource] = {}
        try:
            for entry, ask in entries:
                if ask is not None:
                    resource = ask.resource_ask
                    if resource is not sound and (id(resource) in known or _is_sound(resource)):
                        # Tasks of an application mostly share one amount, so each amount is checked once.
                        known[id(resource)] = sound = resource
                    if resource is sound and _is_plain(ask) and self._gather(ask):
                        continue
                self._book()
                one_by_one(entry)
        finally:
            self._book()

    def _gather(self, ask: AllocationAsk) -> bool:
        """Add a plain ask to the batch of its application; return False if it must be handled on its own."""
        names = self._names
        gathering = self._gathering
        if gathering is None or ask.application_id != names[1] or ask.partition_name != names[0]:
            self._book()
            gathering = self._open(ask.partition_name, ask.application_id)
        return gathering is not None and gathering.add(
            ask.allocation_key, ask.resource_ask, ask.max_allocations, ask.priority or 0
        )

    def _open(self, partition_name: object, app_id: object) -> AskBatch | None:
        if isinstance(partition_name, str) and isinstance(app_id, str):
            self._at = self._session.partition(partition_name)
            if self._at is not None:
                self._gathering = self._at.asks.batch(app_id, once=self._once)
                self._names = (partition_name, app_id)
        return self._gathering

    def _book(self) -> None:
        gathering, self._gathering = self._gathering, None
        if gathering is not None and self._at is not None:
            self._at.asks.book(gathering)


def ask_of(one: Allocation) -> AllocationAsk:
    """Return the ask that an allocation without a node is, in the newer layout."""
    return AllocationAsk(
        one.allocation_key,
        one.application_id,
        one.partition_name,
        one.resource_per_alloc,
        priority=one.priority,
        priority_class_name=one.priority_class_name,
        tags=one.allocation_tags,
        task_group_name=one.task_group_name,
        placeholder=one.placeholder,
        originator=one.originator,
        preemption_policy=one.preemption_policy,
    )


def _plain_ask_of(one: Allocation) -> AllocationAsk | None:
    """Return the ask that an allocation is if that may be a plain one, else None."""
    priority: object = one.priority
    if one.node_id != "" or one.uuid != "" or one.allocation_tags or type(priority) is not int:
        return None
    return ask_of(one)


def _is_sound(resource: Resource) -> bool:
    return not amount_fault("", resource) and above_zero(resource)


def _is_plain(ask: AllocationAsk) -> bool:
    key: object = ask.allocation_key
    tags: object = ask.tags
    count: object = ask.max_allocations
    priority: object = ask.priority
    timeout: object = ask.execution_timeout_ms
    return (
        type(key) is str
        and 0 < len(key) <= LONGEST_NAME
        and key.isascii()
        and key.isprintable()
        and type(tags) is dict
        and not tags
        and type(count) is int
        and 0 < count <= INT32_MAX
        and (priority is None or (type(priority) is int and INT32_MIN < priority <= INT32_MAX))
        and type(timeout) is int
        and not timeout
        and ask.priority_class_name == ""
        and ask.task_group_name == ""
        and ask.placeholder is False
        and ask.originator is False
        and ask.preemption_policy is None
    )
