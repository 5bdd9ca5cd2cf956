"""Life-cycle calls of plugins (opened, reloaded, closed), and the effect of failing ones."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from typing import ClassVar

import attrs
import pytest

from tests.core.kit import RM, configuration, document, partition, queue, with_plugins
from yunikorn.api import (
    AdmissionPolicy,
    Allocation,
    Application,
    AppSortPolicy,
    Ask,
    Context,
    Event,
    EventSink,
    Node,
    NodeSortPolicy,
    PermitPolicy,
    PlacementRule,
    Plugin,
    Predicate,
    PreemptionCause,
    PreemptionPolicy,
    Queue,
    QueueSortPolicy,
    QuotaPolicy,
    ReservationPolicy,
    Submission,
    SubmitPolicy,
    UserGroupResolver,
)
from yunikorn.errors import ConfigError
from yunikorn.framework.registry import Registry

HEARD: list[str] = []
"""Life-cycle calls of the plugins, in order."""
PLUGINS = (
    *("app", "queue", "node", "rule", "condition", "groups", "victims", "reserves", "submission", "gate"),
    *("most", "permits"),
)


class LifeCycleRecorder(Plugin):
    """Records its life-cycle calls, and fails in each if a test sets `fails`, or in one of them."""

    fails: ClassVar[bool] = False
    failing: ClassVar[str] = ""
    """Name of the plugin whose `opened` fails."""

    def opened(self, context: Context) -> None:
        self._note(f"opened in {context.partition}")

    def reloaded(self, context: Context) -> None:
        self._note(f"reloaded in {context.partition}")

    def closed(self) -> None:
        self._note("closed")

    def _note(self, what: str) -> None:
        HEARD.append(f"{self.name} {what}")
        if LifeCycleRecorder.fails or (self.name == LifeCycleRecorder.failing and "opened" in what):
            raise RuntimeError("no \x1b[31mluck")


class App(LifeCycleRecorder, AppSortPolicy):
    """An application order by arrival."""

    name = "app"

    def key(self, app: Application) -> int:
        return 0


@attrs.frozen
class Other(LifeCycleRecorder, AppSortPolicy):
    """Another application order by arrival."""

    name = "other"

    def key(self, app: Application) -> int:
        return 0


class QueueOrder(LifeCycleRecorder, QueueSortPolicy):
    """A queue order by name."""

    name = "queue"

    def key(self, queue: Queue) -> int:
        return 0


class NodeOrder(LifeCycleRecorder, NodeSortPolicy):
    """A node order by id."""

    name = "node"

    def score(self, node: Node) -> float:
        return 0.0


class Rule(LifeCycleRecorder, PlacementRule):
    """A rule with a constant queue."""

    name = "rule"

    def place(self, app: Application) -> str:
        return "root.a"


class Condition(LifeCycleRecorder, Predicate):
    """A predicate without a condition."""

    name = "condition"

    def check(self, ask: Ask, node: Node) -> None:
        return None


class Groups(LifeCycleRecorder, UserGroupResolver):
    """A resolver with one group for all users."""

    name = "groups"

    def groups(self, user: str) -> list[str]:
        return ["all"]


class Victims(LifeCycleRecorder, PreemptionPolicy):
    """A preemption policy without an order."""

    name = "victims"

    def rank(self, victim: Allocation, cause: PreemptionCause) -> int:
        return 0


class Submits(LifeCycleRecorder, SubmitPolicy):
    """A submit policy without a condition."""

    name = "submission"

    def submit(self, app: Submission) -> None:
        return None


class Reserves(LifeCycleRecorder, ReservationPolicy):
    """A reservation policy that restricts nothing."""

    name = "reserves"

    def reserves_after(self, ask: Ask, delay: float | None) -> float | None:
        return delay


class Admits(LifeCycleRecorder, AdmissionPolicy):
    """An admission policy without a condition."""

    name = "gate"

    def admit(self, app: Application) -> None:
        return None


class Most(LifeCycleRecorder, QuotaPolicy):
    """A quota policy that keeps the configured max."""

    name = "most"

    def quota(self, queue: Queue) -> None:
        return None


class Permits(LifeCycleRecorder, PermitPolicy):
    """A permit policy without a condition."""

    name = "permits"

    def permit(self, allocation: Allocation) -> None:
        return None


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    yield
    HEARD.clear()
    LifeCycleRecorder.fails, LifeCycleRecorder.failing = False, ""


@pytest.fixture
def registry() -> Registry:
    return with_plugins(
        app_sort_policies=[App, Other],
        queue_sort_policies=[QueueOrder],
        node_sort_policies=[NodeOrder],
        placement_rules=[Rule],
        predicates=[Condition],
        user_group_resolvers=[Groups],
        preemption_policies=[Victims],
        submit_policies=[Submits],
        admission_policies=[Admits],
        quota_policies=[Most],
        reservation_policies=[Reserves],
        permit_policies=[Permits],
    )


def text(app_sort: str = "app") -> str:
    return configuration(
        queue(
            "p",
            queue("b", properties={"application.sort.policy": app_sort}),
            properties={"queue.sort.policy": "queue"},
        ),
        queue("a", properties={"quota.policy": "most"}),
        nodesortpolicy={"type": "node"},
        placementrules=[{"name": "rule"}],
        predicates=["condition"],
        usergroupresolver={"type": "groups"},
        preemption={"policy": "victims"},
        submitpolicies=["submission"],
        admission=["gate"],
        reservations={"policy": "reserves"},
        permits=["permits"],
    )


def test_every_object_is_opened_once_before_it_is_used(registry: Registry) -> None:
    RM(text(), registry)
    assert sorted(HEARD) == sorted(f"{name} opened in default" for name in PLUGINS)


def test_kept_objects_are_notified_of_a_reload_and_removed_ones_closed(registry: Registry) -> None:
    rm = RM(text(), registry)
    HEARD.clear()
    rm.reload(text("other"))
    stay = (
        *(
            "node",
            "condition",
            "victims",
            "reserves",
            "rule",
            "groups",
            "submission",
            "gate",
            "permits",
            "queue",
        ),
        "most",
    )
    assert [each for each in HEARD if "reloaded" in each] == [f"{name} reloaded in default" for name in stay]
    assert [each for each in HEARD if "reloaded" not in each] == ["other opened in default", "app closed"]


def test_every_object_is_closed_at_the_end(registry: Registry) -> None:
    rm = RM(text(), registry)
    HEARD.clear()
    rm.scheduler.close()
    assert sorted(HEARD) == sorted(f"{name} closed" for name in PLUGINS)


@pytest.mark.parametrize("name", PLUGINS)
def test_a_plugin_that_cannot_be_opened_refuses_the_configuration(registry: Registry, name: str) -> None:
    rm = RM(configuration(), registry)
    before = rm.at_work().config
    LifeCycleRecorder.failing = name
    with pytest.raises(ConfigError, match=rf"plugin {name} of test-plugin \(yunikorn-test 1\.0\): opening: "):
        rm.reload(text())
    assert rm.at_work().config is before
    assert sorted(one.split()[0] for one in HEARD if "opened" in one and not one.startswith(name)) == sorted(
        one.split()[0] for one in HEARD if "closed" in one
    ), "what was opened before the failure is closed"
    with pytest.raises(ConfigError):
        RM(text(), registry, rm_id="other", scheduler=rm.scheduler)
    assert rm.scheduler.session_state("other") == "Stopped"
    LifeCycleRecorder.failing = ""
    assert rm.reload(text())


def test_failing_life_cycle_call_is_reported_and_blocks_nothing(
    registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "yunikorn.plugins")
    rm = RM(text(), registry)
    rm.node("n1", vcore=1000)
    rm.app("app")
    rm.ask("app", "ask", vcore=1000)
    assert len(rm.schedule()) == 1
    LifeCycleRecorder.fails = True
    rm.reload(text().replace('"a"', '"c"'))
    rm.scheduler.close()
    failures = "\n".join(rm.failures())
    for operation in ("reloading", "closing"):
        assert f": {operation}: RuntimeError: no \\x1b[31mluck" in failures


@attrs.define(eq=False)
class Learns(PlacementRule):
    """Places each user in a queue numbered by first appearance, so it has to keep state."""

    name = "learns"
    prefix: str = "q"
    _seen: dict[str, int] = attrs.field(init=False, factory=dict)

    def place(self, app: Application) -> str:
        return f"{self.prefix}{self._seen.setdefault(app.user, len(self._seen))}"


def by_rules(*rules: dict[str, object]) -> str:
    return configuration(queue("a"), placementrules=[{"create": True, **rule} for rule in rules])


def place(rm: RM, user: str) -> str:
    """Return the queue for this user's application."""
    app_id = f"{user}-{len(rm.entries('accepted_applications'))}"
    rm.app(app_id, "", user=user)
    found = rm.find_app(app_id).queue
    assert found is not None
    return found.path


