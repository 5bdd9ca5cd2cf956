"""Windows of the week in time zones whose clocks change."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.example_counts import examples
from yunikorn import api
from yunikorn.clock import ManualClock
from yunikorn_plugins.daily_windows import DAY, DAYS, HOUR, SECOND, DailyWindow, days_of, zone_of
from yunikorn_plugins.quota_policies import TimeOfDay
from yunikorn_testing.samples import queue

BERLIN = ZoneInfo("Europe/Berlin")


def utc(text: str) -> int:
    """Return a time (ns) from a text in UTC."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND


def periods(window: str, around: str) -> list[tuple[int, int]]:
    """Return the periods of a window in Berlin."""
    return list(DailyWindow.read(window).periods(utc(around), BERLIN))


def test_window_begins_an_hour_earlier_in_summer() -> None:
    # Clocks change on Sunday, 30 March 2025, at 01:00 UTC.
    found = periods("08:00-18:00", "2025-03-29T12:00")
    assert (utc("2025-03-29T07:00"), utc("2025-03-29T17:00")) in found
    assert (utc("2025-03-30T06:00"), utc("2025-03-30T16:00")) in found


def test_window_over_the_change_of_clocks_is_shorter_or_longer() -> None:
    assert (utc("2025-03-29T21:00"), utc("2025-03-30T04:00")) in periods(
        "sat 22:00-06:00", "2025-03-29T12:00"
    )
    assert (utc("2025-10-25T20:00"), utc("2025-10-26T05:00")) in periods(
        "sat 22:00-06:00", "2025-10-25T12:00"
    )


def test_times_that_are_skipped_or_occur_twice_have_a_meaning() -> None:
    skipped = periods("sun 02:30-04:00", "2025-03-30T00:00")
    assert (utc("2025-03-30T01:30"), utc("2025-03-30T02:00")) in skipped
    twice = periods("sun 02:30-04:00", "2025-10-26T00:00")
    assert (utc("2025-10-26T00:30"), utc("2025-10-26T03:00")) in twice


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("mon", {0}),
        ("mon-wed", {0, 1, 2}),
        ("sat-mon", {5, 6, 0}),
        ("tue+thu-fri", {1, 3, 4}),
        ("mon-sun", {*range(7)}),
    ],
)
def test_days_are_read(text: str, found: set[int]) -> None:
    assert days_of(text) == found


@pytest.mark.parametrize("text", ["", "mo", "mon-", "mon--tue", "-", "mon,tue", "Mon"])
def test_days_that_do_not_exist_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a day"):
        days_of(text)


@pytest.mark.parametrize(
    "name", ["Mars", "", "Europe", "/etc/passwd", "../../etc/passwd", "Europe/berlin ", "\0"]
)
def test_unknown_zones_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="unknown time zone"):
        zone_of(name)


WINDOWS = st.builds(
    lambda days, opens, closes: f"{days} {opens:02}:30-{closes:02}:15",
    st.sampled_from([*DAYS, "mon-fri", "sat-sun", "mon-sun"]),
    st.integers(0, 23),
    st.integers(0, 23),
)


@settings(max_examples=examples(10))
@given(
    texts=st.lists(WINDOWS, min_size=1, max_size=3, unique=True),
    start=st.integers(0, 3 * 365 * DAY),
    steps=st.lists(st.integers(1, 2 * DAY), max_size=6),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]),
)
def test_answer_is_that_of_the_local_time_at_every_moment(
    texts: list[str], start: int, steps: list[int], zone: str
) -> None:
    clock = ManualClock(utc("2025-01-01T00:00") + start * SECOND)
    policy = TimeOfDay({text: f"vcore:{number}" for number, text in enumerate(texts)}, zone)
    policy.opened(api.Context("default", clock.now))
    sample = queue("root.a", max={"vcore": 100})
    for step in [0, *steps]:
        clock.set(clock.now() + step * SECOND)
        answer = policy.quota(sample)
        assert answer is not None
        assert answer.until is not None
        assert answer.max == _plain(texts, clock.now(), zone)
        assert clock.now() < answer.until <= clock.now() + 8 * DAY * SECOND
        # The answer changes at no moment before the one that it names.
        for part in (1, 3, 7):
            moment = clock.now() + (answer.until - clock.now()) * part // 8
            assert _plain(texts, moment, zone) == answer.max


def _plain(texts: list[str], now: int, zone: str) -> dict[str, int] | None:
    """Return the answer of the first open window, by the instants of its days."""
    where = zone_of(zone)
    for number, text in enumerate(texts):
        window = DailyWindow.read(text)
        if any(opens <= now < closes for opens, closes in window.periods(now, where)):
            return {"vcore": number * 1000}
    return None


def test_one_question_serves_all_queues_of_a_period() -> None:
    clock = ManualClock(utc("2025-06-01T00:00"))
    policy = TimeOfDay({"08:00-18:00": "50%"})
    policy.opened(api.Context("default", clock.now))
    first = policy.quota(queue("root.a", max={"vcore": 10}))
    period = policy._period
    clock.set(clock.now() + HOUR * SECOND)
    second = policy.quota(queue("root.b", max={"vcore": 20}))
    assert policy._period is period
    assert (first, second) == (second, first)
