"""Plugins wake policies, from any thread, when something outside the core has changed."""

from __future__ import annotations

import json
import threading
from collections.abc import Hashable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.core.kit import RM
from tests.service.kit import CollectingCallback, work
from tests.service.recording.collecting_listener import CollectingListener
from yunikorn.api import (
    AdmissionPolicy,
    Allocation,
    Application,
    AppSortPolicy,
    Ask,
    Context,
    Node,
    NodeSortPolicy,
    PermitPolicy,
    Plugin,
    Predicate,
    PreemptionCause,
    PreemptionPolicy,
    Queue,
    QueueSortPolicy,
    Quota,
    QuotaPolicy,
    ReservationPolicy,
    Task,
    Wait,
)
from yunikorn.clock import ManualClock, SystemClock
from yunikorn.framework.kinds import ASKED_AGAIN
from yunikorn.interface.messages import RegisterResourceManagerRequest
from yunikorn.interface.scheduler import Scheduler
from yunikorn_service.recording.recording_reader import read_recording
from yunikorn_service.recording.recording_scheduler import RecordingScheduler
from yunikorn_service.recording.recording_writer import RecordingWriter
from yunikorn_service.recording.replayer import Replay
from yunikorn_service.runtime.threaded import ThreadedScheduler
from yunikorn_testing import MakeScheduler, application, ask, node, registry_with


class Outside:
    """A state outside the core, and the contexts of the plugins that read it."""

    is_open: ClassVar[bool] = False
    asked: ClassVar[int] = 0
    contexts: ClassVar[list[Context]] = []

    def opened(self, context: Context) -> None:
        """Keep the context."""
        self.contexts.append(context)

    @classmethod
    def refusal(cls) -> str | None:
        """Return the answer of a plugin that refuses until the state changes."""
        Outside.asked += 1
        return None if Outside.is_open else "closed"


@pytest.fixture(autouse=True)
def closed() -> None:
    """Begin with the state closed."""
    Outside.is_open, Outside.asked = False, 0
    Outside.contexts.clear()


def wake(kind: str, *, times: int = 1, opens: bool = True) -> None:
    """Open what the plugins read, and wake policies of a kind from another thread."""
    Outside.is_open = opens

    def call() -> None:
        for _ in range(times):
            Outside.contexts[-1].wake(kind)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


class PerPair(Outside, Predicate):
    """Declares nothing."""

    name = "outside"

    def check(self, ask: Ask, node: Node) -> str | None:
        """Refuse until the state changes."""
        return self.refusal()


class PerClass(PerPair):
    """Declares the class of requests."""

    name = "outside"

    def ask_class(self, ask: Ask) -> Hashable:
        """Return one class."""
        return None


class PerClasses(PerClass):
    """Declares both classes."""

    name = "outside"

    def node_class(self, node: Node) -> Hashable:
        """Return one class."""
        return None


class PerDomain(PerClass):
    """Keeps books, and declares a domain."""

    name = "outside"

    def domain(self, node: Node) -> Hashable:
        """Return one domain."""
        return "all"

    def placed(self, task: Task, node: Node) -> None:
        """Count nothing."""

    def released(self, task: Task, node: Node) -> None:
        """Count nothing."""


def configuration(**keys: Any) -> str:
    """Return a configuration with these keys of a partition."""
    leaf = {"name": "default", **keys.pop("leaf", {})}
    root = {
        "name": "root",
        "submitacl": "*",
        "queues": [leaf, *keys.pop("leaves", ())],
        **keys.pop("root", {}),
    }
    return json.dumps({"partitions": [{"name": "default", "queues": [root], **keys}]})


PREDICATES = configuration(predicates=["outside"])


@pytest.mark.parametrize("cls", [PerPair, PerClass, PerClasses, PerDomain])
def test_refusals_of_predicates_are_forgotten(scheduler: MakeScheduler, cls: type[Predicate]) -> None:
    cluster = scheduler(PREDICATES, node("n1", vcore=4), node("n2", vcore=4), plugins=[cls])
    cluster.submit(application("app"), ask("one", vcore=1), ask("other", 2, vcore=1))
    assert cluster.run() == []
    Outside.is_open = True
    before = Outside.asked
    assert cluster.run() == []
    assert Outside.asked == before
    wake("predicate")
    assert len(cluster.run()) == 3


