"""Verdicts of predicates that declare classes, shared by ask classes that are equal for these predicates.

Ask classes may differ in their resources, and in what predicates with books read, such as labels. Each of
them would otherwise be checked on each node of a large cluster.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from yunikorn.model.ask_class import RestrictedClass

if TYPE_CHECKING:
    from yunikorn.model.ask_class import AskClass
    from yunikorn.scheduling.predicate_calls import Condition

Verdicts = dict[Hashable, str | None]
MOST_MAPPINGS, MOST_VERDICTS = 1024, 100_000
"""Number of shared mappings, and of verdicts in each, beyond which they are computed again."""


class SharedVerdicts:
    """Verdicts of a chain by what its lasting predicates read of requests."""

    def __init__(self, classifying: Sequence[Condition], lasting: Sequence[Condition]) -> None:
        """Create for the predicates that declare classes of requests, and those with lasting verdicts."""
        self._length = len(classifying)
        self._at = [at for at, one in enumerate(classifying) if any(one is other for other in lasting)]
        self._known: dict[tuple[Hashable, ...], Verdicts] = {}

    def of(self, ask_class: AskClass) -> Verdicts:
        """Return the verdicts for an ask class, which uses them from now on."""
        classes = ask_class.classes
        # Those of restricted classes are followed by the restrictions.
        if len(classes) != self._length and not isinstance(ask_class, RestrictedClass):
            return ask_class.verdicts  # that of a gang
        key = tuple([classes[at] for at in self._at])
        verdicts = self._known.get(key)
        if verdicts is None:
            if len(self._known) >= MOST_MAPPINGS:
                self._known.clear()
            verdicts = self._known[key] = {}
        elif len(verdicts) > MOST_VERDICTS:
            verdicts.clear()
        ask_class.verdicts = verdicts
        return verdicts
