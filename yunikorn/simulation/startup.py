"""Start-up of tasks: the time from the placement of a task to the begin of its run time.

A task that was placed pulls its image and starts its container before it works. Its resources are used
meanwhile. The n-th start of a task of one group of an application takes equally long under every policy: each
group has its own random stream.
"""

from __future__ import annotations

import attrs

from yunikorn.simulation.distributions import Amounts, Constant
from yunikorn.simulation.rng import Rng, streams


@attrs.frozen
class StartUp:
    """Start-up times of the tasks of a workload that have no time of their own."""

    amounts: Amounts | None = None
    """Times (ns), fixed or drawn; None for tasks that begin at once."""
    seed: int = 0

    def draw(self, application: str, group: str, known: dict[str, Rng]) -> int:
        """Return the next time (ns) of a group; `known` keeps the streams of the application."""
        if self.amounts is None:
            return 0
        if isinstance(self.amounts.distribution, Constant):
            return self.amounts.draw(_no_random)
        rng = known.get(group)
        if rng is None:
            rng = known[group] = streams(self.seed)(f"startup {application} {group}")
        return self.amounts.draw(rng)


def _no_random() -> float:
    return 0.0
