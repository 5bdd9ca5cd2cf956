"""Files that are no snapshot, or none of this version, or that try more than data may: one error each."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.core.kit import RM, configuration, queue
from yunikorn.clock import ManualClock
from yunikorn.interface.scheduler import Scheduler
from yunikorn_snapshots import snapshot_file
from yunikorn_snapshots.graph_reader import GraphReader
from yunikorn_snapshots.restored_snapshot import read_header, restored_scheduler
from yunikorn_snapshots.snapshot_errors import MARK, SnapshotError
from yunikorn_snapshots.snapshot_file import SnapshotReading, SnapshotWriter
from yunikorn_snapshots.snapshots import take_snapshot

Parts = list[Any]


@pytest.fixture(scope="module")
def cluster() -> RM:
    made = RM(configuration(queue("a")))
    made.node(vcore=4)
    made.app()
    made.ask(vcore=1, count=6)
    made.schedule()
    return made


@pytest.fixture
def rm(cluster: RM, tmp_path: Path) -> RM:
    take_snapshot(cluster.scheduler, tmp_path / "good")
    return cluster


@pytest.fixture
def restore(rm: RM, tmp_path: Path) -> Callable[[str], Scheduler]:
    def call(name: str) -> Scheduler:
        return restored_scheduler(tmp_path / name, rm.scheduler.registry, rm.clock, {"rm": rm})

    return call


@pytest.fixture
def refused(tmp_path: Path, restore: Callable[[str], Scheduler]) -> Callable[[bytes], str]:
    def call(content: bytes) -> str:
        (tmp_path / "bad").write_bytes(content)
        with pytest.raises(SnapshotError) as raised:
            restore("bad")
        return str(raised.value)

    return call


@pytest.fixture
def changed(tmp_path: Path, refused: Callable[[bytes], str]) -> Callable[[Callable[[Parts], None]], str]:
    """Return how a snapshot is refused that was changed in some parts, and has the right checksum."""

    def call(change: Callable[[Parts], None]) -> str:
        with (tmp_path / "good").open("rb") as file:
            reading = SnapshotReading(file)
            parts = list(reading.parts())
        change(parts)
        with (tmp_path / "written").open("wb") as file:
            writer = SnapshotWriter(file, reading.header)
            for part in parts:
                writer.write(part)
            writer.close()
        return refused((tmp_path / "written").read_bytes())

    return call


def test_snapshot_says_what_is_in_it(rm: RM, tmp_path: Path) -> None:
    sizes = read_header(tmp_path / "good").sizes
    assert sizes == {"partitions": 1, "nodes": 1, "applications": 1, "allocations": 4, "pending": 2}


def test_files_that_are_incomplete_or_changed_are_refused(
    rm: RM, tmp_path: Path, refused: Callable[[bytes], str]
) -> None:
    good = (tmp_path / "good").read_bytes()
    assert "it is truncated" in refused(b"")
    assert "it is no snapshot" in refused(b"partitions: []\n" * 9)
    for size in (30, 300, 1000, len(good) - 40, len(good) - 1):
        assert "cannot be used" in refused(good[:size])
    assert "its checksum is wrong" in refused(good[:-1] + bytes([good[-1] ^ 1]))
    assert "its checksum is wrong" in refused(good + b"more")
    newer = MARK + json.dumps({"format": 2, "version": "7.1"}).encode() + b"\n"
    assert "it has format 2, and this version reads format 1: use version 7.1" in refused(newer)
    assert "its first line cannot be read" in refused(MARK + b"[" * 60_000)


def test_file_takes_no_more_memory_than_its_size_allows(
    rm: RM, tmp_path: Path, refused: Callable[[bytes], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    good = (tmp_path / "good").read_bytes()
    begin = good[: good.index(b"\n") + 1]

    def chunk(content: bytes) -> bytes:
        packed = zlib.compress(content, 9)
        return len(packed).to_bytes(4, "big") + packed

    assert "larger than" in refused(begin + chunk(bytes(1 << 24)))
    half = chunk(b"\xc6" + (3 << 18).to_bytes(4, "big") + bytes(3 << 18))
    assert "larger than" in refused(begin + half + half)
    monkeypatch.setattr(snapshot_file, "SPARE", 1 << 16)
    lists = b"\xdd" + (1 << 17).to_bytes(4, "big") + b"\x90" * (1 << 17)
    noise = chunk(b"\xc4\xff" + bytes(range(1, 256)))
    assert "it has more objects than a file of its size can have" in refused(begin + noise * 9 + chunk(lists))

    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(GraphReader, "read", fail)
    assert "there is not enough memory for its objects" in refused(good)


def test_failed_snapshot_leaves_nothing(rm: RM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rm.at_work().partition.applications["app"], "tags", object())
    with pytest.raises(SnapshotError, match=r"an object of object .* cannot be kept .* Application"):
        take_snapshot(rm.scheduler, tmp_path / "new")
    assert [one.name for one in tmp_path.iterdir()] == ["good"]


def _row(parts: Parts, kind: str) -> list[Any]:
    return next(row for part in parts[1:-1] for row in part if row[0] == kind)


def _replace(kind: str, *row: Any) -> Callable[[Parts], None]:
    """Return a change of the first row of a kind."""

    def change(parts: Parts) -> None:
        _row(parts, kind)[:] = row

    return change


def _contains_itself(parts: Parts) -> None:
    rows = parts[1]
    number = next(number for number, row in enumerate(rows) if row[0] == "tuple")
    rows[number] = ["tuple", [number]]


def _wrong_layout(parts: Parts) -> None:
    next(row for row in parts[-1]["layouts"] if row[1] == "Partition")[3] = "0" * 16


def _wrong_sum(parts: Parts) -> None:
    rows, layouts = parts[1], parts[-1]["layouts"]
    number, names = next((at, row[4]) for at, row in enumerate(layouts) if row[1] == "Node")
    node = next(row for row in rows if row[0] == number)
    rows[node[1 + names.index("available")][0]] = ["dict", "vcore", 1]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_replace("named", "named", "os", "system"), "names module 'os'"),
        (_replace("named", "named", "yunikorn.framework.plugin_code", "NO_CODE"), "none of those"),
        (_replace("named", "named", "yunikorn.interface.scheduler", "commands"), "which is a module"),
        (_replace("named", "named", "yunikorn.text", "gone"), "does not exist in this version"),
        (_replace("named", "named", "builtins", "eval"), "no class that state contains"),
        (_replace("method", "method", [0], "__reduce__"), "names method __reduce__"),
        (_replace("method", "method", [0], "advance"), "has no method advance"),
        (_replace("tuple", "tuple", [10**9]), "do not fit together"),
        (_replace("tuple", "tuple", [-1]), "refers to row -1"),
        (_replace("tuple", "pickle", b""), "a row of kind 'pickle'"),
        (_replace("list", "list", [1, 2, 3]), "do not fit together"),
        (_replace("dict", "dict", 1), "do not fit together"),
        (_replace("list", "bytearray", 10**15), "the content of an array of bytes is none"),
        (lambda parts: parts[1].__setitem__(0, ["dict"]), "do not fit together"),
        (_contains_itself, "nested too deeply"),
        (_wrong_layout, "class yunikorn.accounting.partition.Partition has other fields in this version"),
        (_wrong_sum, "node n1 has other allocations than it counts"),
        (lambda parts: parts[1].pop(), "rows instead of"),
        (lambda parts: parts[1].append([]), "rows instead of"),
        (lambda parts: parts[1].__setitem__(3, []), "one of its rows is empty"),
        (lambda parts: parts.pop(), "its first or last part is none"),
        (lambda parts: parts[0]["sessions"][0].update(rm=7), "its first or last part is none"),
    ],
)
def test_hostile_rows_are_refused(
    change: Callable[[Parts], None], reason: str, changed: Callable[[Callable[[Parts], None]], str]
) -> None:
    assert reason in changed(change)


def test_clock_behind_the_snapshot_is_refused(rm: RM, tmp_path: Path) -> None:
    rm.pass_time(5)
    take_snapshot(rm.scheduler, tmp_path / "later")
    with pytest.raises(SnapshotError, match="its time is 5000000000 ns, and that of the clock 0 ns"):
        restored_scheduler(tmp_path / "later", rm.scheduler.registry, ManualClock())
