"""Tests that neither the seats nor the limit of a user is ever exceeded, in random histories as well."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from yunikorn_user_seats import UserSeats

from yunikorn.api import Context
from yunikorn_testing import (
    ApplicationSample,
    AskSample,
    Cluster,
    MakeScheduler,
    PredicateContract,
    application,
    ask,
    assert_pending_because,
    node,
    registry_with,
)

SEATS, PER_USER = {"matlab": 4, "ansys": 1}, {"matlab": 2}


class TestUserSeats(PredicateContract):
    """Contract test of predicates."""

    predicate = UserSeats(SEATS, per_user=PER_USER)

    def asks(self) -> Sequence[AskSample]:
        """Return requests for known and unknown seats of several users."""
        users = [application(user, user=user, tags={"seat": "matlab"}) for user in ("ann", "bob", "cid")]
        return [
            *(ask(app.user, vcore=1, app=app) for app in users),
            *(ask(f"{seat}?", vcore=1, tags={"seat": seat}) for seat in ("ansys", "maple", "")),
        ]


def configuration(seats: Mapping[str, int] = SEATS, owner: int = 6) -> str:
    """Return a configuration with the predicate, and with a queue that preempts the others."""
    leaves = [
        {"name": "default"},
        {"name": "lender"},
        {"name": "gangs"},
        {
            "name": "owner",
            "resources": {"guaranteed": {"vcore": owner}},
            "properties": {"preemption.delay": "1s"},
        },
    ]
    root = {"name": "root", "submitacl": "*", "queues": leaves}
    predicate = {"name": "user-seats", "seats": seats, "per_user": PER_USER}
    return json.dumps({"partitions": [{"name": "default", "predicates": [predicate], "queues": [root]}]})


def held(cluster: Cluster, users: dict[str, str]) -> Counter[str]:
    """Return the number of running tasks by user."""
    return Counter(users[one.application] for one in cluster.running())


def test_one_user_leaves_seats_for_others(scheduler: MakeScheduler) -> None:
    nodes = [node(name, vcore=8) for name in ("n1", "n2")]
    cluster = scheduler(configuration(), *nodes, plugins=[UserSeats])
    for user in ("ann", "bob", "cid"):
        cluster.submit(application(user, user=user, tags={"seat": "matlab"}), ask("task", 3, vcore=1))
    cluster.run()
    assert held(cluster, {"ann": "ann", "bob": "bob", "cid": "cid"}) == {"ann": 2, "bob": 2}
    assert_pending_because(cluster, "cid", "all 4 seats matlab are taken")
    cluster.withdraw("ann")
    cluster.run()
    assert len(cluster.running("cid")) == 2
    cluster.withdraw("bob")
    cluster.run()
    assert_pending_because(cluster, "cid", "user cid holds 2 seats matlab, the most for one user")


class Watched(UserSeats):
    """The predicate, with a list of the objects in use."""

    in_use: ClassVar[list[UserSeats]] = []

    def opened(self, context: Context) -> None:
        """List the object."""
        self.in_use.append(self)

    def closed(self) -> None:
        """List the object no more."""
        self.in_use.remove(self)


STYLES = st.sampled_from(["", "", "Soft", "Hard", "Atomic"])
SEAT_NAMES = st.sampled_from(["matlab", "matlab", "ansys", ""])
USERS = st.sampled_from(["ann", "bob", "cid"])


class Histories(RuleBasedStateMachine):
    """Applications, gangs, releases, preemption, nodes and reloads, with a recount after each step."""

    @initialize(cores=st.integers(1, 8))
    def start(self, cores: int) -> None:
        """Start with one node."""
        Watched.in_use.clear()
        self.seats = SEATS
        self.cluster = Cluster(configuration(), registry_with(Watched), [node("n0", vcore=cores)])
        self.nodes = {"n0"}
        self.users: dict[str, str] = {}
        self.taken: dict[str, str] = {}
        self.number = 0

    def new_ask(self, seat: str, count: int, **more: Any) -> AskSample:
        """Return a request whose seat is known to the recount."""
        self.number += 1
        self.taken[f"t{self.number}"] = seat
        return ask(f"t{self.number}", count, vcore=1, tags={"seat": seat} if seat else {}, **more)

    def new_application(self, user: str, queue: str, style: str = "", count: int = 0) -> ApplicationSample:
        """Return an application whose user is known to the recount."""
        self.number += 1
        name = f"app{self.number}"
        self.users[name] = user
        size = {"vcore": count} if style else {}
        return application(name, queue, user=user, gang=style, gang_size=size)

    @rule(style=STYLES, user=USERS, seat=SEAT_NAMES, real=SEAT_NAMES, count=st.integers(1, 4))
    def submit(self, style: str, user: str, seat: str, real: str, count: int) -> None:
        """Submit an application, or a gang with the requests that replace its placeholders."""
        app = self.new_application(user, "root.gangs" if style else "root.lender", style, count)
        if not style:
            self.cluster.submit(app, self.new_ask(seat, count), self.new_ask(real, 1))
            return
        placeholder = style != "Atomic"
        self.cluster.submit(app, self.new_ask(seat, count, task_group="g", placeholder=placeholder))
        if placeholder:
            self.cluster.run()
            self.cluster.request(app.id, self.new_ask(real, count, task_group="g"))

    @rule(user=USERS, seat=SEAT_NAMES, count=st.integers(1, 3))
    def preempt(self, user: str, seat: str, count: int) -> None:
        """Fill the cluster, and let the queue with the guarantee claim some of it."""
        self.cluster.submit(self.new_application(user, "root.lender"), self.new_ask("", 20))
        self.cluster.run()
        self.cluster.submit(self.new_application(user, "root.owner"), self.new_ask(seat, count))
        self.cluster.run()
        self.cluster.advance(40)

    @precondition(lambda self: self.cluster.running())
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        """End a task."""
        one = data.draw(st.sampled_from(self.cluster.running()))
        self.cluster.finish(one.application, one.ask)

    @precondition(lambda self: self.cluster.running())
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        """Remove an application."""
        self.cluster.withdraw(data.draw(st.sampled_from(self.cluster.running())).application)

    @rule(cores=st.integers(1, 4))
    def add_node(self, cores: int) -> None:
        """Add a node."""
        self.number += 1
        self.nodes.add(f"n{self.number}")
        self.cluster.add(node(f"n{self.number}", vcore=cores))

    @precondition(lambda self: self.nodes)
    @rule(data=st.data())
    def remove_node(self, data: st.DataObject) -> None:
        """Remove a node with its tasks."""
        name = data.draw(st.sampled_from(sorted(self.nodes)))
        self.nodes.remove(name)
        self.cluster.remove(name)

    @rule(seats=st.sampled_from([SEATS, {"matlab": 3, "ansys": 2}]), owner=st.integers(4, 6))
    def reload(self, seats: dict[str, int], owner: int) -> None:
        """Change the number of seats, or only the guarantee of a queue."""
        self.seats = seats
        self.cluster.reload(configuration(seats, owner))

    @rule(seconds=st.sampled_from([1, 40, 1000]))
    def pass_time(self, seconds: int) -> None:
        """Let time pass: queues may preempt, and placeholders time out."""
        self.cluster.advance(seconds)

    def recount(self) -> Counter[tuple[str, str]]:
        """Return the number of running tasks by seat and user."""
        pairs = ((self.taken[one.ask], self.users[one.application]) for one in self.cluster.running())
        return Counter((seat, user) for seat, user in pairs if seat)

    @invariant()
    def limits_hold(self) -> None:
        """Check that no decision exceeds the seats or the limit of a user, and that the books are right."""
        if not hasattr(self, "cluster"):
            return
        before = self.recount()
        self.cluster.run()
        after = self.recount()
        for name, most in self.seats.items():
            was, now = (
                sum(count for (seat, _), count in counts.items() if seat == name)
                for counts in (before, after)
            )
            # A reload with fewer seats may exceed them; a decision must not.
            assert now <= max(most, was), name
        assert all(count <= PER_USER.get(seat, count) for (seat, _), count in after.items()), after
        (plugin,) = Watched.in_use
        assert plugin._held == after
        assert not self.cluster.failures

    def teardown(self) -> None:
        """Close the cluster, which closes the plugin."""
        if hasattr(self, "cluster"):
            self.cluster.close()
            assert not Watched.in_use


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
