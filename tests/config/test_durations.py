"""Durations, in Go's grammar."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn.config.durations import parse_duration

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("0s", 0),
        ("-0", 0),
        ("30s", 30 * SECOND),
        ("1h30m", 5400 * SECOND),
        ("500ms", SECOND // 2),
        ("1.5h", 5400 * SECOND),
        (".5s", SECOND // 2),
        ("1.s", SECOND),
        ("1us", 1_000),
        ("1\u00b5s", 1_000),
        ("1\u03bcs", 1_000),
        ("3ns", 3),
        ("0.9ns", 0),
        ("-5s", -5 * SECOND),
        ("+5s", 5 * SECOND),
        ("1m1ms", 60_001_000_000),
        ("0" * 6000 + "1s", SECOND),
        ("0." + "0" * 6000 + "1s", 0),
    ],
)
def test_a_duration_is_read(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    "text", ["", "1", "s", "1d", "1 s", " 1s", "1s ", "1h-1m", "--1s", "+", "-", ".s", "1S", "٣s"]
)
def test_invalid_duration_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["9223372036854775808ns", "2562048h", "9" * 6000 + "s"])
def test_duration_out_of_range_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="too long"):
        parse_duration(text)


@given(st.text(alphabet="0123456789.hmsunµ+-"))
def test_any_text_is_a_duration_or_rejected(text: str) -> None:
    try:
        answer: object = parse_duration(text)
    except ValueError as refused:
        answer = str(refused)
    assert isinstance(answer, int) or "duration" in str(answer)
