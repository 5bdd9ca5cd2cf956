"""Immutable options of an ask, apart from its size, count and order.

Most asks set no options and share `DEFAULT_SPEC`.
"""

from __future__ import annotations

from collections.abc import Mapping

_NO_TAGS: dict[str, str] = {}


class AskSpec:
    """Immutable options of an ask, which also apply to its allocations."""

    __slots__ = (
        "execution_timeout",
        "may_be_preempted",
        "may_preempt",
        "originator",
        "placeholder",
        "tags",
        "task_group",
    )

    def __init__(
        self,
        tags: Mapping[str, str] = _NO_TAGS,
        *,
        may_preempt: bool = True,
        may_be_preempted: bool = True,
        originator: bool = False,
        execution_timeout: int = 0,
        task_group: str = "",
        placeholder: bool = False,
    ) -> None:
        self.tags = tags
        self.may_preempt = may_preempt
        """True if the request may preempt other allocations."""
        self.may_be_preempted = may_be_preempted
        """True if the allocations may be preempted for other requests (docs/decisions/0023)."""
        self.originator = originator
        """True for the originator (driver) of an application, never preempted for other requests."""
        self.execution_timeout = execution_timeout
        """Maximum run time of each allocation (ns); 0 means unlimited."""
        self.task_group = task_group
        self.placeholder = placeholder
        """True if the allocations are placeholders, which reserve room for the real tasks of the task
        group."""


DEFAULT_SPEC = AskSpec()


class WithSpec:
    """Base of asks and allocations, which expose the options of their `AskSpec`."""

    __slots__ = ("spec",)

    spec: AskSpec

    @property
    def tags(self) -> Mapping[str, str]:
        """Tags from the RM; predicates and policies may read them."""
        return self.spec.tags

    @property
    def may_preempt(self) -> bool:
        """True if the request may preempt other allocations."""
        return self.spec.may_preempt

    @property
    def may_be_preempted(self) -> bool:
        """True if the allocations may be preempted for other requests (docs/decisions/0023)."""
        return self.spec.may_be_preempted

    @property
    def originator(self) -> bool:
        """True for the originator (driver) of an application, never preempted for other requests."""
        return self.spec.originator

    @property
    def execution_timeout(self) -> int:
        """Maximum run time once placed (ns); 0 means unlimited."""
        return self.spec.execution_timeout

    @property
    def task_group(self) -> str:
        """Name of the task group; empty without one."""
        return self.spec.task_group

    @property
    def placeholder(self) -> bool:
        """True for a placeholder, which reserves room for a real task of its task group."""
        return self.spec.placeholder
