"""Domains of nodes: parts of the cluster in which a predicate that keeps books gives one answer."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yunikorn.model.ask import Ask
    from yunikorn.model.ask_class import AskClass
    from yunikorn.model.node import Node


class Closing:
    """Refusal of an ask class in a domain."""

    __slots__ = ("ask", "marked", "reason", "subjects")

    def __init__(self, ask: Ask, reason: str, subjects: tuple[Hashable, ...]) -> None:
        self.ask = ask
        """A request of the class, with which the predicate is asked again."""
        self.reason = reason
        self.subjects = subjects
        """Subjects whose tasks may end the refusal."""
        self.marked: list[Node] = []
        """Nodes of the domain that searches have marked as unfit for the ask class."""


class Domain:
    """Nodes that are alike for one predicate, and the ask classes that it refuses there."""

    __slots__ = ("by_subject", "closed", "key", "nodes")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.nodes: dict[Node, None] = {}
        self.closed: dict[AskClass, Closing] = {}
        """Refused ask classes; an ask class that is missing must be checked."""
        self.by_subject: dict[Hashable, dict[AskClass, None]] = {}
        """Refused ask classes by subject."""

    def close(self, ask_class: AskClass, closing: Closing) -> None:
        """Remember a refusal."""
        self.closed[ask_class] = closing
        for subject in closing.subjects:
            self.by_subject.setdefault(subject, {})[ask_class] = None

    def open(self, ask_class: AskClass) -> Closing:
        """Forget the refusal of an ask class, and return it."""
        closing = self.closed.pop(ask_class)
        for subject in closing.subjects:
            alike = self.by_subject.get(subject)
            if alike is not None:
                alike.pop(ask_class, None)
                if not alike:
                    del self.by_subject[subject]
        return closing
