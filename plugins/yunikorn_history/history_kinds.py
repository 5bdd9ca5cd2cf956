"""Kinds of records of a history: their routes, filters and queries, for commands and REST.

Nothing here imports a database.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from datetime import tzinfo
from types import MappingProxyType
from typing import Any

import attrs

from yunikorn.model.allocation import TerminationType
from yunikorn.states import APPLICATION
from yunikorn.text import listed, suggest
from yunikorn_history import past_records
from yunikorn_history.history_filter import HistoryFilter, Position
from yunikorn_history.time_words import LATEST, parse_time

TIMES = ("since", "until")
PLACES = ("rm", "partition")
OF_APPLICATIONS = ("user", "group", "queue", *PLACES, "application", "template", "tag", "preempted")
EXITS = tuple(one.name for one in TerminationType)
BUCKETS = ("minute", "hour", "day")
LARGEST_PAGE = 10_000
FILTERS = {
    "since": "only what was there at this time or later: 2026-11-27, 7d, yesterday",
    "until": "only what was there before this time",
    "user": "only of this user; of audit, of this operator",
    "group": "only of users of this group",
    "queue": "only in this queue and the queues below",
    "node": "only on this node",
    "rm": "only of the resource manager with this id",
    "partition": "only in this partition",
    "state": "only applications with this latest state; only actions with this outcome",
    "application": "only of the application with this id",
    "template": "only applications whose ids differ in numbers, hashes or dates at most",
    "tag": "only of applications with this tag: `KEY=VALUE`, or `KEY` for any value",
    "exit": "only tasks that ended so, such as PREEMPTED_BY_SCHEDULER; UNKNOWN with their node or unseen",
    "preempted": "only what was preempted",
    "bucket": "length of the parts of a series: minute, hour or day; by default minute for up to 6 hours,"
    " hour for up to 14 days, else day",
    "by": "groups of run times: user, queue, template or resource, or several as user,template",
}
"""Filters and their descriptions."""


@attrs.frozen
class HistoryKind:
    """A kind of records."""

    path: str
    """Path of the route, below `/ws/v1/history/`."""
    shape: type[Any]
    """Class of the records."""
    filters: tuple[str, ...] = ()
    """Filters beside those of time."""
    states: tuple[str, ...] = ()
    """Values of the filter `state`."""
    buckets: tuple[str, ...] = ()
    """Values of the filter `bucket`."""
    position: int = 2
    """Number of integers in the position of a page."""

    @property
    def query(self) -> str:
        """Method of `HistoryQueries`."""
        return self.path.replace("-", "_")

    @property
    def accepted(self) -> tuple[str, ...]:
        """All filters."""
        return (*TIMES, *self.filters)

    def values(self, name: str) -> tuple[str, ...]:
        """Return the values of a filter; none if it takes any."""
        known = {"state": self.states, "exit": EXITS, "bucket": self.buckets, "preempted": ("true", "false")}
        return known.get(name, ())


def _series(path: str, *filters: str) -> HistoryKind:
    accepted = (*filters, *PLACES, "bucket")
    return HistoryKind(path, past_records.SeriesPoint, accepted, buckets=BUCKETS, position=4)


KINDS = {
    "apps": HistoryKind(
        "applications",
        past_records.PastApplication,
        (*OF_APPLICATIONS, "state"),
        (*APPLICATION.states, "Removed"),
    ),
    "tasks": HistoryKind("tasks", past_records.PastTask, (*OF_APPLICATIONS, "node", "exit")),
    "queues": _series("queues", "queue"),
    "users": _series("users", "user"),
    "nodes": HistoryKind("nodes", past_records.PastNode, ("node", *PLACES)),
    "node-series": _series("node-series", "node"),
    "partition": _series("partition"),
    "usage": HistoryKind(
        "usage",
        past_records.UsagePoint,
        ("user", "group", "queue", *PLACES, "bucket"),
        buckets=BUCKETS[1:],
        position=7,
    ),
    "configs": HistoryKind("configs", past_records.PastConfig, ("user",)),
    "audit": HistoryKind("audit", past_records.PastAction, ("user", "state"), ("done", "failed", "refused")),
    "faults": HistoryKind("faults", past_records.PastFault),
    "runtimes": HistoryKind("run-times", past_records.PastRunTimes, ("user", "group", "queue", "by")),
    "runs": HistoryKind("runs", past_records.PastRun),
    "gaps": HistoryKind("gaps", past_records.HistoryGap),
}
"""Kinds by the name that commands have for them."""


def filter_of(
    kind: HistoryKind,
    given: Mapping[str, str],
    now: int,
    zone: tzinfo | None = None,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> tuple[HistoryFilter, list[str]]:
    """Return the filter with these values, and all problems of the values.

    `now` is the present time (ns), `zone` that of times without one. Problems begin with the names of values,
    or with their `labels`.
    """
    problems, found = [], dict[str, Any]()
    for name, text in given.items():
        try:
            found[name] = _value(kind, name, text, now, zone)
        except ValueError as error:
            problems.append(f"{labels.get(name, name)}: {error}")
    return HistoryFilter(**found), problems


def _value(kind: HistoryKind, name: str, text: str, now: int, zone: tzinfo | None) -> Any:
    """Return the value of a filter; raises `ValueError`."""
    if name not in kind.accepted:
        of = [known for known, one in KINDS.items() if name in one.accepted]
        raise ValueError(f"is for {listed(of)}")
    if name in TIMES:
        return parse_time(text, now, zone)
    if name == "queue":
        return text.lower()
    if name == "by":
        return tuple(known_value(part.strip(), past_records.GROUPS) for part in text.split(","))
    known = kind.values(name)
    found = known_value(text, known) if known else text
    return found == "true" if name == "preempted" else found


def known_value(text: str, known: Iterable[str]) -> str:
    """Return a value in its usual spelling; raises `ValueError` for an unknown one."""
    for value in known:
        if value.lower() == text.lower():
            return value
    raise ValueError(f"{text[:60]!r} is unknown{suggest(text, known)}; known: {', '.join(known)}")


def usual_bucket(since: int | None, until: int | None, now: int, known: tuple[str, ...]) -> str:
    """Return the length of buckets that shows a time (ms) in some ten to some hundred of them."""
    if since is None:
        return "day"
    hours = ((now // 1_000_000 if until is None else until) - since) / 3_600_000
    wanted = "minute" if hours <= 6 else "hour" if hours <= 14 * 24 else "day"
    return wanted if wanted in known else known[0]


# -- tokens of pages -------------------------------------------------------------------------------------


def token_of(position: Position) -> str:
    """Return a position as a token for clients."""
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode()


def position_of(kind: HistoryKind, token: str) -> Position:
    """Return the position of a token; raises `ValueError`."""
    try:
        found = json.loads(base64.urlsafe_b64decode(token.encode("ascii")))
    except (binascii.Error, ValueError, RecursionError):
        found = None
    if isinstance(found, list) and len(found) == kind.position:
        largest = 1 << (63 if kind.position == 2 else 31)
        if all(type(one) is int and 0 <= one < largest for one in found[1:]) and _is_time(found[0]):
            return tuple(found)
    raise ValueError("is no token of this server")


def _is_time(value: object) -> bool:
    return type(value) is int and 0 <= value <= LATEST