def test_a_wake_up_that_changes_nothing_asks_once(scheduler: MakeScheduler) -> None:
    cluster = scheduler(PREDICATES, node("n1", vcore=4), plugins=[PerClasses])
    cluster.submit(application("app"), ask("one", 100, vcore=1))
    cluster.run()
    before = Outside.asked
    wake("predicate", opens=False)
    assert cluster.run() == []
    assert Outside.asked == before + 1
    assert cluster.run() == []
    assert Outside.asked == before + 1


def test_many_calls_are_one_wake_up_per_second(scheduler: MakeScheduler) -> None:
    cluster = scheduler(PREDICATES, node("n1", vcore=4), plugins=[PerClasses])
    cluster.submit(application("app"), ask("one", vcore=1))
    cluster.run()
    wake("predicate", times=10_000, opens=False)
    assert len(cluster.scheduler.wake_requests.pending) == 1
    cluster.run()
    before = Outside.asked
    for _ in range(5):
        wake("predicate", opens=False)
        cluster.run()
    assert Outside.asked == before
    assert cluster.scheduler.next_timer() == cluster.clock.now() + 1_000_000_000
    Outside.is_open = True
    cluster.advance(1)
    assert len(cluster.run()) == 1


def test_a_thread_that_wakes_without_end_does_not_stop_the_time(scheduler: MakeScheduler) -> None:
    cluster = scheduler(PREDICATES, node("n1", vcore=4), plugins=[PerClasses])
    wake("predicate", opens=False)
    now = cluster.clock.now()
    assert cluster.scheduler.next_timer() == now
    cluster.scheduler.fire_timers()
    wake("predicate", opens=False)
    assert cluster.scheduler.next_timer() == now + 1_000_000_000
    cluster.clock.advance(2)
    assert cluster.scheduler.next_timer() == now + 2_000_000_000


@pytest.mark.parametrize("cls", [PerPair, PerClass, PerClasses, PerDomain])
def test_a_node_is_reserved_no_longer_for_a_request_that_is_refused_there(cls: type[Predicate]) -> None:
    Outside.is_open = True
    rm = RM(PREDICATES, registry_with(cls))
    rm.node("n1", vcore=4)
    rm.app("app", "root.default")
    rm.ask("app", "small", vcore=1)
    assert len(rm.schedule()) == 1
    rm.ask("app", "large", vcore=4)
    rm.schedule()
    rm.pass_time(5)
    rm.schedule()

    def holders() -> list[str]:
        return [ask.key for ask in rm.find_node("n1").reservations]

    assert holders() == ["large"]
    wake("predicate")
    rm.schedule()
    assert holders() == ["large"]
    rm.pass_time(5)
    wake("predicate", opens=False)
    rm.schedule()
    assert holders() == []
    rm.pass_time(5)
    wake("predicate")
    rm.schedule()
    assert holders() == ["large"]
    assert rm.failures() == []


class Gate(Outside, AdmissionPolicy):
    """Holds applications."""

    name = "outside"

    def admit(self, app: Application) -> Wait | None:
        """Hold an application until the state changes."""
        return None if self.refusal() is None else Wait(3600, "closed")


class Held(Outside, PermitPolicy):
    """Holds placements."""

    name = "outside"

    @property
    def timeout(self) -> float:
        """Return a long time."""
        return 9000.0

    def permit(self, allocation: Allocation) -> Wait | None:
        """Hold a placement until the state changes."""
        return None if self.refusal() is None else Wait(3600, "closed")


class Nothing(Outside, QuotaPolicy):
    """Allows nothing."""

    name = "outside"

    def quota(self, queue: Queue) -> Quota | None:
        """Return a max of nothing until the state changes."""
        return None if self.refusal() is None else Quota({"vcore": 0}, why="closed")


WITH_QUOTA = configuration(leaf={"properties": {"quota.policy": "outside"}})


@pytest.mark.parametrize(
    ("kind", "cls", "config"),
    [
        ("admission", Gate, configuration(admission=["outside"])),
        ("permit", Held, configuration(permits=["outside"])),
        ("quota", Nothing, WITH_QUOTA),
    ],
)
def test_policies_that_wait_are_asked_at_once(
    scheduler: MakeScheduler, kind: str, cls: type[Plugin], config: str
) -> None:
    cluster = scheduler(config, node("n1", vcore=4), plugins=[cls])
    cluster.submit(application("app"), ask("one", 2, vcore=1))
    cluster.submit(application("other"), ask("two", vcore=1))
    assert cluster.run() == []
    wake(kind)
    assert len(cluster.run()) == 3
    assert cluster.clock.now() < 3_600_000_000_000


