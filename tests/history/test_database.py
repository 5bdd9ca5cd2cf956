"""Opening of histories: addresses, locks, versions, damaged files, full disks, and servers that go away."""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.conftest import Run
from tests.history.test_store import batch_of, made_row, rows_of
from yunikorn.clock import SECOND, ManualClock
from yunikorn.errors import YunikornError
from yunikorn_history import database
from yunikorn_history.database import (
    HistoryAway,
    HistoryCorrupt,
    HistoryError,
    HistoryLocation,
    HistoryLocked,
    migrate,
    open_reader,
    open_writer,
)
from yunikorn_history.history_tables import (
    FAULTS,
    META,
    METADATA,
    SCHEMA_VERSION,
)
from yunikorn_history.row_writer import RowWriter

NOW = ManualClock(1_795_800_000 * SECOND)
OPENERS: list[Callable[[str], object]] = [open_writer, open_reader]
GRAMMAR = "a history is a FILE or postgresql://USER@HOST/DATABASE"


def fill(location: str, rows: int = 1000) -> None:
    """Write a history with some rows."""
    writer = open_writer(location)
    RowWriter(writer).write(
        batch_of(*((FAULTS, made_row(FAULTS, id=number, message="x" * 500)) for number in range(rows)))
    )
    writer.close()


def execute(location: str, statement: str) -> None:
    """Change a history without the help of its writer."""
    if "://" not in location:
        connection = sqlite3.connect(location)
        connection.execute(statement)
        connection.commit()
        connection.close()
    else:
        url = sa.make_url(location).set(drivername="postgresql+psycopg")
        engine = sa.create_engine(url)
        with engine.begin() as found:
            found.execute(sa.text(statement))
        engine.dispose()


# -- addresses -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", f"history '': expected the path of a file: {GRAMMAR}"),
        (" ", f"history ' ': expected the path of a file: {GRAMMAR}"),
        ("a\0b", f"history 'a\\x00b': expected the path of a file: {GRAMMAR}"),
        (
            "postgres://a@b/c",
            f"history postgres://b/c: not the address of a database: {GRAMMAR};"
            " write ./postgres:... for a file",
        ),
        (
            "sqlite:h.db",
            f"history sqlite://h.db: not the address of a database: {GRAMMAR}; write ./sqlite:... for a file",
        ),
        (
            "postgresql:/a@b/c",
            f"history postgresql://b/c: not the address of a database: {GRAMMAR};"
            " write ./postgresql:... for a file",
        ),
        ("postgresql://a@b:x/c", f"history postgresql://b:x/c: not a URL: {GRAMMAR}"),
        ("postgresql://a@[::1/c", f"history postgresql://[::1/c: not a URL: {GRAMMAR}"),
        ("postgresql://a@b", f"history postgresql://b: names no database: {GRAMMAR}"),
        ("postgresql://a@b/", f"history postgresql://b/: names no database: {GRAMMAR}"),
    ],
)
def test_an_address_that_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(HistoryError) as caught:
        HistoryLocation.parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://ann:secret@host/db",
        "postgresql://ann@host/db?password=secret",
        "postgresql://ann:se@cret@host/db",
        "postgresql://ann:secret@host:port/db",
        "postgres://ann:secret@host/db",
        "mysql://ann:secret@host/db?x=secret",
    ],
)
def test_a_password_is_refused_and_never_printed(text: str) -> None:
    with pytest.raises(HistoryError) as caught:
        HistoryLocation.parse(text)
    assert "cret" not in str(caught.value)


def test_the_error_for_a_password_says_where_it_belongs() -> None:
    with pytest.raises(HistoryError) as caught:
        HistoryLocation.parse("postgresql://ann:secret@host/db")
    assert str(caught.value) == (
        "history postgresql://host/db: remove the password, which other users of this machine could see,"
        " and set PGPASSWORD, or write it to ~/.pgpass"
    )


@pytest.mark.parametrize("text", ["history.db", "./odd:name", "a/b:c", "C:\\history.db", "with space ü"])
def test_other_texts_are_paths(text: str) -> None:
    assert HistoryLocation.parse(text).path == Path(text).absolute()


@pytest.mark.parametrize(
    "text", ["sqlite:h.db", "mysql://ann:secret@host/db", "postgresql://ann:secret@host/db"]
)
def test_a_service_refuses_an_address_that_is_none(text: str, run: Run, tmp_path: Path) -> None:
    config = tmp_path / "queues.yaml"
    config.write_text("partitions: [{name: default, queues: [{name: root}]}]", "utf-8")
    status, out, err = run("serve", "--config", str(config), "--grpc", "127.0.0.1:0", "--history", text)
    assert status != 0
    with pytest.raises(HistoryError) as caught:
        HistoryLocation.parse(text)
    assert (out, err) == ("", f"Error: {str(caught.value).replace('history ', '--history: ', 1)}\n")