LEARNS: dict[str, object] = {"name": "learns"}
FOR_EVE: dict[str, object] = {
    "name": "fixed",
    "value": "root.a",
    "filter": {"type": "allow", "users": ["eve"]},
}


def test_an_unchanged_rule_keeps_its_state_on_reload() -> None:
    rm = RM(by_rules(LEARNS), with_plugins(placement_rules=[Learns]))
    assert [place(rm, user) for user in ("ann", "bob")] == ["root.q0", "root.q1"]
    rm.reload(by_rules(FOR_EVE, {**LEARNS, "filter": {"type": "deny", "users": ["eve"]}}))
    assert place(rm, "bob") == "root.q1"
    rm.reload(by_rules({**LEARNS, "prefix": "r"}))
    assert place(rm, "bob") == "root.r0"


def test_rule_named_twice_stays_two_objects() -> None:
    parents = {"name": "fixed", "value": "p", "create": True, "parent": {**LEARNS, "create": True}}
    text = by_rules({**LEARNS, "filter": {"type": "allow", "users": ["ann"]}}, LEARNS)
    rm = RM(text, with_plugins(placement_rules=[Learns]))
    assert [place(rm, user) for user in ("ann", "bob")] == ["root.q0", "root.q0"]
    rm.reload(by_rules({**LEARNS, "filter": {"type": "allow", "users": ["ann"]}}, LEARNS, parents))
    assert [place(rm, user) for user in ("eve", "ann")] == ["root.q1", "root.q0"]


