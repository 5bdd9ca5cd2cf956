"""Search for allocations by their keys, in a small part of the space that an index would need.

An index of keys would enlarge a history by a tenth or more. Instead, a row of `task_keys` has the digests of
a block of allocations with successive ids: four characters each, in any order. A search reads all digests, a
fiftieth of the history, and then only those blocks in which the key may be. The digest of a UUID is its
beginning, so that its first six digits suffice; that of another key is its end. The latest allocations have
no digests yet, and are searched themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import ColumnElement, Text, func
from sqlalchemy.engine import Connection

from yunikorn_history.fetched_rows import FetchedRows
from yunikorn_history.history_tables import ALLOCATIONS, APPLICATIONS, TASK_KEYS
from yunikorn_history.packed_columns import MARK, begin_of_key, key_forms, unpack_key

BLOCK = 4_096
"""Number of ids in a block."""
UNSETTLED = 262_144
"""Number of the latest ids of which some may have rows that are not written yet."""
REMOVAL = 64
"""Number of blocks after which those without allocations are removed."""
AT_ONCE = 16
"""Number of blocks that are written with a batch of rows."""
DIGEST = 4
LAST = "\U0010ffff"
"""Greatest character."""
MOST_BLOCKS = 50
"""Number of the latest blocks with a digest that are searched; of a UUID, hardly more than one has it."""
Where = ColumnElement[bool]
_ID = ALLOCATIONS.c.id
_PACKED: ColumnElement[str] = sa.type_coerce(ALLOCATIONS.c.key, Text())
_BLOCK = TASK_KEYS.c.block


def settled_blocks(highest: int) -> int:
    """Return the number of blocks that get no further rows, by the highest id."""
    return max(0, highest - UNSETTLED) // BLOCK


def forget_blocks(connection: Connection, highest: int) -> None:
    """Remove digests of ids that a process gives again, because the latest allocations were removed."""
    connection.execute(TASK_KEYS.delete().where(settled_blocks(highest) <= _BLOCK))


def write_blocks(connection: Connection, settled: int) -> bool:
    """Write digests of some blocks before the block `settled`; returns True if there are more to write.

    Blocks whose allocations were removed are removed now and then.
    """
    latest = connection.scalar(sa.select(func.max(_BLOCK)))
    # Of more ids than those of a step, there may be no rows: they were removed, or lost.
    begin = _next_block(connection, 0 if latest is None else latest + 1)
    end = min(settled, begin + AT_ONCE)
    if begin >= end:
        return False
    is_sqlite = connection.dialect.name == "sqlite"
    joined: Any = func.group_concat if is_sqlite else func.string_agg
    number = _ID // BLOCK
    blocks = sa.select(number, joined(_digest(), "")).where(begin * BLOCK <= _ID, end * BLOCK > _ID)
    connection.execute(TASK_KEYS.insert().from_select(["block", "digests"], blocks.group_by(number)))
    if begin % REMOVAL < end - begin:
        _remove_blocks(connection, begin)
    return end < settled


def _remove_blocks(connection: Connection, until: int) -> None:
    """Remove the blocks before one whose allocations were all removed."""
    of_block = sa.select(sa.literal(1)).where(_ID >= _BLOCK * BLOCK, _ID < (_BLOCK + 1) * BLOCK)
    empty = ~of_block.correlate(TASK_KEYS).exists()
    connection.execute(TASK_KEYS.delete().where(until > _BLOCK, empty))


def _next_block(connection: Connection, block: int) -> int:
    """Return the first block with allocations from a block on; that block if there is none."""
    found = connection.scalar(sa.select(func.min(_ID)).where(block * BLOCK <= _ID))
    return block if found is None else int(found) // BLOCK


def _digest() -> ColumnElement[str]:
    """Return the digest of the key of a row."""
    is_uuid = sa.and_(func.substr(_PACKED, 1, 1) == MARK, func.substr(_PACKED, 2, 1) != MARK)
    length = func.length(_PACKED)
    return sa.case(
        (is_uuid, func.substr(_PACKED, 2, DIGEST)),
        (length <= DIGEST, _PACKED),
        else_=func.substr(_PACKED, length - DIGEST + 1),
    )


def digest_of(packed: str) -> str:
    """Return the digest of a key as rows have it."""
    if packed[:1] == MARK and packed[1:2] != MARK:
        return packed[1 : DIGEST + 1]
    return packed[-DIGEST:]


def begins_with(column: ColumnElement[Any], text: str, fetched: FetchedRows) -> Where:
    """Return the condition that a text begins with another one, for which an index serves."""
    if fetched.is_sqlite:
        return sa.and_(column >= text, column < text + LAST)
    # In the order of characters, whatever the collation.
    return sa.and_(column.op("~>=~")(text), column.op("~<~")(text + LAST))


class KeySearch:
    """Search for the allocations with a key, or with its beginning."""

    def __init__(self, fetched: FetchedRows, text: str) -> None:
        self._fetched, self._text = fetched, text
        self._begin = begin_of_key(text)
        """Beginning of the UUIDs that begin with the text, as rows have them; empty for another text."""

    def found(self, limit: int, where: Sequence[Where]) -> list[tuple[str, int, str]]:
        """Return keys of tasks, newest first, with id and name of their applications."""
        spans = [self._unsettled(), *self._spans()]
        parts = [self._matching(since, until, where, limit) for since, until in spans]
        rows = self._fetched.rows(sa.union_all(*parts))
        named = [(number, unpack_key(key) or "", app, name) for number, key, app, name in rows]
        # A packed beginning is a little shorter than the text.
        right = [one for one in named if one[1].startswith((self._text, self._text.lower()))]
        return [(key, app, name) for _, key, app, name in sorted(right, reverse=True)[:limit]]

    def _matching(self, since: int, until: int, where: Sequence[Where], limit: int) -> sa.Select[Any]:
        app = APPLICATIONS.c
        forms = sorted({self._begin or self._text, self._text, *filter(None, key_forms(self._text))})
        wanted = [begins_with(_PACKED, form, self._fetched) for form in forms]
        statement = (
            sa.select(_ID, _PACKED.label("key"), app.id.label("app"), app.app_id)
            .select_from(ALLOCATIONS.join(APPLICATIONS, app.id == ALLOCATIONS.c.app))
            .where(since <= _ID, until > _ID, sa.or_(*wanted), *where)
        )
        return sa.select(statement.order_by(_ID.desc()).limit(limit).subquery())

    def _unsettled(self) -> tuple[int, int]:
        """Return the ids that have no digests yet, at most the latest ones."""
        highest, latest = (
            sa.select(func.coalesce(func.max(one), -1)).scalar_subquery() for one in (_ID, _BLOCK)
        )
        ((end, block),) = self._fetched.rows(sa.select(highest.label("highest"), latest.label("latest")))
        return max((block + 1) * BLOCK, end - UNSETTLED - (AT_ONCE + 1) * BLOCK), end + 1

    def _spans(self) -> list[tuple[int, int]]:
        """Return the ids of blocks that may have the key."""
        forms = {self._begin, *key_forms(self._text)} - {""}
        position = func.instr if self._fetched.is_sqlite else func.strpos
        has = [position(TASK_KEYS.c.digests, one) > 0 for one in {digest_of(form or "") for form in forms}]
        blocks = sa.select(_BLOCK).where(sa.or_(*has)).order_by(_BLOCK.desc()).limit(MOST_BLOCKS)
        return [(block * BLOCK, (block + 1) * BLOCK) for block in self._fetched.ids(blocks)]
