"""Tags of running allocations, as reported by the RM (`docs/decisions/0121` and `docs/decisions/0146`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.model.allocation import TerminationType
from yunikorn.model.ask import TERMINATING_TAG

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yunikorn.accounting.allocation_accounting import AllocationAccounting
    from yunikorn.model.allocation import Allocation


def change_tags(accounting: AllocationAccounting, allocation: Allocation, tags: Mapping[str, str]) -> None:
    """Change the tags of an allocation, and of its ask if the ask has no other replica.

    The allocation leaves the books with its previous tags, and enters them again. Refusals of its node may
    have ended, as after a change of the node.
    """
    node, ask = allocation.node, allocation.ask
    is_counted = allocation.releasing != TerminationType.PLACEHOLDER_REPLACED
    books = accounting.books if is_counted else None
    if books is not None:
        books.released(allocation, node)
    allocation.spec = allocation.spec.with_tags(tags)
    if ask is not None and ask.live == 1 and not ask.pending:
        ask.spec = allocation.spec
    if books is not None:
        books.placed(allocation, node)
    # Predicates may read the allocations of the node.
    node.mark_changed()
    node.unfit = 0
    accounting.node_changed(node, gained=True)
    note_end(accounting, allocation)


def note_end(accounting: AllocationAccounting, allocation: Allocation) -> None:
    """Count an allocation as one that ends, if its tags say that the RM is ending it."""
    ends = allocation.spec.tags.get(TERMINATING_TAG) == "true"
    if ends and allocation.eviction is None and allocation.releasing is None:
        accounting.ends.add([allocation])