def test_rejected_configuration_removes_no_object() -> None:
    rm = RM(by_rules(LEARNS), with_plugins(placement_rules=[Learns]))
    assert [place(rm, user) for user in ("ann", "bob")] == ["root.q0", "root.q1"]
    with pytest.raises(ConfigError, match="nobody"):
        rm.reload(by_rules(LEARNS, {"name": "nobody"}))
    rm.reload(by_rules(LEARNS, FOR_EVE))
    assert place(rm, "bob") == "root.q1"


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("state", ["missing", "disabled", "not opened"])
def test_a_plugin_that_is_not_required_is_left_out_where_it_cannot_be_used(
    registry: Registry, caplog: pytest.LogCaptureFixture, state: str, required: bool
) -> None:
    prefix = "no" if state == "missing" else ""
    config = document(
        partition(
            queue("a"),
            predicates=[{"name": f"{prefix}condition", "required": required}, "node-selector"],
            placementrules=[{"name": f"{prefix}rule", "required": required}, {"name": "provided"}],
            usergroupresolver={"type": f"{prefix}groups", "required": required},
        ),
        plugins={"disable": ["condition", "rule", "groups"] if state == "disabled" else []},
    )
    LifeCycleRecorder.fails = state == "not opened"
    if required:
        with pytest.raises(ConfigError):
            RM(config, registry)
        return
    rm = RM(config, registry)
    rm.node("n1", vcore=1)
    rm.app("app", groups=())
    rm.ask("app", "ask", vcore=1)
    assert len(rm.schedule()) == 1
    warnings = [one.getMessage() for one in caplog.records if "required: false" in one.getMessage()]
    assert len(warnings) == 3
    assert rm.find_app("app").groups == ("user",), "as without a resolver"


