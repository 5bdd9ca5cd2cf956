"""Application sort policy that orders the requests of an application: `expected-time`.

Tasks carry the run time that is expected of them as a tag, and optionally the stage of a pipeline. Requests
go by stage, and within a stage the longest first: long tasks that start late make the application end late
(R. L. Graham, Bounds on multiprocessing timing anomalies, 1969). With `longest_first: "false"` the mean wait
of a task is shorter instead.
"""

from __future__ import annotations

import attrs

from yunikorn.api import Application, AppSortPolicy, Ask, hookimpl

LARGEST = 10**9
"""Largest stage or number of seconds; tags with more, or without a number, count as 0."""


@attrs.frozen
class ExpectedTime(AppSortPolicy):
    """Sorts applications by submission, and their requests by stage and expected run time."""

    name = "expected-time"
    gangs = True
    longest_first: bool = True
    tag: str = "expected-seconds"

    def key(self, app: Application) -> int:
        """Return the time of submission."""
        return app.submitted

    def ask_key(self, ask: Ask) -> tuple[int, int]:
        """Return the stage, and the expected run time."""
        seconds = _number(ask.tags.get(self.tag, ""))
        return _number(ask.tags.get("stage", "")), -seconds if self.longest_first else seconds


def _number(text: str) -> int:
    """Return the whole number that a tag has, or 0."""
    number = int(text) if text.isdecimal() and len(text) <= 10 else 0
    return number if number <= LARGEST else 0


@hookimpl
def yunikorn_app_sort_policies() -> list[type[AppSortPolicy]]:
    """Return the policy of this module."""
    return [ExpectedTime]
