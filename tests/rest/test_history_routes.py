"""Routes of the history: filters, pages, roles and refusals."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.core.kit import RM, configuration, queue
from tests.history.written_history import START, WrittenHistory, small_history
from tests.rest.kit import Rest
from tests.rest.steering_kit import ADMIN, OPERATOR, VIEWER, Steered
from yunikorn.clock import MILLISECOND
from yunikorn_history.history_kinds import KINDS
from yunikorn_history.history_tables import AUDIT, CONFIGS, HOUR
from yunikorn_history.queries import HistoryQueries
from yunikorn_rest.answers import RequestRefused
from yunikorn_rest.kept_history import KeptHistory

DAY_LATER = (START + 24 * HOUR) * MILLISECOND


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> KeptHistory:
    """The history of a day, read at its end."""
    location = str(tmp_path_factory.mktemp("routes") / "history.db")
    small_history(location)
    return KeptHistory(location, lambda: DAY_LATER)


@pytest.fixture
def rest(kept: KeptHistory) -> Rest:
    """The routes over a scheduler with this history."""
    return Rest(RM(), past=kept)


def ids(found: Any) -> list[str]:
    """Return the ids of applications."""
    return [one["applicationID"] for one in found]


def test_applications_have_all_that_the_history_keeps(rest: Rest) -> None:
    (found,) = rest.json("history/applications?state=failed")
    assert found == {
        "id": 8,
        "rmID": "rm",
        "partition": "default",
        "applicationID": "job-7",
        "queue": "root.web.eu",
        "user": "bob",
        "groups": ["staff", "team bob"],
        "template": "job-",
        "tags": {"cost": "low", "namespace": "web.eu"},
        "submitted": START + 7 * HOUR,
        "started": START + 7 * HOUR + 60_000,
        "ended": START + 9 * HOUR,
        "state": "Failed",
        "states": [
            {"time": START + 7 * HOUR, "state": "New"},
            {"time": START + 7 * HOUR + 60_000, "state": "Running"},
        ],
        "waits": {"no node fits": 60_000},
        "longestWait": "no node fits",
        "tasks": 2,
        "service": {"vcore": 4000 * HOUR},
    }


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("user=bob&queue=root.WEB", ["job-10", "job-7", "job-4", "job-1"]),
        ("since=2h&queue=root.batch", ["job-23", "job-22", "job-21", "job-20"]),
        ("since=2025-11-27T03:30Z&until=2025-11-27T03:45Z", ["job-3", "job-2"]),
        ("preempted=true", ["job-9"]),
        ("application=job-3", ["job-3"]),
        ("user=%00", []),
        ("user=a%27%3BDROP%20TABLE%20names", []),
    ],
)
def test_filters(rest: Rest, query: str, found: list[str]) -> None:
    assert ids(rest.json(f"history/applications?{query}")) == found


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_route_with_pages(rest: Rest, kind: str) -> None:
    path = f"history/{KINDS[kind].path}?limit=3" + "&bucket=hour" * bool(KINDS[kind].buckets)
    whole = rest.json(path.replace("=3", "=1000"))
    read = []
    while path:
        answer = rest.get(path)
        assert answer.status_code == 200
        assert len(answer.json()) <= 3
        read += answer.json()
        path = answer.links.get("next", {}).get("url", "")
    assert read == whole
    assert bool(whole) == (kind in ("apps", "tasks", "queues", "usage", "runtimes"))


def test_an_application_is_found_by_id_and_by_number(rest: Rest) -> None:
    found = rest.json("history/applications/job-3")
    assert rest.json(f"history/applications/{found['id']}") == found
    missing = (404, "there is no such application in the history")
    for name in ("none", "0", "9" * 30, "%00", "a%2Fb", "%F0%9F%A6%84"):
        assert rest.get(f"history/applications/{name}").status_code == 404, name
    assert rest.error("history/applications/none") == missing


def test_a_number_that_is_an_id_is_the_id(tmp_path: Path) -> None:
    history = WrittenHistory()
    for app_id in ("one", "1"):
        history.application(app_id, START)
    history.write(str(tmp_path / "history.db"))
    rest = Rest(RM(), past=KeptHistory(str(tmp_path / "history.db"), lambda: DAY_LATER))
    assert rest.json("history/applications/1")["applicationID"] == "1"


def test_texts_of_configurations_are_read_one_by_one(tmp_path: Path) -> None:
    history = WrittenHistory()
    history.add(CONFIGS, time=START, text="<partitions>", checksum="abc", source="file")
    history.write(str(tmp_path / "history.db"))
    rest = Rest(RM(), past=KeptHistory(str(tmp_path / "history.db"), lambda: DAY_LATER))
    (one,) = rest.json("history/configs")
    assert "text" not in one
    assert rest.json("history/configs/1") == {**one, "text": "<partitions>"}
    for name in ("2", "x", "-1", "9" * 30):
        assert rest.error(f"history/configs/{name}") == (
            404,
            "there is no such configuration in the history",
        )


def test_search_finds_records_of_all_kinds(rest: Rest) -> None:
    assert rest.json("history/search?q=JOB-7") == [{"kind": "application", "name": "job-7", "id": 8}]
    assert rest.json("history/search?q=b9") == [{"kind": "task", "name": "b9", "id": 10, "text": "job-9"}]
    assert rest.json("history/search?q=b9%25") == []
    assert rest.json("history/search?q=%20") == rest.json("history/search") == []


def test_the_usual_bucket_is_that_of_the_command_and_stays_the_same_on_the_next_page(rest: Rest) -> None:
    assert {one["bucket"] for one in rest.json("history/usage?limit=9&bucket=")} <= {"day"}
    answer = rest.get("/ws/v1/history/queues?limit=1&since=5d")
    assert [one["bucket"] for one in answer.json()] == ["hour"]
    assert "bucket=hour" in answer.links["next"]["url"]


def test_all_problems_of_a_request_are_one_error(rest: Rest) -> None:
    query = "since=2x&state=runing&usr=a&node=n&limit=0&bucket=hour"
    status, message = rest.error(f"history/applications?{query}")
    assert status == 400
    for words in ("'2x' is no time", "did you mean 'Running'?", "did you mean 'user'?", "node: is for tasks"):
        assert words in message
    assert 'limit: expected a whole number from 1 on, got "0"' in message
    message = rest.error(f"history/applications?limit={'9' * 21}")[1]
    assert message == f'limit: expected a whole number from 1 to {2**64 - 1}, got "{"9" * 21}"'


@pytest.mark.parametrize(
    "token", ["x", "W10=", "WzFd", "WzEsMiwzXQ==", "WyJhIiwyXQ==", "Wy0xLDJd", "WzFlOTksMl0="]
)
def test_tokens_of_others_are_refused(rest: Rest, token: str) -> None:
    assert rest.error(f"history/tasks?continue={token}") == (400, "continue: is no token of this server")


def test_without_a_history_the_answer_says_how_to_begin_one() -> None:
    rest = Rest(RM())
    for path in ("applications", "applications/x", "configs/1", "usage"):
        status, message = rest.error(f"history/{path}")
        assert (status, "--history FILE" in message) == (501, True)


# -- roles -----------------------------------------------------------------------------------------------


def steered(kept: KeptHistory, *queues: Any) -> Steered:
    """Return the routes with operators, over a scheduler with these queues."""
    return Steered(RM(configuration(*queues)), past=kept)


QUEUES = (queue("web", queue("eu")), queue("batch"))


def seen(rest: Steered, token: str, path: str = "history/applications?limit=100") -> set[str]:
    """Return the queues whose applications a client sees."""
    found = rest.ask("GET", path, token)
    assert found.status_code == 200
    return {one["queue"] for one in found.json()}


def test_clients_without_credentials_read_as_elsewhere(kept: KeptHistory) -> None:
    rest = steered(kept, *QUEUES)
    assert len(seen(rest, "")) == 3
    closed = Steered(RM(configuration(*QUEUES)), past=kept, reading_is_open=False)
    assert closed.ask("GET", "history/applications").status_code == 401


def test_users_see_their_own(tmp_path: Path) -> None:
    history = WrittenHistory()
    for user in ("vera", "ann"):
        app = history.application(f"of-{user}", START, user=user)
        history.task(app, f"task-{user}", START)
        history.add(AUDIT, time=START, operator=user, what="drain node", target={}, outcome="done")
    history.write(str(tmp_path / "history.db"))
    rest = steered(KeptHistory(str(tmp_path / "history.db"), lambda: DAY_LATER), *QUEUES)
    for path in ("applications", "tasks", "applications?user=ann", "tasks?application=of-ann"):
        found = rest.ask("GET", f"history/{path}", VIEWER).json()
        assert {one["user"] for one in found} == (set() if "ann" in path else {"vera"})
    assert [one["operator"] for one in rest.ask("GET", "history/audit", VIEWER).json()] == ["vera"]
    assert rest.ask("GET", "history/audit?user=ann", VIEWER).json() == []
    assert rest.ask("GET", "history/applications/of-vera", VIEWER).status_code == 200
    for user, seen_by in (("vera", (VIEWER, ADMIN)), ("ann", (ADMIN,))):
        for token in (VIEWER, ADMIN):
            matches = rest.ask("GET", f"history/search?q=task-{user}", token).json()
            assert [one["text"] for one in matches] == [f"of-{user}"] * (token in seen_by)
    for name in ("of-ann", "2"):
        assert rest.ask("GET", f"history/applications/{name}", VIEWER).status_code == 404
    assert len(rest.ask("GET", "history/applications", ADMIN).json()) == 2


def test_admins_of_a_queue_see_the_queue_and_those_below(kept: KeptHistory) -> None:
    of_dev = queue("web", queue("eu"), adminacl=" dev")
    assert seen(steered(kept, of_dev, QUEUES[1]), VIEWER) == {"root.web", "root.web.eu"}
    assert seen(steered(kept, queue("web", queue("eu", adminacl="vera")), QUEUES[1]), VIEWER) == {
        "root.web.eu"
    }
    rest = steered(kept, of_dev, QUEUES[1])
    assert seen(rest, VIEWER, "history/usage?limit=100&bucket=hour") == {"root.web"}
    assert seen(rest, OPERATOR) == {"root.batch"}, "the role operate counts where no adminacl names anyone"
    assert len(seen(rest, ADMIN)) == 3
    inner = queue("web", queue("eu", adminacl="vera"), adminacl="otto")
    assert seen(steered(kept, inner, QUEUES[1]), OPERATOR) == {"root.batch", "root.web", "root.web.eu"}
    assert seen(steered(kept, queue("web", queue("eu", adminacl="vera")), QUEUES[1]), OPERATOR) == {
        "root.batch",
        "root.web",
    }


# -- queries ---------------------------------------------------------------------------------------------


def carried_out(kept: KeptHistory, *works: Callable[[HistoryQueries], Any]) -> list[Any]:
    """Return the results of queries that begin together."""

    async def read() -> list[Any]:
        return await asyncio.gather(*map(kept.read, works), return_exceptions=True)

    return asyncio.run(read())


def test_two_queries_run_at_the_same_time(kept: KeptHistory) -> None:
    lock, running, most = threading.Lock(), set[object](), [0]
    both = threading.Barrier(2)

    def work(_: HistoryQueries) -> None:
        me = object()
        with lock:
            running.add(me)
            most[0] = max(most[0], len(running))
        both.wait(30)
        with lock:
            running.remove(me)

    assert carried_out(kept, *[work] * 6) == [None] * 6
    assert most == [2]


def test_queries_that_get_no_turn_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_history(str(tmp_path / "history.db"))
    kept = KeptHistory(str(tmp_path / "history.db"), lambda: DAY_LATER)
    monkeypatch.setattr("yunikorn_rest.kept_history.WAITING", 0.01)
    free = threading.Event()

    async def read() -> Any:
        others = [asyncio.create_task(kept.read(lambda _: free.wait(30))) for _ in range(2)]
        await asyncio.sleep(0)
        try:
            return await kept.read(lambda _: None)
        finally:
            free.set()
            await asyncio.gather(*others)

    with pytest.raises(RequestRefused, match="503 there are too many queries of the history"):
        asyncio.run(read())


def test_a_history_that_cannot_be_read_is_an_error_that_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    location = tmp_path / "secret" / "history.db"
    rest = Rest(RM(), past=KeptHistory(str(location), lambda: DAY_LATER))
    assert rest.error("history/applications") == (
        503,
        "the history cannot be read now; the log of the scheduler has the reason",
    )
    assert "no such folder" in caplog.text
    caplog.clear()
    assert rest.error("history/runs")[0] == 503
    assert caplog.text == ""
    location.parent.mkdir()
    small_history(str(location))
    assert len(rest.json("history/applications")) == 24


def test_a_query_that_takes_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_history(str(tmp_path / "history.db"))
    monkeypatch.setattr("yunikorn_rest.kept_history.PATIENCE", 0.0)
    monkeypatch.setattr("yunikorn_history.fetched_rows.INSTRUCTIONS", 1)
    rest = Rest(RM(), past=KeptHistory(str(tmp_path / "history.db"), lambda: DAY_LATER))
    status, message = rest.error("history/tasks?user=ann")
    assert (status, "ask for a shorter time" in message) == (503, True)
