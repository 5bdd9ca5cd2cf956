"""Series of users: exact with few of them, exact sums with many, and the top users known at the end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn.clock import SECOND
from yunikorn.resources import Resource
from yunikorn_lab.reporting.full_report import FullReport
from yunikorn_lab.reporting.queue_observation import UserObservations
from yunikorn_lab.reporting.run_history import UserHistory
from yunikorn_lab.reporting.time_series import Timeline

CAPACITY = {"vcore": 1000}
CHANGES = st.lists(
    st.tuples(st.integers(1, 40), st.sampled_from("abcdef"), st.integers(1, 9), st.integers(1, 200)),
    max_size=30,
)


class Run:
    """Tasks as (start, user, amount, length), observed; times are in seconds."""

    def __init__(self, tasks: list[tuple[int, str, int, int]], followed: int, end: int) -> None:
        self.users = UserObservations(timeline := Timeline(), followed)
        timeline.begin(0)
        self.changes: dict[int, list[tuple[str, int, int]]] = defaultdict(list)
        self.spent: dict[str, int] = defaultdict(int)
        for start, user, amount, length in tasks:
            self.changes[start].append((user, amount, 1))
            self.changes[min(start + length, end)].append((user, amount, -1))
            self.spent[user] += amount * (min(start + length, end) - start)
        for at, changes in sorted(self.changes.items()):
            for user, amount, sign in changes:
                self.users.run(at * SECOND, user, Resource(vcore=amount), sign)
                self.users.ask(user, {Resource(vcore=amount): -sign}, -sign)
            self.users.record(at * SECOND, CAPACITY)
        timeline.reach(end * SECOND)
        self.users.close(end * SECOND, CAPACITY)
        self.lengths = [length / SECOND for length in timeline.lengths(end * SECOND)]
        ranked = sorted(self.spent, key=lambda user: (-self.spent[user], user))
        self.found = self.users.histories(ranked, 2, timeline.lengths(end * SECOND))

    def use(self, history: UserHistory) -> float:
        """Return the core-seconds of a series."""
        means = history.used.get("vcore", [0.0] * len(self.lengths))
        return sum(mean * length for mean, length in zip(means, self.lengths, strict=True))


@given(CHANGES)
def test_all_is_exact_while_no_more_users_come_than_have_series(
    tasks: list[tuple[int, str, int, int]],
) -> None:
    run = Run(tasks, 6, 300)
    named = [history for history in run.found if history.user]
    assert [history.user for history in named] == sorted(
        run.spent, key=lambda user: (-run.spent[user], user)
    )[:2]
    for history in named:
        assert history.since is None
        assert run.use(history) == pytest.approx(run.spent[history.user])
        assert sum(history.running) == -sum(history.waiting)


@given(CHANGES, st.integers(1, 3))
def test_sums_are_exact_at_all_times(tasks: list[tuple[int, str, int, int]], followed: int) -> None:
    few, all_of_them = Run(tasks, followed, 300), Run(tasks, 6, 300)
    for of in ("running", "waiting"):
        sums = [
            [sum(parts) for parts in zip(*(getattr(one, of) for one in run.found), strict=True)]
            for run in (few, all_of_them)
        ]
        assert sums[0] == pytest.approx(sums[1])
    assert sum(map(few.use, few.found)) == pytest.approx(sum(few.spent.values()))
    assert sum(history.users for history in few.found) == len(few.spent)
    for history in few.found:
        if history.user:
            assert run_since(few, history) == pytest.approx(few.use(history))


def run_since(run: Run, history: UserHistory) -> float:
    """Return what a user used since its series began."""
    begin = history.since or 0
    running, total, last = 0, 0.0, 0.0
    for at, changes in sorted(run.changes.items()):
        total += running * max(at - max(last, begin), 0)
        running += sum(amount * sign for user, amount, sign in changes if user == history.user)
        last = at
    return total


def test_a_late_user_of_much_gets_series_of_its_own() -> None:
    early = [(number, f"early-{number}", 1, 10) for number in range(50)]
    run = Run([*early, (100, "late", 500, 1000)], 8, 1100)
    assert run.found[0].user == "late"
    assert run.found[0].since == 100
    assert run.use(run.found[0]) == 500 * 1000
    assert run.found[-1].users == 49


def test_many_users_cause_few_replacements(monkeypatch: pytest.MonkeyPatch) -> None:
    replaced = []
    replace = UserObservations._replace

    def count(users: UserObservations, moment: int, old: str, new: str) -> None:
        replaced.append(new)
        replace(users, moment, old, new)

    monkeypatch.setattr(UserObservations, "_replace", count)
    for more, most in ((0, 0), (1, 50)):  # equal users, and users that use the more the later they come
        tasks = [
            (turn * 100 + number, f"user-{number}", 1 + more * number, 50)
            for turn in range(20)
            for number in range(60)
        ]
        replaced.clear()
        Run(tasks, 8, 2100)
        assert (len(replaced) > 0) == (more > 0)
        assert len(replaced) <= most


def test_a_user_that_enters_and_leaves_in_one_instant_counts_once() -> None:
    tasks = [(1, "a", 1, 10), (1, "x", 5, 49), (1, "y", 50, 49), (60, "a", 1, 10)]
    run = Run(tasks, 1, 100)
    assert [history.user for history in run.found] == ["y", ""]
    assert [run.use(history) for history in run.found] == pytest.approx([50 * 49, 5 * 49 + 20])


@pytest.mark.parametrize("users", [1, 2, 12])
def test_a_report_has_the_top_users_and_the_others(observe: Callable[..., FullReport], users: int) -> None:
    task = "{{resources: {{vcore: 1}}, runtime: {0}}}"
    line = f"  - {{{{id: x{{0}}, queue: root.a, user: u{{0}}, tasks: [{task}]}}}}\n"
    apps = "".join(line.format(number + 10) for number in range(users))
    found = observe(f"nodes: [{{name: n, resources: {{vcore: 2}}}}]\napplications:\n{apps}").history.users
    if users == 1:
        assert found == []
    else:
        top = [f"u{number + 10}" for number in reversed(range(users))][:8]
        assert [user.user for user in found] == [*top, ""][: min(users, 9)]
        assert sum(user.users for user in found) == users
