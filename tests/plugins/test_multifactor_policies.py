"""Sort policies of others as factors of `multifactor`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import attrs
import pytest

from tests.core.kit import RM, Tree, configuration, document, partition, plugin_with, queue, with_plugins
from yunikorn.api import Application, AppSortPolicy, Ask, Context, Node, Queue, QueueSortPolicy, Task
from yunikorn.config.load import load_config
from yunikorn.errors import ConfigError, OptionError
from yunikorn.framework.kinds import APP_SORT, QUEUE_SORT
from yunikorn.framework.registry import Registry
from yunikorn_commands.plugin_uses import plugin_uses
from yunikorn_policies.multifactor import Multifactor
from yunikorn_service.plugin_statistics import PluginStatistics
from yunikorn_testing import application


class Log(AppSortPolicy):
    """Keeps a log of its life cycle."""

    calls: ClassVar[list[str]] = []
    failing: ClassVar[str] = ""
    key_range = (0.0, 10.0)

    def _note(self, call: str) -> None:
        self.calls.append(f"{self.name} {call}")
        if self.failing == f"{self.name} {call}":
            raise RuntimeError("out of paper")

    def key(self, app: Application) -> Any:
        return float(app.tags.get("level", "0"))

    def opened(self, context: Context) -> None:
        self._note("opened")

    def reloaded(self, context: Context) -> None:
        self._note("reloaded")

    def closed(self) -> None:
        self._note("closed")


class Level(Log):
    """Orders by a tag."""

    name = "level"


@attrs.frozen
class Service(Log):
    """Orders by recent usage."""

    name = "service"
    half_life: float | None = None
    top: float = 1000.0
    refresh_every = 20.0

    @property
    def key_range(self) -> tuple[float, float]:  # type: ignore[override]
        return 0.0, self.top

    def key(self, app: Application) -> float:
        return app.past.recent.get("vcore", 0.0)


class Odd(Log):
    """Orders by whatever a test sets."""

    name = "odd"
    by: ClassVar[Callable[[Application], Any]]

    def key(self, app: Application) -> Any:
        return type(self).by(app)


class Rangeless(AppSortPolicy):
    """Orders by arrival."""

    name = "rangeless"

    def key(self, app: Application) -> int:
        return app.arrival


class Books(Level):
    """Keeps books."""

    name = "books"

    def placed(self, task: Task, node: Node) -> None:
        """Add nothing."""

    def released(self, task: Task, node: Node) -> None:
        """Remove nothing."""


class Requests(Level):
    """Orders requests."""

    name = "requests"

    def ask_key(self, ask: Ask) -> int:
        return ask.priority


class Classes(Level):
    """Has admission classes."""

    name = "classes"

    def admission_class(self, app: Application) -> bool:
        return True


def registry() -> Registry:
    return with_plugins(app_sort_policies=[Level, Service, Odd, Rangeless, Books, Requests, Classes])


@pytest.fixture(autouse=True)
def _fresh() -> None:
    Log.calls.clear()
    Log.failing = ""


def leaf(name: str = "a", **options: str) -> Tree:
    prefix = "application.sort.policy"
    found = {f"{prefix}.{option.replace('__', '.')}": value for option, value in options.items()}
    return queue(name, properties={prefix: "multifactor", **found})


def cluster(**options: str) -> RM:
    return RM(configuration(leaf(**options)), registry())


def submit(rm: RM, app_id: str, level: str, priority: int = 0) -> None:
    rm.app(app_id, level=level)
    rm.ask(app_id, priority=priority, vcore=1)


def served(rm: RM) -> list[str]:
    rm.node(vcore=100)
    return [app_id for app_id, _, _ in rm.schedule()]


def made(**options: str) -> Any:
    texts = {option.replace("__", "."): value for option, value in options.items()}
    return registry().make(APP_SORT, "multifactor", texts, comma_lists=True)


# -- keys as factors ---------------------------------------------------------------------------------------


def test_the_smallest_key_is_the_largest_factor() -> None:
    policy = made(weights="level=100", factors="level")
    keys = [policy.key(application(tags={"level": text})) for text in ("0", "2.5", "10", "99", "-1")]
    assert keys == [-100.0, -75.0, 0.0, 0.0, -100.0]
    assert policy.key_range == (-100.0, 0.0)


def test_factors_weigh_against_each_other() -> None:
    rm = cluster(weights="level=100, priority=60", factors="level", top_priority="10")
    rm.reload(configuration(leaf(weights="level=100, priority=60", factors="level", top_priority="10")))
    for app_id, level, priority in (("high", "8", 0), ("low", "2", 0), ("urgent", "5", 10)):
        submit(rm, app_id, level, priority)
    assert served(rm) == ["urgent", "low", "high"]


def test_one_policy_may_be_several_factors_with_options_of_their_own() -> None:
    policy = made(
        weights="short=1, long=2",
        factors="short=service, long = service",
        factors__short__top="10",
        factors__long__top="100",
    )
    assert {name: one.top for name, one in policy.factors.items()} == {"short": 10.0, "long": 100.0}


def test_a_weighted_sum_may_be_a_factor() -> None:
    policy = made(
        weights="inner=10",
        factors="inner=multifactor",
        factors__inner__weights="level=1",
        factors__inner__factors="level",
    )
    assert policy.key(application(tags={"level": "5"})) == -5.0


def test_intervals_and_half_lives_are_passed_on() -> None:
    assert made(weights="level=1", factors="level").refresh_every is None
    assert made(weights="level=1, age=1", factors="level").refresh_every == 60.0
    policy = made(weights="service=1, age=1", factors="service", factors__service__half_life="30")
    assert (policy.refresh_every, policy.half_life) == (20.0, 30.0)
    assert made(weights="service=1, fair-share=1", factors="service", usage_half_life="9").half_life == 9.0


def test_usage_is_recorded_for_a_factor() -> None:
    rm = cluster(weights="service=1", factors="service", factors__service__half_life="1000000")
    submit(rm, "app", "0")
    served(rm)
    rm.pass_time(10)
    assert rm.find_app().past.recent["vcore"] == pytest.approx(10.0, rel=1e-3)
    assert rm.failures() == []


def test_calls_of_factors_are_counted() -> None:
    statistics = PluginStatistics(lambda: 0)
    counting = registry().counting(statistics)
    rm = RM(configuration(leaf(weights="level=1", factors="level")), counting)
    for app_id in ("one", "two"):
        submit(rm, app_id, "1")
    served(rm)
    assert {use.plugin.partition(" ")[0] for use in statistics} >= {"level", "multifactor"}


# -- life cycle --------------------------------------------------------------------------------------------


def test_factors_live_as_long_as_the_policy() -> None:
    options = {"weights": "level=1, service=1", "factors": "level, service"}
    rm = cluster(**options)
    assert Log.calls == ["level opened", "service opened"]
    rm.reload(configuration(leaf(**options), queue("b")))
    assert Log.calls[2:] == ["level reloaded", "service reloaded"]
    rm.reload(configuration(queue("a")))
    assert sorted(Log.calls[4:]) == ["level closed", "service closed"]


def test_a_factor_that_fails_to_open_closes_those_before() -> None:
    Log.failing = "service opened"
    with pytest.raises(ConfigError, match="out of paper"):
        cluster(weights="level=1, service=1", factors="level, service")
    assert Log.calls == ["level opened", "service opened", "level closed"]


def test_all_factors_are_closed_if_one_fails() -> None:
    rm = cluster(weights="level=1, service=1", factors="level, service")
    Log.failing = "service closed"
    rm.reload(configuration(queue("a")))
    assert sorted(Log.calls[2:]) == ["level closed", "service closed"]
    assert "out of paper" in rm.failures()[0]


class OtherLevel(Level):
    """Orders the other way round."""

    name = "level"

    def key(self, app: Application) -> float:
        return 10.0 - float(app.tags["level"])


def test_a_reload_that_changes_the_class_of_a_factor_makes_a_new_object() -> None:
    both = registry()
    assert both.register(plugin_with(app_sort_policies=[OtherLevel]), "other-plugin", "yunikorn-other", "1.0")

    def with_level_of(source: str) -> str:
        tree = partition(leaf(weights="level=1", factors="level"))
        return document(tree, plugins={"override": [f"level@{source}"]})

    rm = RM(with_level_of("yunikorn-test"), both)
    for app_id, level in (("low", "1"), ("high", "9")):
        submit(rm, app_id, level)
    before = rm.find_queue().order.policy
    rm.reload(with_level_of("yunikorn-other"))
    assert rm.find_queue().order.policy is not before
    assert served(rm) == ["high", "low"]


def test_a_disabled_policy_is_no_factor() -> None:
    tree = partition(leaf(weights="level=1", factors="level"))
    with pytest.raises(ConfigError, match="'level' is disabled"):
        RM(document(tree, plugins={"disable": ["level"]}), registry())


# -- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "place", "words"),
    [
        ({"factors": "rangeless"}, "", "key_range"),
        ({"factors": "fifo"}, "", "key_range"),
        ({"factors": "books"}, "", "placed()"),
        ({"factors": "requests"}, "", "ask_key()"),
        ({"factors": "classes"}, "", "admission_class()"),
        ({"factors": "level", "weights": "age=1"}, "", "level=NUMBER"),
        ({"factors": "age=level"}, "", "my-age=level"),
        ({"factors": "levell"}, "", "factors: no application sort policy is called 'levell'"),
        ({"factors": "level, level"}, ".factors", "given twice"),
        ({"factors": "level="}, ".factors", "NAME=POLICY"),
        ({"factors": "service", "factors__service__tops": "1"}, ".factors.service.tops", "top"),
        ({"factors": "service", "factors__service__top": "x"}, ".factors.service.top", "number"),
        ({"factors": "service", "factors__level__top": "1"}, ".factors.level.top", "no entry 'level'"),
        ({"factors": "service", "factors__service__half_life": "5", "weights": "service=1, fair-share=1"}, "",
         "fair-share 604800"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_factor_is_refused_at_its_place(
    options: dict[str, str], place: str, words: str
) -> None:
    weight = options["factors"].partition("=")[0].partition(",")[0]
    with pytest.raises(ConfigError) as refused:
        cluster(**{"weights": f"{weight}=1", **options})
    text = str(refused.value)
    assert words in text
    assert f"application.sort.policy{place}" in text


def test_all_problems_are_named_at_once() -> None:
    with pytest.raises(ConfigError) as refused:
        cluster(weights="a=1, b=1", factors="a=rangeless, b=books, c=level")
    assert all(word in str(refused.value) for word in ("'rangeless'", "'books'", "'c'"))


def test_message_of_a_policy_without_a_range_names_the_remedies() -> None:
    with pytest.raises(ConfigError) as refused:
        cluster(weights="rangeless=1", factors="rangeless")
    assert (
        "factors: the keys of 'rangeless' have no known range (None): set key_range = (lowest, highest) in "
        "its class Rangeless, if its keys are numbers, or write the factor as a method of a subclass of "
        "multifactor"
    ) in str(refused.value)


@pytest.mark.parametrize("answer", [float("nan"), "text", (1.0, 2.0), None])
def test_a_key_that_is_no_number_is_reported_with_its_factor(answer: Any) -> None:
    Odd.by = lambda app: answer if app.tags["level"] == "bad" else 10.0
    rm = cluster(weights="odd=1", factors="odd")
    submit(rm, "bad", "bad")
    submit(rm, "good", "0")
    assert served(rm) == ["good", "bad"]
    [failure] = rm.scheduler.failures
    assert failure.plugin.startswith("multifactor")
    assert "factor 'odd'" in failure.message


def test_configurations_name_the_policies_that_are_factors() -> None:
    plugins = registry()
    options = {"factors": "x=level, y=multifactor", "factors__y__factors": "service"}
    weights = {"weights": "x=1, y=1", "factors__y__weights": "service=1"}
    config = load_config(configuration(leaf(**options, **weights)), plugins)
    found = [one for use in plugin_uses(config) for one in use.with_nested(plugins)]
    place = "root.a: application.sort.policy"
    assert [(use.name, use.place) for use in found if use.place.startswith(place)] == [
        ("multifactor", place),
        ("level", f"{place}.factors.x"),
        ("multifactor", f"{place}.factors.y"),
        ("service", f"{place}.factors.y.factors.service"),
    ]


@attrs.define(eq=False)
class WithTurns(Multifactor):
    """Adds the running tasks of the user to the sum."""

    name = "multifactor-turns"
    _running: Counter[str] = attrs.field(init=False, factory=Counter, repr=False)

    def turns_factor(self, app: Application) -> float:
        return 1 / (1 + self._running[app.user])

    def subject(self, app: Application) -> str:
        return app.user

    def placed(self, task: Task, node: Node) -> None:
        self._running[task.app.user] += 1

    def released(self, task: Task, node: Node) -> None:
        self._running[task.app.user] -= 1


def test_a_subclass_may_keep_books() -> None:
    properties = {
        "application.sort.policy": "multifactor-turns",
        "application.sort.policy.weights": "turns=1",
    }
    rm = RM(configuration(queue("a", properties=properties)), with_plugins(app_sort_policies=[WithTurns]))
    for user in ("ann", "bob"):
        rm.app(user, user=user)
        rm.ask(user, count=3, vcore=1)
    assert served(rm) == ["ann", "bob"] * 3


class Pair(QueueSortPolicy):
    """Orders queues."""

    name = "first"

    def key(self, queue: Queue) -> str:
        return queue.path


@attrs.frozen
class Either(QueueSortPolicy):
    """Orders queues by other policies."""

    name = "either"
    parts: Mapping[str, QueueSortPolicy]

    def key(self, queue: Queue) -> Any:
        return tuple(one.key(queue) for one in self.parts.values())


def test_policies_of_other_kinds_take_policies_as_well() -> None:
    plugins = with_plugins(queue_sort_policies=[Pair, Either])
    made = plugins.make(QUEUE_SORT, "either", {"parts": "first, x=first"}, comma_lists=True)
    assert [type(one) for one in made.parts.values()] == [Pair, Pair]
    with pytest.raises(OptionError, match="as text, got a mapping"):
        plugins.make(QUEUE_SORT, "either", {"parts": {"x": "first"}})
