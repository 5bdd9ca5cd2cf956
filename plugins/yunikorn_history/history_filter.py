"""Filters of queries of a history."""

from __future__ import annotations

from typing import Any

import attrs

from yunikorn_history.rows import clean_text

Position = tuple[int, ...]
"""Key of the last record of a page: time and number; of usage and series, time and names."""
USUAL = 100
"""Number of records of a page by default."""


@attrs.frozen
class HistoryScope:
    """Records that a reader may see: the own ones, and those of some queues and the queues below.

    Applications, tasks and usage have a user and a queue; series of users and actions of operators are the
    own ones. All else is seen by every reader, as it is while the scheduler runs.
    """

    user: str
    queues: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    """Queues of these that are not seen, nor the queues below; deeper ones of `queues` are."""


def _text() -> Any:
    """Return a field for a text of any client, which a database may not take as it is."""
    return attrs.field(default="", converter=clean_text)


@attrs.frozen(kw_only=True)
class HistoryFilter:
    """Records that a query wants; an empty text and None are no filter.

    Times are milliseconds since 1970. What lasts, such as an application, is wanted if it was there at any
    time from `since` on and before `until`; buckets of series and usage, if they begin there.
    """

    since: int | None = None
    until: int | None = None
    application: str = _text()
    """Id of the application."""
    number: int | None = None
    """Number of one submission of an application."""
    user: str = _text()
    group: str = _text()
    queue: str = _text()
    """Full path; the queues below are wanted, too."""
    node: str = _text()
    rm: str = _text()
    """Id of the resource manager."""
    partition: str = _text()
    state: str = _text()
    """Latest state of applications; outcome of actions."""
    template: str = _text()
    """Ids of applications without what differs from run to run."""
    tag: str = _text()
    """`KEY=VALUE`, or `KEY` for any value."""
    exit: str = _text()
    """Reason for which tasks ended, such as `STOPPED_BY_RM`."""
    preempted: bool | None = None
    bucket: str = "hour"
    """Length of buckets: `minute`, `hour` or `day`."""
    by: tuple[str, ...] = ()
    """Groups of run times: `user`, `queue`, `template` and `resource`, or some of them."""
    scope: HistoryScope | None = None
    """Records that the reader may see; None for all."""
    limit: int = USUAL
    """Maximum number of records of a page."""
    after: Position | None = None
    """Position behind which the page begins; None for the first page."""


EVERYTHING = HistoryFilter()
