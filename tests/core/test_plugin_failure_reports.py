"""Failures of each kind of plugin are contained, named and counted, logged, and sent as an event."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pytest

from tests.core.gangs import GangRM
from tests.core.kit import configuration, queue, with_plugins
from yunikorn import api
from yunikorn.framework.kinds import KINDS
from yunikorn.interface.constants import GANG_TOPOLOGY_TAG

Answer = Callable[[], Any]
ORIGIN = "bad of test-plugin (yunikorn-test 1.0)"
APPLICATIONS = {"one": "a", "two": "a", "three": "a", "four": "b", "five": "c"}
"""Queues of the applications; each application is submitted by a user of the same name."""
WRONGED = {"one", "two", "five"}
"""Applications and users for which the plugin answers wrongly."""
FINE = set(APPLICATIONS) - WRONGED
ALL = set(APPLICATIONS)


def raising() -> Any:
    raise RuntimeError("broken")


class Uncomparable:
    """A key that refuses comparison."""

    def __lt__(self, other: object) -> bool:
        raise TypeError("I do not compare")


@attrs.frozen
class Setting:
    """A configuration that uses a plugin called `bad` of one kind."""

    hook: str
    cls: type[api.Plugin]
    placed: set[str]
    """Applications whose asks are placed despite the bad plugin."""
    properties: dict[str, str] = attrs.Factory(dict)
    partition: dict[str, Any] = attrs.Factory(dict)
    sinks: tuple[str, ...] = ()
    topology: str = ""
    """Requirement of the applications, which are gangs, on the topology."""
    ends: bool = False
    """True if tasks end, and others run instead."""


def app_sort(answer: Answer) -> Setting:
    class Bad(api.AppSortPolicy):
        name = "bad"

        def key(self, app: api.Application) -> Any:
            return answer() if app.id in WRONGED else 0

    return Setting("app_sort_policies", Bad, ALL, properties={"application.sort.policy": "bad"})


def queue_sort(answer: Answer) -> Setting:
    class Bad(api.QueueSortPolicy):
        name = "bad"

        def key(self, queue: api.Queue) -> Any:
            return 0 if queue.path == "root.b" else answer()

    return Setting("queue_sort_policies", Bad, ALL, properties={"queue.sort.policy": "bad"})


def node_sort(answer: Answer) -> Setting:
    class Bad(api.NodeSortPolicy):
        name = "bad"

        def score(self, node: api.Node) -> Any:
            return answer()

    return Setting("node_sort_policies", Bad, ALL, partition={"nodesortpolicy": {"type": "bad"}})


def placement(answer: Answer) -> Setting:
    class Bad(api.PlacementRule):
        name = "bad"

        def place(self, app: api.Application) -> Any:
            return answer() if app.id in WRONGED else "root.b"

    return Setting("placement_rules", Bad, FINE, partition={"placementrules": [{"name": "bad"}]})


def predicate(answer: Answer) -> Setting:
    class Bad(api.Predicate):
        name = "bad"

        def check(self, ask: api.Ask, node: api.Node) -> Any:
            return answer() if node.id == "n1" else None

    return Setting("predicates", Bad, ALL, partition={"predicates": ["bad"]})


def event_sink(answer: Answer) -> Setting:
    class Bad(api.EventSink):
        name = "bad"

        def send(self, batch: Sequence[api.Event]) -> None:
            answer()

    return Setting("event_sinks", Bad, ALL, sinks=("bad",))


def user_groups(answer: Answer) -> Setting:
    class Bad(api.UserGroupResolver):
        name = "bad"

        def groups(self, user: str) -> Any:
            return answer() if user in WRONGED else []

    return Setting("user_group_resolvers", Bad, FINE, partition={"usergroupresolver": {"type": "bad"}})


def preemption(answer: Answer) -> Setting:
    class Bad(api.PreemptionPolicy):
        name = "bad"

        def rank(self, victim: api.Allocation, cause: api.PreemptionCause) -> Any:
            return answer()

    return Setting(
        "preemption_policies", Bad, ALL, partition={"preemption": {"policy": "bad", "shrunknodes": True}}
    )


def submit(answer: Answer) -> Setting:
    class Bad(api.SubmitPolicy):
        name = "bad"

        def submit(self, app: api.Submission) -> Any:
            return answer() if app.id in WRONGED else None

    return Setting("submit_policies", Bad, FINE, partition={"submitpolicies": ["bad"]})


def admission(answer: Answer) -> Setting:
    class Bad(api.AdmissionPolicy):
        name = "bad"

        def admit(self, app: api.Application) -> Any:
            return answer() if app.id in WRONGED else None

    return Setting("admission_policies", Bad, FINE, partition={"admission": ["bad"]})


def quota(answer: Answer) -> Setting:
    class Bad(api.QuotaPolicy):
        name = "bad"

        def quota(self, queue: api.Queue) -> Any:
            return answer()

    return Setting("quota_policies", Bad, ALL, properties={"quota.policy": "bad"})


def reservation(answer: Answer) -> Setting:
    class Bad(api.ReservationPolicy):
        name = "bad"

        def reserves_after(self, ask: api.Ask, delay: float | None) -> Any:
            return answer()

    return Setting("reservation_policies", Bad, ALL, partition={"reservations": {"policy": "bad"}})


def permit(answer: Answer) -> Setting:
    class Bad(api.PermitPolicy):
        name = "bad"

        def permit(self, allocation: api.Allocation) -> Any:
            return answer() if allocation.app.id in WRONGED else None

    return Setting("permit_policies", Bad, FINE, partition={"permits": ["bad"]})


def topology(answer: Answer) -> Setting:
    class Bad(api.TopologySource):
        name = "bad"
        levels = ("rack",)

        def path(self, node: api.Node) -> Any:
            return answer()

    return Setting("topology_sources", Bad, ALL, partition={"topology": [{"name": "bad"}]})


def gang_placement(answer: Answer) -> Setting:
    class Bad(api.GangPlacementPolicy):
        name = "bad"

        def rank(self, gang: api.PlacedGang, domain: api.TopologyDomain) -> Any:
            return answer()

    partition = {"topology": ["zone"], "gangplacement": "bad"}
    return Setting("gang_placement_policies", Bad, ALL, partition=partition, topology="zone")


def run_time(answer: Answer) -> Setting:
    class Bad(api.RunTimeEstimator):
        name = "bad"

        def estimate(self, task: api.Task, age: float) -> Any:
            return answer()

    return Setting("run_time_estimators", Bad, ALL, partition={"estimators": ["bad"]}, ends=True)


NAN: Answer = lambda: float("nan")  # noqa: E731
SETTINGS: dict[str, tuple[Callable[[Answer], Setting], dict[str, Answer]]] = {
    "app-sort": (app_sort, {"NaN": NAN, "not comparable": Uncomparable, "wrong type": object}),
    "queue-sort": (queue_sort, {"NaN": NAN, "not comparable": Uncomparable, "wrong type": object}),
    "node-sort": (node_sort, {"NaN": NAN, "not comparable": Uncomparable, "wrong type": lambda: "1"}),
    "placement": (placement, {"wrong type": lambda: 7, "a list": lambda: ["root.a"]}),
    "predicate": (predicate, {"wrong type": lambda: 1, "True": lambda: True}),
    # A sink returns nothing, so raising is its only possible failure.
    "event-sink": (event_sink, {}),
    "user-groups": (user_groups, {"wrong type": lambda: 7, "wrong items": lambda: [1]}),
    "preemption": (preemption, {"NaN": NAN, "not comparable": Uncomparable}),
    "submit": (submit, {"wrong type": lambda: 7, "another id": lambda: api.Submission("x", "y")}),
    "admission": (admission, {"wrong type": lambda: 7, "no number": lambda: api.Wait(float("nan"), "")}),
    "quota": (quota, {"wrong type": lambda: 7, "negative": lambda: api.Quota({"vcore": -1})}),
    "reservation": (reservation, {"NaN": NAN, "wrong type": lambda: "2"}),
    "permit": (permit, {"wrong type": lambda: 7, "no number": lambda: api.Wait(float("nan"), "")}),
    "topology": (
        topology,
        {"too short": list, "wrong type": lambda: 7, "a text": lambda: "r", "wrong items": lambda: [1]},
    ),
    "gang-placement": (
        gang_placement,
        {"NaN": NAN, "wrong type": lambda: "1", "wrong items": lambda: (1, "2"), "nothing": lambda: None},
    ),
    "run-time": (
        run_time,
        {
            "wrong type": lambda: 1.0,
            "NaN": lambda: api.RunTime(1.0, float("nan"), 2.0),
            "negative": lambda: api.RunTime(-1.0, 1.0, 2.0),
            "not ascending": lambda: api.RunTime(1.0, 3.0, 2.0),
        },
    ),
}
CASES = [
    pytest.param(make(answer), id=f"{kind}: {operation}")
    for kind, (make, lies) in SETTINGS.items()
    for operation, answer in {"raises": raising, **lies}.items()
]


def test_every_plugin_kind_is_covered() -> None:
    assert list(SETTINGS) == [kind.id for kind in KINDS]


@pytest.mark.parametrize("setting", CASES)
def test_plugin_failures_are_contained_named_counted_and_visible(
    setting: Setting, caplog: pytest.LogCaptureFixture
) -> None:
    events: list[api.Event] = []

    class EventCollector(api.EventSink):
        name = "collector"

        def send(self, batch: Sequence[api.Event]) -> None:
            events.extend(event for event in batch if event.type == "PLUGIN")

    plugins: dict[str, list[type[Any]]] = {"event_sinks": [EventCollector]}
    plugins.setdefault(setting.hook, []).append(setting.cls)
    # The root queue has no quota of its own, and names no policy for it.
    above = {name: value for name, value in setting.properties.items() if name != "quota.policy"}
    queues = queue("root", *map(queue, "abc"), submitacl="*", properties=above)
    text = json.loads(configuration(**setting.partition))
    text["partitions"][0]["queues"] = [queues]
    for leaf in queues["queues"]:
        leaf["properties"] = setting.properties
    text["events"] = {"sinks": ["collector", *setting.sinks]}

    rm = GangRM(json.dumps(text), with_plugins(**plugins))
    for app_id, where in APPLICATIONS.items():
        if setting.topology:
            rm.gang(app_id, "Atomic", f"root.{where}", tags={GANG_TOPOLOGY_TAG: setting.topology}, vcore=2)
            rm.task(app_id, app_id, "members", 2, vcore=1)
            continue
        rm.app(app_id, f"root.{where}", user=app_id, groups=())
        if rm.state(app_id) != "Rejected":
            rm.ask(app_id, count=2, vcore=1)
    for node_id in ("n1", "n2"):
        rm.node(node_id, {"zone": "z"}, vcore=20)
    rm.schedule()
    rm.app("last", "root.b", user="last", groups=())
    if rm.state("last") != "Rejected":
        # Larger than the cluster: reservation policies are asked about requests that find no node.
        rm.ask("last", "huge", vcore=99)
        rm.schedule()
    if setting.ends:
        for uuid, one in list(rm.running.items())[:2]:
            rm.release(one.application_id, uuid)
    for node_id in ("n1", "n2"):
        rm.change_node(node_id, vcore=1)

    assert {one.application_id for one in rm.running.values()} == setting.placed, "contained"
    failures = list(rm.scheduler.failures)
    assert {failure.plugin for failure in failures} == {ORIGIN}, "named"
    # A sink is disabled after its first failure, so there is no second one.
    assert sum(failure.count for failure in failures) > (0 if setting.sinks else 1), "counted"
    entries = [one for one in caplog.records if one.name == "yunikorn.plugins"]
    assert [one.getMessage() for one in entries] == [failure.message for failure in failures], (
        "in the log, once"
    )
    assert {one.levelno for one in entries} == {logging.ERROR}
    assert [event.message for event in events] == [failure.message for failure in failures], "an event, once"
    assert {event.object_id for event in events} == {ORIGIN}
