"""Tables of a history database.

Times are milliseconds since 1970, durations milliseconds. Amounts are those of the core (milli-vcores, bytes,
counts). A column with JSON has compact text with sorted keys; *amounts* are `{resource: amount}`, and
*service* is `{resource: amount x milliseconds}` in whole numbers of any size, which is why sums are made in
Python and not in SQL. The recorder is the only writer, and gives every row its id.

A text that occurs in many rows (queues, users, nodes, reasons) is a row of `names`, and stands elsewhere as
its id. The empty text has the id 0, and a row.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    Table,
    Text,
    literal_column,
)

from yunikorn_history.packed_columns import PackedText, pack_key, pack_states, unpack_key, unpack_states

SCHEMA_VERSION = 4
"""Version of these tables; `meta` of a database has its own."""

METADATA = MetaData()


def _id() -> Column[int]:
    return Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False)


def _name(column: str, *, key: bool = False, json: bool = False) -> Column[int]:
    """Return a column with the id of a name, which may be JSON; 0 for none."""
    info = {"refers": "names", "json": json}
    return Column(column, Integer, nullable=False, default=0, primary_key=key, info=info)


def _shape() -> Column[int]:
    return Column("shape", Integer, nullable=False, info={"refers": "shapes", "json": True})


def _json(column: str, *, nullable: bool = True) -> Column[str]:
    return Column(column, Text, nullable=nullable, info={"json": True})


def _time(column: str, *, nullable: bool = False) -> Column[int]:
    return Column(column, BigInteger, nullable=nullable)


_ZERO: ColumnElement[int] = literal_column("0")
"""Not a parameter: databases use a partial index only for the same condition in words."""


def _partial(name: str, where: ColumnElement[bool], *columns: Column[Any]) -> None:
    """Add an index of the few rows that meet a condition."""
    Index(name, *columns, sqlite_where=where, postgresql_where=where)


META = Table("meta", METADATA, Column("key", Text, primary_key=True), Column("value", Text, nullable=False))
"""Facts about the database: `schema` (version), `created`, `usage` (see there), `clock` (see `retention`)."""

NAMES = Table(
    "names",
    METADATA,
    _id(),
    Column("text", Text, nullable=False),
    # Each text occurs once; a unique index of PostgreSQL would refuse those above 2,700 bytes.
    Index("names_text", "text", postgresql_using="hash"),
)

SHAPES = Table("shapes", METADATA, _id(), Column("amounts", Text, nullable=False))
"""Amounts of requests, which few thousand rows share."""

RUNS = Table(
    "runs",
    METADATA,
    _id(),
    _time("started"),
    _time("seen"),  # latest time at which the process was alive
    _time("ended", nullable=True),  # None after a kill, until the next start sets it to `seen`
    Column("version", Text, nullable=False),
    Column("host", Text, nullable=False),
)
"""Starts of the scheduler. Between `ended` of one and `started` of the next, nothing was observed."""

APPLICATIONS = Table(
    "applications",
    METADATA,
    _id(),
    _name("rm"),
    _name("partition"),
    Column("app_id", Text, nullable=False),
    _name("queue"),  # full path
    _name("user"),
    _name("groups", json=True),  # JSON list, primary group first
    _name("template"),  # application id without what differs from run to run: digits, hashes, dates
    _name("tags", json=True),  # JSON of the chosen tags, and of those that shape a gang (topology, step)
    _name("gang"),  # gang scheduling style; 0 without a gang
    _time("gang_timeout", nullable=True),  # of its placeholders
    _time("submitted"),
    _time("started", nullable=True),  # first allocation that is no placeholder
    _time("ended", nullable=True),
    _name("state"),  # latest state
    _name("reason"),  # reason of the latest state: of a failure, of a rejection
    # JSON [[time, state, reason], ...]
    Column("states", PackedText(pack_states, unpack_states), nullable=False, info={"json": True}),
    _json("waits"),  # JSON {cause: duration for which it had a request with this cause}
    _name("longest_wait"),  # cause of the longest wait
    Column("tasks", Integer, nullable=False, default=0),  # allocations, ended or running, no placeholders
    Column("preempted", Integer, nullable=False, default=0),  # how many of them were preempted
    _json("service"),  # service of the ended allocations, without placeholders and preempted ones
    _json("lost_service"),  # service of preempted allocations that are no placeholders
    _json("placeholder_service"),  # service of ended placeholders, also of preempted ones
    _json("doubts"),  # of the recorder: submissions of which it is not certain yet whether they are this one
    Index("applications_submitted", "submitted"),
    Index("applications_user", "user", "submitted"),
    Index("applications_queue", "queue", "submitted"),
    # Not by a collation, in whose order texts with the same beginning need not be together.
    Index("applications_app_id", "app_id", postgresql_ops={"app_id": "text_pattern_ops"}),
    Index("applications_place", "partition", "rm", "submitted"),
    Index("applications_template", "template", "submitted"),
    Index("applications_groups", "groups", "submitted"),
    Index("applications_state", "state", "submitted"),
    Index("applications_ended", "ended", "submitted"),  # both, to find what reaches into a time
)
"""Applications, one row for each submission: an id that comes again after its end has another row."""
HAS_TAGS = APPLICATIONS.c.tags > _ZERO
HAS_PREEMPTED = APPLICATIONS.c.preempted > _ZERO
_partial("applications_tags", HAS_TAGS, APPLICATIONS.c.tags, APPLICATIONS.c.submitted)
_partial("applications_preempted", HAS_PREEMPTED, APPLICATIONS.c.submitted)

PLACEHOLDER, RECOVERED, PREEMPTED, ORIGINATOR, ESTIMATED_END, UNUSUAL = 1, 2, 4, 8, 16, 32
"""Bits of `allocations.flags`. Resource managers report recovered allocations. An estimated end is
that of an allocation that ended while no scheduler ran: at the latest when the next one had recovered.
An unusual end is not one of `USUAL_EXITS`, and neither estimated nor that of a preemption."""
USUAL_EXITS = ("STOPPED_BY_RM", "PLACEHOLDER_REPLACED")

ALLOCATIONS = Table(
    "allocations",
    METADATA,
    _id(),
    Column("app", BigInteger, nullable=False),  # id of the application's row
    Column("key", PackedText(pack_key, unpack_key), nullable=False),  # of the ask, such as the uid of the pod
    _name("node"),
    _shape(),  # latest size
    _json("sizes"),  # JSON [[until, amounts], ...] of the earlier sizes; None if it was never resized
    _name("task_group"),
    Column("priority", Integer, nullable=False, default=0),
    _time("requested"),
    _time("placed"),
    _time("ended", nullable=True),
    _name("exit"),  # termination type, such as STOPPED_BY_RM; 0 while it runs
    _name("reason"),  # message of the end, as the resource manager or the scheduler reports it
    _name("preemptor"),  # JSON [application id, key] of the request for which it was preempted, or the cause
    Column("flags", SmallInteger, nullable=False, default=0),
    Index("allocations_app", "app"),
    Index("allocations_placed", "placed"),
    Index("allocations_ended", "ended", "placed"),
    Index("allocations_node", "node", "placed"),
)
IS_PREEMPTED = ALLOCATIONS.c.flags.bitwise_and(literal_column(f"{PREEMPTED}")) > _ZERO
IS_UNUSUAL = ALLOCATIONS.c.flags.bitwise_and(literal_column(f"{UNUSUAL | ESTIMATED_END | PREEMPTED}")) > _ZERO
_partial("allocations_preempted", IS_PREEMPTED, ALLOCATIONS.c.placed)
_partial("allocations_exit", IS_UNUSUAL, ALLOCATIONS.c.exit, ALLOCATIONS.c.placed)

TASK_KEYS = Table(
    "task_keys",
    METADATA,
    Column("block", Integer, primary_key=True, autoincrement=False),  # `allocations.id`, divided
    Column("digests", Text, nullable=False),
)
"""Digests of the keys of allocations, for a search: see the module `task_keys`."""

SERIES = Table(
    "series",
    METADATA,
    Column("kind", SmallInteger, primary_key=True),
    _name("name", key=True),  # 0 for a whole partition
    Column("level", SmallInteger, primary_key=True),
    Column("time", BigInteger, primary_key=True),  # beginning of the bucket, in UTC
    _name("rm", key=True),  # 0 of a history of version 1: all resource managers and partitions
    _name("partition", key=True),
    _json("data", nullable=False),
    Index("series_time", "level", "time"),
    sqlite_with_rowid=False,
)
"""Use and waits in each minute, hour and day; a bucket without any has no row.