class TurnedApps(Outside, AppSortPolicy):
    """Orders applications by the length of their ids."""

    name = "outside"

    def key(self, app: Application) -> int:
        """Return the length, or its negative."""
        return -len(app.id) if Outside.is_open else len(app.id)


class TurnedQueues(Outside, QueueSortPolicy):
    """Orders queues by the length of their paths."""

    name = "outside"

    def key(self, queue: Queue) -> int:
        """Return the length, or its negative."""
        return -len(queue.path) if Outside.is_open else len(queue.path)


class TurnedNodes(Outside, NodeSortPolicy):
    """Orders nodes by the length of their ids."""

    name = "outside"

    def score(self, node: Node) -> float:
        """Return the length, or its negative."""
        return float(-len(node.id) if Outside.is_open else len(node.id))


@pytest.mark.parametrize(
    ("kind", "cls", "config"),
    [
        (
            "app-sort",
            TurnedApps,
            configuration(leaf={"properties": {"application.sort.policy": "outside"}}),
        ),
        (
            "queue-sort",
            TurnedQueues,
            configuration(
                leaves=[{"name": "longer-name"}], root={"properties": {"queue.sort.policy": "outside"}}
            ),
        ),
        ("node-sort", TurnedNodes, configuration(nodesortpolicy={"type": "outside"})),
    ],
)
def test_orders_are_made_again(scheduler: MakeScheduler, kind: str, cls: type[Plugin], config: str) -> None:
    cluster = scheduler(config, node("n1", vcore=4), node("longer", vcore=4), plugins=[cls])
    second = "root.longer-name" if kind == "queue-sort" else "root.default"
    cluster.submit(application("app"), ask("short", 3, vcore=1))
    cluster.submit(application("longer-app", second), ask("long", 3, vcore=1))
    (one,) = cluster.run(1)
    wake(kind)
    (other,) = cluster.run(1)
    if kind == "node-sort":
        assert (one.node, other.node) == ("n1", "longer")
    else:
        assert (one.ask, other.ask) == ("short", "long")


class Shielding(Outside, PreemptionPolicy):
    """Protects everything."""

    name = "outside"

    def protects(self, victim: Allocation, cause: PreemptionCause) -> str | None:
        """Protect until the state changes."""
        return self.refusal()

    def rank(self, victim: Allocation, cause: PreemptionCause) -> int:
        """Return an equal rank for all."""
        return 0


def test_preemption_is_tried_again(scheduler: MakeScheduler) -> None:
    config = configuration(
        preemption={"policy": "outside"},
        leaves=[
            {
                "name": "owner",
                "resources": {"guaranteed": {"vcore": 2}},
                "properties": {"preemption.delay": "1s"},
            }
        ],
    )
    cluster = scheduler(config, node("n1", vcore=2), plugins=[Shielding])
    cluster.submit(application("app"), ask("victim", 2, vcore=1))
    cluster.run()
    cluster.submit(application("owner", "root.owner"), ask("one", 2, vcore=1))
    for _ in range(4):
        cluster.advance(20)
        cluster.run()
    assert Outside.asked
    assert cluster.preempted == []
    wake("preemption")
    cluster.run()
    assert len(cluster.preempted) == 2


class Patient(Outside, ReservationPolicy):
    """Reserves nothing."""

    name = "outside"

    def reserves_after(self, ask: Ask, delay: float | None) -> float | None:
        """Reserve at once, after the state has changed."""
        return 0.0 if self.refusal() is None else None


def test_reservations_are_asked_again(scheduler: MakeScheduler) -> None:
    config = configuration(reservations={"policy": "outside"})
    cluster = scheduler(config, node("n1", vcore=2), plugins=[Patient])
    cluster.submit(application("app"), ask("one", vcore=1))
    cluster.run()
    cluster.submit(application("large"), ask("large", vcore=2))
    cluster.run()
    wake("reservation")
    cluster.run()
    cluster.submit(application("small"), ask("small", vcore=1))
    assert cluster.run() == []


