"""Amounts of applications and queues: the fast booking of a decision equals the general one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from yunikorn.accounting.booking import book, book_decision
from yunikorn.clock import ManualClock
from yunikorn.model.application import Application
from yunikorn.model.queue import ClusterSize, Queue
from yunikorn.resources import Resource, without_zeros

AMOUNTS = st.dictionaries(st.sampled_from(["vcore", "memory", "gpu"]), st.integers(1, 9), min_size=1)


def application() -> Application:
    """Return an application in root.a."""
    cluster = ClusterSize(ManualClock().now)
    root = Queue("root", None, cluster, is_leaf=False, managed=True)
    leaf = Queue("a", root, cluster, is_leaf=True, managed=True)
    app = Application("app", "ann", (), "root.a", {}, submitted=0, arrival=1)
    app.enter(leaf)
    return app


def amounts(app: Application) -> list[tuple[Resource, Resource]]:
    """Return allocated and demanded amounts of an application and its queues, without zeros."""
    return [(without_zeros(one.allocated), without_zeros(one.demand)) for one in (app, *app.chain)]


@given(st.lists(AMOUNTS, max_size=4), AMOUNTS)
def test_a_decision_is_booked_alike(before: list[dict[str, int]], amount: dict[str, int]) -> None:
    fast, plain = application(), application()
    for app in (fast, plain):
        for earlier in before:
            book(app, earlier, allocated=1)
        book(app, amount, pending=3)
        for member in (app, app.chain[0]):
            member.is_dirty = False
    book_decision(fast, tuple(amount.items()))
    book(plain, amount, allocated=1, pending=-1)
    assert amounts(fast) == amounts(plain)
    assert [one.is_dirty for one in (fast, *fast.chain)] == [one.is_dirty for one in (plain, *plain.chain)]


@given(AMOUNTS, st.integers(1, 5))
def test_what_is_booked_and_taken_back_leaves_nothing(amount: dict[str, int], times: int) -> None:
    app = application()
    book(app, amount, pending=times)
    assert app.demand == {name: value * times for name, value in amount.items()}
    book(app, amount, allocated=times, pending=-times)
    assert app.allocated == app.demand == app.chain[-1].allocated
    book(app, amount, allocated=-times)
    assert amounts(app) == [({}, {})] * (1 + len(app.chain))


@given(st.lists(st.sampled_from([None, 0, 5]), min_size=3, max_size=3), st.integers(1, 4))
def test_a_type_may_be_new_to_some_of_the_holders(known: list[int | None], times: int) -> None:
    """An application that was moved keeps entries of 0, which its new queues need not have."""
    app = application()
    holders = (app, *app.chain)
    for holder, amount in zip(holders, known, strict=True):
        if amount is not None:
            holder.demand["gpu"] = holder.allocated["gpu"] = amount
    book(app, {"vcore": 1, "gpu": 2}, allocated=times)
    expected = [(amount or 0) + 2 * times for amount in known]
    assert [holder.demand["gpu"] for holder in holders] == expected
    assert [holder.allocated["gpu"] for holder in holders] == expected
    book_decision(app, (("gpu", 1),))
    assert [holder.allocated["gpu"] for holder in holders] == [amount + 1 for amount in expected]
