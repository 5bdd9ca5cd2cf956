"""Node sort policies under the names by which queues and applications choose them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from yunikorn.api import NodeSortPolicy


@attrs.frozen
class NamedPolicy:
    """A node sort policy under the name that queues and applications choose it by."""

    policy: NodeSortPolicy
    origin: str
    by_ask_class: bool

    @classmethod
    def of(cls, policy: NodeSortPolicy, origin: str) -> NamedPolicy:
        """Find out whether the policy looks at the request: whether its `score` takes two arguments."""
        return cls(policy, origin, len(inspect.signature(policy.score).parameters) > 1)