@pytest.mark.parametrize("kind", ["submit", "placement", "user-groups", "event-sink", "", "Predicate", 3])
def test_an_unknown_kind_is_refused_in_the_thread_of_the_plugin(scheduler: MakeScheduler, kind: Any) -> None:
    cluster = scheduler(PREDICATES, plugins=[PerPair])
    with pytest.raises(ValueError, match="kinds: app-sort, "):
        Outside.contexts[-1].wake(kind)
    assert not cluster.scheduler.wake_requests.pending


def test_the_error_names_the_kinds(scheduler: MakeScheduler) -> None:
    scheduler(PREDICATES, plugins=[PerPair])
    with pytest.raises(ValueError, match="sink") as error:
        Outside.contexts[-1].wake("sink")
    assert str(error.value) == (
        "no policies of kind 'sink' are asked again; kinds: app-sort, queue-sort, node-sort, predicate, "
        "preemption, admission, quota, reservation, permit"
    )


@pytest.mark.parametrize("kind", [kind.id for kind in ASKED_AGAIN])
def test_any_kind_may_be_woken_where_no_policy_of_the_kind_is_named(
    scheduler: MakeScheduler, kind: str
) -> None:
    cluster = scheduler(PREDICATES, node("n1", vcore=2), plugins=[PerPair])
    cluster.submit(application("app"), ask("one", vcore=1))
    wake(kind)
    assert len(cluster.run()) == 1
    wake(kind)
    cluster.run()


def test_wake_ups_of_plugins_without_a_partition_have_no_effect(scheduler: MakeScheduler) -> None:
    cluster = scheduler(PREDICATES, plugins=[PerPair])
    context = Outside.contexts[-1]
    cluster.scheduler.stop("test")
    context.wake("predicate")
    cluster.scheduler.schedule()
    assert not cluster.scheduler.wake_requests.pending
    Context("default", lambda: 0).wake("predicate")


class Waking(Outside, Predicate):
    """Wakes itself whenever it is asked."""

    name = "outside"

    def check(self, ask: Ask, node: Node) -> str | None:
        """Refuse and wake."""
        self.contexts[-1].wake("predicate")
        return self.refusal()


def test_a_plugin_that_wakes_itself_is_asked_once_per_second(scheduler: MakeScheduler) -> None:
    cluster = scheduler(PREDICATES, node("n1", vcore=4), plugins=[Waking])
    cluster.submit(application("app"), ask("one", vcore=1))
    cluster.run()
    cluster.run()
    before = Outside.asked
    for _ in range(10):
        cluster.advance(1)
        cluster.run()
    assert Outside.asked - before <= 20


class WakingWhenOpened(PerClasses):
    """Wakes itself as soon as it is opened."""

    name = "outside"

    def opened(self, context: Context) -> None:
        """Wake the predicates."""
        super().opened(context)
        context.wake("predicate")


def test_a_replay_repeats_the_wake_ups_of_the_recording_and_ignores_others(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    writer = RecordingWriter(file, pytest.fail)
    rm = RM(PREDICATES, scheduler=RecordingScheduler(writer, registry_with(PerClasses), ManualClock()))
    rm.node(vcore=4)
    rm.app("app", "root.default")
    rm.ask("app", "one", vcore=1)
    for _ in range(3):
        wake("predicate", opens=False)
        assert not rm.schedule()
        rm.pass_time(2)
    writer.close()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    woken = [line for line in lines if "wake" in line]
    assert [line["wake"] for line in woken] == [{"partition": "default", "kind": "predicate"}] * 3
    assert Outside.asked == 3
    Outside.asked = 0
    listener = CollectingListener()
    replay = Replay(read_recording(file).lines, registry_with(WakingWhenOpened), listener)
    replay.run()
    assert Outside.asked == 3
    assert str(replay.comparison.first or "") == ""
    assert listener.of("rm") == rm.responses


def test_an_idle_core_in_a_thread_is_woken() -> None:
    callback = CollectingCallback()
    config, registry = (
        configuration(predicates=["outside"], leaves=[{"name": "a"}]),
        registry_with(PerClasses),
    )
    with ThreadedScheduler(lambda clock: Scheduler(registry, clock), SystemClock()) as core:
        core.register_resource_manager(RegisterResourceManagerRequest("rm", config=config), callback)
        core.update(work(3))
        core.call(lambda scheduler: None)
        assert Outside.asked
        wake("predicate", times=20_000)
        assert len(callback.allocations(3)) == 3
    Outside.contexts[-1].wake("predicate")
