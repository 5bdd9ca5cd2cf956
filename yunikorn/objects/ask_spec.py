"""Terms: what a request says besides who wants how much of what, and in which turn.

Most requests say nothing of all this, and share one value that says so.
"""

from __future__ import annotations

from collections.abc import Mapping

_NO_TAGS: dict[str, str] = {}


class AskSpec:
    """What a request asks for its allocations; not changed once it is made."""

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
        """Whether others may have to go for it ..."""
        self.may_be_preempted = may_be_preempted
        """... and whether its allocations may have to go for others (decision 23)."""
        self.originator = originator
        """Whether its application cannot live without it: then it goes for nobody else."""
        self.execution_timeout = execution_timeout
        """How long each allocation of it may run (ns); 0 is for ever."""
        self.task_group = task_group
        self.placeholder = placeholder
        """Whether its allocations only keep room for the real ones of its task group."""


DEFAULT_SPEC = AskSpec()
"""Nothing special."""


class WithSpec:
    """What terms hold for: a request, and each allocation that it gets."""

    __slots__ = ("spec",)

    spec: AskSpec

    @property
    def tags(self) -> Mapping[str, str]:
        """What its RM says of it; predicates and policies may look at it."""
        return self.spec.tags

    @property
    def may_preempt(self) -> bool:
        """Whether others may have to go for it ..."""
        return self.spec.may_preempt

    @property
    def may_be_preempted(self) -> bool:
        """... and whether it may have to go for others (decision 23)."""
        return self.spec.may_be_preempted

    @property
    def originator(self) -> bool:
        """Whether its application cannot live without it: then it goes for nobody else."""
        return self.spec.originator

    @property
    def execution_timeout(self) -> int:
        """How long it may run once it has its place (ns); 0 is for ever."""
        return self.spec.execution_timeout

    @property
    def task_group(self) -> str:
        """The task group of its gang that it belongs to; empty if none."""
        return self.spec.task_group

    @property
    def placeholder(self) -> bool:
        """Whether it only keeps room for the real ones of its task group."""
        return self.spec.placeholder
