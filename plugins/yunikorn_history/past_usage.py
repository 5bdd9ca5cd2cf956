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
from yunikorn_history.fetched_rows import HistoryConnections
from yunikorn_history.history_tables import DAY, LEVELS, META, USAGE
from yunikorn_history.service_usage import CHECKPOINT

_log = logging.getLogger("yunikorn.history")

HOURS = 2 * DAY
"""Time before the day of the latest usage that is read by hours (ms); earlier usage is read by days."""
LONGEST = 400 * DAY
"""Largest age of usage that is read (ms)."""
PATIENCE = 20.0
"""Seconds for which the first registration waits."""


async def credit_past_usage(apply: Callable[[CreditUsage], Awaitable[None]], target: str) -> None:
    """Let a core that has no resource manager yet apply the usage in a history; a failure is logged."""
    try:
        credit = await asyncio.wait_for(asyncio.to_thread(read_past_usage, target), PATIENCE)
        if credit.credits:
            await apply(credit)
    except TimeoutError:
        _warn(f"reading it takes longer than {PATIENCE:g} s")
    except HistoryCorrupt:
        _warn("the history is damaged")
    except YunikornError as error:
        _warn(printable(str(error)))


def _warn(why: str) -> None:
    _log.warning("usage before the start is not counted until the next start: %s", why)


def read_past_usage(target: str) -> CreditUsage:
    """Return the usage in a history; raises `HistoryError`."""
    connections = HistoryConnections(open_reader(target), None)
    try:
        with connections.connected() as fetched:
            found = fetched.rows(sa.select(META.c.value).where(META.c.key == CHECKPOINT))
            known = int(found[0][0]) if found else 0
            level, time, fine = USAGE.c.level, USAGE.c.time, known - known % DAY - HOURS
            hours, days = sa.and_(level == 2, time >= fine), sa.and_(level == 3, time < fine)
            wanted = sa.select(USAGE).where(sa.or_(hours, days), time >= known - LONGEST)
            rows = fetched.rows(wanted.order_by(*USAGE.primary_key))
            credits = [_credit(one, known) for one in fetched.records(USAGE, rows)]
    finally:
        connections.close()
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
