"""Histories of calls, repeated by a scheduler and by its restored copies, which answer the same."""

from __future__ import annotations

import io
from pathlib import Path
from random import Random
from typing import Any

import attrs

from tests.core.strict import CallRecordingScheduler
from yunikorn.clock import ManualClock
from yunikorn.errors import YunikornError
from yunikorn.framework.registry import Registry
from yunikorn.interface.commands import RegisterResourceManager
from yunikorn.interface.messages import UpdateResponse
from yunikorn.interface.scheduler import Scheduler
from yunikorn.model.context import Timeouts
from yunikorn_snapshots.restored_snapshot import restored_scheduler
from yunikorn_snapshots.snapshot_file import SnapshotReading
from yunikorn_snapshots.snapshots import header_of, take_snapshot, write_snapshot


class Listener:
    """Callback that keeps the responses."""

    def __init__(self) -> None:
        self.responses: list[UpdateResponse] = []

    def recv_update_response(self, response: UpdateResponse) -> None:
        self.responses.append(response)


def dump(scheduler: Scheduler) -> list[Any]:
    """Return the whole state of a scheduler: the parts of a snapshot."""
    file = io.BytesIO()
    write_snapshot(scheduler, file, header_of(scheduler))
    file.seek(0)
    return list(SnapshotReading(file).parts())


def first_difference(one: list[Any], other: list[Any]) -> str:
    """Return the first row in which two dumps differ, with rows that lead there; empty if they are equal."""
    first, second = ([row for part in dump[1:-1] for row in part] for dump in (one, other))
    layouts = one[-1]["layouts"]
    for number, (row, found) in enumerate(zip(first, second, strict=False)):
        if row != found:
            leading = [_shown(each, layouts) for each in first[:number] if [number] in each][:2]
            return f"row {number}: {_shown(row, layouts)} and {_shown(found, layouts)}, from {leading}"
    return "" if one == other else "other numbers of rows, layouts or members of sets"


def _shown(row: list[Any], layouts: list[Any]) -> str:
    if type(row[0]) is int:
        names = layouts[row[0]][4]
        return f"{layouts[row[0]][1]}({dict(zip(names, row[1:], strict=False))})"
    return str(row)[:500]


@attrs.define
class Continued:
    """A scheduler, and what it has answered."""

    scheduler: Scheduler
    heard: Listener

    def call(self, call: Any) -> tuple[Any, str, str]:
        """Apply a recorded call; return its answer, the text of its error, and the responses."""
        answer, failed = None, ""
        try:
            answer = call(self.scheduler)
        except YunikornError as error:
            failed = str(error)
        responses = repr(self.heard.responses)
        self.heard.responses.clear()
        return answer, failed, responses


def check_continuing(
    recorded: CallRecordingScheduler, registry: Registry, timeouts: Timeouts, folder: Path, copies: int = 3
) -> None:
    """Assert that copies which are restored on the way, some from copies, go on as the original does."""
    clock = ManualClock()
    original = Continued(Scheduler(registry, clock, timeouts), Listener())
    random = Random(len(recorded.calls))
    moments = {random.randrange(1, len(recorded.calls) + 1) for _ in range(copies)}
    following: list[Continued] = []
    for number, (now, call) in enumerate(recorded.calls):
        if number in moments:
            following.append(_copy(random.choice([original, *following]), clock, folder))
        clock.set(now)
        if isinstance(call, RegisterResourceManager):
            call = attrs.evolve(call, callback=original.heard)
        answer = original.call(call)
        for one in following:
            assert one.call(call) == answer, call
    whole = dump(original.scheduler)
    for one in following:
        difference = first_difference(dump(one.scheduler), whole)
        assert not difference, difference


def _copy(original: Continued, clock: ManualClock, folder: Path) -> Continued:
    path, heard = folder / "state.snapshot", Listener()
    take_snapshot(original.scheduler, path)
    scheduler = original.scheduler
    rm_ids = [one.rm_id for one in scheduler.sessions()]
    copy = restored_scheduler(path, scheduler.registry, clock, dict.fromkeys(rm_ids, heard))
    difference = first_difference(dump(copy), dump(scheduler))
    assert not difference, difference
    return Continued(copy, heard)
