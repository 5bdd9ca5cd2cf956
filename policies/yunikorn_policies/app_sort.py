"""Default policies for the order of applications in a leaf queue, and the hook for all of them.

A queue selects a policy in its properties, which the queues below inherit:

    queues:
      - name: sandbox
        properties:
          application.sort.policy: fair

A policy returns a key for each application; the smallest key is first. The core orders only applications with
pending requests. It orders by priority first, and then by key, unless the queue property
`application.sort.priority` is `disabled`. To write a policy, copy one of these classes into a module with the
hook at the end of this file.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import attrs

from yunikorn.api import Application, AppSortPolicy, hookimpl
from yunikorn_policies.multifactor import Multifactor


@attrs.frozen
class Fifo(AppSortPolicy):
    """First come, first served: by time of submission."""

    name = "fifo"
    gangs = True

    def key(self, app: Application) -> int:
        """Return the time of submission."""
        return app.submitted


@attrs.frozen
class FairApplications(AppSortPolicy):
    """The application that uses the smallest share comes first."""

    name = "fair"

    def key(self, app: Application) -> tuple[float, ...]:
        """Return the share of each resource type, the largest first.

        The largest share decides, then the next largest. A share is the allocated amount, including
        placeholders, relative to the queue's guarantee of the type, or to the cluster if there is none.
        Zeros after the second share are left out.
        """
        total, allocated = app.fair_total, app.allocated
        if len(allocated) > 2:
            return _shares(allocated, total)
        first = second = 0.0
        for name, amount in allocated.items():
            whole = total.get(name)
            share = amount / whole if whole else float(amount)
            if share > first:
                first, second = share, first
            else:
                second = share
        return (first, second)


def _shares(allocated: Mapping[str, int], total: Mapping[str, int]) -> tuple[float, ...]:
    """Return the share of each type, the largest first, without zeros after the second."""
    shares = [
        amount / whole if (whole := total.get(name)) else float(amount) for name, amount in allocated.items()
    ]
    first, second, *rest = sorted(shares, reverse=True)
    return (first, second, *filter(None, rest))


ADMISSION_CLASSES = {"Accepted": "accepted", "Starting": "starting"}
"""Admission class by state; all other active states are in the class `running`."""


@attrs.frozen
class StateAware(AppSortPolicy):
    """Like fifo, but new applications start one by one."""

    name = "stateaware"
    gangs = True

    def key(self, app: Application) -> int:
        """Return the time of submission."""
        return app.submitted

    def admission_class(self, app: Application) -> Hashable:
        """Return the class of the state; an accepted application without demand must not block others."""
        if app.state == "Accepted" and not any(app.demand.values()):
            return "running"
        return ADMISSION_CLASSES.get(app.state, "running")

    def admission_limits(self, counts: Mapping[Hashable, int]) -> Mapping[Hashable, int | None]:
        """Return no limit for running applications, and a limit of one that is starting or accepted.

        A starting application blocks accepted ones even if it has no pending requests.
        """
        return {"running": None, "starting": 1, "accepted": 0 if counts.get("starting") else 1}


@hookimpl
def yunikorn_app_sort_policies() -> list[type[AppSortPolicy]]:
    """Return the default policies."""
    return [Fifo, FairApplications, StateAware, Multifactor]
