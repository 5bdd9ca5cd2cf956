"""How a leaf queue orders its applications: `fifo`, `fair` and `stateaware`.

Named in a queue's properties, and inherited by the queues below:

    queues:
      - name: sandbox
        properties:
          application.sort.policy: fair

A policy gives each application a key; the smallest comes first. Only applications with waiting
requests are looked at, and priorities count before the key (unless the queue property
`application.sort.priority` is `disabled`, which ignores them): the core sees to both. To write your own,
copy one of these classes into a module with the hook at the end of this file.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import attrs

from yunikorn.api import Application, AppSortPolicy, hookimpl


@attrs.frozen
class Fifo(AppSortPolicy):
    """First come, first served: by time of submission."""

    name = "fifo"

    def key(self, app: Application) -> int:
        """When it was submitted."""
        return app.submitted


@attrs.frozen
class FairApplications(AppSortPolicy):
    """The application that uses the smallest share comes first."""

    name = "fair"

    def key(self, app: Application) -> tuple[float, ...]:
        """Its share of every resource type, the largest first.

        The largest share decides, and between equals the next largest. The whole that a share is part of is
        the queue's guarantee for that type if there is one, else the cluster. All that the application holds
        counts. Behind the second share zeros are left out.
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
    """The share of each type, the largest first; no zeros behind the second."""
    shares = [
        amount / whole if (whole := total.get(name)) else float(amount) for name, amount in allocated.items()
    ]
    first, second, *rest = sorted(shares, reverse=True)
    return (first, second, *filter(None, rest))


ADMISSION_CLASSES = {"Accepted": "accepted", "Starting": "starting"}
"""The admission class of a state; every other active state shares the admission class of the running ones."""


@attrs.frozen
class StateAware(AppSortPolicy):
    """Like fifo, but new applications start one by one."""

    name = "stateaware"

    def key(self, app: Application) -> int:
        """When it was submitted."""
        return app.submitted

    def admission_class(self, app: Application) -> Hashable:
        """By its state; one that is accepted and has and wants nothing keeps no other waiting."""
        if app.state == "Accepted" and not any(app.demand.values()):
            return "running"
        return ADMISSION_CLASSES.get(app.state, "running")

    def admission_limits(self, counts: Mapping[Hashable, int]) -> Mapping[Hashable, int | None]:
        """All that run, one that is starting, and only if there is none, one that is accepted.

        A starting application holds the others back even when it waits for nothing itself.
        """
        return {"running": None, "starting": 1, "accepted": 0 if counts.get("starting") else 1}


@hookimpl
def yunikorn_app_sort_policies() -> list[type[AppSortPolicy]]:
    """The default ways to order applications."""
    return [Fifo, FairApplications, StateAware]
