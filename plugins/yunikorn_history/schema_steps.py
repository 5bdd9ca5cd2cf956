"""Steps that convert the tables of a history from one version to the next.

A step has the statements of its time, whatever the tables of later versions are.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

Step = Callable[[Connection], None]


def separate_partitions(connection: Connection) -> None:
    """Give each row of `series` its resource manager and partition, and applications the column `doubts`.

    Before, equal names of all partitions shared a row. If there was one partition only, the rows are its own.
    """
    key = "BIGINT" if connection.dialect.name == "postgresql" else "INTEGER"
    places = connection.execute(sa.text('SELECT DISTINCT rm, "partition" FROM nodes LIMIT 2')).all()
    rm, partition = places[0] if len(places) == 1 else (0, 0)
    suffix = " WITHOUT ROWID" if connection.dialect.name == "sqlite" else ""
    columns = f"""kind SMALLINT NOT NULL, name INTEGER NOT NULL, level SMALLINT NOT NULL,
        time {key} NOT NULL, rm INTEGER NOT NULL, "partition" INTEGER NOT NULL, data TEXT NOT NULL,
        PRIMARY KEY (kind, name, level, time, rm, "partition")"""
    for statement in (
        "ALTER TABLE series RENAME TO series_1",
        f"CREATE TABLE series ({columns}){suffix}",
        "INSERT INTO series SELECT kind, name, level, time, :rm, :partition, data FROM series_1",
        "DROP TABLE series_1",
        "CREATE INDEX series_time ON series (level, time)",
        "ALTER TABLE applications ADD COLUMN doubts TEXT",
    ):
        values = {"rm": rm, "partition": partition} if ":rm" in statement else {}
        connection.execute(sa.text(statement), values)


STEPS: dict[int, Step] = {1: separate_partitions}
"""Steps from a version of the schema to the next one."""
