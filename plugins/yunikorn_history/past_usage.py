"""Usage before the start of a scheduler, from the hours and days of its history."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import sqlalchemy as sa

from yunikorn.clock import MILLISECOND
from yunikorn.errors import YunikornError, printable
from yunikorn.interface.commands import CreditUsage
from yunikorn.model.owner_usage import UsageCredit
from yunikorn_history.database import HistoryCorrupt, open_reader
from yunikorn_history.fetched_rows import FetchedRows, HistoryConnections
from yunikorn_history.history_tables import DAY, LEVELS, META, USAGE
from yunikorn_history.service_usage import CHECKPOINT

_log = logging.getLogger("yunikorn.history")

HOURS = 2 * DAY
"""Time before the day of the latest usage that is read by hours (ms); earlier usage is read by days."""
LONGEST = 400 * DAY
"""Largest age of usage that is read (ms)."""
PATIENCE = 2.0
"""Seconds for which the first registration waits."""


async def credit_past_usage(
    apply: Callable[[CreditUsage], Awaitable[None]], target: str, start: int, later: Callable[[], object]
) -> None:
    """Let a core that has no resource manager yet apply the usage in a history.

    If the history does not answer soon, what is recovered counts from `start` (ns) on, and `later` is called,
    so that the usage is credited when the history is opened.
    """
    try:
        credit = await asyncio.wait_for(asyncio.to_thread(read_past_usage, target), PATIENCE)
    except TimeoutError:
        why = f"the history has not answered for {PATIENCE:g} s"
    except HistoryCorrupt:
        why = "the history is damaged"
    except YunikornError as error:
        why = printable(str(error))
    else:
        if credit.credits:
            await apply(credit)
        return
    _log.warning("usage before the start is counted once the history can be read: %s", why)
    await apply(CreditUsage((), start))
    later()


async def credit_late(apply: Callable[[CreditUsage], Awaitable[None]], credit: CreditUsage) -> None:
    """Let a running core apply the usage of a history that can be read now."""
    if credit.credits:
        await apply(credit)
        _log.info("usage before the start is counted from now on")
    else:
        _log.info("the history has no usage before the start")


def read_past_usage(target: str) -> CreditUsage:
    """Return the usage in a history; raises `HistoryError`."""
    connections = HistoryConnections(open_reader(target), None)
    try:
        with connections.connected() as fetched:
            return past_usage(fetched)
    finally:
        connections.close()


def past_usage(fetched: FetchedRows) -> CreditUsage:
    """Return the usage in a history, on an open connection."""
    found = fetched.rows(sa.select(META.c.value).where(META.c.key == CHECKPOINT))
    known = int(found[0][0]) if found else 0
    level, time, fine = USAGE.c.level, USAGE.c.time, known - known % DAY - HOURS
    hours, days = sa.and_(level == 2, time >= fine), sa.and_(level == 3, time < fine)
    wanted = sa.select(USAGE).where(sa.or_(hours, days), time >= known - LONGEST)
    rows = fetched.rows(wanted.order_by(*USAGE.primary_key))
    credits = [_credit(one, known) for one in fetched.records(USAGE, rows)]
    return CreditUsage(tuple(one for one in credits if one is not None), known * MILLISECOND)


def _credit(row: dict[str, Any], known: int) -> UsageCredit | None:
    since, service = row["time"], {name: int(amount) for name, amount in row["data"]["service"].items()}
    until = min(since + LEVELS[row["level"]], known)
    if until <= since or not any(service.values()):
        return None
    return UsageCredit(
        row["rm"],
        row["partition"],
        row["queue"],
        row["user"],
        since * MILLISECOND,
        until * MILLISECOND,
        service,
        tuple(row["groups"] or ()),
        row["tags"] or {},
    )