`data` is JSON. Of every kind: `n` (samples in it), `used` (amounts, mean). Queues and the partition:
`pending` (amounts, mean), `guaranteed` and `max` (amounts, latest, if there are), `running` and `waiting`
(applications, mean), `started` (tasks), `waits` (`{upper bound in ms: tasks}`: times from request to
placement of these, in buckets by powers of the square root of two), `preempted` (tasks). Users: `running`,
`waiting`, `started`, `waits`. Nodes: `capacity` (amounts, latest), `schedulable` (part of the samples). The
partition: `capacity`, `nodes`, and `idle` (`{cause: service}`: amounts that were free while requests waited,
by the cause of their waits). `mean` has the mean `capacity` or `guaranteed` if it is not the latest one.
Tasks are counted without a sample: `n` is 0 before the first one of a bucket. Queues are those of the
configuration and their parents; names are full paths.
Each resource manager and partition has its own; `merged_data` adds up equal names of several.
"""
QUEUE_SERIES, USER_SERIES, NODE_SERIES, PARTITION_SERIES = 1, 2, 3, 4
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
LEVELS = {1: MINUTE, 2: HOUR, 3: DAY}
"""Length of a bucket by level."""

USAGE = Table(
    "usage",
    METADATA,
    Column("level", SmallInteger, primary_key=True),  # 2 and 3: hours and days, in UTC
    Column("time", BigInteger, primary_key=True),
    _name("rm", key=True),
    _name("partition", key=True),
    _name("queue", key=True),  # leaf
    _name("user", key=True),
    _name("groups", key=True, json=True),
    _name("tags", key=True, json=True),  # name: JSON of the chosen tags, as `applications.tags`
    _json("data", nullable=False),
    Index("usage_user", "level", "user", "time"),
    sqlite_with_rowid=False,
)
"""Service in each hour and day, exact to the millisecond, from placements and ends.

