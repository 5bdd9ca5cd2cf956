"""Statistics of plugins: what is counted, at what price, and without any effect on decisions."""

from __future__ import annotations

import dataclasses
import logging
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, ClassVar

import attrs
import pytest

from tests.core.kit import RM, configuration, document, partition, queue, with_plugins
from yunikorn.api import (
    Application,
    AppSortPolicy,
    Ask,
    AskClass,
    Event,
    EventSink,
    Node,
    NodeSortPolicy,
    Plugin,
    Predicate,
)
from yunikorn.clock import ManualClock
from yunikorn.framework.kinds import APP_SORT, NODE_SORT, PREDICATE, PluginKind
from yunikorn.framework.registry import Registry
from yunikorn.interface.scheduler import Scheduler
from yunikorn_service.buffered_sinks import BufferedSinks
from yunikorn_service.core_activity import core_activity
from yunikorn_service.method_meters import FIRST, MethodUse
from yunikorn_service.plugin_statistics import PluginStatistics
from yunikorn_service.watchdog import log_statistics

ORIGIN = "odd of test-plugin (yunikorn-test 1.0)"


class Stopwatch:
    """Time that passes only when a test lets it pass."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


WATCH = Stopwatch()


@pytest.fixture
def statistics() -> PluginStatistics:
    return PluginStatistics(WATCH)


@attrs.frozen
class Odd(Predicate):
    """Refuses requests with odd keys; every call takes a millisecond."""

    name = "odd"

    def check(self, ask: Ask, node: Node) -> str | None:
        WATCH.now += 1_000_000
        return "odd" if int(ask.key) % 2 else None


def counted(plugin: Plugin, kind: PluginKind, statistics: PluginStatistics) -> Any:
    statistics.count(plugin, kind, ORIGIN)
    return plugin


@attrs.frozen
class Key:
    """Ask of a test."""

    key: str


def test_calls_and_refusals_are_counted_exactly_and_time_is_sampled(statistics: PluginStatistics) -> None:
    odd = counted(Odd(), PREDICATE, statistics)
    for number in range(FIRST):
        odd.check(Key(str(number)), None)
    assert list(statistics) == [MethodUse(ORIGIN, "predicate", "check", 64, 0.064, 32)]
    for number in range(FIRST * 100 + 21):
        odd.check(Key(str(number)), None)
    (use,) = statistics
    assert (use.calls, use.refusals) == (6485, 32 + 3210)
    assert use.seconds == pytest.approx(6.485)
    assert str(use) == f"{ORIGIN}: check: 6,485 calls, 6.49 s (1e+03 µs each), 3,242 refusals"


def test_answers_exceptions_and_signatures_are_those_of_the_plugin(statistics: PluginStatistics) -> None:
    odd = counted(Odd(), PREDICATE, statistics)
    assert odd.check(Key("1"), node=None) == "odd"
    with pytest.raises(ValueError, match="invalid literal"):
        odd.check(Key("one"), None)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        odd.check(Key("1"))
    assert isinstance(odd, Odd)
    assert type(odd).__name__ == "Odd"
    assert attrs.has(type(odd))


@attrs.frozen
class Frozen(AppSortPolicy):
    name = "frozen"
    size: int = 1

    def key(self, app: Application) -> int:
        return self.size


@attrs.define(slots=False)
class WithDict(Frozen):
    name = "with-dict"


@dataclasses.dataclass(frozen=True)
class DataClass(AppSortPolicy):
    name = "data-class"
    size: int = 1

    def key(self, app: Application) -> int:
        return self.size


class Plain(AppSortPolicy):
    name = "plain"

    def key(self, app: Application) -> int:
        return 1


@pytest.mark.parametrize("cls", [Frozen, WithDict, DataClass, Plain])
def test_classes_of_every_form_are_counted(cls: Callable[[], Plugin], statistics: PluginStatistics) -> None:
    policies = [counted(cls(), APP_SORT, statistics) for _ in range(2)]
    assert [policy.key(None) for policy in policies] == [1, 1]
    (use,) = statistics
    assert (use.method, use.calls) == ("key", 2)


class Sealed(AppSortPolicy):
    """Permits no derived class."""

    name = "sealed"

    def __init_subclass__(cls) -> None:
        raise TypeError("sealed")

    def key(self, app: Application) -> int:
        return 1


def test_class_that_permits_no_derived_class_works_uncounted(statistics: PluginStatistics) -> None:
    assert counted(Sealed(), APP_SORT, statistics).key(None) == 1
    assert list(statistics) == []


@attrs.frozen
class ByShape(NodeSortPolicy):
    """Scores depend on the request."""

    name = "by-shape"
    seen: ClassVar[list[object]] = []

    def score(self, node: Node, ask_class: AskClass) -> float:
        self.seen.append(ask_class)
        return 0.0


TEXT = configuration(
    queue("a", properties={"application.sort.policy": "fair"}),
    nodesortpolicy={"type": "by-shape"},
    predicates=["odd"],
)


def run(scheduler: Scheduler) -> list[tuple[str, str, str]]:
    rm = RM(TEXT, scheduler=scheduler)
    rm.node("n1", vcore=20)
    rm.node("n2", vcore=20)
    for app in ("x", "y"):
        rm.app(app)
        for number in range(20):
            rm.ask(app, str(number), vcore=1 + number % 3)
    decided = rm.schedule()
    assert rm.failures() == []
    return decided


@pytest.fixture
def registry() -> Registry:
    return with_plugins(predicates=[Odd], node_sort_policies=[ByShape])


def test_decisions_are_the_same_with_statistics(registry: Registry, statistics: PluginStatistics) -> None:
    plain = run(Scheduler(registry, ManualClock()))
    assert len(plain) > 10
    assert run(Scheduler(registry.counting(statistics), ManualClock())) == plain
    assert {(use.kind, use.method) for use in statistics} >= {
        ("app-sort", "key"),
        ("node-sort", "score"),
        ("predicate", "check"),
    }
    assert ByShape.seen
    assert sum(use.refusals for use in statistics) > 0


class Hidden(Odd):
    """As `Odd`, in a way that shows nothing about its inputs; fails for some requests."""

    name = "hidden"

    def check(self, ask: Ask, node: Node) -> str | None:
        if int(ask.key) == 17:
            raise ValueError("seventeen")
        return super().check(ask, node) if node.id != "n3" else "not there"


class Hidden2(Hidden):
    """Another one."""

    name = "hidden2"

    def check(self, ask: Ask, node: Node) -> str | None:
        return "no" if int(ask.key) % 4 == 2 and node.id == "n1" else None


class Remote(Hidden):
    """Asked about many nodes at once."""

    name = "remote"
    asks_ahead = True

    def check(self, ask: Ask, node: Node) -> str | None:
        return Odd().check(ask, node)


class Even(Predicate):
    """Shows what its answers depend on."""

    name = "even"

    def check(self, ask: Ask, node: Node) -> str | None:
        return "even" if ask.priority == 1 and node.id == "n2" else None


@pytest.mark.parametrize(
    "names",
    [
        "hidden",
        "hidden hidden2",
        "even",
        "even hidden",
        "remote",
        "remote hidden2",
        "taints hidden",
        "odd even",
    ],
)
def test_counts_of_predicates_are_exact_in_every_combination(
    names: str, statistics: PluginStatistics
) -> None:
    classes = [Odd, Hidden, Hidden2, Even, Remote]
    registry = with_plugins(predicates=classes).counting(statistics)
    calls: dict[Any, int] = {one.check.__code__: 0 for one in classes}
    refusals = dict(calls)

    def count(frame: FrameType, event: str, answer: object) -> None:
        caller = frame.f_back
        if frame.f_code in calls and (caller is None or caller.f_code not in calls):
            calls[frame.f_code] += event == "call"
            refusals[frame.f_code] += event == "return" and answer is not None

    scheduler = Scheduler(registry, ManualClock())
    rm = RM(configuration(queue("a"), predicates=names.split()), scheduler=scheduler)
    for number in range(1, 50):
        rm.node(f"n{number}", vcore=1 + number % 3)
    rm.app("x")
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        for number in range(FIRST + 6):
            rm.ask("x", str(number), vcore=1, priority=number % 2)
        rm.schedule()
        rm.pass_time(2)
        rm.schedule()
        scheduler.explain(rm.rm_id, "default", "x")
    finally:
        sys.setprofile(before)
    uses = {use.plugin.partition(" ")[0]: use for use in statistics if use.method == "check"}
    for cls in classes:
        use = uses.get(cls.name)
        expected = calls[cls.check.__code__], refusals[cls.check.__code__]
        assert (use and (use.calls, use.refusals)) == (expected if expected[0] else None)
    assert set(names.split()) - {"taints"} <= set(uses)


def test_without_statistics_objects_have_their_own_class(registry: Registry) -> None:
    rm = RM(TEXT, registry)
    assert {type(one.plugin) for one in rm.at_work().instances} >= {Odd, ByShape}


def test_hanging_plugin_is_named_with_statistics(registry: Registry, statistics: PluginStatistics) -> None:
    scheduler = Scheduler(registry.counting(statistics), ManualClock())
    found: list[object] = []

    class Looking(Stopwatch):
        def __call__(self) -> int:
            return 0

    original = ByShape.seen

    class Seen(list[object]):
        def append(self, one: object) -> None:
            found.append(core_activity(threading.get_ident(), scheduler.origin_of))

    ByShape.seen = Seen()
    try:
        run(scheduler)
    finally:
        ByShape.seen = original
    assert "plugin by-shape of test-plugin (yunikorn-test 1.0): score" in str(found[0])


class Counting(EventSink):
    """Receives events."""

    name = "counting"

    def send(self, batch: Sequence[Event]) -> None:
        pass


@pytest.mark.parametrize("buffers", [None, BufferedSinks()])
def test_sinks_are_counted(buffers: BufferedSinks | None, statistics: PluginStatistics) -> None:
    registry = with_plugins(event_sinks=[Counting]).counting(statistics)
    scheduler = Scheduler(registry, ManualClock(), buffer_sinks=buffers)
    rm = RM(document(partition(queue("a")), events={"sinks": ["counting"]}), scheduler=scheduler)
    rm.node("n1", vcore=1)
    rm.scheduler.close()
    (use,) = statistics
    assert (use.kind, use.method) == ("event-sink", "send")
    assert use.calls > 0


@pytest.fixture
def info(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO, "yunikorn.plugins"):
        yield caplog


def test_statistics_are_logged_with_their_numbers(
    statistics: PluginStatistics, info: pytest.LogCaptureFixture
) -> None:
    counted(Plain(), APP_SORT, statistics).key(None)
    log_statistics(statistics)
    (record,) = info.records
    assert record.getMessage() == f"{ORIGIN}: key: 1 call, 0 s (0 µs each)"
    assert record.__dict__["statistics"] == {
        "plugin": ORIGIN,
        "kind": "app-sort",
        "method": "key",
        "calls": 1,
        "seconds": 0.0,
        "refusals": 0,
    }
    assert NODE_SORT.refusing == ()
