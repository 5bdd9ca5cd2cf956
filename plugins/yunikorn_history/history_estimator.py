"""Estimator `history`: the run times of the tasks in a history, and of those that end from then on.

partitions:
  - name: default
    estimators:
      - {name: history, path: /var/lib/yunikorn/history.sqlite}
"""

from __future__ import annotations

import json

import attrs

from yunikorn.api import Context, RunTimeEstimator, hookimpl
from yunikorn.clock import MILLISECOND
from yunikorn_commands.extras import importing_extra
from yunikorn_history.history_address import check_location
from yunikorn_history.history_filter import HistoryFilter
from yunikorn_plugins.run_time_estimators import LearnedRunTimes, size_of
from yunikorn_plugins.run_time_groups import RESOURCE, RunTimes

DAY = 86_400_000


def _check_path(_: object, __: attrs.Attribute[str], value: str) -> None:
    check_location(value)


@attrs.define(eq=False)
class RunTimesOfHistory(LearnedRunTimes):
    """Run times of the tasks in a history, and of those that end from then on."""

    name = "history"
    path: str = attrs.field(kw_only=True, validator=_check_path)
    """File of the history, or postgresql://USER@HOST/DATABASE."""
    days: int = attrs.field(kw_only=True, default=90, validator=attrs.validators.in_(range(1, 100_000)))
    """Number of days before the start whose tasks count."""

    def opened(self, context: Context) -> None:
        """Read the history; raises `HistoryError` if that is not possible."""
        with importing_extra("history", "for the estimator 'history'"):
            from yunikorn_history.queries import HistoryQueries
        since = context.now() // MILLISECOND - self.days * DAY
        queries = HistoryQueries.open(self.path)
        try:
            found = queries.read_run_times(HistoryFilter(since=max(since, 0)))
        finally:
            queries.close()
        self._known = RunTimes(recent=self.recent)
        for kind, groups in found.groups.items():
            for names, buckets in groups.items():
                named = dict(zip(kind, names, strict=True))
                if RESOURCE in named:
                    named[RESOURCE] = size_of(json.loads(named[RESOURCE] or "{}"))
                self._known.put(kind, tuple(named[each] for each in kind), buckets)


@hookimpl
def yunikorn_run_time_estimators() -> list[type[RunTimeEstimator]]:
    """Return the estimator."""
    return [RunTimesOfHistory]
