"""Charts over time on pages: lines, texts, tables, marks, and the choice of the time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.history.written_history import WrittenHistory
from tests.rest.web.kit import Page, Web
from tests.rest.web.past_cluster import NOW, past_web, series
from yunikorn_history.history_tables import CONFIGS, DAY, HOUR, MINUTE, PARTITION_SERIES, QUEUE_SERIES, RUNS

PLACES = ("/", "/queue?name=root.a", "/user?name=user", "/node?id=n1")


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Web:
    """Create a cluster with a history, which the tests only read."""
    return past_web(str(tmp_path_factory.mktemp("history") / "past.db"))


def summaries(page: Page) -> dict[str, str]:
    """Return the texts of the charts of a page by title."""
    labels = [str(one["aria-label"]) for one in page.all("svg") if one.get("class") == "lines"]
    return {title: text for title, _, text in (label.partition(": ") for label in labels)}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("time", ["hours", "day", "week", "month", "year"])
def test_each_page_has_charts_of_each_time(web: Web, place: str, time: str) -> None:
    page = web.page(f"{place}{'&' if '?' in place else '?'}time={time}")
    found = summaries(page)
    assert "vcore used" in found
    assert len(page.all("details")) >= len(found)
    assert sum(one.get("aria-current") == "true" for one in page.all("a")) == 1
    paths = [str(one["d"]) for one in page.all("path") if str(one.get("class")).startswith("line-path")]
    assert all(path.startswith("M") for path in paths)


def test_charts_of_a_queue_say_everything_in_words(web: Web) -> None:
    found = summaries(web.page("/queue?name=root.a"))
    assert found["vcore used"] == (
        "used from 1 vcore to 24 vcores, at the end 24 vcores; guarantee 10 vcores;"
        " quota from 20 vcores to 24 vcores, at the end 24 vcores"
    ).replace(" vcore", "\u00a0vcore")
    assert found["vcore waiting"] == "waiting 0.5\u00a0vcores"
    assert found["Applications"] == "running 2; waiting 1"
    assert found["Waits of the tasks that started"] == "median 1\u00a0s; p95 1\u00a0min"
    assert found["Preempted tasks"] == "in each hour from 0 to 4, at the end 0"


def test_table_behind_a_chart(web: Web) -> None:
    words = web.page("/queue?name=root.a").words
    assert "From (UTC) used guarantee quota" in words
    assert "26 Nov 17:00 4 vcores 10 vcores 20 vcores" in words
    assert "27 Nov 01:00 – – –" in words  # nothing ran
    assert "26 Nov 17:00 1 s 1 min" in words


def test_waits_of_a_longer_time_are_quantiles_of_all_tasks(web: Web) -> None:
    words = web.page("/queue?name=root.a&time=year").words
    assert "week of 23 Nov 2026 1 s 1 min" in words
    assert "week of 23 Nov 2026 4" in words


def test_time_without_a_scheduler_is_marked(web: Web) -> None:
    page = web.page("/queue?name=root.a")
    (first, *_) = [one for one in page.all("rect") if one.get("class") == "unknown" and "x" in one]
    assert (first["x"], first["width"]) == ("416.7", "83.3")
    assert "Nothing was observed" in page.words


def test_changes_of_the_configuration_are_marked_and_linked(web: Web) -> None:
    page = web.page("/queue?name=root.a")
    assert "Changes of the configuration" in page.words
    assert "1 26 Nov 2026 14:00 file 2 27 Nov 2026 02:00 REST by ann" in page.words
    assert {"/configuration?id=1", "/configuration?id=2"} <= set(page.links)
    marks = [one["d"] for one in page.all("path") if one.get("class") == "config-mark"]
    assert set(marks) == {"M0.0 0V100", "M500.0 0V100"}


def test_many_changes_are_not_all_listed(tmp_path: Path) -> None:
    history = WrittenHistory()
    history.add(RUNS, started=NOW - DAY, seen=NOW, ended=None, version="1", host="h")
    for number in range(20):
        history.add(CONFIGS, time=NOW - HOUR + number * MINUTE, rm="rm", text="", checksum="c")
    for hour in range(24):
        time = NOW - DAY + hour * HOUR
        series(history, PARTITION_SERIES, "", time, used={"vcore": 1000.0})
    page = past_web(str(tmp_path / "past.db"), history).page("/")
    assert "The latest 8 of 20 in this time." in page.words
    assert sum(link.startswith("/configuration?") for link in page.links) == 8
    assert "1–8" in page.words


def test_earlier_and_later_times_are_links(web: Web) -> None:
    page = web.page("/queue?name=root.a&time=hours")
    earlier = next(link for link in page.links if "until=" in link)
    assert earlier == "/queue?name=root.a&time=hours&until=2026-11-27T08%3A00Z"
    page = web.page(earlier)
    assert "27 Nov 2026 02:00 to 27 Nov 2026 08:00 UTC" in page.words
    assert "/queue?name=root.a&time=hours" in page.links  # the latest one follows
    assert "/queue?name=root.a&until=2026-11-27T08%3A00Z" in page.links  # the day before the same end
    assert "Nothing was used" in web.page("/queue?name=root.a&until=2000-01-01T00:00Z").words


@pytest.mark.parametrize(
    "query", ["time=nonsense", "until=nonsense", "until=2999-01-01", "time=%00&until=-1"]
)
def test_unknown_times_are_the_latest_day(web: Web, query: str) -> None:
    words = web.page(f"/queue?name=root.a&{query}").words
    assert "26 Nov 2026 14:00 to 27 Nov 2026 14:00 UTC" in words


def test_times_before_the_epoch_and_after_the_calendar(web: Web) -> None:
    for until in ("1970-01-01T00:00Z", "0001-01-01", "9999-12-31T23:59:59Z"):
        assert web.page(f"/queue?name=root.a&time=year&until={until}")


def test_minutes_that_are_no_longer_kept_are_hours(web: Web) -> None:
    # The minutes of the last hour are kept, the hours of a day.
    page = web.page("/?time=hours")
    assert "27 Nov 09:00 20 vcores" in page.words
    assert "quarter" not in page.words


def test_new_history_is_shown_in_minutes(tmp_path: Path) -> None:
    history, begin = WrittenHistory(), NOW - 30 * MINUTE
    history.add(RUNS, started=begin, seen=NOW, ended=None, version="1", host="h")
    for minute in range(30):
        for kind, name in ((PARTITION_SERIES, ""), (QUEUE_SERIES, "root.a")):
            series(history, kind, name, begin + minute * MINUTE, 1, used={"vcore": 2000.0})
    series(history, PARTITION_SERIES, "", NOW - HOUR // 2, used={"vcore": 2000.0})
    page = past_web(str(tmp_path / "past.db"), history).page("/queue?name=root.a&time=hours")
    assert "27 Nov 13:45 2 vcores" in page.words
    assert "Nothing was observed" not in page.words


def test_bucket_without_a_row_is_idle_while_a_scheduler_ran(tmp_path: Path) -> None:
    history = WrittenHistory()
    history.add(RUNS, started=NOW - DAY, seen=NOW, ended=None, version="1", host="h")
    for hour in (0, 12, 23):
        series(history, PARTITION_SERIES, "", NOW - DAY + hour * HOUR, used={"vcore": 4000.0})
    page = past_web(str(tmp_path / "past.db"), history).page("/")
    assert (
        summaries(page)["vcore used"].replace("\u00a0", " ")
        == "used from 0 vcores to 4 vcores, at the end 4 vcores"
    )
    assert "Nothing was observed" not in page.words


def test_empty_history_has_no_chart(tmp_path: Path) -> None:
    web = past_web(str(tmp_path / "past.db"), WrittenHistory())
    assert "Nothing was used or requested in this time." in web.page("/").words
    assert "No application was recorded yet." in web.page("/history").words
    assert "No configuration was recorded yet." in web.page("/configurations").words
    assert "No decision was recorded yet." in web.page("/audit").words