class Trouble(LifeCycleRecorder, PlacementRule):
    """Handles its own failure, and reports it."""

    name = "trouble"

    def opened(self, context: Context) -> None:
        self._report = context.report

    def place(self, app: Application) -> str:
        thread = threading.Thread(target=self._report, args=("reading its file again", OSError(app.id)))
        thread.start()
        thread.join()
        return "root.a"


def test_failures_reported_by_a_plugin_are_named_counted_logged_and_events(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR, "yunikorn.plugins")
    received: list[Event] = []

    class Listening(EventSink):
        """A sink that records all events."""

        name = "listening"

        def send(self, batch: Sequence[Event]) -> None:
            received.extend(batch)

    rules = [{"name": "trouble"}]
    whole = document(partition(queue("a"), placementrules=rules), events={"sinks": ["listening"]})
    rm = RM(whole, with_plugins(placement_rules=[Trouble], event_sinks=[Listening]))
    for app_id in ("one", "two"):
        rm.app(app_id)
    (failure,) = rm.scheduler.failures
    reported = "plugin trouble of test-plugin (yunikorn-test 1.0): reading its file again: OSError: one"
    assert (failure.message, failure.count) == (reported, 2)
    assert [record.getMessage() for record in caplog.records] == [reported, reported.replace("one", "two")]
    assert [event.message for event in received if event.type == "PLUGIN"] == [reported]


@pytest.mark.parametrize(("first", "order"), [(True, "closed, opened"), (False, "opened, closed")])
def test_a_plugin_may_ask_that_its_objects_are_closed_before_the_next_is_opened(
    first: bool, order: str
) -> None:
    calls: list[str] = []

    @attrs.frozen
    class Locks(PlacementRule):
        """Locks a file while it is open."""

        name = "locks"
        close_before_open = first
        path: str = "lock"

        def opened(self, context: Context) -> None:
            calls.append(f"opened {self.path}")

        def closed(self) -> None:
            calls.append(f"closed {self.path}")

        def place(self, app: Application) -> str:
            return "root.a"

    rm = RM(by_rules({"name": "locks"}), with_plugins(placement_rules=[Locks]))
    rm.reload(by_rules({"name": "locks", "path": "other"}))
    rm.scheduler.close()
    closing, opening = "closed lock", "opened other"
    between = [closing, opening] if first else [opening, closing]
    assert calls == ["opened lock", *between, "closed other"]
    assert order.startswith(between[0].split()[0])


def test_a_shared_policy_that_is_closed_first_is_opened_again_where_a_queue_still_uses_it() -> None:
    calls: list[str] = []

    @attrs.frozen
    class Locks(AppSortPolicy):
        """Locks a file while it is open."""

        name = "locks"
        close_before_open = True
        path: str = "lock"

        def opened(self, context: Context) -> None:
            calls.append(f"opened {self.path}")

        def closed(self) -> None:
            calls.append(f"closed {self.path}")

        def key(self, app: Application) -> int:
            return 0

    def text(*queues: str) -> str:
        one = {"application.sort.policy": "locks"}
        return configuration(*(queue(name, properties=one) for name in queues), queue("c"))

    rm = RM(text("a"), with_plugins(app_sort_policies=[Locks]))
    rm.node("n1", vcore=1)
    rm.app("app", "root.a")
    rm.ask("app", vcore=1)
    rm.schedule()
    rm.reload(text())
    assert calls == ["opened lock", "closed lock", "opened lock"], "the queue drains"
    rm.scheduler.close()
    assert calls[-1] == "closed lock"
