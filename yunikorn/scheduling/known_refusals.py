"""Refusals of predicates that declare nothing, remembered where their code shows what they depend on.

See `yunikorn.framework.purity` and `docs/decisions/0072`. Requests with equal inputs are one `RefusalClass`,
with a bit beside those of the ask classes: nodes, blocks and groups that are known to refuse have the bit,
and a search passes them. All decisions, reasons and retries are those of a search that asks every node.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from yunikorn.framework.purity import Inputs

if TYPE_CHECKING:
    from yunikorn.model.ask import Ask
    from yunikorn.model.ask_class import AskClasses
    from yunikorn.model.node import Node

MOST = 64
"""Largest number of refusal classes; when there are more, all are dropped."""
TEXT = frozenset({str})
MOST_REASONS = 200_000
"""Number of remembered reasons from which a new class drops all others (tens of MB)."""


class RefusalClass:
    """Requests that get equal answers from the predicates whose inputs are known."""

    __slots__ = ("bit", "reasons")

    def __init__(self, bit: int) -> None:
        self.bit = bit
        self.reasons: dict[str, str] = {}
        """Reasons of the refusing nodes that were asked, by node id."""


class KnownRefusals:
    """The refusal classes of a partition."""

    def __init__(self, inputs: Sequence[Inputs], ask_classes: AskClasses, *, by_class: bool) -> None:
        """Create without refusals; `by_class` separates ask classes, for predicates that are asked before."""
        self._inputs = inputs
        self._by_class = by_class
        self._ask_classes = ask_classes
        self._classes: dict[tuple[Hashable, ...], RefusalClass] = {}
        self._usable = True

    def of(self, ask: Ask) -> RefusalClass | None:
        """Return the class of a request; None after a constant that the predicates read has changed."""
        if not self._usable:
            return None
        if not self.are_constant():
            self._usable = False
            self.drop()
            return None
        values: list[Hashable] = [ask.ask_class] if self._by_class else []
        for inputs in self._inputs:
            value = inputs.of(ask)
            if value is None:
                return None
            values.append(value)
        key = tuple(values)
        found = self._classes.get(key)
        if found is None:
            if len(self._classes) >= MOST or self._reasons > MOST_REASONS:
                self.drop()
            found = self._classes[key] = RefusalClass(self._ask_classes.take_bit())
        return found

    def are_constant(self) -> bool:
        """Return True if no constant has changed since the code was read."""
        for inputs in self._inputs:
            if not inputs.are_constant():
                return False
        return True

    def remember(self, known: RefusalClass, refusals: Sequence[tuple[Node, str]]) -> None:
        """Remember refusals, unless a constant has changed since the search began."""
        if not self.are_constant():
            return
        for node, reason in refusals:
            attributes = node.attributes
            # A text of a type of the RM may compare as it likes.
            if TEXT.issuperset([type(node.id), *map(type, attributes), *map(type, attributes.values())]):
                known.reasons[node.id] = reason
                node.unfit |= known.bit

    @property
    def _reasons(self) -> int:
        return sum(len(known.reasons) for known in self._classes.values())

    def forget_node(self, node_id: str) -> None:
        """Discard the refusals of a node, which was added or has other attributes."""
        for known in self._classes.values():
            known.reasons.pop(node_id, None)

    def drop(self) -> None:
        """Discard all classes, and give back their bits."""
        gone, self._classes = self._classes, {}
        if gone:
            self._ask_classes.return_bits([known.bit for known in gone.values()])
