"""Service of applications, integrated step by step, as the reference for `Application.past`."""

from __future__ import annotations

from typing import Any

from yunikorn.accounting.partition import Partition
from yunikorn.clock import SECOND, ManualClock
from yunikorn.model.application import Application
from yunikorn.resources import Tally, grow


class IntegratingClock(ManualClock):
    """Manual clock that adds, whenever time passes, what every application has allocated."""

    def __init__(self) -> None:
        super().__init__()
        self._partition: Partition | None = None
        self._totals: dict[Application, Tally] = {}

    def watch(self, partition: Partition) -> None:
        """Integrate the applications of a partition from now on."""
        self._partition = partition
        accounting = partition.accounting
        recover = accounting.recover

        def recorded(*what: Any) -> Any:
            allocation = recover(*what)
            # A recovered allocation counts from its creation.
            self._add(allocation.app, allocation.resource, self.now() - allocation.placed)
            return allocation

        accounting.recover = recorded  # type: ignore[method-assign, assignment]

    def set(self, moment: int) -> None:
        """Integrate until `moment`, and set the time."""
        before = self.now()
        super().set(moment)
        if self._partition is not None and moment > before:
            for app in self._partition.applications.values():
                self._add(app, dict(app.allocated), moment - before)

    def _add(self, app: Application, amounts: Any, duration: int) -> None:
        grow(self._totals.setdefault(app, {}), amounts, duration)

    def check(self, app: Application) -> None:
        """Assert that the service of an application is the integral."""
        total = self._totals.get(app, {})
        served = {name: amount / SECOND for name, amount in total.items() if amount > 0}
        assert app.past.served == served, app
