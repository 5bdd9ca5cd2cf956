"""Opening a history database, for its writer or for queries.

A location is the path of a SQLite file, or `postgresql://USER@HOST/DATABASE`. Libpq's ways to give a password
apply (`PGPASSWORD`, `~/.pgpass`). A password in the URL is refused, because command lines are public.

A database has one writer and any number of readers. The lock of the writer is an exclusive transaction in
the empty file `FILE-writer`, or an advisory lock in PostgreSQL, so that it ends with the process or with the
connection.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from yunikorn.clock import SECOND, Clock, SystemClock
from yunikorn.errors import YunikornError, printable
from yunikorn_commands.extras import importing_extra
from yunikorn_history.history_address import check_location, is_url
from yunikorn_history.history_tables import META, METADATA, NAMES, SCHEMA_VERSION
from yunikorn_history.schema_steps import STEPS, Step

_log = logging.getLogger("yunikorn.history")

LOCK = 0x59554E49
"""First key of the advisory lock of a writer in PostgreSQL; the second one is the schema."""
LOG_SIZE = "journal_size_limit=67108864"
"""Bytes to which the log of a SQLite file shrinks after a long query, during which it grows."""
OWN_SUFFIXES = (".db", ".history", ".sqlite", ".sqlite3")
"""A file with other content is set aside only if it has one of these names, so that no file of another kind
loses its name to a typing error."""


class HistoryError(YunikornError):
    """History that cannot be opened, read or written; the message says what to do."""


class HistoryAway(HistoryError):
    """Database that cannot be reached or written at present: trying again later may help."""


class HistoryLocked(HistoryError):
    """Database with another writer."""


class HistoryCorrupt(HistoryError):
    """Damaged SQLite file. The writer has set it aside, and begins a new one when it is used again."""


@attrs.frozen
class HistoryLocation:
    """Place of a history database."""

    url: URL | None
    """Address of a PostgreSQL database; None for a file."""
    path: Path

    @classmethod
    def parse(cls, text: str) -> HistoryLocation:
        """Return the location that a user wrote; raises `HistoryError`."""
        try:
            check_location(text)
            if not is_url(text):
                return cls(None, Path(text).absolute())
            url = sa.make_url(text).set(drivername="postgresql+psycopg")
        except (ArgumentError, ValueError) as error:
            raise HistoryError(f"history {error}") from error
        return cls(url, Path())

    def __str__(self) -> str:
        if self.url is None:
            return printable(f"history {self.path}")
        return printable(f"history {self.url.set(drivername='postgresql')}")


def open_reader(location: str) -> HistoryReader:
    """Open a history for queries; raises `HistoryError`."""
    return HistoryReader(HistoryLocation.parse(location))


def open_writer(location: str, clock: Clock | None = None) -> HistoryWriter:
    """Open a history as its only writer, and create or migrate its tables; raises `HistoryError`."""
    writer = HistoryWriter(HistoryLocation.parse(location), clock or SystemClock())
    with writer.transaction():
        pass
    return writer


class HistoryReader:
    """History that is open for queries, from any thread."""

    def __init__(self, location: HistoryLocation) -> None:
        """Check that there is a history of this version; raises `HistoryError`."""
        self.location = location
        if location.url is None:
            with translated(location):
                if not location.path.is_file():
                    raise HistoryError(f"{location}: {_why_no_file(location.path)}")
            self._engine = _sqlite(location, query="?mode=ro")
        else:
            self._engine = _postgresql(location, read_only=True)
        try:
            with self.reading() as connection:
                version = read_version(connection, location)
            if version is None:
                raise HistoryError(f"{location}: the database has no history yet")
            if version < SCHEMA_VERSION:
                raise HistoryError(
                    f"{location}: it has tables of version {version}, and queries need {SCHEMA_VERSION}:"
                    " start the scheduler of this version once with --history, which converts them"
                )
        except HistoryError:
            self.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Provide a connection on which all queries see the same state; raises `HistoryError`."""
        with translated(self.location), self._engine.connect() as connection, connection.begin():
            yield connection

    def close(self) -> None:
        """Close idle connections."""
        self._engine.dispose()


