"""Tests of the limits per rack and zone: single decisions, and random histories with gangs and preemption."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from yunikorn_rack_spread import Limits, RackSpread, read_limits

from yunikorn.api import Context
from yunikorn_testing import (
    ApplicationSample,
    AskSample,
    Cluster,
    MakeScheduler,
    NodeSample,
    PredicateContract,
    application,
    ask,
    assert_pending_because,
    node,
    registry_with,
)

LIMITS = {"rack": 2, "zone": 3}
RACKS = {"a1": "a", "a2": "a", "b1": "b", "b2": "b"}
"""Zone by rack."""


def configuration(limits: Mapping[str, int] = LIMITS, owner: int = 6) -> str:
    """Return a configuration with the predicate, and with a queue that preempts the other two."""
    leaves = [
        {"name": "lender"},
        {"name": "gangs"},
        {
            "name": "owner",
            "resources": {"guaranteed": {"vcore": owner}},
            "properties": {"preemption.delay": "1s"},
        },
    ]
    partition = {
        "name": "default",
        "predicates": [{"name": "rack-spread", "limits": limits}],
        "queues": [{"name": "root", "submitacl": "*", "queues": leaves}],
    }
    return json.dumps({"partitions": [partition]})


def host(name: str, rack: str, cores: int = 4) -> NodeSample:
    """Return a node in a rack."""
    return node(name, {"rack": rack, "zone": RACKS[rack]}, vcore=cores)


def by_level(cluster: Cluster, racks: Mapping[str, str]) -> tuple[Counter[str], Counter[str]]:
    """Return the number of running tasks by rack and by zone."""
    found = [racks[one.node] for one in cluster.running()]
    return Counter(found), Counter(RACKS[rack] for rack in found)


class TestRackSpread(PredicateContract):
    """Contract test of predicates."""

    predicate = RackSpread({"rack": 1, "zone": 2})

    def asks(self) -> Sequence[AskSample]:
        """Return requests of applications with several limits, and of several groups."""
        tags: tuple[dict[str, str], ...] = (
            {},
            {"rack-spread": "rack=2"},
            {"rack-spread": "off"},
            {"rack-spread": "row=1"},
        )
        apps = [application(f"app-{number}", tags=found) for number, found in enumerate(tags)]
        return [
            *(ask(app.id, vcore=1, app=app) for app in apps),
            *(ask(f"{app.id}-apart", vcore=1, app=app, tags={"spread-group": "x"}) for app in apps),
        ]

    def nodes(self) -> Sequence[NodeSample]:
        """Return nodes of all racks, and nodes without some of the attributes."""
        return [
            *(host(f"n-{rack}", rack) for rack in RACKS),
            node("rack", {"rack": "a1"}),
            node("zone", {"zone": "a"}),
            node("none"),
        ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("rack=1", ((0, 1),)),
        (" zone = 4 , rack=2", ((0, 2), (1, 4))),
        ("Off", ()),
        ("rack=0", "'rack=0' is not LEVEL=N with N from 1, or off"),
        ("rack", "'rack' is not LEVEL=N with N from 1, or off"),
        ("row=2", "there is no level 'row'; known: rack, zone"),
    ],
)
def test_limits_are_read_from_a_tag(text: str, found: Limits | str) -> None:
    assert read_limits(text, ("rack", "zone")) == found


@pytest.mark.parametrize(
    ("limits", "problem"), [({}, "there is no limit"), ({"rack": 0}, "the limit of rack is 0: use 1 or more")]
)
def test_invalid_limits_are_refused(limits: dict[str, int], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        RackSpread(limits)


def test_both_limits_hold_at_once(scheduler: MakeScheduler) -> None:
    racks = {f"n-{rack}": rack for rack in RACKS}
    cluster = scheduler(configuration(), *map(host, racks, racks.values()), plugins=[RackSpread])
    cluster.submit(application("app", "root.lender"), ask("task", 9, vcore=1))
    cluster.run()
    by_rack, by_zone = by_level(cluster, racks)
    assert sorted(by_rack.values()) == [1, 1, 2, 2]
    assert by_zone == {"a": 3, "b": 3}
    assert_pending_because(cluster, "app", "at most 3 tasks per zone")


def test_release_reopens_the_other_racks_of_a_zone(scheduler: MakeScheduler) -> None:
    cluster = scheduler(configuration(), host("n1", "a1", 2), plugins=[RackSpread])
    cluster.submit(application("app", "root.lender"), ask("task", 2, vcore=1))
    cluster.run()
    cluster.add(host("n2", "a2", 2))
    cluster.request("app", ask("more", 2, vcore=1))
    assert [one.node for one in cluster.run()] == ["n2"]
    cluster.submit(application("other", "root.lender"), ask("full", vcore=1))
    cluster.finish("app", "more")
    # The freed core and that of the other rack are both open to the application again.
    assert sorted(one.application for one in cluster.run()) == ["app", "other"]


def test_application_replaces_the_limits(scheduler: MakeScheduler) -> None:
    hosts = [host("n1", "a1", 9), node("n2", vcore=9)]
    cluster = scheduler(configuration(), *hosts, plugins=[RackSpread])
    for name, text in (("one", "rack=1"), ("all", "off"), ("bad", "rack=none")):
        app = application(name, "root.lender", tags={"rack-spread": text})
        cluster.submit(app, ask(f"{name}-task", 3, vcore=1))
    cluster.run()
    assert Counter(one.application for one in cluster.running()) == {"one": 1, "all": 3}
    assert_pending_because(cluster, "bad", "the limits cannot be read: 'rack=none' is not LEVEL=N")
    assert_pending_because(cluster, "one", "the node has no rack")


def test_groups_of_requests_are_counted_apart(scheduler: MakeScheduler) -> None:
    cluster = scheduler(configuration({"rack": 1}), host("n1", "a1", 9), plugins=[RackSpread])
    groups = [ask(name, 2, vcore=1, tags={"spread-group": name}) for name in ("leader", "follower")]
    cluster.submit(application("app", "root.lender"), *groups)
    cluster.run()
    assert Counter(one.ask for one in cluster.running()) == {"leader": 1, "follower": 1}


class Watched(RackSpread):
    """The predicate, with a list of the objects in use."""

    in_use: ClassVar[list[RackSpread]] = []

    def opened(self, context: Context) -> None:
        """List the object."""
        self.in_use.append(self)

    def closed(self) -> None:
        """List the object no more."""
        self.in_use.remove(self)


KEPT_FOR_OTHERS = ("reserved", "an overdue gang has precedence")
"""Explanations of requests that wait although the predicate accepts a free node."""
STYLES = st.sampled_from(["", "", "Soft", "Hard", "Atomic"])
TAGS = st.sampled_from([{}, {}, {"rack-spread": "rack=1"}, {"rack-spread": "zone=2"}, {"rack-spread": "off"}])
GROUPS = st.sampled_from(["", "", "x"])


class Histories(RuleBasedStateMachine):
    """Applications, gangs, releases, preemption, nodes and reloads, with a recount after each step."""

    @initialize(racks=st.lists(st.sampled_from(sorted(RACKS)), min_size=1, max_size=4))
    def start(self, racks: list[str]) -> None:
        """Start with some nodes."""
        Watched.in_use.clear()
        self.limits: dict[str, int] = LIMITS
        self.cluster = Cluster(configuration(), registry_with(Watched))
        self.nodes: dict[str, str] = {}
        self.apps: dict[str, ApplicationSample] = {}
        self.withdrawn: set[str] = set()
        self.groups: dict[str, str] = {}
        self.cores: dict[str, int] = {}
        self.number = 0
        for rack in racks:
            self.add_node(rack, 2)

    def next_name(self, prefix: str) -> str:
        """Return a new name."""
        self.number += 1
        return f"{prefix}{self.number}"

    def new_ask(self, group: str, count: int, **more: Any) -> AskSample:
        """Return a request whose group is known to the recount."""
        key = self.next_name("t")
        self.groups[key] = group
        return ask(key, count, vcore=1, tags={"spread-group": group} if group else {}, **more)

    @rule(style=STYLES, tags=TAGS, group=GROUPS, count=st.integers(1, 4), owner=st.booleans())
    def submit(self, style: str, tags: dict[str, str], group: str, count: int, owner: bool) -> None:
        """Submit an application, or a gang with the requests that replace its placeholders."""
        name = self.next_name("app")
        queue = "root.gangs" if style else "root.owner" if owner else "root.lender"
        size = {"vcore": count} if style else {}
        app = self.apps[name] = application(name, queue, tags=tags, gang=style, gang_size=size)
        if not style:
            self.cluster.submit(app, self.new_ask(group, count))
            return
        placeholder = style != "Atomic"
        self.cluster.submit(app, self.new_ask(group, count, task_group="g", placeholder=placeholder))
        if placeholder:
            self.cluster.run()
            # In another group than the placeholders, at times, so that not all can replace them.
            self.cluster.request(name, self.new_ask("x" if owner else group, count, task_group="g"))

    @rule(count=st.integers(1, 3), tags=TAGS)
    def preempt(self, count: int, tags: dict[str, str]) -> None:
        """Fill the cluster without limits, and let the queue with the guarantee claim some of it."""
        for queue, found, wanted in (("lender", {"rack-spread": "off"}, 16), ("owner", tags, count)):
            app = application(self.next_name("app"), f"root.{queue}", tags=found)
            self.apps[app.id] = app
            self.cluster.submit(app, self.new_ask("", wanted))
            self.cluster.run()
        self.cluster.advance(40)

    @precondition(lambda self: self.cluster.running())
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        """End a task."""
        one = data.draw(st.sampled_from(self.cluster.running()))
        self.cluster.finish(one.application, one.ask)

    @precondition(lambda self: self.apps.keys() - self.withdrawn)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        """Remove an application."""
        name = data.draw(st.sampled_from(sorted(self.apps.keys() - self.withdrawn)))
        self.withdrawn.add(name)
        self.cluster.withdraw(name)

    @rule(rack=st.sampled_from(sorted(RACKS)), cores=st.integers(1, 4))
    def add_node(self, rack: str, cores: int) -> None:
        """Add a node."""
        name = self.next_name("n")
        self.nodes[name], self.cores[name] = rack, cores
        self.cluster.add(host(name, rack, cores))

    @precondition(lambda self: self.nodes)
    @rule(data=st.data())
    def remove_node(self, data: st.DataObject) -> None:
        """Remove a node with its tasks."""
        name = data.draw(st.sampled_from(sorted(self.nodes)))
        del self.nodes[name]
        self.cluster.remove(name)

    @precondition(lambda self: self.nodes)
    @rule(data=st.data(), rack=st.sampled_from(sorted(RACKS)))
    def move_node(self, data: st.DataObject, rack: str) -> None:
        """Move a node with its tasks to another rack."""
        name = data.draw(st.sampled_from(sorted(self.nodes)))
        self.nodes[name] = rack
        self.cluster.change(host(name, rack, self.cores[name]))

    @rule(limits=st.sampled_from([LIMITS, {"rack": 1, "zone": 4}]), owner=st.integers(4, 6))
    def reload(self, limits: dict[str, int], owner: int) -> None:
        """Change the limits, or only the guarantee of a queue."""
        self.limits = limits
        self.cluster.reload(configuration(limits, owner))

    @rule(seconds=st.sampled_from([1, 40, 1000]))
    def pass_time(self, seconds: int) -> None:
        """Let time pass: queues may preempt, and placeholders time out."""
        self.cluster.advance(seconds)

    def recount(self) -> Counter[tuple[tuple[str, str], int, str]]:
        """Return the number of running tasks by application and group, level, and value of the level."""
        found: Counter[tuple[tuple[str, str], int, str]] = Counter()
        for one in self.cluster.running():
            rack = self.nodes[one.node]
            for level, value in enumerate((rack, RACKS[rack])):
                found[(one.application, self.groups[one.ask]), level, value] += 1
        return found

    def most(self, app: str) -> dict[int, int]:
        """Return the limits of an application by level."""
        text = self.apps[app].tags.get("rack-spread")
        found = read_limits(text, ("rack", "zone")) if text else tuple(enumerate(self.limits.values()))
        return dict(found)  # type: ignore[arg-type]

    @invariant()
    def limits_hold(self) -> None:
        """Check that no decision exceeds a limit, and that the books equal a recount."""
        if not hasattr(self, "cluster"):
            return
        before = self.recount()
        self.cluster.run()
        after = self.recount()
        for (group, level, value), count in after.items():
            most = self.most(group[0]).get(level)
            # A moved node and a smaller limit may exceed it; a decision must not.
            assert most is None or count <= max(most, before[group, level, value]), (group, value)
        (plugin,) = Watched.in_use
        assert plugin._tasks == after
        assert not self.cluster.failures

    @invariant()
    def no_request_waits_without_a_reason(self) -> None:
        """Check that each plain request that waits is refused on every free node, unless kept for others."""
        if not hasattr(self, "cluster"):
            return
        counts = self.recount()
        used = Counter(one.node for one in self.cluster.running())
        for app in self.apps.values():
            if app.gang or app.queue_name != "root.lender" or app.id in self.withdrawn:
                continue
            for key, why in self.cluster.why(app.id).items():
                if any(text in str(why) for text in KEPT_FOR_OTHERS):
                    continue
                for name, rack in self.nodes.items():
                    places = enumerate((rack, RACKS[rack]))
                    group, most = (app.id, self.groups[key]), self.most(app.id)
                    assert used[name] >= self.cores[name] or any(
                        level in most and counts[group, level, value] >= most[level]
                        for level, value in places
                    ), f"{key} could be placed on {name}"

    def teardown(self) -> None:
        """Close the cluster, which closes the plugin."""
        if hasattr(self, "cluster"):
            self.cluster.close()
            assert not Watched.in_use


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
