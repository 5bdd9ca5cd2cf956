"""Names of a filter that a history does not have: typing errors, and not what just did nothing in a time."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy import Column

from yunikorn.text import suggest
from yunikorn_history.fetched_rows import FetchedRows
from yunikorn_history.history_filter import HistoryFilter
from yunikorn_history.history_tables import APPLICATIONS, AUDIT, CONFIGS, NAMES, NODES

ROOT = "root"
MOST_COMPARED = 10_000
"""Number of the newest applications whose ids may be suggested."""
_USERS: tuple[Column[int], ...] = (APPLICATIONS.c.user, AUDIT.c.operator, CONFIGS.c.by)
_NODES: tuple[Column[int], ...] = (NODES.c.name,)
_RMS: tuple[Column[int], ...] = (APPLICATIONS.c.rm, NODES.c.rm)
_PARTITIONS: tuple[Column[int], ...] = (APPLICATIONS.c.partition, NODES.c.partition)


def unknown_names(fetched: FetchedRows, wanted: HistoryFilter) -> Iterator[tuple[str, str]]:
    """Yield the names of a filter that a history has at no time, as (filter, why)."""
    if wanted.queue:
        paths = [text.split(".") for text in _texts(fetched, NAMES.c.text.startswith(f"{ROOT}."))]
        known = {".".join(path[:count]) for path in paths for count in range(1, len(path) + 1)} | {ROOT}
        yield from _unknown("queue", wanted.queue, known)
    for name, text, columns in (
        ("user", wanted.user, _USERS),
        ("node", wanted.node, _NODES),
        ("rm", wanted.rm, _RMS),
        ("partition", wanted.partition, _PARTITIONS),
    ):
        if text:
            used = sa.or_(*(NAMES.c.id.in_(sa.select(column)) for column in columns))
            yield from _unknown(name, text, _texts(fetched, used))
    if wanted.application:
        ids = APPLICATIONS.c.app_id
        if not fetched.rows(sa.select(ids).where(ids == wanted.application).limit(1)):
            newest = sa.select(ids).order_by(APPLICATIONS.c.submitted.desc()).limit(MOST_COMPARED)
            yield from _unknown("application", wanted.application, {row[0] for row in fetched.rows(newest)})


def _texts(fetched: FetchedRows, where: sa.ColumnElement[bool]) -> set[str]:
    return {row[0] for row in fetched.rows(sa.select(NAMES.c.text).where(where))}


def _unknown(name: str, text: str, known: set[str]) -> Iterator[tuple[str, str]]:
    if text not in known:
        what = "resource manager" if name == "rm" else name
        yield name, f"the history has no {what} '{text}'{suggest(text, known)}"