class HistoryWriter:
    """History that is open for its only writer, used by one thread at a time.

    A connection that breaks is made again by the next transaction, with the lock and the checks of the first.
    """

    def __init__(self, location: HistoryLocation, clock: Clock) -> None:
        self.location = location
        self._clock = clock
        self._engine: Engine | None = None
        self._connection: Connection | None = None
        self._lock: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        """Identity of the file of SQLite that is open."""

    @property
    def dialect(self) -> str:
        """Name of the dialect of SQL: `sqlite` or `postgresql`."""
        return "sqlite" if self.location.url is None else "postgresql"

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Provide a connection in a transaction, committed at the end; raises `HistoryError`.

        A damaged file is set aside before `HistoryCorrupt` is raised; what the database had is to be written
        again to the next one.
        """
        try:
            with translated(self.location):
                connection = self._connection or self._connect()
                with connection.begin():
                    yield connection
        except HistoryCorrupt:
            self._set_aside()
            self.close()
            raise
        except HistoryError:
            # Whatever failed, another connection is less surprising than the rest of this one.
            self.close()
            raise

    def leave_lost_file(self) -> bool:
        """Close the file of SQLite if it was moved, removed or replaced while it was open, and return True.

        The next transaction begins, or opens, the file that then has the name.
        """
        if self._connection is None or self._file in (None, _identity(self.location.path)):
            return False
        driver: Any = self._connection.connection.driver_connection
        with suppress(sqlite3.Error):
            # The log stays at the name: the moved file gets what is in it, and the next file nothing.
            driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.close()
        return True

    def close(self) -> None:
        """Close the connection, which ends the lock."""
        with suppress(SQLAlchemyError):
            if self._connection is not None:
                self._connection.close()
            if self._engine is not None:
                self._engine.dispose()
        if self._lock is not None:
            self._lock.close()
        self._connection = self._engine = self._lock = self._file = None

    def _connect(self) -> Connection:
        try:
            return self._open()
        except HistoryCorrupt:
            self._set_aside()
            return self._open()

    def _open(self) -> Connection:
        with translated(self.location):
            if self.location.url is None:
                # A file of another kind is refused before anything is written, if only to its folder.
                if self.location.path.is_file() and self.location.path.stat().st_size:
                    _check_file(self.location)
                self._lock = self._lock or _locked(self.location)
                self._engine = _sqlite(self.location)
            else:
                self._engine = _postgresql(self.location, read_only=False)
            connection = self._connection = self._engine.connect()
            if self.location.url is None:
                self._file = _identity(self.location.path)
            with connection.begin():
                if self.location.url is not None:
                    _lock_postgresql(connection, self.location)
                prepare(connection, self.location, self.now)
        return connection

    def _set_aside(self) -> None:
        """Rename the damaged file, while no other process writes it."""
        with translated(self.location):
            self._lock = self._lock or _locked(self.location)
        lock, self._lock = self._lock, None
        self.close()
        self._lock = lock
        set_aside(self.location, self.now)

    @property
    def now(self) -> datetime:
        """The present time."""
        return datetime.fromtimestamp(self._clock.now() / SECOND, UTC)


# -- tables ----------------------------------------------------------------------------------------------


def read_version(connection: Connection, location: HistoryLocation) -> int | None:
    """Return the version of the tables; None for a database without any, HistoryError for a newer one."""
    tables = set(sa.inspect(connection).get_table_names())
    if META.name not in tables:
        # A PostgreSQL database may have tables of others, as long as their names are free.
        foreign = tables if connection.dialect.name == "sqlite" else tables & set(METADATA.tables)
        if foreign:
            raise HistoryError(
                f"{location}: it has a table {min(foreign)!r}, but is no history: name another database,"
                " so that no data of others is changed"
            )
        return None
    columns = {column["name"] for column in sa.inspect(connection).get_columns(META.name)}
    found = None
    if columns == set(META.c.keys()):
        found = connection.scalar(sa.select(META.c.value).where(META.c.key == "schema"))
    if found is None or not found.isdecimal():
        raise HistoryError(f"{location}: its table 'meta' is not that of a history: name another database")
    version = int(found)
    if version > SCHEMA_VERSION:
        raise HistoryError(
            f"{location}: a newer version of YuniKorn for Python wrote it: its tables are of version"
            f" {version}, and this program knows {SCHEMA_VERSION}: install that version again, or name"
            " another database"
        )
    return version


def prepare(connection: Connection, location: HistoryLocation, now: datetime) -> None:
    """Create the tables, or migrate those of an older version."""
    version = read_version(connection, location)
    if version is not None:
        migrate(connection, location, version, SCHEMA_VERSION, STEPS)
        return
    if location.url is not None and connection.scalar(sa.text("SHOW server_encoding")) != "UTF8":
        raise HistoryError(
            f"{location}: create the database with the encoding UTF8, for names of all scripts"
        )
    METADATA.create_all(connection)
    # The empty text, so that a join finds a name for every row.
    connection.execute(NAMES.insert(), [{"id": 0, "text": ""}])
    created = now.isoformat(timespec="seconds")
    connection.execute(META.insert(), [{"key": "created", "value": created}])
    connection.execute(META.insert(), [{"key": "schema", "value": str(SCHEMA_VERSION)}])


def migrate(
    connection: Connection,
    location: HistoryLocation,
    version: int,
    target: int,
    steps: Mapping[int, Step],
) -> None:
    """Apply the steps from a version to the target, all or none."""
    for present in range(version, target):
        if present not in steps:
            raise HistoryError(
                f"{location}: its tables are of version {present}, which this program cannot convert to"
                f" {target}: convert it with an older version first, or name another database"
            )
        steps[present](connection)
        connection.execute(
            META.update().where(META.c.key == "schema").values(value=str(present + 1)).inline()
        )
    if version < target:
        _log.info("%s: converted tables of version %d to %d", location, version, target)


# -- SQLite ----------------------------------------------------------------------------------------------


def _sqlite(location: HistoryLocation, query: str = "") -> Engine:
    uri = location.path.as_uri()

    def connect() -> sqlite3.Connection:
        options: dict[str, Any] = {
            "uri": True,
            "isolation_level": None,
            "check_same_thread": False,
            "timeout": 10,
        }
        connection: sqlite3.Connection = sqlite3.connect(uri + query, **options)
        if not query:
            for setting in ("journal_mode=WAL", "synchronous=NORMAL", "cache_size=-16384", LOG_SIZE):
                connection.execute(f"PRAGMA {setting}")
            return connection
        try:
            connection.execute("PRAGMA schema_version")
        except sqlite3.OperationalError:
            # Without a writer, a folder that is read only lacks the file by which readers and writers meet.
            if Path(f"{location.path}-wal").exists():
                raise
            connection.close()
            connection = sqlite3.connect(f"{uri}?immutable=1", **options)
        return connection

    if not query and not location.path.exists():
        _create(location)
    engine = sa.create_engine("sqlite://", creator=connect, poolclass=NullPool, hide_parameters=True)

    @sa.event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # The driver itself begins no transaction for queries, nor for changes of tables.
        connection.exec_driver_sql("BEGIN" if query else "BEGIN IMMEDIATE")

    return engine


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from others with its name; None for none that can be seen."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _create(location: HistoryLocation) -> None:
    """Create an empty file that only its owner may read, as a history has configurations and names."""
    try:
        os.close(os.open(location.path, os.O_CREAT | os.O_WRONLY, 0o600))
    except OSError as error:
        raise HistoryError(f"{location}: cannot be created: {error.strerror}") from error


def _why_no_file(path: Path) -> str:
    if path.is_dir():
        return "is a folder: name a file in it"
    if path.parent.is_dir():
        return "no such file: start a scheduler with --history to begin it"
    return f"no such folder: create {printable(str(path.parent))}, or name another file"


def _check_file(location: HistoryLocation) -> None:
    with _sqlite(location, query="?mode=ro").connect() as connection:
        read_version(connection, location)


def _locked(location: HistoryLocation) -> sqlite3.Connection:
    path = location.path
    if path.is_dir() or not path.parent.is_dir():
        raise HistoryError(f"{location}: {_why_no_file(path)}")
    name = f"{path.resolve()}-writer"
    with suppress(OSError):  # which SQLite reports
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o600))
    lock = sqlite3.connect(name, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        lock.close()
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise
        raise HistoryLocked(
            f"{location}: another process writes it: stop that process, or name another file"
        ) from error
    return lock


def _is_another_kind(path: Path) -> bool:
    """Return True for a file without name and beginning of a database; a crash may leave zeros."""
    with open(path, "rb") as file:
        return bool(file.read(100).strip(b"\0")) and path.suffix not in OWN_SUFFIXES


def set_aside(location: HistoryLocation, now: datetime) -> None:
    """Rename a damaged file; raises `HistoryError`."""
    aside = f"{location.path}.corrupt-{now:%Y%m%dT%H%M%S.%fZ}"
    try:
        for suffix in ("-wal", "-shm", ""):
            with suppress(FileNotFoundError):
                os.rename(f"{location.path}{suffix}", f"{aside}{suffix}")
    except OSError as error:
        raise HistoryError(f"{location}: is damaged, and cannot be renamed: {error.strerror}") from error
    _log.error("%s: the file is damaged: renamed to %s, and began a new history", location, printable(aside))


# -- PostgreSQL ------------------------------------------------------------------------------------------


def _postgresql(location: HistoryLocation, *, read_only: bool) -> Engine:
    with importing_extra("postgresql", "for a history in PostgreSQL"):
        import psycopg
    assert location.url is not None
    try:
        psycopg.conninfo.make_conninfo(**{key: str(value) for key, value in location.url.query.items()})
    except psycopg.ProgrammingError as error:
        raise HistoryError(f"{location}: {error}".strip()) from error
    # The server frees the lock of a writer that has gone without a word, such as with its machine.
    settings = "-c tcp_keepalives_idle=20 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=4"
    if read_only:
        settings += " -c default_transaction_read_only=on"
    given = location.url.query.get("options", "")
    arguments: dict[str, Any] = {
        "application_name": "yunikorn history",
        # The writer has a thread of its own, and waits for a slow server.
        "connect_timeout": 10 if read_only else 60,
        "tcp_user_timeout": 30_000,
    }
    arguments = {key: value for key, value in arguments.items() if key not in location.url.query}
    return sa.create_engine(
        location.url,
        connect_args={**arguments, "options": f"{settings} {given}"},
        hide_parameters=True,
        isolation_level="REPEATABLE READ" if read_only else "READ COMMITTED",
        **({"pool_pre_ping": True} if read_only else {"poolclass": NullPool}),
    )


def _lock_postgresql(connection: Connection, location: HistoryLocation) -> None:
    lock = sa.text(f"SELECT pg_try_advisory_lock({LOCK}, hashtext(current_schema()))")
    if not connection.scalar(lock):
        raise HistoryLocked(
            f"{location}: another scheduler writes to this database: stop it, or name another database"
        )


# -- errors ----------------------------------------------------------------------------------------------

CAUSES = {
    "SQLITE_BUSY": (HistoryAway, "another process has locked it: end that process"),
    "SQLITE_CANTOPEN": (HistoryAway, "cannot be opened: check the rights of the file and of its folder"),
    "SQLITE_READONLY": (HistoryAway, "cannot be written: check the rights of the file and of its folder"),
    "SQLITE_FULL": (HistoryAway, "the disk is full: free some space, or set --history-size"),
    "SQLITE_IOERR": (HistoryAway, "the disk reports an error"),
    "SQLITE_NOTADB": (HistoryCorrupt, "is damaged: a scheduler that writes it sets it aside"),
    "SQLITE_CORRUPT": (HistoryCorrupt, "is damaged: a scheduler that writes it sets it aside"),
    "53100": (HistoryAway, "the disk of the server is full: free some space, or set --history-size"),
    "25006": (HistoryAway, "the server accepts no changes: name the primary server"),
    "42501": (
        HistoryError,
        "the user lacks rights: let the user own the database, or grant CREATE on its schema",
    ),
}
"""Errors of databases that need other words than theirs."""


@contextmanager
def translated(location: HistoryLocation) -> Iterator[None]:
    """Raise errors of databases as `HistoryError`."""
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        raise _explained(location, error.orig if isinstance(error, DBAPIError) else error) from error
    except PermissionError as error:
        raise HistoryAway(
            f"{location}: {error.strerror}: check the rights of the file and of the folders above it"
        ) from error


def _explained(location: HistoryLocation, error: BaseException | None) -> HistoryError:
    if isinstance(error, sqlite3.Error):
        code = "_".join(getattr(error, "sqlite_errorname", "").split("_")[:2])
    else:
        code = str(getattr(error, "sqlstate", None) or "")
    text = printable(" ".join(str(error).split()))
    if code == "SQLITE_NOTADB" and _is_another_kind(location.path):
        return HistoryError(f"{location}: is a file of another kind: name another one")
    if code in CAUSES:
        kind, what = CAUSES[code]
        return kind(f"{location}: {what} ({text})")
    if location.url is None:
        away = isinstance(error, sqlite3.OperationalError)
    else:
        # Without a state, there was no answer. The others are classes of states: of connections, passwords,
        # unknown databases, conflicts, resources, locks, operators and the system.
        away = not code or code[:2] in ("08", "28", "3D", "40", "53", "55", "57", "58")
    hint = ": set PGPASSWORD, or write it to ~/.pgpass" if "password" in text else ""
    what = "cannot be used now: " if away else ""
    return (HistoryAway if away else HistoryError)(f"{location}: {what}{text}{hint}")
