"""A preemption policy for YuniKorn: the work that loses least is preempted first.

partitions:
  - name: default
    preemption:
      policy:
        name: least-lost-work
        spare: 600
        keeps_progress: checkpoints
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import attrs

from yunikorn.api import Allocation, Context, PreemptionCause, PreemptionPolicy, hookimpl

SECOND = 1_000_000_000


@attrs.define(eq=False)
class LeastLostWork(PreemptionPolicy):
    """Preempts the tasks that lose the least work first: running time times cores."""

    name = "least-lost-work"
    refresh_every = 30.0
    """Protection ends with time alone."""
    spare: float = attrs.field(default=600.0, validator=attrs.validators.ge(0))
    """Seconds after its start in which a task is not preempted."""
    resource: str = "vcore"
    """Resource type whose use counts as work."""
    originators: Literal["last", "protect"] = "last"
    """Originators are preempted after all other tasks (`last`), or never (`protect`)."""
    keeps_progress: str = ""
    """Tag of tasks that lose nothing, with the value `true`: they are suspended, and go first."""
    _now: Callable[[], int] = attrs.field(init=False, default=lambda: 0)

    def opened(self, context: Context) -> None:
        """Keep the clock of the scheduler."""
        self._now = context.now

    def protects(self, victim: Allocation, cause: PreemptionCause) -> str | None:
        """Protect tasks in their first seconds, except from lost capacity."""
        if cause.kind != "shrunk-node" and self._now() - victim.placed < self.spare * SECOND:
            return f"has run for less than {self.spare:g} seconds"
        return None

    def rank(self, victim: Allocation, cause: PreemptionCause) -> tuple[float, int]:
        """Return the work that is lost; of equals the latest application is first."""
        return (self._lost(victim), -victim.app.arrival)

    def cost(self, victim: Allocation, cause: PreemptionCause) -> float:
        """Return the work that is lost; the node with the lowest sum is chosen."""
        return self._lost(victim)

    def mode_of(self, victim: Allocation, cause: PreemptionCause) -> Literal["end", "suspend"]:
        """Let a task continue later if it keeps its progress."""
        return "suspend" if self._keeps_progress(victim) else "end"

    def _keeps_progress(self, victim: Allocation) -> bool:
        return bool(self.keeps_progress) and victim.tags.get(self.keeps_progress) == "true"

    def _lost(self, victim: Allocation) -> float:
        """Return resource seconds, at least those of one second, so that fewer victims are better."""
        lost = 0 if self._keeps_progress(victim) else self._now() - victim.placed
        return max(lost, SECOND) / SECOND * victim.resource.get(self.resource, 0)


@hookimpl
def yunikorn_preemption_policies() -> list[type[PreemptionPolicy]]:
    """Return the plugins of this package."""
    return [LeastLostWork]
