"""Checks of a reservation where some predicates, with `on_reservation = False`, are not asked.

See `docs/decisions/archive/0118`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from yunikorn.model.ask import Ask
    from yunikorn.model.node import Node
    from yunikorn.scheduling.domain_tables import DomainTables
    from yunikorn.scheduling.predicate_calls import Condition

_RESERVING = object()
"""Marks the verdicts of these checks among those of all predicates."""


class ContainedCall(Protocol):
    """Call of a predicate that contains its exceptions."""

    def __call__(self, condition: Condition, ask: Ask, node: Node, *, reserve: bool = False) -> str | None:
        """Return the answer of a predicate, or the report of its failure."""
        ...


class ReservationChecks:
    """The predicates of a chain that are asked about reservations."""

    def __init__(
        self,
        lasting: Sequence[Condition],
        domains: DomainTables,
        passing: Sequence[Condition],
        answer: ContainedCall,
    ) -> None:
        """Create for all conditions of a chain, by the caches that apply to their answers."""
        self._lasting = [condition for condition in lasting if condition.on_reservation]
        self._domains = domains
        self._passing = [condition for condition in passing if condition.on_reservation]
        self._answer = answer

    def refusal(self, ask: Ask, node: Node) -> str | None:
        """Return None if `node` may be reserved for `ask`, else the reason."""
        reason = self._verdict(ask, node) if self._lasting else None
        if reason is not None:
            return reason
        for number, condition in enumerate(self._domains.conditions):
            if condition.on_reservation:
                reason = self._domains.refusal(number, ask, node)
                if reason is not None:
                    return reason
        for condition in self._passing:
            # A refusal remembered for the ask class may be that of a predicate that is not asked here.
            reason = self._answer(condition, ask, node, reserve=True)
            if reason is not None:
                return reason
        return None

    def _verdict(self, ask: Ask, node: Node) -> str | None:
        """Return the answer of the lasting predicates, which is cached for the classes of ask and node."""
        verdicts = ask.ask_class.verdicts
        key: tuple[Hashable, ...] = (_RESERVING, node.classes)
        if key not in verdicts:
            found = (self._answer(condition, ask, node) for condition in self._lasting)
            verdicts[key] = next((reason for reason in found if reason is not None), None)
        return verdicts[key]
