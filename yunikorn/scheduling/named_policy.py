"""Node sort policies with the names by which queues and applications select them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from yunikorn.api import NodeSortPolicy


@attrs.frozen
class NamedPolicy:
    """A node sort policy with the name by which queues and applications select it."""

    policy: NodeSortPolicy
    origin: str
    by_ask_class: bool

    @classmethod
    def of(cls, policy: NodeSortPolicy, origin: str) -> NamedPolicy:
        """Return the named policy; its scores depend on the request if `score` takes two arguments."""
        return cls(policy, origin, len(inspect.signature(policy.score).parameters) > 1)
