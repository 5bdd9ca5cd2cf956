"""Default permit policy: `together`, for tasks that start together, also of several applications.

    partitions:
      - name: default
        permits:
          - name: together
            tag: together             # tasks with the same value of this tag belong together
            count: together-count     # tag with the number of tasks that must be placed first
            timeout: 120.0            # seconds; then the placement of a task is taken back

A permit policy returns None to permit a placement, the reason for taking it back, or `Wait`.
"""

from __future__ import annotations

import attrs

from yunikorn.api import Allocation, Node, PermitPolicy, Task, Wait, hookimpl

LATER = 60.0
"""Time (s) until the policy is asked again; usually another task of the group is placed before."""


@attrs.define
class Together(PermitPolicy):
    """Holds tasks with the same value of a tag until enough of them are placed."""

    name = "together"
    tag: str = "together"
    """Tag with the name of the group; tasks without it are not held."""
    count: str = "together-count"
    """Tag with the number of tasks of the group that must be placed before any of them starts."""
    timeout: float = attrs.field(default=300.0, validator=attrs.validators.gt(0.0))
    """Seconds after which the placement of a task is taken back if the others are not placed."""
    _placed: dict[str, int] = attrs.field(init=False, factory=dict, eq=False, repr=False)
    """Number of placed tasks by group."""

    def placed(self, task: Task, node: Node) -> None:
        """Count a task."""
        group = task.tags.get(self.tag, "")
        if group:
            self._placed[group] = self._placed.get(group, 0) + 1

    def released(self, task: Task, node: Node) -> None:
        """Stop counting a task."""
        group = task.tags.get(self.tag, "")
        if group:
            left = self._placed.get(group, 0) - 1
            if left:
                self._placed[group] = left
            else:
                self._placed.pop(group, None)

    def group(self, allocation: Allocation) -> str | None:
        """Return the value of the tag."""
        return allocation.tags.get(self.tag) or None

    def permit(self, allocation: Allocation) -> str | Wait | None:
        """Return None for a task without a group, and for a group that is placed; else a wait."""
        group = allocation.tags.get(self.tag, "")
        if not group:
            return None
        text = allocation.tags.get(self.count, "")
        if not (text.isdecimal() and text.isascii() and len(text) <= 9):
            return f"tag {self.count} of a task of group {group} is {text!r} instead of a number of tasks"
        placed, needed = self._placed.get(group, 0), int(text)
        if placed >= needed:
            return None
        return Wait(LATER, f"{placed} of {needed} tasks of group {group} are placed")


@hookimpl
def yunikorn_permit_policies() -> list[type[PermitPolicy]]:
    """Return the only policy."""
    return [Together]
