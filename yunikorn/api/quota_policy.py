"""Base class of policies that set the max of a queue in force, and their answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs

from yunikorn.api.base import Plugin
from yunikorn.api.views import Queue


@attrs.frozen(slots=True)
class Quota:
    """Answer of a quota policy: the max of a queue from now on."""

    max: Mapping[str, int] | None
    """Amounts in the units of the scheduler; None for the configured max.

    A type that is missing keeps its configured amount, and 0 allows none of the type.
    """
    until: int | None = None
    """Time (ns) at which the policy has to be asked again, on the clock of the context; None for never."""
    why: str = ""
    """Reason for the amounts, as shown to users."""


class QuotaPolicy(Plugin):
    """Base class of policies that set the max of a queue, for example by the time of day.

    The core asks when the queue gets the policy, after every reload, and when what the policy declares to
    depend on has changed. Until then the answer stays in force.
    """

    blocking: ClassVar[bool] = False
    """True if `quota` may wait, for example for a network: a service then calls it in a worker thread, and
    the previous answer stays in force meanwhile. The argument is a copy, also where there are no workers.
    Such a policy cannot watch siblings (`docs/decisions/archive/0184`)."""
    calls_at_once: ClassVar[int] = 1
    """Maximum number of worker threads that call `quota` at the same time."""
    watches_siblings: ClassVar[bool] = False
    """True if the policy reads `queue.unused_by_siblings`.

    The policy is then asked again before a task is placed in its queue, if the usage or demand of a sibling
    has changed, and once per round of decisions while its queue has tasks or requests.
    """
    watches_cluster: ClassVar[bool] = False
    """True if the policy reads `queue.total`, so that it is asked again after nodes have changed."""

    @property
    def refresh_every(self) -> float | None:
        """Seconds after which the policy is asked again, for all its queues at once; None for never.

        For answers that change at known times, `Quota.until` is exact and cheaper. A policy with a constant
        value writes `refresh_every = 60.0`.
        """
        return None

    def quota(self, queue: Queue) -> Quota | None:
        """Return the max of `queue` from now on; None for the configured max."""
        raise TypeError(f"{type(self).__name__} has no quota(queue)")
