"""Invalid recordings: all problems are reported at once, with line and path."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn.errors import UsageError, YunikornError
from yunikorn.interface.commands import RegisterResourceManager, Update
from yunikorn.interface.messages import UpdateRequest
from yunikorn_service.recording.recorded_entry import KINDS
from yunikorn_service.recording.recording_reader import (
    Recording,
    RecordingError,
    parse_recording,
    read_recording,
)


def read(*lines: str) -> Recording:
    """Return the recording with these lines."""
    return parse_recording("".join(f"{line}\n" for line in lines).encode(), "f")


def failures(*lines: str) -> list[str]:
    """Return the problems of these lines."""
    with pytest.raises(RecordingError) as found:
        read(*lines)
    return str(found.value).splitlines()


REGISTER = '{"register": {"rmID": "rm"}}'


def test_times_and_resource_managers_of_lines_have_defaults() -> None:
    found = read(
        "# by hand",
        REGISTER,
        "",
        '{"at": 1.5, "update": {}}',
        '{"schedule": null}',
        '{"advance": "1m"}',
        '{"rm": "two", "register": {}}',
        '{"update": {"rmID": "rm"}}',
        '{"stop": true}',
    ).lines
    assert [(line.number, line.kind, line.rm_id, line.at) for line in found] == [
        (2, "register", "rm", 0),
        (4, "update", "rm", 1_500_000_000),
        (5, "schedule", "", 1_500_000_000),
        (6, "advance", "", 1_500_000_000),
        (7, "register", "two", 61_500_000_000),
        (8, "update", "rm", 61_500_000_000),
        (9, "stop", "two", 61_500_000_000),
    ]
    (registration,) = found[4].commands
    assert isinstance(registration, RegisterResourceManager)
    assert registration.rm_id == "two"
    assert found[5].commands == [Update(UpdateRequest("rm"))]


def test_every_invalid_line_is_reported() -> None:
    assert failures(
        "{",
        "[]",
        "{}",
        '{"schedul": 5}',
        '{"schedule": 5, "advance": 3}',
        '{"schedule": -1}',
        '{"schedule": 1, "schedule": 2}',
        REGISTER,
        '{"at": 5, "update": {"askes": []}}',
        '{"at": 4, "advance": -3}',
        '{"advance": 1e-10}',
        '{"advance": "soon"}',
        '{"pause": 3}',
        '{"stop": false}',
        '{"reconnect": ["predicate"]}',
        '{"schedule": 1, "callback": []}',
        '{"rm": "rm", "update": {"rmID": "two"}}',
        '{"fail_application": {"app": "x"}}',
        '{"configuration": {"hex": "xyz"}}',
    ) == [
        "f: line 1: is not valid JSON: Expecting property name enclosed in double quotes at column 2",
        'f: line 2: a line must be an object, such as {"schedule": 10}',
        f"f: line 3: a line must contain exactly one entry, got none; known: {', '.join(KINDS)}",
        f"f: schedul (line 4): unknown key, did you mean 'schedule'?; known: {', '.join(KINDS)},"
        " at, rm, callback, predicates_in_force, within",
        f"f: line 5: a line must contain exactly one entry, got schedule and advance; known:"
        f" {', '.join(KINDS)}",
        "f: schedule (line 6): expected the maximum number of decisions: a whole number, or null for all",
        "f: line 7: the key 'schedule' occurs twice in one object",
        "f: update.askes (line 9): UpdateRequest has no such field, did you mean 'asks'?; it has: asks,"
        " releases, newSchedulableNodes, updatedNodes, rmID, newApplications, removeApplications,"
        " allocations",
        "f: advance (line 10): -3 is not a time from 0 to about 292 years",
        "f: at (line 10): is earlier than the line above: times must not decrease",
        "f: advance (line 11): 1E-10 is finer than nanoseconds",
        "f: advance (line 12): expected a duration such as 30s, 500ms or 1h30m, got 'soon'",
        "f: pause (line 13): expected text",
        "f: stop (line 14): expected true",
        "f: reconnect[0] (line 15): unknown method, did you mean 'predicates'?; known: predicates,"
        " node_predicates, update_container_scheduling_state, resync_scheduler_cache, send_events,"
        " update_configuration",
        "f: callback (line 16): only allowed with register; reconnect and use_callback contain theirs",
        "f: rm (line 17): is 'rm', but the message is from 'two'",
        "f: fail_application.application (line 18): required, but missing",
        "f: fail_application.app (line 18): unknown key",
        "f: configuration.hex (line 19): expected bytes as hexadecimal digits",
    ]


def test_invalid_predicates_in_force_are_reported() -> None:
    assert failures('{"schedule": 1, "predicates_in_force": [3]}') == [
        "f: predicates_in_force (line 1): expected a list of names of predicates",
        "f: predicates_in_force (line 1): only allowed with register, reconnect and use_callback",
    ]


def test_line_without_a_resource_manager_is_reported() -> None:
    assert failures('{"update": {}}') == ['f: line 1: update names no RM: add "rm", or register an RM before']


def test_header_is_read_strictly() -> None:
    assert failures(
        '{"recording": {"version": 2, "start": "today", "periods":'
        ' {"session": null, "starting": null, "sesion": "1s", "completing": "x"}}}'
    ) == [
        "f: recording.version (line 1): is 2; this version reads 1 only",
        "f: recording.start (line 1): expected a date such as 2026-11-20T14:16:18.5Z, got 'today'",
        "f: recording.periods.starting (line 1): expected a duration",
        "f: recording.periods.sesion (line 1): unknown period, did you mean 'session'?; known: starting,"
        " completing, retention, reservation, gang_patience, cleanup, policy_answer,"
        " session",
        "f: recording.periods.completing (line 1): expected a duration such as 30s, 500ms or 1h30m, got 'x'",
    ]


def test_at_most_twenty_problems_are_shown() -> None:
    found = failures(*["{"] * 30)
    assert len(found) == 21
    assert found[-1] == "f: and 10 more"


def test_truncated_line_of_a_handwritten_file_is_an_error() -> None:
    with pytest.raises(RecordingError, match="f: line 2: is not valid JSON"):
        parse_recording(f'{REGISTER}\n{{"sched'.encode(), "f")


def test_missing_or_empty_files_are_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="x: cannot be read: No such file or directory"):
        read_recording(tmp_path / "x")
    with pytest.raises(UsageError, match="f: is empty"):
        read("# nothing")


def test_deep_and_unusual_json_is_rejected() -> None:
    assert "f: line 1: is not valid JSON: nested too deeply" in failures("[" * 100_000)[0]
    assert "is not valid JSON" in failures('{"schedule": 1' + "0" * 5000 + "}")[0]
    with pytest.raises(RecordingError, match="is not valid JSON"):
        parse_recording(b'{"pause": "\xff"}\n', "f")


@given(st.lists(st.sampled_from(list('{}[]":,\n 015aepstu')), max_size=40).map("".join))
def test_any_text_is_a_recording_or_rejected(text: str) -> None:
    try:
        parse_recording(text.encode(), "f")
    except YunikornError as error:
        assert str(error).startswith("f:")  # noqa: PT017
