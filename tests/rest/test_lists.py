"""Pages and filters of lists."""

from __future__ import annotations

import itertools
from collections.abc import Generator
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.kit import RM, configuration, queue
from tests.rest.kit import Rest
from yunikorn_rest.lists import Page

T = TypeVar("T")

NAMES = st.lists(st.text(max_size=4), unique=True, max_size=30)


def result_of(slices: Generator[None, None, T]) -> T:
    """Return the result of a reading."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            result: T = end.value
            return result


@given(NAMES, st.integers(1, 8))
def test_all_pages_together_are_the_whole_list(names: list[str], limit: int) -> None:
    wanted = {name for name in names if len(name) != 2 and name}
    found: list[str] = []
    after = ""
    for _ in range(len(names) + 1):
        page = Page(limit, after)
        part, after = result_of(page.select(names, str, wanted.__contains__))
        assert len(part) <= limit
        found += part
        if not after:
            break
    assert found == sorted(wanted)


@given(st.lists(st.tuples(st.sampled_from(("add", "remove", "page")), st.integers(0, 30)), max_size=40))
def test_what_lives_throughout_is_on_exactly_one_page(actions: list[tuple[str, int]]) -> None:
    alive = {f"n{number}" for number in range(10)}
    lasting = set(alive)
    found: list[str] = []
    after, over = "", False

    def next_page() -> None:
        nonlocal after, over
        page = Page(3, after)
        part, after = result_of(page.select(sorted(alive), str, bool))
        found.extend(part)
        over = not after

    for action, number in actions:
        if action == "add":
            alive.add(f"n{number}")
        elif action == "remove":
            alive.discard(f"n{number}")
            lasting.discard(f"n{number}")
        elif not over:
            next_page()
    while not over:
        next_page()
    assert len(found) == len(set(found))
    assert lasting <= set(found)


@pytest.fixture
def rest() -> Rest:
    """A cluster with five nodes and six applications of two users."""
    rm = RM(configuration(queue("a"), queue("b", queue("c"))))
    for number in range(5):
        rm.node(f"n{number}", vcore=4)
    for number in range(6):
        rm.app(f"app{number}", "root.b.c" if number % 3 else "root.a", user="ann" if number % 2 else "bob")
    rm.ask("app0", "ask", 2, vcore=1)
    rm.ask("app4", "ask", vcore=1)
    rm.schedule()
    return Rest(rm)


def pages(rest: Rest, path: str) -> list[list[Any]]:
    """Return all pages of a list, following the links."""
    found = []
    while path:
        answer = rest.get(path)
        assert answer.status_code == 200
        found.append(answer.json())
        link = answer.headers.get("link", "")
        assert bool(link) == ("x-continue" in answer.headers)
        path = link.removeprefix("<").partition(">")[0]
        assert link in ("", f'<{path}>; rel="next"')
    return found


def test_pages_are_linked(rest: Rest) -> None:
    whole = rest.json("partition/default/nodes")
    found = pages(rest, "partition/default/nodes?limit=2&state=schedulable")
    assert [len(page) for page in found] == [2, 2, 1]
    assert list(itertools.chain(*found)) == whole


def test_a_last_full_page_has_no_link(rest: Rest) -> None:
    assert [len(page) for page in pages(rest, "partition/default/nodes?limit=5")] == [5]
    assert pages(rest, "partition/default/nodes?limit=5&state=draining") == [[]]


def test_pages_of_users(rest: Rest) -> None:
    found = pages(rest, "partition/default/usage/users?limit=1")
    assert [[user["userName"] for user in page] for page in found] == [["ann"], ["bob"]]


def ids(applications: list[dict[str, Any]]) -> list[str]:
    """Return the ids of applications, sorted."""
    return sorted(app["applicationID"] for app in applications)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [0, 1, 2, 3, 4, 5]),
        ("user=ann", [1, 3, 5]),
        ("queue=root.b", [1, 2, 4, 5]),
        ("queue=ROOT.B.C&user=ann", [1, 5]),
        ("state=running", [0, 4]),
        ("state=starting", [4]),
        ("status=running", [0, 4]),
        ("state=Failed", []),
        ("user=nobody", []),
    ],
)
def test_filters_of_applications(rest: Rest, query: str, found: list[int]) -> None:
    applications = rest.json(f"partition/default/applications/active?{query}")
    assert ids(applications) == [f"app{number}" for number in found]
    paged = pages(rest, f"partition/default/applications/active?{query}&limit=2")
    assert ids(list(itertools.chain(*paged))) == ids(applications)


STATES = (
    "new, accepted, starting, running, completing, completed, expired, failing, failed, rejected, resuming"
)


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("nodes?state=foo", (400, "Only following states are allowed: schedulable, draining")),
        ("applications/active?state=foo", (400, f"Only following states are allowed: {STATES}")),
        ("queue/root.a/applications?state=foo", (400, f"Only following states are allowed: {STATES}")),
        ("applications/active?queue=root.nothing", (404, "Queue not found")),
        ("applications/active?queue=root.b.", (404, "Queue not found, did you mean 'root.b.c'?")),
        ("applications/active?queue=c&limit=2", (404, "Queue not found, did you mean 'root.b.c'?")),
        ("applications/active?queue=root.b.d", (404, "Queue not found, did you mean 'root.b.c'?")),
        ("decisions?queue=root.b.d", (404, "Queue not found, did you mean 'root.b.c'?")),
    ],
)
def test_unknown_values_of_filters(rest: Rest, path: str, error: tuple[int, str]) -> None:
    assert rest.error(f"partition/default/{path}") == error


def test_ended_applications_may_name_a_queue_that_is_gone(rest: Rest) -> None:
    for kind in ("completed", "rejected"):
        assert rest.json(f"partition/default/applications/{kind}?queue=root.gone") == []


def test_filters_of_the_applications_of_a_queue(rest: Rest) -> None:
    assert ids(rest.json("partition/default/queue/root.b.c/applications?user=ann")) == ["app1", "app5"]
