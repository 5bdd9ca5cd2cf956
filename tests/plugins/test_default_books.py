"""The default predicates that keep books: `spread`, `anti-affinity` and `licences`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, queue
from tests.example_counts import examples
from yunikorn.errors import ConfigError
from yunikorn.explain.explanations import POSITION, first_reasons
from yunikorn.framework.kinds import PREDICATE
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import NodeAction
from yunikorn.model.allocation import TerminationType
from yunikorn.model.context import Timeouts

SPREAD, LABELS = "yunikorn.apache.org/spread", "yunikorn.apache.org/labels"
AVOIDED, LICENCES = "yunikorn.apache.org/anti-affinity", "licences"


def ready(*predicates: Any, kind: type[RM] = RM, racks: str = "aabbc") -> Any:
    rm = kind(configuration(predicates=list(predicates)))
    for number, rack in enumerate(racks, 1):
        rm.node(f"{rack}{number}", {"rack": rack}, vcore=10)
    rm.app()
    return rm


def why(rm: RM, app: str = "app", key: str = "ask") -> set[str]:
    return set(rm.find_app(app).asks[key].ask_class.refusals)


def by_rack(made: list[tuple[str, str, str]]) -> dict[str, int]:
    return dict(Counter(node[0] for _, _, node in made))


# -- spread ---------------------------------------------------------------------------------------------


def test_spread_limits_the_tasks_of_an_application_per_rack() -> None:
    rm = ready({"name": "spread", "attribute": "rack", "max": 2})
    rm.app("other")
    rm.ask(count=9, vcore=1)
    rm.ask("other", count=1, vcore=1)
    assert by_rack(rm.schedule()[:6]) == {"a": 2, "b": 2, "c": 2}
    assert why(rm) == {"at most 2 tasks of an application per rack"}
    assert len(rm.running) == 7


def test_spread_by_skew_fills_all_racks_evenly() -> None:
    rm = ready({"name": "spread", "attribute": "rack", "skew": 1})
    rm.ask(count=9, vcore=1)
    made = rm.schedule()
    for number in range(1, 10):
        counts = by_rack(made[:number])
        assert max(counts.values()) - min(counts.get(rack, 0) for rack in "abc") <= 1
    assert len(made) == 9


def test_spread_by_skew_waits_for_a_rack_without_room_until_its_nodes_leave() -> None:
    rm = ready({"name": "spread", "attribute": "rack", "skew": 1}, racks="ab")
    rm.ask(count=4, vcore=6)
    assert by_rack(rm.schedule()) == {"a": 1, "b": 1}
    rm.node("a9", {"rack": "a"}, vcore=12)
    assert by_rack(rm.schedule()) == {"a": 1}
    assert why(rm) == {"other values of rack have fewer tasks of the application"}
    rm.change_node("b2", NodeAction.DECOMMISSION)
    assert by_rack(rm.schedule()) == {"a": 1}


def test_spread_per_task_group_and_with_the_limits_of_tags() -> None:
    rm = ready({"name": "spread", "attribute": "rack", "max": 1, "per": "task-group"}, kind=GangRM)
    rm.task("app", "k", "one", 4, vcore=1)
    rm.task("app", "l", "two", 4, vcore=1)
    assert len(rm.schedule()) == 6
    rm.app("tagged", **{SPREAD: "max=2"})
    rm.ask("tagged", "own", 9, vcore=1)
    rm.ask("tagged", "off", 5, vcore=1, tags={SPREAD: "off"})
    made = rm.schedule()
    assert by_rack([one for one in made if one[1] == "own"]) == {"a": 2, "b": 2, "c": 2}
    assert sum(one[1] == "off" for one in made) == 5


def test_spread_without_numbers_limits_nothing_and_refuses_unreadable_tags() -> None:
    rm = ready({"name": "spread", "attribute": "rack"})
    rm.node("n9", vcore=10)
    rm.ask(count=9, vcore=1)
    assert len(rm.schedule()) == 9
    for number, text in enumerate(("max=0", "max", "two", "max=2;skew=1")):
        rm.ask(key=f"k{number}", vcore=1, tags={SPREAD: text})
        assert rm.schedule() == []
        (reason,) = why(rm, key=f"k{number}")
        assert reason.startswith(f"the spread cannot be read: '{text}' is not max=N, skew=N")
    rm.ask(key="limited", count=4, vcore=1, tags={SPREAD: " max=1 , skew=1 "})
    assert len(rm.schedule()) == 3
    assert "the node has no rack" in why(rm, key="limited")


# -- anti-affinity --------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["web", "quiet"])
def test_anti_affinity_works_both_ways(first: str) -> None:
    rm = ready("anti-affinity", racks="ab")
    tags = {"web": {LABELS: "web, big"}, "quiet": {AVOIDED: "web"}}
    second = "quiet" if first == "web" else "web"
    rm.ask(key=first, vcore=1, tags=tags[first])
    ((_, _, node),) = rm.schedule()
    rm.ask(key=second, count=2, vcore=8, tags=tags[second])
    ((_, _, other),) = rm.schedule()
    assert other != node
    label = "a task with the label web" if second == "quiet" else "a task that avoids the label web"
    assert why(rm, key=second) == {f"{label} runs on the node"}
    rm.release(key=first)
    assert len(rm.schedule()) == 1


def test_anti_affinity_over_racks() -> None:
    rm = ready({"name": "anti-affinity", "attribute": "rack"})
    rm.node("n8", vcore=10)
    rm.node("n9", vcore=10)
    one = {LABELS: "db", AVOIDED: "db"}
    rm.ask(count=9, vcore=1, tags=one)
    assert by_rack(rm.schedule()) == {"a": 1, "b": 1, "c": 1, "n": 2}
    assert why(rm) == {"a task with the label db runs in the rack"}
    rm.ask(key="bad", vcore=1, tags={LABELS: "a b"})
    assert rm.schedule() == []
    (reason,) = why(rm, key="bad")
    assert reason.startswith("the labels cannot be read: 'a b' is not a label")


# -- licences -------------------------------------------------------------------------------------------


def test_licences_limit_the_whole_cluster() -> None:
    rm = ready({"name": "licences", "counts": {"matlab": 4, "ansys": 1}})
    rm.ask(count=3, vcore=1, tags={LICENCES: "matlab=2"})
    rm.ask(key="both", vcore=1, tags={LICENCES: "ansys, matlab"})
    assert [key for _, key, _ in rm.schedule()] == ["ask", "ask"]
    assert why(rm) == {"0 of 4 licences matlab are free, the task uses 2"}
    one = next(iter(rm.running))
    rm.release(uuid=one)
    assert [key for _, key, _ in rm.schedule()] == ["ask"]
    rm.release(key="ask")
    assert [key for _, key, _ in rm.schedule()] == ["both"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("maple", "there is no licence 'maple'; known: matlab"),
        ("matlab=two", "the licences cannot be read: 'matlab=two' is not NAME or NAME=COUNT (tag licences)"),
        ("matlab, matlab", "the licences cannot be read: 'matlab' occurs twice (tag licences)"),
        ("matlab=5", "4 of 4 licences matlab are free, the task uses 5"),
    ],
)
def test_licences_that_cannot_be_used_are_refused(text: str, reason: str) -> None:
    rm = ready({"name": "licences", "counts": {"matlab": 4}})
    rm.ask(vcore=1, tags={LICENCES: text})
    assert rm.schedule() == []
    assert why(rm) == {reason}


def test_more_licences_after_a_reload() -> None:
    rm = ready({"name": "licences", "counts": {"matlab": 1}})
    rm.ask(count=3, vcore=1, tags={LICENCES: "matlab"})
    assert len(rm.schedule()) == 1
    rm.reload(configuration(predicates=[{"name": "licences", "counts": {"matlab": 2}}]))
    assert len(rm.schedule()) == 1
    assert rm.failures() == []


@pytest.mark.parametrize(
    "options",
    [
        {"name": "spread"},
        {"name": "spread", "attribute": "rack", "max": "-1"},
        {"name": "spread", "attribute": "rack", "per": "queue"},
        {"name": "licences"},
        {"name": "licences", "counts": {"a": -1}},
    ],
)
def test_invalid_options_are_errors(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        RM(configuration(predicates=[options]))


def test_requirements_are_texts(registry: Registry, make_ask: Any) -> None:
    spread = registry.make(PREDICATE, "spread", {"attribute": "rack", "max": "2", "skew": "1"})
    assert spread.wanted(make_ask()) == "room by the spread over rack (max=2, skew=1)"
    licences = registry.make(PREDICATE, "licences", {"counts": {"a": "2"}})
    assert licences.wanted(make_ask({LICENCES: "a"})) == "free licences a=1"
    apart = registry.make(PREDICATE, "anti-affinity", {})
    assert apart.wanted(make_ask({AVOIDED: "b,a"})) == "no task with the label a or b"
    assert spread.wanted(make_ask({SPREAD: "off"})) is licences.wanted(make_ask()) is None


# -- limits never break ---------------------------------------------------------------------------------

TAGS = st.fixed_dictionaries(
    {},
    optional={
        LICENCES: st.sampled_from(["x", "x=2", "y", "x, y=2"]),
        LABELS: st.sampled_from(["web", "db", "web, db"]),
        AVOIDED: st.sampled_from(["web", "db"]),
        SPREAD: st.sampled_from(["off", "max=1", "max=2", "skew=1, max=3"]),
    },
)
COUNTS = {"x": 3, "y": 2}
CONFIG = configuration(
    queue("a"),
    queue("b", resources={"guaranteed": {"vcore": "12"}}, properties={"preemption.delay": "1s"}),
    predicates=[
        {"name": "spread", "attribute": "rack", "max": 2},
        {"name": "anti-affinity", "attribute": "rack"},
        {"name": "licences", "counts": COUNTS},
    ],
    preemption={"enabled": True},
)


class Limits(RuleBasedStateMachine):
    """Sends gangs, tasks and releases, and recounts after each step."""

    @initialize(racks=st.lists(st.sampled_from("abc"), min_size=2, max_size=5))
    def start(self, racks: list[str]) -> None:
        self.rm = GangRM(CONFIG, timeouts=Timeouts(reservation=0))
        self.number = 0
        for number, rack in enumerate(racks):
            self.rm.node(f"{rack}{number}", {"rack": rack}, vcore=4)

    @rule(style=st.sampled_from(["", "", "Soft", "Atomic"]), count=st.integers(1, 4), tags=TAGS,
          real=TAGS, leaf=st.sampled_from("ab"))  # fmt: skip
    def submit(self, style: str, count: int, tags: Any, real: Any, leaf: str) -> None:
        self.number += 1
        app = f"app{self.number}"
        if not style:
            self.rm.app(app, f"root.{leaf}")
            self.rm.ask(app, "k", count, vcore=1, tags=tags)
            self.rm.ask(app, "l", 1, vcore=2, tags=real)
            return
        self.rm.gang(app, style, f"root.{leaf}", vcore=count)
        self.rm.task(app, "m", "t", count, placeholder=style != "Atomic", vcore=1, tags=tags)
        if style != "Atomic":
            self.rm.task(app, "r", "t", count, vcore=1, tags=real)

    @precondition(lambda self: self.rm.running)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        one = self.rm.running[data.draw(st.sampled_from(sorted(self.rm.running)))]
        self.rm.release(one.application_id, one.uuid)

    @rule()
    def confirm(self) -> None:
        if self.rm.evicted:
            self.rm.confirm()

    @rule(rack=st.sampled_from("abcd"))
    def add_node(self, rack: str) -> None:
        self.number += 1
        self.rm.node(f"{rack}{self.number + 10}", {"rack": rack}, vcore=4)

    @rule(data=st.data())
    def remove_node(self, data: st.DataObject) -> None:
        nodes = list(self.rm.at_work().partition.nodes)
        if len(nodes) > 1:
            self.rm.change_node(data.draw(st.sampled_from(nodes)), NodeAction.DECOMMISSION)

    @rule(seconds=st.sampled_from([1, 5, 31]))
    def pass_time(self, seconds: int) -> None:
        self.rm.pass_time(seconds)

    @rule()
    def reload(self) -> None:
        self.rm.reload(CONFIG.replace('"max": 2', '"max": 2 '))

    @invariant()
    def limits_hold(self) -> None:
        if not hasattr(self, "rm"):
            return
        self.rm.schedule()
        assert self.rm.failures() == []
        at = self.rm.at_work()
        per_rack: Counter[tuple[str, str]] = Counter()
        used: Counter[str] = Counter()
        labels: list[tuple[str, set[str], set[str]]] = []
        for app in at.partition.applications.values():
            for one in app.allocations.values():
                task = one.replacement if one.releasing == TerminationType.PLACEHOLDER_REPLACED else one
                if task is None:
                    continue
                rack = task.node.attributes["rack"]
                if SPREAD not in task.tags:
                    per_rack[app.id, rack] += 1
                for part in filter(None, task.tags.get(LICENCES, "").split(", ")):
                    name, _, count = part.partition("=")
                    used[name] += int(count or 1)
                has, avoids = (set(task.tags.get(tag, "").split(", ")) - {""} for tag in (LABELS, AVOIDED))
                labels.append((rack, has, avoids))
        assert all(count <= 2 for count in per_rack.values()), per_rack
        assert all(count <= COUNTS[name] for name, count in used.items()), used
        for at_first, (rack, _, avoids) in enumerate(labels):
            for at_other, (elsewhere, has, _) in enumerate(labels):
                assert at_first == at_other or rack != elsewhere or not avoids & has
        for ask, _, reason in first_reasons(at):
            assert reason is not POSITION, f"{ask} could be placed"


TestLimits = Limits.TestCase
TestLimits.settings = settings(max_examples=examples(15), stateful_step_count=25)
