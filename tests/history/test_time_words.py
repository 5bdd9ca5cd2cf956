"""Times as people give them."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from yunikorn_history.time_words import parse_time, time_in_zone

NOW = datetime(2026, 11, 26, 15, 30, tzinfo=UTC)
"""A Thursday."""
BERLIN = ZoneInfo("Europe/Berlin")


def parsed(text: str, zone: ZoneInfo | None = None) -> str:
    """Return a time as UTC."""
    found = parse_time(text, round(NOW.timestamp()) * 10**9, zone or UTC)
    return datetime.fromtimestamp(found / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-01", "2026-11-01 00:00:00"),
        ("2026-11", "2026-11-01 00:00:00"),
        ("2026-11-01 14:05", "2026-11-01 14:05:00"),
        ("2026-11-01T14:05:06", "2026-11-01 14:05:06"),
        ("2026-11-01t14:05z", "2026-11-01 14:05:00"),
        ("2026-11-01T14:05+02:00", "2026-11-01 12:05:00"),
        ("9:05", "2026-11-26 09:05:00"),
        ("1764201600000", "2025-11-27 00:00:00"),
        ("90m", "2026-11-26 14:00:00"),
        ("1d12h", "2026-11-25 03:30:00"),
        ("2h ago", "2026-11-26 13:30:00"),
        ("now", "2026-11-26 15:30:00"),
        ("Today", "2026-11-26 00:00:00"),
        ("yesterday", "2026-11-25 00:00:00"),
        ("monday", "2026-11-23 00:00:00"),
        ("thursday", "2026-11-26 00:00:00"),
        ("friday", "2026-11-20 00:00:00"),
        ("this week", "2026-11-23 00:00:00"),
        ("last week", "2026-11-16 00:00:00"),
        ("last_month", "2026-10-01 00:00:00"),
        ("this year", "2026-01-01 00:00:00"),
        ("last year", "2025-01-01 00:00:00"),
    ],
)
def test_times_are_understood(text: str, expected: str) -> None:
    assert parsed(text) == expected


def test_times_without_an_offset_are_those_of_the_zone() -> None:
    assert parsed("2026-11-01", BERLIN) == "2026-10-31 23:00:00"
    assert parsed("2026-10-25", BERLIN) == "2026-10-24 22:00:00"
    assert parsed("last month", BERLIN) == "2026-09-30 22:00:00"
    assert parsed("2026-11-01T00:00Z", BERLIN) == "2026-11-01 00:00:00"
    assert time_in_zone(1_764_201_600_000, BERLIN) == "2025-11-27T01:00:00+01:00"


@pytest.mark.parametrize(
    "text",
    ["", "2x", "-2h", "2026-13-01", "25:00", "last day", "1.5h", "9" * 40, "9" * 9 + "w", "\u0662h"],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no time"):
        parsed(text)


def test_a_refusal_says_what_is_expected() -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        parsed("yesterdy")
    assert str(refused.value) == (
        "'yesterdy' is no time, did you mean 'yesterday'?; expected a date or time as 2026-11-27, 2026-11-27"
        " 14:00 or 2026-11-27T14:00Z, a time ago as 90m, 2h, 7d or 1d12h, or now, today, yesterday, monday,"
        " tuesday, wednesday, thursday, friday, saturday, sunday, this week, this month, this year, last"
        " week, last month, last year"
    )
