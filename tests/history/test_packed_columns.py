"""Texts of packed columns: short in the database, and the same for all who read them."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from tests.history.recorded_core import read_rows
from tests.history.written_history import START, WrittenHistory
from yunikorn_history.database import open_reader
from yunikorn_history.history_tables import ALLOCATIONS
from yunikorn_history.packed_columns import pack_key, pack_states, unpack_key, unpack_states
from yunikorn_history.queries import HistoryQueries

UUID = "00f1e2d3-c4b5-4697-8879-6a5b4c3d2e1f"
KEYS = (
    "",
    "task-1",
    UUID,
    UUID.upper(),
    UUID[1:],
    "=",
    "==",
    "=A",
    "=" + "A" * 22,
    "\udcff" + UUID[1:],
    "é" * 36,
)
STATES = (
    "[]",
    '[[1793491200000,"New",""],[1793491200005,"Accepted",""],[1793491200005,"Completed",""]]',
    '[[5,"New",""],[3,"Removed",""]]',
    '[[5,"New",""],[9,"Rejected","queue is full"]]',
    '[[5,"New",""],[9,"Unheard",""]]',
    '{"a":"7"}',
    "no JSON",
    "\udcff",
)


@pytest.mark.parametrize("key", KEYS)
def test_keys_are_unpacked_as_they_were(key: str) -> None:
    packed = pack_key(key)
    assert packed is not None
    assert unpack_key(packed) == key
    assert len(packed) == (23 if key == UUID else len(key) + key.startswith("="))


@pytest.mark.parametrize("text", STATES)
def test_states_are_unpacked_as_they_were(text: str) -> None:
    packed = pack_states(text)
    assert packed is not None
    assert unpack_states(packed) == text
    assert (packed == text) == (text not in STATES[1:3])


def test_readers_and_conditions_have_the_texts_themselves(location: str) -> None:
    history = WrittenHistory()
    states = [[START, "New", ""], [START + 7, "Running", ""]]
    history.task(history.application("app", START, states=states), UUID, START)
    history.write(location)
    assert (
        read_rows(location, "allocations")[0]["key"],
        read_rows(location, "applications")[0]["states"],
    ) == (
        UUID,
        states,
    )
    queries = HistoryQueries.open(location)
    assert [one.allocation_key for one in queries.tasks().records] == [UUID]
    assert [one.time - START for one in queries.applications().records[0].states] == [0, 7]
    queries.close()
    reader = open_reader(location)
    with reader.reading() as connection:
        assert connection.scalar(sa.select(ALLOCATIONS.c.id).where(ALLOCATIONS.c.key == UUID)) == 1
        assert connection.scalar(sa.select(sa.func.length(sa.cast(ALLOCATIONS.c.key, sa.Text)))) == 23
    reader.close()
