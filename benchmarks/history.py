"""Size of a large history, and durations of usual queries, with what its writer takes.

`python -m benchmarks.history` makes a history of a year with a million applications and ten million
allocations, which takes ten minutes or more, and 4 GB of disk. The first twentieth is made row by row; the
database copies it to later times. Queries are those of the interface; each is made for several users, queues
or nodes, and the slowest one counts.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import click
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from benchmarks.machine import yardstick
from tests.history.made_history import UNTIL, MadeHistory, make_history
from yunikorn_history.database import open_reader, open_writer
from yunikorn_history.history_filter import HistoryFilter
from yunikorn_history.history_tables import (
    ALLOCATIONS,
    APPLICATIONS,
    DAY,
    HOUR,
    METADATA,
    RUNS,
    SERIES,
    USAGE,
)
from yunikorn_history.queries import HistoryQueries
from yunikorn_history.retention import used_bytes
from yunikorn_history.row_writer import RowWriter
from yunikorn_history.rows import Row, RowBatch
from yunikorn_history.task_keys import settled_blocks, write_blocks

TRIES = 5
LARGEST = 1_900_000_000
"""Bytes that applications and allocations may occupy."""
PARTS = 20
"""Number of parts of the time, of which the first one is made and the others are copies."""
BATCH, BATCHES = 5_000, 20
COUNT = click.IntRange(min=1)
Query = Callable[[HistoryQueries, int], int]
"""Makes a query for the n-th user, queue or node, and returns the number of records."""


def queries_of(made: MadeHistory, applications: int) -> Iterator[tuple[str, Query]]:
    """Yield the usual queries with their names."""
    week, month = made.until - 7 * DAY, made.until - 30 * DAY

    def pick(names: list[str], number: int) -> str:
        # Most users have one queue, the first ones, so that these have some applications each.
        return names[number * 7919 % min(len(names), len(made.queues))]

    def count(**wanted: object) -> HistoryFilter:
        return HistoryFilter(**wanted)  # type: ignore[arg-type]

    yield "newest 50 applications", lambda all, _: len(all.applications(count(limit=50)).records)
    yield "newest 50 tasks", lambda all, _: len(all.tasks(count(limit=50)).records)
    yield (
        "a user's applications of a week",
        lambda all, number: len(
            all.applications(count(user=pick(made.users, number), since=week, limit=1000)).records
        ),
    )
    yield (
        "a queue's applications of a month",
        lambda all, number: len(
            all.applications(count(queue=pick(made.queues, number), since=month, limit=1000)).records
        ),
    )
    yield (
        "a user's tasks of a week",
        lambda all, number: len(
            all.tasks(count(user=pick(made.users, number), since=week, limit=1000)).records
        ),
    )
    yield (
        "a node's tasks of a week",
        lambda all, number: len(
            all.tasks(count(node=pick(made.nodes, number), since=week, limit=1000)).records
        ),
    )
    yield (
        "tasks that were preempted in a month",
        lambda all, _: len(all.tasks(count(preempted=True, since=month, limit=100)).records),
    )
    yield (
        "applications with a tag",
        lambda all, _: len(all.applications(count(tag="account=account1")).records),
    )
    yield (
        "an application by its id",
        lambda all, number: len(
            all.applications(count(application=app_ids(all, number, applications))).records
        ),
    )
    yield (
        "the tasks of an application",
        lambda all, number: len(
            all.tasks(count(application=app_ids(all, number, applications), limit=1000)).records
        ),
    )
    yield (
        "a queue by days of a year",
        lambda all, number: len(
            all.queues(count(queue=pick(made.queues, number), bucket="day", limit=1000)).records
        ),
    )
    yield (
        "a user by hours of a week",
        lambda all, number: len(
            all.users(count(user=pick(made.users, number), bucket="hour", since=week, limit=1000)).records
        ),
    )
    yield (
        "use of a day by queues and users",
        lambda all, number: len(
            all.usage(count(bucket="day", since=made.until - 2 * DAY, limit=1000)).records
        ),
    )


def copy_forward(location: str, length: int) -> None:
    """Copy all rows to the times after them, again and again.

    Only the last copy has the shorter buckets, and something that still runs.
    """
    moved = ("requested", "placed", "submitted", "started", "ended", "time")
    writer = open_writer(location)
    with writer.transaction() as connection:
        offsets = {
            table: int(connection.scalar(sa.select(sa.func.max(table.c.id))) or 0)
            for table in (APPLICATIONS, ALLOCATIONS)
        }
    with writer.transaction() as connection:
        _end_all(connection, UNTIL - length * (PARTS - 1))
    for number in range(1, PARTS):
        with writer.transaction() as connection:
            for table in (APPLICATIONS, ALLOCATIONS, SERIES, USAGE):
                columns: list[sa.ColumnElement[object]] = []
                for column in table.c:
                    shift = number * length if column.name in moved else 0
                    shift = number * offsets[table] if column.name == "id" else shift
                    shift = number * offsets[APPLICATIONS] if column is ALLOCATIONS.c.app else shift
                    columns.append(column + shift if shift else column)
                    if column is APPLICATIONS.c.app_id:
                        columns[-1] = column + f"-{number}"
                    elif column is ALLOCATIONS.c.key:
                        # Not of its type, which would pack the texts.
                        key = sa.type_coerce(column, sa.Text())
                        columns[-1] = f"={chr(65 + number)}" + sa.func.substr(key, 3)
                first = (
                    table.c.id <= offsets[table]
                    if "id" in table.c
                    else table.c.time < UNTIL - length * (PARTS - 1)
                )
                levels = [table.c.level == 3] if "level" in table.c and number < PARTS - 1 else []
                rows = sa.select(*columns).where(first, *levels)
                connection.execute(table.insert().from_select(list(table.c.keys()), rows))
    with writer.transaction() as connection:
        for table in (APPLICATIONS, ALLOCATIONS):
            connection.execute(sa.update(table).where(table.c.ended > UNTIL).values(ended=None))
        connection.execute(sa.update(RUNS).where(RUNS.c.ended.is_(None)).values(seen=UNTIL))
        highest = int(connection.scalar(sa.select(sa.func.max(ALLOCATIONS.c.id))) or 0)
        while write_blocks(connection, settled_blocks(highest)):
            pass
        if writer.dialect == "postgresql":
            connection.execute(sa.text("ANALYZE"))
    writer.close()


def _end_all(connection: Connection, until: int) -> None:
    """End what still runs at a time, within the hour after it."""
    for table in (ALLOCATIONS, APPLICATIONS):
        later = until + table.c.id * 7919 % HOUR
        if table is APPLICATIONS:
            tasks = sa.select(sa.func.max(ALLOCATIONS.c.ended)).where(ALLOCATIONS.c.app == table.c.id)
            later = sa.func.coalesce(tasks.scalar_subquery(), later)
        connection.execute(sa.update(table).where(table.c.ended.is_(None)).values(ended=later))


def app_ids(queries: HistoryQueries, number: int, applications: int) -> str:
    """Return the id of some application."""
    found = queries.application(1 + number * 7919 % applications)
    assert found is not None
    return found.application_id


def sizes(location: str) -> dict[str, int]:
    """Return the bytes of each table with its indexes."""
    reader = open_reader(location)
    with reader.reading() as connection:
        if connection.dialect.name == "postgresql":
            found = {
                name: int(connection.scalar(sa.text(f"SELECT pg_total_relation_size('{name}')")) or 0)
                for name in METADATA.tables
            }
        else:
            statement = sa.text(
                "SELECT tbl_name, sum(pgsize) FROM dbstat JOIN sqlite_schema USING (name) GROUP BY tbl_name"
            )
            try:
                found = {str(name): int(size) for name, size in connection.execute(statement)}
            except sa.exc.DatabaseError:  # a SQLite without sizes of tables
                found = {}
        total, _ = used_bytes(connection)
    reader.close()
    return {"total": total if connection.dialect.name == "sqlite" else sum(found.values()), **found}


def write_speed(location: str) -> tuple[float, float]:
    """Return the rows per second of new allocations, and of allocations that end."""
    rng = Random(1)

    def row(number: int, ended: int | None) -> Row:
        values = {
            "id": number,
            "app": number // 10,
            "key": f"{number:032x}",
            "node": number % 997,
            "shape": 1,
        }
        values |= {"requested": number * 100, "placed": number * 100 + 50, "ended": ended}
        return tuple(values.get(column.name, None if column.nullable else 0) for column in ALLOCATIONS.c)

    writer = open_writer(location)
    rows = RowWriter(writer)
    took = [0.0, 0.0]
    for number in range(BATCHES):
        ids = range(number * BATCH, (number + 1) * BATCH)
        for place, ended in ((0, None), (1, number * BATCH * 100 + rng.randrange(10**6))):
            batch = RowBatch({ALLOCATIONS.name: [row(one, ended) for one in ids]})
            begin = time.perf_counter()
            rows.write(batch)
            took[place] += time.perf_counter() - begin
    writer.close()
    return BATCH * BATCHES / took[0], BATCH * BATCHES / took[1]


@click.command()
@click.option("--applications", type=COUNT, default=1_000_000, show_default=True)
@click.option("--allocations", type=COUNT, default=10_000_000, show_default=True)
@click.option("--queues", type=COUNT, default=100, show_default=True, help="Leaf queues.")
@click.option("--users", type=COUNT, default=500, show_default=True)
@click.option("--nodes", type=COUNT, default=1_000, show_default=True)
@click.option("--days", type=COUNT, default=365, show_default=True)
@click.option("--hours", type=float, default=14, show_default=True, help="Days with series by hour.")
@click.option("--database", metavar="FILE-OR-URL", help="An empty database; default a file that is removed.")
@click.option(
    "--within", type=float, default=1.0, show_default=True, help="Fail above these seconds a query."
)
def main(
    applications: int,
    allocations: int,
    queues: int,
    users: int,
    nodes: int,
    days: int,
    hours: float,
    database: str | None,
    within: float,
) -> None:
    """Make a large history, and print its size and durations of queries."""
    with tempfile.TemporaryDirectory() as folder:
        location = database or str(Path(folder) / "history.db")
        begin = time.perf_counter()
        part = max(1, days // PARTS)
        made = make_history(
            location,
            applications=max(1, applications // PARTS),
            allocations=max(1, allocations // PARTS),
            queues=queues,
            users=users,
            nodes=nodes,
            days=part,
            until=UNTIL - (PARTS - 1) * part * DAY,
            minutes=0.1,
            hours=hours,
            running=3,
        )
        click.echo(f"made a twentieth in {time.perf_counter() - begin:.0f} s")
        copy_forward(location, part * DAY)
        made = replace(made, until=UNTIL)
        click.echo(f"made in {time.perf_counter() - begin:.0f} s, yardstick {yardstick():.1f}")
        found = sizes(location)
        for name, size in sorted(found.items(), key=lambda item: -item[1]):
            click.echo(f"{size / (1 << 20):8.1f} MiB  {name}")
        problems = [f"slower than {within} s: {name}" for name in _measure(made, applications, within)]
        large = found.get(APPLICATIONS.name, 0) + found.get(ALLOCATIONS.name, 0)
        if large > LARGEST:
            problems.append(
                f"applications and allocations occupy {large >> 20} MiB, more than {LARGEST >> 20}"
            )
        if not database:
            new, ended = write_speed(str(Path(folder) / "written.db"))
            click.echo(f"{new:8,.0f} new allocations per second, {ended:,.0f} ends per second")
    if problems:
        raise click.ClickException("; ".join(problems))


def _measure(made: MadeHistory, applications: int, within: float) -> Iterator[str]:
    """Print the durations of queries, and yield the names of the slow ones."""
    for name, query in queries_of(made, applications):
        took, records = [], 0
        for number in range(TRIES):
            queries = HistoryQueries.open(made.location)
            begin = time.perf_counter()
            records = query(queries, number)
            took.append(time.perf_counter() - begin)
            queries.close()
        click.echo(
            f"{sorted(took)[TRIES // 2] * 1e3:8.1f} ms, at most {max(took) * 1e3:7.1f}  {name} ({records})"
        )
        if max(took) > within:
            yield name


if __name__ == "__main__":
    main()