`data` is JSON: `service` (all allocations, placeholders and preempted ones included), `placeholder` (the
part of placeholders), `lost` (the part of other allocations that were preempted later), `started`, `ended`,
`preempted` (tasks, without placeholders). What is zero or empty is left out, apart from `service`. What runs
is counted each minute: the rows are complete until the time (ms) at the key `usage` of `meta`.
"""

NODES = Table(
    "nodes",
    METADATA,
    _id(),
    _name("rm"),
    _name("partition"),
    _name("name"),
    _time("joined"),
    _time("left", nullable=True),
    _shape(),  # latest capacity
    _json("attributes"),  # JSON
    # JSON [[time, kind, text], ...]: `drain`, `resume`, and `capacity` with the JSON of the amounts before it
    _json("changes", nullable=False),
    Index("nodes_name", "name", "joined"),
)

CONFIGS = Table(
    "configs",
    METADATA,
    _id(),
    _time("time"),
    _name("rm"),  # 0 for the configuration of the service
    _name("group"),  # policy group
    Column("text", Text, nullable=False),
    Column("checksum", Text, nullable=False),
    _name("source"),  # file, ConfigMap, REST, resource manager
    _name("by"),  # who changed it; 0 if unknown
    Index("configs_time", "time"),
)
"""Configurations, a row each time that another one is in use."""

AUDIT = Table(
    "audit",
    METADATA,
    _id(),
    _time("time"),
    _name("operator"),  # name of the credential
    _name("role"),
    Column("address", Text, nullable=False),
    _name("what"),  # such as `stop queue`
    _json("target", nullable=False),  # JSON
    _name("outcome"),  # done, failed, refused
    _json("before"),  # JSON
    _json("after"),  # JSON
    Column("reason", Text),
    Index("audit_time", "time"),
)
"""Decisions of operators, and what was refused to them."""

FAULTS = Table(
    "faults",
    METADATA,
    _id(),
    _name("plugin"),
    Column("message", Text, nullable=False),
    _time("first"),
    _time("latest"),
    Column("count", Integer, nullable=False),
    Index("faults_latest", "latest"),
)
"""Failures of plugins."""

GAPS = Table("gaps", METADATA, _id(), _time("since"), _time("until"), Column("lost", Integer, nullable=False))
"""Times in which events were lost because the database was away for longer than the buffer lasts."""