def test_an_unknown_parameter_of_an_address_is_refused() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(HistoryError, match='invalid connection option "nosuch"'):
        open_reader("postgresql://ann@localhost/db?nosuch=1")


@pytest.mark.parametrize("opener", OPENERS)
def test_a_server_that_does_not_answer_is_away(opener: Callable[[str], object], tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(HistoryAway, match="No such file or directory"):
        opener(f"postgresql://ann@/db?host={tmp_path}")


def test_a_missing_driver_is_an_error_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(YunikornError) as caught:
        open_reader("postgresql://ann@host/db")
    assert str(caught.value) == (
        "psycopg is not installed, but is needed for a history in PostgreSQL:"
        " pip install 'yunikorn[postgresql]'"
    )


# -- files -----------------------------------------------------------------------------------------------


def test_a_missing_file_or_folder_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "none.db"
    with pytest.raises(HistoryError) as caught:
        open_reader(str(missing))
    assert (
        str(caught.value) == f"history {missing}: no such file: start a scheduler with --history to begin it"
    )
    for opener in OPENERS:
        with pytest.raises(HistoryError) as caught:
            opener(str(tmp_path / "no" / "none.db"))
        assert str(caught.value) == (
            f"history {tmp_path}/no/none.db: no such folder: create {tmp_path}/no, or name another file"
        )
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("opener", OPENERS)
def test_a_folder_is_no_file(opener: Callable[[str], object], tmp_path: Path) -> None:
    with pytest.raises(HistoryError) as caught:
        opener(str(tmp_path))
    assert str(caught.value) == f"history {tmp_path}: is a folder: name a file in it"


def test_only_the_owner_may_read_a_new_file(tmp_path: Path) -> None:
    location = str(tmp_path / "h.db")
    writer = open_writer(location)
    for suffix in ("", "-wal", "-shm", "-writer"):
        assert os.stat(location + suffix).st_mode & 0o777 == 0o600
    writer.close()


def test_an_empty_file_has_no_history_yet(tmp_path: Path) -> None:
    (tmp_path / "h.db").touch()
    with pytest.raises(HistoryError) as caught:
        open_reader(str(tmp_path / "h.db"))
    assert str(caught.value) == f"history {tmp_path}/h.db: the database has no history yet"
    fill(str(tmp_path / "h.db"), 1)


TRY = """
import os, sys
from yunikorn_history import database
import sqlalchemy.dialects.sqlite.pysqlite
if os.geteuid() == 0:
    os.setuid(65534)  # the rights of files do not stop root
try:
    opened = getattr(database, sys.argv[2])(sys.argv[1])
except database.HistoryError as error:
    print(type(error).__name__, error)
else:
    print("opened")
    opened.close()
"""


def attempt(file: Path, opener: str) -> str:
    """Open a history as a user whom the rights of files stop, and return what is printed."""
    command = [sys.executable, "-c", TRY, str(file), opener]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """A folder that other users reach."""
    above = tmp_path.parents[: tmp_path.parents.index(Path(tempfile.gettempdir()))]
    for folder in (tmp_path, *above):
        folder.chmod(folder.stat().st_mode | 0o111)
    yield tmp_path
    tmp_path.chmod(0o755)


def test_a_folder_without_rights_is_an_error_of_the_writer_and_none_of_readers(shared: Path) -> None:
    file = shared / "h.db"
    fill(str(file))
    for one in shared.iterdir():
        one.chmod(0o444)
    shared.chmod(0o555)
    assert attempt(file, "open_reader") == "opened\n"
    assert attempt(file, "open_writer") == (
        f"HistoryAway history {file}: cannot be written: check the rights of the file and of its folder"
        " (attempt to write a readonly database)\n"
    )
    new = shared / "new.db"
    assert "rights" in attempt(new, "open_writer")
    file.chmod(0o000)
    assert "rights" in attempt(file, "open_reader")
    shared.chmod(0o444)
    for opener in ("open_reader", "open_writer"):
        assert "HistoryAway" in attempt(file, opener)


def test_a_history_is_read_after_its_writer_was_killed(tmp_path: Path) -> None:
    file = str(tmp_path / "h.db")
    script = f"""
import os
from tests.history.test_store import *
rows = RowWriter(open_writer({file!r}))
rows.write(batch_of((FAULTS, made_row(FAULTS, id=7))))
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == -9
    assert [row[0] for row in rows_of(file, FAULTS)] == [7]
    fill(file, 3)
    assert [row[0] for row in rows_of(file, FAULTS)] == [0, 1, 2, 7]


def test_the_error_for_a_second_writer(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "h.db")
    writer = open_writer(str(tmp_path / "h.db"))
    with pytest.raises(HistoryLocked) as caught:
        open_writer(str(tmp_path / "link.db"))
    assert str(caught.value) == (
        f"history {tmp_path}/link.db: another process writes it: stop that process, or name another file"
    )
    writer.close()


def test_a_full_disk_is_away_until_there_is_space(tmp_path: Path) -> None:
    file = str(tmp_path / "h.db")
    fill(file, 10)
    writer = open_writer(file)
    rows = RowWriter(writer)
    large = batch_of(*((FAULTS, made_row(FAULTS, id=number, message="x" * 500)) for number in range(1000)))
    with writer.transaction() as connection:
        pages = connection.scalar(sa.text("PRAGMA page_count"))
        connection.execute(sa.text(f"PRAGMA max_page_count={pages}"))
    with pytest.raises(HistoryAway) as caught:
        rows.write(large)
    assert str(caught.value) == (
        f"history {file}: the disk is full: free some space, or set --history-size (database or disk is full)"
    )
    assert len(rows_of(file, FAULTS)) == 10
    # A new connection has no limit: there is space again.
    rows.write(large)
    writer.close()
    assert len(rows_of(file, FAULTS)) == 1000


def write_until_it_fails(write: Callable[[], None]) -> None:
    """Repeat a write a hundred times, or until it raises."""
    for _ in range(100):
        write()


def test_a_real_full_disk_loses_no_committed_row(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("no file system may be mounted here")
    try:
        file = str(disk / "h.db")
        writer = open_writer(file)
        rows = RowWriter(writer)
        written = 0

        def write() -> None:
            nonlocal written
            made = (made_row(FAULTS, id=written + place, message="x" * 500) for place in range(50))
            rows.write(batch_of(*((FAULTS, row) for row in made)))
            written += 50

        with pytest.raises(HistoryAway):
            write_until_it_fails(write)
        assert written > 50
        assert len(rows_of(file, FAULTS)) == written
        subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
        rows.write(batch_of((FAULTS, made_row(FAULTS, id=100_000))))
        writer.close()
        assert len(rows_of(file, FAULTS)) == written + 1
    finally:
        subprocess.run(["umount", str(disk)], check=True)


# -- damaged files ---------------------------------------------------------------------------------------


def damage_beginning(file: Path) -> None:
    """Write other text over the first page."""
    with open(file, "r+b") as opened:
        opened.write(b"no database" * 400)


def damage_end(file: Path) -> None:
    """Cut half of the file, as after a failed copy."""
    os.truncate(file, file.stat().st_size // 2)


def zero_beginning(file: Path) -> None:
    """Write zeros over the first page."""
    with open(file, "r+b") as opened:
        opened.write(bytes(4096))


@pytest.mark.parametrize("damage", [damage_beginning, damage_end, zero_beginning])
def test_the_writer_sets_a_damaged_file_aside_and_begins_a_new_one(
    damage: Callable[[Path], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "h.db"
    fill(str(file))
    damage(file)
    before = file.read_bytes()
    with pytest.raises(HistoryCorrupt):
        open_reader(str(file))
    with caplog.at_level(logging.ERROR, "yunikorn.history"):
        writer = open_writer(str(file), NOW)
    RowWriter(writer).write(batch_of((FAULTS, made_row(FAULTS, id=5))))
    with pytest.raises(HistoryLocked):
        open_writer(str(file))
    writer.close()
    assert [row[0] for row in rows_of(str(file), FAULTS)] == [5]
    aside = tmp_path / "h.db.corrupt-20261127T172000.000000Z"
    assert aside.read_bytes() == before
    assert caplog.messages == [
        f"history {file}: the file is damaged: renamed to {aside}, and began a new history"
    ]


def test_damage_that_a_write_finds_is_reported_after_the_file_was_set_aside(tmp_path: Path) -> None:
    file = tmp_path / "h.db"
    fill(str(file))
    with open(file, "r+b") as opened:
        opened.seek(150_000)
        opened.write(b"\xff" * 300_000)
    writer = open_writer(str(file))
    rows = RowWriter(writer)
    everything = batch_of(*((FAULTS, made_row(FAULTS, id=number)) for number in range(1000)))
    with pytest.raises(HistoryCorrupt):
        rows.write(everything)
    rows.write(everything)
    writer.close()
    assert len(rows_of(str(file), FAULTS)) == 1000
    assert [path.name for path in tmp_path.glob("*.corrupt-*Z")] != []


def test_a_file_of_another_kind_keeps_its_name(tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text("partitions: []\n" * 400)
    for opener in OPENERS:
        with pytest.raises(HistoryError) as caught:
            opener(str(file))
        assert str(caught.value) == f"history {file}: is a file of another kind: name another one"
    assert [*tmp_path.iterdir()] == [file]


def test_a_database_of_something_else_is_not_changed(tmp_path: Path) -> None:
    file = tmp_path / "places.db"
    execute(str(file), "CREATE TABLE bookmarks (url TEXT)")
    before = file.read_bytes()
    for opener in OPENERS:
        with pytest.raises(HistoryError) as caught:
            opener(str(file))
        assert str(caught.value) == (
            f"history {file}: it has a table 'bookmarks', but is no history: name another database,"
            " so that no data of others is changed"
        )
    assert file.read_bytes() == before
    assert [*tmp_path.iterdir()] == [file]


@pytest.mark.parametrize("columns", ["key TEXT, value TEXT", "id INTEGER"])
def test_a_table_meta_of_something_else_is_not_changed(columns: str, location: str) -> None:
    execute(location, f"CREATE TABLE meta ({columns})")
    for opener in OPENERS:
        with pytest.raises(HistoryError, match="its table 'meta' is not that of a history: name another"):
            opener(location)


# -- versions --------------------------------------------------------------------------------------------


def test_a_history_of_a_newer_version_is_refused(location: str) -> None:
    fill(location, 3)
    execute(location, f"UPDATE meta SET value = '{SCHEMA_VERSION + 1}' WHERE key = 'schema'")
    for opener in OPENERS:
        with pytest.raises(HistoryError) as caught:
            opener(location)
        assert str(caught.value).partition(": ")[2] == (
            "a newer version of YuniKorn for Python wrote it: its tables are of version"
            f" {SCHEMA_VERSION + 1}, and this program knows {SCHEMA_VERSION}: install that version again,"
            " or name another database"
        )
    execute(location, f"UPDATE meta SET value = '{SCHEMA_VERSION}' WHERE key = 'schema'")
    assert len(rows_of(location, FAULTS)) == 3


def test_readers_leave_the_conversion_of_an_older_version_to_the_writer(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(location, 3)
    # This program is made a later version, whose steps rename a column and fill another table.
    monkeypatch.setattr(database, "SCHEMA_VERSION", SCHEMA_VERSION + 2)
    with pytest.raises(HistoryError) as caught:
        open_reader(location)
    assert str(caught.value).partition(": ")[2] == (
        f"it has tables of version {SCHEMA_VERSION}, and queries need {SCHEMA_VERSION + 2}:"
        " start the scheduler of this version once with --history, which converts them"
    )
    with pytest.raises(HistoryError) as caught:
        open_writer(location)
    assert str(caught.value).partition(": ")[2] == (
        f"its tables are of version {SCHEMA_VERSION}, which this program cannot convert to"
        f" {SCHEMA_VERSION + 2}: convert it with an older version first, or name another database"
    )


def step(statement: str) -> Callable[[sa.Connection], None]:
    """Return a step of a migration."""

    def run(connection: sa.Connection) -> None:
        connection.execute(sa.text(statement))

    return run


def test_steps_convert_an_older_version_all_or_none(location: str, caplog: pytest.LogCaptureFixture) -> None:
    fill(location, 3)
    place = HistoryLocation.parse(location)
    first = {1: step("ALTER TABLE faults ADD COLUMN note TEXT")}
    writer = open_writer(location)
    with pytest.raises(HistoryError), writer.transaction() as connection:
        migrate(connection, place, 1, 3, {**first, 2: step("ALTER TABLE faults ADD COLUMN note TEXT")})
    with writer.transaction() as connection:
        assert "note" not in {column["name"] for column in sa.inspect(connection).get_columns("faults")}
    with caplog.at_level(logging.INFO, "yunikorn.history"), writer.transaction() as connection:
        migrate(connection, place, 1, 3, {**first, 2: step("UPDATE faults SET note = 'n' || id")})
    with writer.transaction() as connection:
        notes = connection.scalars(sa.text("SELECT note FROM faults ORDER BY id"))
        assert notes.all() == ["n0", "n1", "n2"]
        assert connection.scalar(sa.select(META.c.value).where(META.c.key == "schema")) == "3"
    writer.close()
    assert re.fullmatch(r"history .*: converted tables of version 1 to 3", caplog.messages[-1])


def test_a_reader_cannot_write(location: str) -> None:
    fill(location, 1)
    reader = open_reader(location)
    with pytest.raises(HistoryError), reader.reading() as connection:
        connection.execute(FAULTS.delete())
    reader.close()
    assert len(rows_of(location, FAULTS)) == 1


def test_every_table_is_created(location: str) -> None:
    fill(location, 0)
    reader = open_reader(location)
    with reader.reading() as connection:
        assert set(sa.inspect(connection).get_table_names()) == set(METADATA.tables)
    reader.close()
