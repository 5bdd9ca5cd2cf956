"""Configuration reload at runtime: applied as a whole or not at all (docs/decisions/0011)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from tests.core.kit import RM, configuration, document, partition, queue, with_plugins
from yunikorn import api
from yunikorn.errors import ConfigError, UsageError
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import AllocationAsk
from yunikorn.resources import Resource


def busy(config: str = "", registry: Any = None) -> RM:
    """Return an RM with a full node, where an application has two of four tasks running."""
    rm = RM(config or configuration(queue("a"), queue("b")), registry)
    rm.node(vcore=2)
    rm.app()
    rm.ask(count=4, vcore=1)
    assert len(rm.schedule()) == 2
    return rm


# -- as a whole or not at all ------------------------------------------------------------------------------


def test_equal_text_is_no_reload() -> None:
    text = configuration(queue("a"), queue("b"))
    rm = busy(text)
    assert rm.reload(text) is False
    assert rm.reload(text + "\n") is True


def test_checksum_line_of_the_text_is_ignored() -> None:
    plain = "partitions:\n  - name: default\n    queues:\n      - name: root\n        submitacl: '*'\n"
    rm = RM(plain + "checksum: one\n")
    assert rm.reload(plain + "checksum: two\n") is False


BROKEN = {
    "no YAML": "partitions: [",
    "unknown key": json.dumps({"partitions": [{"name": "default", "nonsense": 1, "queues": []}]}),
    "unknown policy": configuration(queue("new", properties={"application.sort.policy": "nonsense"})),
    "unknown rule": configuration(queue("new"), placementrules=[{"name": "nonsense"}]),
    "unknown predicate": configuration(queue("new"), predicates=["nonsense"]),
    "unknown node sort": configuration(queue("new"), nodesortpolicy={"type": "nonsense"}),
    "bad weight": configuration(
        queue("new"), nodesortpolicy={"type": "fair", "resourceweights": {"vcore": -1}}
    ),
    "quota above its parent": configuration(
        queue(
            "new",
            queue("c", resources={"max": {"memory": "2"}}),
            resources={"max": {"memory": "1"}},
        )
    ),
    "a queue that has applications becomes a parent": configuration(queue("a", queue("c")), queue("new")),
    "an error in another partition": document(partition(queue("new")), partition(queue("."), name="other")),
}


@pytest.mark.parametrize("why", BROKEN)
def test_invalid_configuration_is_rejected_and_the_old_one_stays(why: str) -> None:
    rm = busy()
    rm.take_response()
    with pytest.raises(ConfigError) as refused:
        rm.reload(BROKEN[why])
    assert refused.value.problems
    assert rm.responses == []
    assert [each.path for each in rm.at_work().partition.queues] == ["root", "root.a", "root.b"]
    assert {each.state for each in rm.at_work().partition.queues} == {"Active"}
    rm.app("other", "root.b")
    rm.node("n2", vcore=9)
    rm.ask("other", vcore=1)
    assert sorted(rm.schedule()) == [("app", "ask", "n2"), ("app", "ask", "n2"), ("other", "ask", "n2")]


def test_all_errors_of_a_reload_are_reported_together() -> None:
    rm = busy()
    rm.app("other", "root.b")
    with pytest.raises(ConfigError) as refused:
        rm.reload(configuration(queue("a", queue("c")), queue("b", queue("d"))))
    assert [problem.message for problem in refused.value.problems] == [
        "queue root.a cannot change its type now: it has 1 application, which a parent queue cannot have",
        "queue root.b cannot change its type now: it has 1 application, which a parent queue cannot have",
    ]


class Moody:
    """A plugin that can be created for the check of the text, and fails the second time."""

    left = 0

    def __attrs_post_init__(self) -> None:
        Moody.left -= 1
        if Moody.left < 0:
            raise RuntimeError("not again")


@attrs.define
class MoodyApps(Moody, api.AppSortPolicy):
    name = "moody"

    def key(self, app: api.Application) -> int:
        return app.submitted


@attrs.define
class MoodyQueues(Moody, api.QueueSortPolicy):
    name = "moody"

    def key(self, queue: api.Queue) -> str:
        return queue.path


@attrs.define
class MoodyNodes(Moody, api.NodeSortPolicy):
    name = "moody"

    def score(self, node: api.Node) -> int:
        return 0


@attrs.define
class MoodyPredicate(Moody, api.Predicate):
    name = "moody"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        return None


@attrs.define
class MoodyRule(Moody, api.PlacementRule):
    name = "moody"

    def place(self, app: api.Application) -> str | None:
        return "root.a"


@attrs.define
class MoodySink(Moody, api.EventSink):
    name = "moody"

    def send(self, batch: Sequence[api.Event]) -> None:
        return None


@attrs.define
class MoodyGroups(Moody, api.UserGroupResolver):
    name = "moody"

    def groups(self, user: str) -> list[str]:
        return [user]


def moody_plugins() -> Registry:
    """Return a registry with one such plugin of each kind."""
    return with_plugins(
        app_sort_policies=[MoodyApps],
        queue_sort_policies=[MoodyQueues],
        node_sort_policies=[MoodyNodes],
        predicates=[MoodyPredicate],
        placement_rules=[MoodyRule],
        event_sinks=[MoodySink],
        user_group_resolvers=[MoodyGroups],
    )


MOODY = {
    "app sort": configuration(queue("new", properties={"application.sort.policy": "moody"}), queue("b")),
    "queue sort": configuration(
        queue("new", queue("c"), properties={"queue.sort.policy": "moody"}), queue("b")
    ),
    "node sort": configuration(queue("new"), queue("b"), nodesortpolicy={"type": "moody"}),
    "predicate": configuration(queue("new"), queue("b"), predicates=["moody"]),
    "placement": configuration(queue("new"), queue("b"), placementrules=[{"name": "moody"}]),
    "sink": document(partition(queue("new"), queue("b")), events={"sinks": ["moody"]}),
    "resolver": configuration(queue("new"), queue("b"), usergroupresolver={"type": "moody"}),
    "new partition": document(
        partition(queue("new"), queue("b")),
        partition(queue("c", properties={"application.sort.policy": "moody"}), name="other"),
    ),
}


@pytest.mark.parametrize("made", [0, 1, 2])
@pytest.mark.parametrize("kind", MOODY)
def test_plugin_that_cannot_be_created_rejects_the_reload(kind: str, made: int) -> None:
    rm = busy(registry=moody_plugins())
    Moody.left = made
    try:
        rm.reload(MOODY[kind])
    except ConfigError as error:
        refusal = str(error)
    else:
        assert Moody.left >= 0
        assert rm.at_work().partition.queue("root.new") is not None
        return
    assert "moody of test-plugin" in refusal
    assert "not again" in refusal
    assert [each.path for each in rm.at_work().partition.queues] == ["root", "root.a", "root.b"]
    assert rm.scheduler.partition("rm", "other") is None
    rm.app("other", "root.b")
    rm.node("n2", vcore=9)
    assert len(rm.schedule()) == 2


# -- every kind of change -----------------------------------------------------------------------------------


def test_queues_are_added_and_removed() -> None:
    rm = busy()
    rm.reload(configuration(queue("a"), queue("c", queue("d"))))
    assert [(each.path, each.state) for each in rm.at_work().partition.queues] == [
        ("root", "Active"),
        ("root.a", "Active"),
        ("root.b", "Draining"),
        ("root.c", "Active"),
        ("root.c.d", "Active"),
    ]


def test_empty_queue_may_change_its_type_and_back() -> None:
    rm = busy()
    for config, leaf in (
        (configuration(queue("a"), queue("b", queue("c"))), "root.b.c"),
        (configuration(queue("a"), queue("b")), "root.b"),
    ):
        if leaf == "root.b":
            rm.reload(configuration(queue("a"), queue("b", parent=True)))
            rm.pass_time(60)
        rm.reload(config)
        rm.app(leaf, leaf)
        rm.ask(leaf, vcore=1)
        rm.node(leaf, vcore=9)
        assert (leaf, "ask", leaf) in rm.schedule()
        rm.remove_app(leaf)


def test_quotas_and_guarantees_change() -> None:
    rm = busy()
    limits = {"max": {"vcore": "3m"}, "guaranteed": {"vcore": "1m"}}
    rm.reload(configuration(queue("a", resources=limits), queue("b")))
    assert rm.find_queue().max == {"vcore": 3}
    assert rm.find_queue().guaranteed == {"vcore": 1}
    rm.node("n2", vcore=9)
    assert len(rm.schedule()) == 1
    rm.reload(configuration(queue("a"), queue("b")))
    assert rm.find_queue().max is None
    assert rm.find_queue().guaranteed == {}
    assert len(rm.schedule()) == 1


def test_acls_change() -> None:
    def config(acl: str) -> str:
        found = json.loads(configuration(queue("a", submitacl=acl)))
        del found["partitions"][0]["queues"][0]["submitacl"]
        return json.dumps(found)

    rm = RM(config("jane"))
    for number, (user, acl) in enumerate([("jane", "jane"), ("john", "jane"), ("john", "john")]):
        rm.reload(config(acl))
        rm.app(f"app{number}", user=user)
    assert [rm.state(f"app{number}") for number in range(3)] == ["New", "Rejected", "New"]


def test_placement_rules_change() -> None:
    rm = busy()
    rules = [{"name": "fixed", "value": "root.b"}]
    rm.reload(configuration(queue("a"), queue("b"), placementrules=rules))
    rm.app("other", "root.a")
    assert rm.find_app("other").queue is rm.find_queue("root.b")
    assert rm.find_app().queue is rm.find_queue("root.a"), "who is placed stays there"


def test_resolver_changes() -> None:
    class Groups(api.UserGroupResolver):
        name = "lab"

        def groups(self, user: str) -> list[str]:
            return ["lab"]

    rm = busy(registry=with_plugins(user_group_resolvers=[Groups]))
    rm.reload(configuration(queue("a"), queue("b"), usergroupresolver={"type": "lab"}))
    rm.app("other", groups=())
    assert list(rm.find_app("other").groups) == ["lab"]


def test_predicates_change_and_their_answers_are_dropped() -> None:
    rm = RM(configuration(predicates=["node-selector"]))
    rm.node("n1", {"zone": "a"}, vcore=9)
    rm.app()
    rm.ask(vcore=1, tags={"yunikorn.apache.org/node-selector": "zone=b"})
    assert rm.schedule() == []
    rm.reload(configuration())
    assert rm.schedule() == [("app", "ask", "n1")]
    rm.reload(configuration(predicates=["node-selector"]))
    rm.ask(key="more", vcore=1, tags={"yunikorn.apache.org/node-selector": "zone=b"})
    assert rm.schedule() == []
    rm.reload(configuration(predicates=["taints"]))
    assert rm.schedule() == [("app", "more", "n1")]


def test_sinks_change() -> None:
    received: list[str] = []

    @attrs.frozen
    class Named(api.EventSink):
        name = "named"
        label: str

        def opened(self, context: api.Context) -> None:
            received.append(f"{self.label} opened")

        def reloaded(self, context: api.Context) -> None:
            received.append(f"{self.label} reloaded")

        def closed(self) -> None:
            received.append(f"{self.label} closed")

        def send(self, batch: Sequence[api.Event]) -> None:
            received.append(f"{self.label} received events")

    def config(*labels: str) -> str:
        sinks = [{"name": "named", "label": label} for label in labels]
        return document(partition(queue("a")), events={"sinks": sinks})

    rm = RM(config("one", "two"), with_plugins(event_sinks=[Named]))
    received.clear()
    rm.reload(config("two", "three"))
    assert [entry for entry in received if "received" not in entry] == [
        "one closed",
        "two reloaded",
        "three opened",
    ]
    received.clear()
    rm.app()
    assert received == ["two received events", "three received events"]


def test_a_plugin_may_be_disabled_and_enabled_again() -> None:
    plain = partition(queue("a", properties={"application.sort.policy": "fair"}))
    rm = RM(document(plain))
    with pytest.raises(ConfigError, match=r"app-sort:fair|disabled"):
        rm.reload(document(plain, plugins={"disable": ["app-sort:fair"]}))
    rm.reload(document(partition(queue("a")), plugins={"disable": ["app-sort:fair"]}))
    rm.node(vcore=1)
    rm.app()
    rm.ask(vcore=1)
    assert len(rm.schedule()) == 1
    rm.reload(document(plain))
    assert rm.find_queue().settings.app_sort == "fair"


def test_priority_classes_change() -> None:
    rm = RM(document(partition(queue("a")), priorityclasses={"high": 10}))
    rm.reload(document(partition(queue("a")), priorityclasses={"high": 20}))
    rm.app()
    rm.update(asks=[ask_of_class("high")])
    assert rm.find_app().priority == 20


def ask_of_class(priority_class: str) -> AllocationAsk:
    return AllocationAsk("ask", "app", resource_ask=Resource(vcore=1), priority_class_name=priority_class)


def test_partitions_are_added_and_removed() -> None:
    both = document(partition(queue("a")), partition(queue("a"), name="other"))
    rm = RM(document(partition(queue("a"))))
    rm.reload(both)
    rm.node("n1", vcore=1)
    rm.node("n2", {"si/node-partition": "other"}, vcore=1)
    for name in ("default", "other"):
        rm.app(name, partition_name=name)
        rm.ask(name, vcore=1, partition_name=name)
    assert sorted(rm.schedule()) == [("default", "ask", "n1"), ("other", "ask", "n2")]
    rm.reload(document(partition(queue("a"))))
    assert [one.application_id for one in rm.running.values()] == ["default"]
    rm.reload(both)
    assert not rm.at_work("other").partition.nodes
    assert not rm.at_work("other").partition.applications


def test_removed_partition_is_reported_to_its_rm_before_removal() -> None:
    both = document(partition(queue("a")), partition(queue("a"), name="other"))
    rm = RM(both)
    rm.node("n2", {"si/node-partition": "other"}, vcore=1)
    rm.app("there", partition_name="other")
    rm.ask("there", count=2, vcore=1, partition_name="other")
    rm.schedule()
    rm.take_response()
    rm.reload(document(partition(queue("a"))))
    received = rm.take_response()
    assert [one.state for one in received.updated_applications] == ["Failing", "Failed"]
    assert [one.application_id for one in received.released_allocations] == ["there"]
    assert [one.allocation_key for one in received.released_allocation_asks] == ["ask"]
    assert {one.partition_name for one in received.released_allocations} == {"other"}


def test_a_reload_retries_all_pending_asks() -> None:
    rm = RM(configuration(queue("a", resources={"max": {"vcore": "1m"}}), queue("b")))
    rm.node(vcore=9)
    rm.app()
    rm.ask(count=3, vcore=1)
    assert len(rm.schedule()) == 1
    # No relevant change; later usage falls, and the quota has room again.
    rm.reload(configuration(queue("a", resources={"max": {"vcore": "1m"}}), queue("c")))
    assert rm.schedule() == []
    rm.release(uuid=next(iter(rm.running)))
    assert len(rm.schedule()) == 1


def test_dynamic_queue_gets_the_default_order_if_its_own_cannot_be_created() -> None:
    top = {
        "name": "root",
        "submitacl": "*",
        "childtemplate": {"properties": {"application.sort.policy": "moody"}},
    }
    rules = [{"name": "user", "create": True}]
    config = json.dumps({"partitions": [{"name": "default", "queues": [top], "placementrules": rules}]})
    Moody.left = 1
    rm = RM(config, with_plugins(app_sort_policies=[MoodyApps]))
    rm.app(user="jane")
    rm.ask(vcore=1)
    rm.node(vcore=1)
    assert rm.schedule() == [("app", "ask", "n1")]
    (failure,) = rm.failures()
    assert "creating it (fifo is used instead)" in failure
    assert "moody of test-plugin" in failure


@pytest.mark.parametrize("made", [0, 1])
@pytest.mark.parametrize("kind", MOODY)
def test_plugin_that_cannot_be_created_fails_the_registration(kind: str, made: int) -> None:
    rm = RM(rm_id="first", registry=moody_plugins())
    Moody.left = made
    try:
        RM(MOODY[kind], rm_id="second", scheduler=rm.scheduler)
    except ConfigError as error:
        refusal = str(error)
    else:
        assert Moody.left >= 0
        return
    assert "moody of test-plugin" in refusal
    with pytest.raises(UsageError, match="registered: first"):
        rm.scheduler.stop("second")
