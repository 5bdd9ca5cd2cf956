"""Pages about the history: past applications, configurations, decisions of operators, former objects."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from tests.history.written_history import WrittenHistory
from tests.rest.steering_kit import ADMIN, FILE, VIEWER
from tests.rest.web.kit import PAGES, Web
from tests.rest.web.past_cluster import LONG, NOW, cluster, past_web, written
from tests.rest.web.test_pages import at_work
from yunikorn.clock import MILLISECOND, ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.scheduler import Scheduler
from yunikorn_history.history_tables import CONFIGS, DAY, HOUR, SERIES, USER_SERIES
from yunikorn_rest.kept_history import KeptHistory

PAST_PAGES = (
    "/history",
    "/run?id=62",
    "/run?id=63",
    "/configurations",
    "/configuration?id=2",
    "/audit",
    "/search?q=a",
    "/queue?name=root.gone",
    "/node?id=old",
    "/application?id=etl-3",
    "/application?id=app",
)


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Web:
    """Create a cluster with a history, which the tests only read."""
    return past_web(str(tmp_path_factory.mktemp("history") / "past.db"))


@pytest.mark.parametrize("path", PAST_PAGES)
def test_page_is_well_formed_with_landmarks_and_labels(web: Web, path: str) -> None:
    page = web.page(path)
    for tag in ("header", "main", "footer", "h1"):
        assert len(page.all(tag)) == 1, tag
    assert all(one.get("aria-label") for one in page.all("nav"))
    assert all(one.get("scope") in ("col", "row") for one in page.all("th"))
    for image in page.all("svg"):
        assert image.get("role") == "img" or image.get("aria-hidden"), image
        assert image.get("aria-hidden") or image.get("aria-label") or "<title>" in page.html
    assert all(one.get("name") for one in (*page.all("input"), *page.all("select")))


def test_every_link_of_every_page_leads_to_a_page(web: Web) -> None:
    links = {link for path in PAST_PAGES for link in web.page(path).links}
    assert len(links) > 60
    for link in sorted(links - {"#main"}):
        # Users, queues and nodes of applications may have left no use in the history.
        assert web.get(link).status_code == 200 or link.startswith(("/user", "/queue", "/node")), link


def test_without_a_history_there_is_no_page_about_it() -> None:
    web = at_work()
    for path in PAGES:
        page = web.page(path)
        assert "History" not in page.words
        assert "Over time" not in page.words
    for path in ("/history", "/run?id=1", "/configurations", "/audit"):
        assert web.get(path).status_code == 404


def test_past_objects_are_found_while_no_resource_manager_is_registered(tmp_path: Path) -> None:
    location = str(tmp_path / "past.db")
    written().write(location)
    without_rm: Any = SimpleNamespace(scheduler=Scheduler(Registry.load(third_party=False), ManualClock(NOW)))
    web = Web(without_rm, None, KeptHistory(location, lambda: NOW * MILLISECOND))
    for path, link in (
        ("/queues", "/queue?name=root.gone"),
        ("/nodes", "/node?id=old"),
        ("/users", "/user?name=user"),
    ):
        page = web.page(path, 404)
        assert "No resource manager is registered yet" in page.words
        assert f"The history has charts of past {path[1:]}." in page.words
        assert link in page.links
        assert "This is what the history has." in web.page(link).words


# -- applications ----------------------------------------------------------------------------------------


def test_run_of_an_application(web: Web) -> None:
    page = web.page("/run?id=62")
    assert "Failed: the driver <b>died</b>" in page.words
    assert "State Failed Queue root.a User eve (team, all) Submitted (UTC) 26 Nov 2026 19:00" in page.words
    assert "Waited for its first task 1 min 30 s Ended (UTC) 26 Nov 2026 21:00 Took 2 h" in page.words
    assert "Tasks 2, 1 preempted cost high" in page.words
    assert "States over time: New for 1 min 30 s, Running for 1 h 58 min, Failed for 0 s" in page.words
    assert "over the quota 1 min 20 s no node fits 8 s" in page.words
    assert "vcore 4 vcores × h 0.5 vcores × h 0 vcores × h" in page.words
    assert "driver driver n1 1 vcore" in page.words
    assert "preempted by scheduler for k of etl-1 made way" in page.words
    assert "tg-0 placeholder of tg" in page.words
    assert "/application?id=etl-1" in page.links


def test_application_that_the_core_has_forgotten_is_shown_from_the_history(web: Web) -> None:
    page = web.page("/application?id=etl-3")
    assert "etl-3" in page.words
    assert "Took 1 h" in page.words
    others = [link for link in page.links if link.startswith("/run?")]
    assert len(others) == 8
    assert "There is no application nothing." in web.page("/application?id=nothing", 404).words


def test_running_application_has_its_earlier_runs(web: Web) -> None:
    page = web.page("/application?id=app")
    assert "Why it waits" in page.words
    assert "Earlier runs" in page.words
    assert "26 Nov 2026 14:00 Completed the same" in page.words
    assert "/run?id=61" in page.links


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("user=eve", 1),
        ("queue=ROOT.GONE", 30),
        ("state=Failed", 1),
        ("q=etl-7", 1),
        ("since=2026-11-26T18:00Z", 1),
        ("until=2026-11-26", 50),
        ("until=2026-11-25", 0),
        ("since=nonsense&until=99999-01-01&after=x-y&state=nothing", 0),
        ("user=nobody", 0),
    ],
)
def test_filters_of_past_applications(web: Web, query: str, count: int) -> None:
    page = web.page(f"/history?{query}")
    assert sum(link.startswith("/run?") for link in page.links) == count
    assert count or "No application matches." in page.words


def test_each_past_application_is_on_one_part_of_the_list(web: Web) -> None:
    found: list[str] = []
    path: str | None = "/history?user=user"
    while path is not None:
        page = web.page(path)
        found += [link for link in page.links if link.startswith("/run?")]
        path = next((link for link in page.links if "after=" in link), None)
        assert path is None or parse_qs(urlsplit(path).query)["user"] == ["user"]
    assert len(found) == len(set(found)) == 61


def test_numbers_that_are_none_are_refused(web: Web) -> None:
    for path in ("/run", "/run?id=x", "/run?id=-1", "/configuration?id=" + "9" * 30):
        assert "The address names nothing" in web.page(path, 400).words
    assert "There is no run 999" in web.page("/run?id=999", 404).words
    assert "no configuration with the number 999" in web.page("/configuration?id=999", 404).words


# -- configurations and decisions ------------------------------------------------------------------------


def test_configuration_with_what_changed(web: Web) -> None:
    page = web.page("/configuration?id=2")
    assert "In use from (UTC) 27 Nov 2026 02:00 From REST By ann Resource manager rm" in page.words
    assert "line 1" in page.words
    assert "- properties: {a: 0} + properties: {a: 1}" in page.words
    assert "/configuration?id=1" in page.links
    assert "The history has none before." in web.page("/configuration?id=1").words
    assert "27 Nov 2026 02:00 REST ann" in web.page("/configurations").words


def test_configurations_that_cannot_or_need_not_be_compared(tmp_path: Path) -> None:
    history = WrittenHistory()
    texts = ["a: 1\n" * 30_000, "a: 1\n", "a: 1\n"]
    for number, text in enumerate(texts):
        history.add(CONFIGS, time=NOW - DAY + number, rm="rm", text=text, checksum="c")
    history.add(CONFIGS, time=NOW - 1, rm="other", text="b: 2\n", checksum="c")
    web = past_web(str(tmp_path / "past.db"), history)
    assert "too long to be compared" in web.page("/configuration?id=2").words
    assert "The text is the same as before." in web.page("/configuration?id=3").words
    assert "The history has none before." in web.page("/configuration?id=4").words


def test_decisions_of_operators(web: Web) -> None:
    page = web.page("/audit")
    assert "26 Nov 2026 15:00 ann admin stop queue queue root.a a repair" in page.words
    assert "Before Active After Stopped" in page.words
    assert "bob stop node refused" in page.words
    assert "bob" not in web.page("/audit?state=done").words
    assert "No decision matches." in web.page("/audit?user=eve").words


# -- search and former objects ---------------------------------------------------------------------------


def test_search_finds_present_and_past_objects(web: Web) -> None:
    page = web.page("/search?q=APP")
    assert "/application?id=app" in page.links
    page = web.page("/search?q=etl-5")
    assert "etl-5 in the history only" in page.words
    assert sum(link.startswith("/run?") for link in page.links) == 11
    page = web.page("/search?q=root.")
    assert {"/queue?name=root.a", "/queue?name=root.gone"} <= set(page.links)
    assert "root.gone in the history only" in page.words
    assert "root.a in the history only" not in page.words
    assert "old in the history only" in web.page("/search?q=old").words
    assert "/user?name=user" in web.page("/search?q=use").links
    assert "has a name with this text" in web.page("/search?q=%25a").words
    assert "Give a part of the name" in web.page("/search").words


def test_search_finds_records_of_all_kinds(web: Web) -> None:
    page = web.page("/search?q=a: 1")
    assert "/configuration?id=2" in page.links
    assert "configuration 2 ann, " in page.words
    assert "/configuration?id=1" not in page.links
    assert "configuration 2 ann" in web.page("/search?q=rest").words
    assert "/audit?user=ann" in web.page("/search?q=repair").links
    assert "stop queue ann, 26 Nov 2026 15:00" in web.page("/search?q=root.a").words
    assert "/run?id=62" in web.page("/search?q=driver").links
    assert "/run?id=62" in web.page("/search?q=drive").links
    assert "/run?id=62" not in web.page("/search?q=river").links
    assert "Tasks are found by the first six digits of their UUID, or their whole key" in page.words


def test_search_without_a_history() -> None:
    page = at_work().page("/search?q=n")
    assert {"/node?id=n1", "/node?id=n2"} <= set(page.links)
    assert "has a name with this text" in at_work().page("/search?q=none").words


def test_better_matches_come_first(web: Web) -> None:
    found = [link for link in web.page("/search?q=a").links if link.startswith("/queue?")]
    assert found[0] == "/queue?name=root.a"


def test_former_objects_are_shown_from_the_history(web: Web) -> None:
    page = web.page("/queue?name=root.GONE")
    assert "The queue is no longer there." in page.words
    assert "/history?queue=root.gone" in page.links
    assert "vcore used" in page.words
    page = web.page("/node?id=old")
    assert "26 Nov 2026 14:00 26 Nov 2026 16:00 8 vcores" in page.words
    assert "drained by ann" in page.words
    assert "There is no queue root.never." in web.page("/queue?name=root.never", 404).words


def test_hostile_names_are_text_and_their_links_work(web: Web) -> None:
    words = urlencode({"q": "<script"})
    page = web.page(f"/search?{words}")
    (link,) = {one for one in page.links if one.startswith("/run?")}
    for path in (
        "/history?state=Rejected",
        link,
        f"/search?{words}",
        f"/application?{urlencode({'id': LONG})}",
    ):
        page = web.page(path)
        assert LONG in page.words
        assert all(one.get("src") for one in page.all("script"))
    assert (
        web.get(link).headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
    )


# -- readers ---------------------------------------------------------------------------------------------


def test_each_reader_sees_only_what_their_role_permits(tmp_path: Path) -> None:
    location, history = str(tmp_path / "past.db"), written()
    history.add(SERIES, kind=USER_SERIES, name="vera", level=2, time=NOW - HOUR, data={"used": {"vcore": 1}})
    number = history.application("vera-1", NOW - HOUR, queue="root.b", user="vera", ended=NOW)
    history.write(location)
    kept = KeptHistory(location, lambda: NOW * MILLISECOND)
    web = Web(cluster(), None, kept, FILE)
    for path, count in {"/history": 50, "/history?user=vera": 1, "/search?q=etl": 20}.items():
        seen = web.page(path, token=ADMIN)
        assert sum(link.startswith("/run?") for link in seen.links) == count
        seen = web.page(path, token=VIEWER)
        assert [link for link in seen.links if link.startswith("/run?")] in ([], [f"/run?id={number}"])
    assert "train-7" in web.page("/run?id=62", token=ADMIN).words
    assert "There is no run 62" in web.page("/run?id=62", 404, VIEWER).words
    assert "There is no application etl-3" in web.page("/application?id=etl-3", 404, VIEWER).words
    assert "Earlier runs" not in web.page("/application?id=app", token=VIEWER).words
    assert "Over time" in web.page("/user?name=user", token=ADMIN).words
    assert "Over time" not in web.page("/user?name=user", token=VIEWER).words
    assert "Over time" in web.page("/user?name=vera", token=VIEWER).words
    assert "Over time" in web.page("/queue?name=root.a", token=VIEWER).words
    assert "stop queue" in web.page("/audit", token=ADMIN).words
    assert "No decision was recorded yet." in web.page("/audit", token=VIEWER).words
    assert "eve" not in web.page("/search?q=e", token=VIEWER).words
    assert "/run?id=62" in web.page("/search?q=driver", token=ADMIN).links
    assert "/run?id=62" not in web.page("/search?q=driver", token=VIEWER).links
    assert "stop queue" in web.page("/search?q=repair", token=ADMIN).words
    assert "stop queue" not in web.page("/search?q=repair", token=VIEWER).words


def test_pages_work_while_the_database_is_away(tmp_path: Path) -> None:
    web = Web(cluster(), None, KeptHistory(str(tmp_path / "none.db"), lambda: NOW * MILLISECOND))
    for path in ("/", "/queue?name=root.a", "/user?name=user", "/node?id=n1"):
        assert "There are no charts: the history cannot be read now" in web.page(path).words
    assert "Why it waits" in web.page("/application?id=app").words
    page = web.page("/search?q=app")
    assert "Only what is there at present: the history cannot be read now" in page.words
    assert "/application?id=app" in page.links
    for path in ("/history", "/audit", "/configurations", "/run?id=1", "/queue?name=root.gone"):
        assert "the history cannot be read now" in web.page(path, 503).words
