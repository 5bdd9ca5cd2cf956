"""Steps that convert the tables of a history from one version to the next.

A step has the statements of its time, whatever the tables of later versions are.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
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


_SHORTER = """
INSERT INTO names (id, text)
  SELECT (SELECT max(id) FROM names) + row_number() OVER (ORDER BY tags), tags
  FROM (SELECT DISTINCT tags FROM applications WHERE length(tags) <= 4000) AS chosen
  WHERE tags NOT IN (SELECT text FROM names);
ALTER TABLE applications ADD COLUMN chosen INTEGER NOT NULL DEFAULT 0;
UPDATE applications SET chosen = coalesce((SELECT min(id) FROM names WHERE text = tags), 0);
ALTER TABLE applications DROP COLUMN tags;
ALTER TABLE applications RENAME COLUMN chosen TO tags;
UPDATE allocations SET "key" = '=' || "key" WHERE "key" LIKE '=%';
UPDATE allocations SET flags = flags + 32
  WHERE flags & 20 = 0 AND ended IS NOT NULL
  AND exit NOT IN (SELECT id FROM names WHERE text IN ('STOPPED_BY_RM', 'PLACEHOLDER_REPLACED'));
CREATE INDEX applications_tags ON applications (tags, submitted) WHERE tags > 0;
CREATE INDEX applications_preempted ON applications (submitted) WHERE preempted > 0;
CREATE INDEX allocations_preempted ON allocations (placed) WHERE (flags & 4) > 0;
CREATE INDEX allocations_exit ON allocations (exit, placed) WHERE (flags & 52) > 0
"""


def shorten_rows(connection: Connection) -> None:
    """Keep tags as names, and mark keys and flags, for partial indexes; texts are packed in new rows only."""
    for statement in _SHORTER.split(";"):
        connection.execute(sa.text(statement))
    _shorten_doubts(connection)


def _shorten_doubts(connection: Connection) -> None:
    """Keep the tags as names also in doubts, which have the row of an application as it was before."""
    doubtful = sa.text("SELECT id, doubts FROM applications WHERE doubts IS NOT NULL")
    for number, text in connection.execute(doubtful).all():
        doubts = msgspec.json.decode(text)
        for doubt in doubts:
            doubt["before"][_TAGS] = _name_of(connection, doubt["before"][_TAGS])
        values = {"doubts": msgspec.json.encode(doubts).decode(), "id": number}
        connection.execute(sa.text("UPDATE applications SET doubts = :doubts WHERE id = :id"), values)


_TAGS = 8
"""Place of the tags in the row of an application in a doubt."""


def _name_of(connection: Connection, tags: str | None) -> int:
    """Return the id of a name, which may be new; 0 for no tags, and for those that are too long."""
    if not tags or len(tags) > 4000:
        return 0
    found = connection.scalar(sa.text("SELECT min(id) FROM names WHERE text = :tags"), {"tags": tags})
    if found is None:
        found = connection.scalar(sa.text("SELECT max(id) + 1 FROM names"))
        new = {"id": found, "tags": tags}
        connection.execute(sa.text("INSERT INTO names (id, text) VALUES (:id, :tags)"), new)
    return int(found)


def search_keys(connection: Connection) -> None:
    """Add the table of digests, which are written afterwards in steps, and indexes of places and ids."""
    index = 'CREATE INDEX applications_place ON applications ("partition", rm, submitted)'
    connection.execute(sa.text(index))
    connection.execute(sa.text("CREATE TABLE task_keys (block INTEGER PRIMARY KEY, digests TEXT NOT NULL)"))
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("DROP INDEX applications_app_id"))
        index = "CREATE INDEX applications_app_id ON applications (app_id text_pattern_ops)"
        connection.execute(sa.text(index))


STEPS: dict[int, Step] = {1: separate_partitions, 2: shorten_rows, 3: search_keys}
"""Steps from a version of the schema to the next one."""
