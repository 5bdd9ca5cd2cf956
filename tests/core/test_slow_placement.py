"""Placement rules that workers call: the application waits visibly, and nothing of it is lost."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.kit import RM, configuration, document, partition, queue, with_plugins
from tests.core.manual_workers import (
    Directory,
    ManualWorkers,
    acceptances,
    core_with_workers,
    registry_of,
    rejections,
)
from tests.core.test_slow_policies import check_idle
from yunikorn.api import PlacementRule, QueueTree
from yunikorn.errors import ConfigError, UsageError
from yunikorn.interface.messages import Allocation, RegisterResourceManagerRequest
from yunikorn.resources import Resource
from yunikorn_lab.placement_dry_run import PlacementDryRun

LEAVES = queue("a"), queue("b"), queue("p", queue("c"), parent=True)
RULES = [{"name": "directory"}, {"name": "fixed", "value": "root.b"}]
FORCE = {"application.create.force": "true"}


def configured(*rules: Any, **keys: Any) -> str:
    return configuration(*LEAVES, placementrules=list(rules or RULES), **keys)


def cluster(config: str = "") -> tuple[RM, ManualWorkers]:
    core: Any = core_with_workers(registry_of())
    rm = RM(config or configured(), scheduler=core)
    rm.node(vcore=4)
    return rm, core.manual_workers


def path_of(rm: RM, app_id: str = "app") -> str:
    found = rm.find_app(app_id).queue
    return "" if found is None else found.path


def test_application_waits_with_its_asks_and_others_do_not() -> None:
    rm, workers = cluster(configured({**RULES[0], "filter": {"type": "deny", "users": ["bob"]}}, RULES[1]))
    rm.app("slow", user="ann", directory="root.a")
    rm.ask("slow", "s", vcore=1)
    rm.app("other", user="bob")
    rm.ask("other", "o", vcore=1)
    assert rm.schedule() == [("other", "o", "n1")]
    with pytest.raises(UsageError, match="the answer of placement rule directory is awaited"):
        rm.scheduler.explain("rm", "default", "slow")
    assert path_of(rm, "other") == "root.b", "the filter needs no call"
    workers.answer()
    assert rm.schedule() == [("slow", "s", "n1")]
    assert path_of(rm, "slow") == "root.a"
    assert acceptances(rm.responses) == ["other", "slow"]
    check_idle(rm, workers)


@pytest.mark.parametrize(("said", "queue"), [("root.a", "root.a"), ("", "root.b"), ("root.none", "root.b")])
def test_name_is_checked_and_the_next_rule_tried(said: str, queue: str) -> None:
    rm, workers = cluster()
    rm.app(directory=said)
    workers.answer()
    assert path_of(rm) == queue


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("refuse", "failed to place application app: no project"),
        ("raise", "placing application 'app': ConnectionError: the directory is away"),
        ("lie", "placing application 'app': TypeError: it returned 7 instead of a queue name or None"),
        ("half", "invalid queue name"),
        ("root.b..c", "one of its levels is empty"),
    ],
)
def test_failure_rejects_the_application(said: str, reason: str) -> None:
    rm, workers = cluster()
    rm.app(directory=said)
    rm.ask(vcore=1)
    workers.answer()
    assert reason in rejections(rm.responses)["app"]
    assert len(rm.failures()) == (said in ("raise", "lie"))
    check_idle(rm, workers)


def test_rule_that_hangs_rejects_the_application() -> None:
    rm, workers = cluster()
    rm.app()
    rm.pass_time(10)
    expected = "placing application 'app': it has not returned within 10s"
    assert expected in rejections(rm.responses)["app"]
    assert workers.abandoned == [1]
    workers.answer(1)
    assert acceptances(rm.responses) == []
    check_idle(rm, workers)


def test_parent_rules_wait_as_well() -> None:
    above = {"name": "directory", "parent": {"name": "fixed", "value": "root.p"}}
    rm, workers = cluster(configured({"name": "user", "create": True, "parent": above | {"create": True}}))
    rm.app(user="ann", directory="team")
    workers.answer()
    assert path_of(rm) == "root.p.team.ann"


def test_each_rule_has_its_own_calls() -> None:
    rm, workers = cluster(configured(RULES[0], {**RULES[0], "create": True}, RULES[1]))
    rm.app("first", directory="root.new")
    rm.app("second", directory="root.a")
    assert list(workers.waiting) == [1]
    workers.answer()
    assert list(workers.waiting) == [2, 3]
    workers.answer(3)
    workers.answer(2)
    assert acceptances(rm.responses) == ["second", "first"]
    assert path_of(rm, "first") == "root.new"


def test_rule_gets_a_copy_of_the_application() -> None:
    rm, workers = cluster()
    rm.app("app", "root.x", user="ann", groups=("staff",), directory="root.a")
    workers.answer()
    plain = RM(configured(), registry_of())
    plain.app("app", "root.x", user="ann", groups=("staff",), directory="root.a")
    assert path_of(plain) == "root.a"
    (seen,) = Directory.seen
    assert type(seen).__name__ == "ApplicationCopy"
    assert (seen.id, seen.user, seen.groups, seen.queue_name, seen.queue) == (
        "app",
        "ann",
        ("staff",),
        "root.x",
        None,
    )


def test_submit_policies_come_first() -> None:
    rm, workers = cluster(configured(submitpolicies=["site"]))
    rm.app(site="to root.a", directory="")
    workers.answer()
    (seen,) = [work for work in workers.waiting]
    assert acceptances(rm.responses) == []
    workers.answer(seen)
    assert Directory.seen[-1].queue_name == "root.a"
    assert Directory.seen[-1].tags["by"] == "site"
    assert rm.find_app().ask_priority == 5


@pytest.mark.parametrize("answer", ["root.a", "raise", "refuse", "", "late"])
def test_recovered_application_is_not_lost(answer: str) -> None:
    rm, workers = cluster()
    running = Allocation("task", "app", uuid="u", resource_per_alloc=Resource(vcore=3), node_id="n1")
    rm.app_tagged("app", "root.a", {**FORCE, "directory": answer})
    rm.update(allocations=[running])
    assert rm.find_node().available == {"vcore": 1}, "its room is kept while the rule is asked"
    rm.app("new", directory="root.b")
    rm.ask("new", "n", vcore=2)
    if answer == "late":
        rm.pass_time(10)
    workers.answer_all()
    assert rm.schedule() == []
    assert list(rm.find_app().allocations) == ["u"]
    assert path_of(rm) == ("root.a" if answer == "root.a" else "root.b"), "the next rule is tried"
    check_idle(rm, workers)


def test_recovered_application_without_an_answer_gets_the_recovery_queue() -> None:
    rm, workers = cluster(configured(RULES[0]))
    rm.app_tagged("app", "root.a", FORCE)
    rm.pass_time(10)
    assert path_of(rm) == "root.@recovery@"
    workers.answer_all()
    check_idle(rm, workers)


def test_nodes_reported_before_the_application_wait_with_it() -> None:
    rm, workers = cluster()
    running = Allocation(
        "task", "app", uuid="u", resource_per_alloc=Resource(vcore=3), node_id="n2", allocation_tags=FORCE
    )
    rm.node("n2", existing=[running], vcore=4)
    rm.app_tagged("app", "root.a", {**FORCE, "directory": "root.a"})
    assert rm.find_node("n2").available == {"vcore": 1}
    workers.answer()
    assert list(rm.find_app().allocations) == ["u"]
    assert path_of(rm) == "root.a"
    check_idle(rm, workers)


def test_removed_application_is_forgotten() -> None:
    rm, workers = cluster()
    rm.app(directory="root.new")
    rm.ask(vcore=1)
    rm.remove_app("app")
    workers.answer()
    assert acceptances(rm.responses) == []
    assert rejections(rm.responses) == {}
    check_idle(rm, workers)


@pytest.mark.parametrize("kept", [True, False])
def test_reload_asks_the_new_rules(kept: bool) -> None:
    rm, workers = cluster()
    rm.app(directory="root.a")
    rm.ask(vcore=1)
    assert rm.reload(configured(*RULES, {"name": "user"}) if kept else configured(RULES[1]))
    workers.answer()
    if kept:
        assert acceptances(rm.responses) == [], "the answer was one to the old rules"
        workers.answer()
    assert path_of(rm) == ("root.a" if kept else "root.b")
    assert rm.schedule() == [("app", "ask", "n1")]
    check_idle(rm, workers)


def test_queue_that_is_removed_meanwhile_is_not_used() -> None:
    rm, workers = cluster()
    rm.app("first", directory="root.a")
    workers.answer()
    rm.app("second", directory="root.a")
    rules = {"placementrules": RULES}
    rm.reload(configuration(queue("b"), **rules))
    workers.answer_all()
    assert path_of(rm, "second") == "root.b", "root.a is draining"


def test_dynamic_queue_that_appears_meanwhile_is_used() -> None:
    rm, workers = cluster(configured({"name": "directory", "create": True}))
    for number in range(3):
        rm.app(f"app{number}", directory="root.p.new")
    workers.answer_all()
    assert {path_of(rm, f"app{number}") for number in range(3)} == {"root.p.new"}


def test_partition_that_is_removed_rejects() -> None:
    two = document(partition(queue("a")), partition(*LEAVES, name="gpu", placementrules=RULES))
    rm, workers = cluster(two)
    rm.app("app", partition_name="gpu")
    assert rm.reload(document(partition(queue("a"))))
    assert "partition gpu was removed" in rejections(rm.responses)["app"]
    workers.answer()
    assert acceptances(rm.responses) == []


def test_session_that_is_lost_takes_the_answer_and_a_new_one_drops_it() -> None:
    rm, workers = cluster()
    rm.app(directory="root.a")
    rm.ask(vcore=1)
    rm.scheduler.pause("rm")
    workers.answer()
    assert path_of(rm) == "root.a"
    assert rm.schedule() == []
    rm.app("next", directory="root.a")
    rm.scheduler.register_resource_manager(RegisterResourceManagerRequest("rm", config=configured()), rm)
    rm.app("next", directory="root.b")
    workers.answer_all()
    assert path_of(rm, "next") == "root.b"
    check_idle(rm, workers)


class Looks(PlacementRule):
    name = "looks"
    blocking = True

    def place(self, app: Any, queues: QueueTree) -> str:
        return "root.a"


def test_rule_that_blocks_gets_no_queues() -> None:
    registry = with_plugins(placement_rules=[Looks])
    with pytest.raises(ConfigError) as caught:
        RM(configuration(placementrules=[{"name": "looks"}]), registry)
    assert "plugin looks of test-plugin (yunikorn-test 1.0)" in str(caught.value)
    assert "a rule with blocking = True gets no queues" in str(caught.value)


def test_dry_run_asks_at_once() -> None:
    answer = PlacementDryRun(configured(), registry_of()).ask("app", "ann", tags={"directory": "root.a"})
    assert (answer.queue, answer.rule) == ("root.a", "directory")
