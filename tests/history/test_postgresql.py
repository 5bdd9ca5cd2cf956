"""Histories in PostgreSQL: a server that goes away, locks, schemas, encodings and rights."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from tests.history.postgresql_server import PostgresServer
from tests.history.test_database import execute, fill
from tests.history.test_store import batch_of, made_row, rows_of
from yunikorn_history.database import HistoryAway, HistoryError, HistoryLocked, open_reader, open_writer
from yunikorn_history.history_tables import FAULTS
from yunikorn_history.row_writer import RowWriter


def test_a_server_that_restarts_or_crashes_is_away_and_found_again(
    postgresql_server: PostgresServer, postgresql: str
) -> None:
    writer = open_writer(postgresql)
    rows = RowWriter(writer)
    reader = open_reader(postgresql)
    count = sa.select(sa.func.count()).select_from(FAULTS)
    number = 0
    for end in (postgresql_server.stop, postgresql_server.kill):
        rows.write(batch_of((FAULTS, made_row(FAULTS, id=number))))
        end()
        for _ in range(2):
            with pytest.raises(HistoryAway):
                rows.write(batch_of((FAULTS, made_row(FAULTS, id=number + 1))))
            with pytest.raises(HistoryAway), reader.reading() as connection:
                connection.scalar(count)
        postgresql_server.start()
        rows.write(batch_of((FAULTS, made_row(FAULTS, id=number + 1))))
        number += 2
        with reader.reading() as connection:
            assert connection.scalar(count) == number
        with pytest.raises(HistoryLocked):
            open_writer(postgresql)
    reader.close()
    writer.close()


def test_the_end_of_a_connection_ends_the_lock_and_the_writer_takes_it_again(
    postgresql_server: PostgresServer, postgresql: str
) -> None:
    writer = open_writer(postgresql)
    database_name = str(sa.make_url(postgresql).database)
    end = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database_name}'"
    postgresql_server.execute(end)
    with pytest.raises(HistoryAway):
        RowWriter(writer).write(batch_of((FAULTS, made_row(FAULTS, id=1))))
    other = open_writer(postgresql)
    with pytest.raises(HistoryLocked) as caught:
        RowWriter(writer).write(batch_of((FAULTS, made_row(FAULTS, id=1))))
    assert str(caught.value).endswith(
        ": another scheduler writes to this database: stop it, or name another database"
    )
    other.close()
    RowWriter(writer).write(batch_of((FAULTS, made_row(FAULTS, id=1))))
    writer.close()
    assert len(rows_of(postgresql, FAULTS)) == 1


def test_a_database_of_others_is_shared_only_if_the_names_are_free(postgresql: str) -> None:
    execute(postgresql, "CREATE TABLE bookmarks (url TEXT)")
    fill(postgresql, 1)
    other = postgresql.replace("?", "?options=-csearch_path%3Dother&")
    execute(postgresql, "CREATE SCHEMA other")
    execute(postgresql, "CREATE TABLE other.nodes (name TEXT)")
    with pytest.raises(HistoryError, match="it has a table 'nodes', but is no history"):
        open_writer(other)
    execute(postgresql, "DROP TABLE other.nodes")
    # Each schema has a history of its own, with a lock of its own.
    first, second = open_writer(postgresql), open_writer(other)
    with pytest.raises(HistoryLocked):
        open_writer(other)
    first.close()
    second.close()
    assert rows_of(other, FAULTS) == []


def test_an_encoding_without_all_scripts_is_refused(postgresql_server: PostgresServer) -> None:
    location = postgresql_server.new_database("LATIN1")
    with pytest.raises(HistoryError) as caught:
        open_writer(location)
    assert str(caught.value).endswith(
        ": create the database with the encoding UTF8, for names of all scripts"
    )


def test_a_user_without_rights_is_refused(postgresql_server: PostgresServer, postgresql: str) -> None:
    postgresql_server.execute("DROP ROLE IF EXISTS guest")
    postgresql_server.execute("CREATE ROLE guest LOGIN")
    as_guest = postgresql.replace("postgres@", "guest@")
    with pytest.raises(HistoryError) as caught:
        open_writer(as_guest)
    assert ": the user lacks rights: let the user own the database, or grant CREATE on its schema (" in str(
        caught.value
    )
    assert not isinstance(caught.value, HistoryAway)


def test_an_unknown_database_is_away_with_the_words_of_the_server(
    postgresql_server: PostgresServer,
) -> None:
    with pytest.raises(HistoryAway, match='database "nosuch" does not exist'):
        open_writer(postgresql_server.location("nosuch"))
