"""Quota policies in clusters: the default ones, and what the core makes of their answers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.event_collector import EventCollector
from tests.core.gangs import GangRM
from tests.core.kit import RM, document, partition
from tests.plugins.quota_kit import ANSWERS, HOUR, Answer, Make, leaf, lenders, text
from yunikorn import api
from yunikorn.clock import SECOND
from yunikorn.config.load import check_config
from yunikorn.errors import ConfigError
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import Allocation
from yunikorn.resources import Resource
from yunikorn_commands.plugin_uses import plugin_uses
from yunikorn_testing import application, ask, assert_pending_because, node

# -- time of day --------------------------------------------------------------------------------------


def test_window_lowers_the_max_and_its_end_raises_it_again(world: Make) -> None:
    at = world(text(leaf("batch", "time-of-day", {"vcore": 8}, windows="00:00-06:00=25%, 07:00-08:00=0%")))
    assert at.max("root.batch") == {"vcore": 2000}
    assert at.run("app", "root.batch", 20) == 2
    assert_pending_because(
        at.cluster,
        "app",
        "max in force vcore 2 of quota policy time-of-day (00:00-06:00 UTC), for 21600s from now; "
        "configured vcore 8",
    )
    at.cluster.advance(6 * HOUR - 1)
    assert not at.cluster.run()
    at.cluster.advance(1)
    assert len(at.cluster.run()) == 6, "at six o'clock, not a second earlier"
    at.cluster.advance(HOUR)
    at.cluster.finish("app", "ask-1")
    assert not at.cluster.run(), "0 % allows none"
    assert at.max("root.batch") == {"vcore": 0}


def test_window_may_give_amounts_above_the_configured_max(world: Make) -> None:
    at = world(text(leaf("batch", "time-of-day", {"vcore": 2}, windows="00:00-06:00=vcore:5 gpu:1")))
    assert at.max("root.batch") == {"vcore": 5000, "gpu": 1}
    assert at.queue("root.batch").configured_max == {"vcore": 2000}
    assert at.run("app", "root.batch", 20) == 5


def test_policy_of_a_child_never_lifts_the_max_of_its_parent(world: Make) -> None:
    child = leaf("batch", "time-of-day", {"vcore": 3}, windows="00:00-00:00=vcore:50")
    parent = {**leaf("team", max={"vcore": 3}), "queues": [child], "parent": True}
    at = world(text(parent))
    assert at.run("app", "root.team.batch", 20) == 3
    assert at.queue("root.team.batch").fair_max["vcore"] == 3000


def test_children_see_the_max_in_force_of_their_parent(world: Make) -> None:
    child = leaf("batch", max={"vcore": 30})
    team = leaf("team", "time-of-day", {"vcore": 40}, windows="00:00-06:00=10%")
    at = world(text({**team, "queues": [child], "parent": True}))
    assert at.run("app", "root.team.batch", 60) == 4
    assert at.queue("root.team.batch").fair_max["vcore"] == 4000
    assert at.queue("root.team.batch").headroom == {"vcore": 0}
    at.cluster.advance(6 * HOUR)
    assert at.queue("root.team.batch").fair_max["vcore"] == 30_000
    assert len(at.cluster.run()) == 26


def test_queue_below_its_guarantee_starts_nothing_above_its_limit(world: Make) -> None:
    batch = leaf("batch", "time-of-day", windows="00:00-06:00=0%")
    batch["resources"] = {"max": {"vcore": 8}, "guaranteed": {"vcore": 4}}
    at = world(text(batch, leaf("other")), node(vcore=8))
    assert at.run("other", "root.other", 8) == 8
    assert at.run("app", "root.batch", 4) == 0
    at.cluster.advance(HOUR)
    at.cluster.run()
    assert not at.cluster.preempted, "a closed queue preempts nothing on account of its guarantee"
    at.cluster.advance(6 * HOUR)
    at.cluster.run()
    assert len(at.cluster.preempted) == at.running("app") == 4


# -- borrowing ----------------------------------------------------------------------------------------


def test_queue_borrows_what_siblings_neither_use_nor_request(world: Make) -> None:
    at = world(lenders())
    assert at.max("root.a") == {"vcore": 30_000}
    assert at.run("a", "root.a", 60) == 30
    at.cluster.finish("a")
    at.cluster.withdraw("a")
    at.run("c", "root.c", 4)
    assert at.run("a", "root.a", 60) == 26


def test_two_queues_never_borrow_the_same_amount(world: Make) -> None:
    at = world(lenders())
    for name in ("a", "b"):
        at.cluster.submit(application(name, f"root.{name}"), ask(count=60, vcore=1))
    at.cluster.run()
    assert at.running("a") + at.running("b") == 30


def test_most_bounds_what_is_borrowed(world: Make) -> None:
    assert world(lenders("50%")).run("a", "root.a", 60) == 15
    assert world(lenders("vcore:3")).run("a", "root.a", 60) == 13
    assert world(lenders("memory:3")).run("a", "root.a", 60) == 10


def test_owner_gets_back_what_was_borrowed(world: Make) -> None:
    at = world(lenders(**{"quota.preemption.delay": "1m"}), node(vcore=30))
    assert at.run("a", "root.a", 60) == 30
    assert at.run("c", "root.c", 4) == 0
    assert at.max("root.a") == {"vcore": 26_000}
    at.cluster.advance(61)
    at.cluster.run()
    assert (at.running("a"), at.running("c")) == (26, 4)
    at.cluster.finish("c")
    at.cluster.run()
    assert at.running("a") == 30


def test_release_of_a_sibling_wakes_waiting_requests(world: Make) -> None:
    at = world(lenders())
    at.run("c", "root.c", 10)
    at.run("b", "root.b", 10)
    assert at.run("a", "root.a", 60) == 10
    at.cluster.finish("c")
    assert len(at.cluster.run()) == 10


def test_raised_configured_max_of_a_sibling_can_be_borrowed(world: Make) -> None:
    at = world(lenders())
    assert at.run("a", "root.a", 60) == 30
    at.cluster.reload(lenders().replace('"vcore": 10', '"vcore": 12'))
    at.cluster.run()
    assert at.running("a") == 36


def test_sibling_without_a_max_lends_nothing_and_one_that_is_removed_neither(world: Make) -> None:
    at = world(text(leaf("a", "borrowing", {"vcore": 2}), leaf("b"), leaf("c", max={"vcore": 2})))
    assert at.run("a", "root.a", 60) == 4
    at.cluster.reload(text(leaf("a", "borrowing", {"vcore": 2}), leaf("b")))
    at.cluster.advance(60)
    at.cluster.run()
    assert at.max("root.a") == {"vcore": 2000}


# -- answers ------------------------------------------------------------------------------------------


def drawn(**more: Any) -> str:
    return text(leaf("a", "drawn", {"vcore": 4}), **more)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"vcore": -1}, "returned -1 of vcore instead of a whole number"),
        ({"vcore": 2.0}, "returned 2.0 of vcore instead"),
        ({"vcore": float("nan")}, "returned nan of vcore instead"),
        ({"vcore": True}, "returned True of vcore instead"),
        ({"vcore": 10**5000}, "returned a whole number of 16610 bits of vcore instead"),
        ({"vcore": 2**63}, "of vcore instead of a whole number from 0 to 9223372036854775807"),
        ({"vcore": None}, "returned None of vcore instead"),
        ({7: 7}, "returned 7 instead of the name of a resource type"),
        ("vcore", "returned 'vcore' instead of a mapping"),
        (dict.fromkeys(map(str, range(1001)), 1), "returned more than 1000 entries"),
    ],
)
def test_wrong_amounts_are_contained_and_the_configured_max_stays(
    world: Make, answer: Any, reason: str
) -> None:
    ANSWERS.append(lambda policy, queue: api.Quota(answer))
    at = world(drawn(), failures="expected")
    assert at.max("root.a") == {"vcore": 4000}
    assert at.run("app", "root.a", 9) == 4
    (failure,) = at.cluster.failures
    assert reason in failure.message
    assert "setting the max of queue root.a" in failure.message
    assert_pending_because(at.cluster, "app", "quota policy drawn failed, so that the configured max applies")
    ANSWERS.append(lambda policy, queue: api.Quota({"vcore": 6000}))
    at.cluster.advance(60)
    at.cluster.run()
    assert at.running("app") == 6, "asked again after a minute"


@pytest.mark.parametrize(
    "answer",
    [
        lambda policy, queue: {"vcore": 1},
        lambda policy, queue: api.Quota({}, until=policy.now()),
        lambda policy, queue: api.Quota({}, until=1.5),  # type: ignore[arg-type]
        lambda policy, queue: api.Quota({}, until=10**30),
        lambda policy, queue: api.Quota({}, why=7),  # type: ignore[arg-type]
        lambda policy, queue: queue.unknown,
    ],
)
def test_other_wrong_answers_are_contained(world: Make, answer: Answer) -> None:
    ANSWERS.append(answer)
    at = world(drawn(), failures="expected")
    assert at.run("app", "root.a", 9) == 4
    assert len(at.cluster.failures) == 1


def test_types_without_an_answer_keep_their_configured_amount(world: Make) -> None:
    ANSWERS.append(lambda policy, queue: api.Quota({"gpu": 0}))
    at = world(drawn(), node(vcore=64, gpu=8))
    assert at.max("root.a") == {"vcore": 4000, "gpu": 0}
    assert at.run("gpus", "root.a", 2, vcore=1, gpu=1) == 0
    assert at.run("app", "root.a", 9) == 4


def test_answers_hold_until_the_time_they_name(world: Make) -> None:
    ANSWERS.append(
        lambda policy, queue: api.Quota({"vcore": policy.now() // SECOND * 100}, policy.now() + SECOND)
    )
    at = world(drawn())
    assert at.max("root.a") == {"vcore": 0}
    at.cluster.advance(20)
    assert at.max("root.a") == {"vcore": 2000}


def test_refreshing_policy_shares_a_timer_among_all_its_queues(world: Make) -> None:
    at = world(text(*(leaf(f"q{number}", "refreshing") for number in range(20))))
    policy = at.policy("root.q0")
    policy.asked.clear()
    timers = at.cluster._objects().timers
    assert len(timers) == 1
    at.cluster.advance(59)
    assert not policy.asked
    at.cluster.advance(1)
    assert len(policy.asked) == 20


def test_policy_that_watches_the_cluster_is_asked_after_nodes_changed(world: Make) -> None:
    ANSWERS.append(lambda policy, queue: api.Quota({"vcore": queue.total.get("vcore", 0) // 2}))
    at = world(text(leaf("a", "watching"), leaf("b", "drawn")), node("n1", vcore=4))
    assert at.run("app", "root.a", 9) == 2
    assert at.max("root.b") == {"vcore": 0}, "a policy that declares nothing is not asked again"
    at.cluster.add(node("n2", vcore=4))
    at.cluster.run()
    assert at.running("app") == 4


def test_decisions_ask_nothing_without_a_reason(world: Make) -> None:
    at = world(drawn())
    policy = at.policy("root.a")
    policy.asked.clear()
    at.run("app", "root.a", 9)
    at.cluster.finish("app")
    at.cluster.run()
    assert not policy.asked


# -- pairs --------------------------------------------------------------------------------------------


def test_lowered_max_is_enforced_by_quota_preemption_after_its_delay(world: Make) -> None:
    queue = leaf("a", "time-of-day", {"vcore": 8}, windows="01:00-02:00=50%")
    queue["properties"]["quota.preemption.delay"] = "10m"
    at = world(text(queue, preemption={"quotapreemptionenabled": True}))
    assert at.run("app", "root.a", 8) == 8
    at.cluster.advance(HOUR)
    at.cluster.run()
    assert at.running("app") == 8, "running tasks stay for now"
    at.cluster.advance(601)
    at.cluster.run()
    assert at.running("app") == 4


def test_lowered_max_without_quota_preemption_ends_nothing(world: Make) -> None:
    at = world(text(leaf("a", "time-of-day", {"vcore": 8}, windows="01:00-02:00=50%")))
    at.run("app", "root.a", 9)
    at.cluster.advance(1.5 * HOUR)
    at.cluster.run()
    assert at.running("app") == 8


def test_policy_is_added_changed_and_removed_by_reloads(world: Make) -> None:
    at = world(text(leaf("a", max={"vcore": 8})))
    at.cluster.reload(text(leaf("a", "time-of-day", {"vcore": 8}, windows="00:00-01:00=25%")))
    assert at.run("app", "root.a", 20) == 2
    at.cluster.reload(text(leaf("a", "time-of-day", {"vcore": 8}, windows="00:00-01:00=50%")))
    at.cluster.run()
    assert at.running("app") == 4
    at.cluster.reload(text(leaf("a", "time-of-day", {"vcore": 12}, windows="00:00-01:00=50%")))
    at.cluster.run()
    assert at.running("app") == 6
    at.cluster.reload(text(leaf("a", max={"vcore": 8})))
    at.cluster.run()
    assert at.running("app") == 8
    assert not len(at.cluster._objects().timers) or at.cluster.scheduler.next_timer() != HOUR * SECOND


def test_quota_preemption_follows_a_policy_that_a_reload_adds(world: Make) -> None:
    queue = leaf("a", max={"vcore": 8})
    queue["properties"]["quota.preemption.delay"] = "10m"
    enabled = {"preemption": {"quotapreemptionenabled": True}}
    at = world(text(queue, **enabled))
    at.run("app", "root.a", 8)
    queue["properties"] |= {"quota.policy": "time-of-day", "quota.policy.windows": "00:00-02:00=50%"}
    at.cluster.reload(text(queue, **enabled))
    at.cluster.advance(601)
    at.cluster.run()
    assert at.running("app") == 4


def test_events_name_the_max_in_force() -> None:
    collector = EventCollector()
    rm = collector.rm(partition(leaf("a", "time-of-day", {"vcore": 8}, windows="01:00-02:00=50%")))
    rm.schedule()
    collector.events.clear()
    rm.pass_time(HOUR)
    rm.schedule()
    (event,) = collector.events
    assert (event.object_id, event.change, event.detail) == ("root.a", "SET", "QUEUE_MAX")
    assert event.resource == {"vcore": 4000}
    assert event.message.startswith("max in force vcore 4 of quota policy time-of-day (01:00-02:00 UTC)")


def test_dynamic_queues_get_the_policy_of_their_template(world: Make) -> None:
    template = {"properties": {"quota.policy": "time-of-day", "quota.policy.windows": "00:00-01:00=vcore:2"}}
    at = world(text({"name": "users", "parent": True, "childtemplate": template}))
    for number in range(5):
        assert at.run(f"app{number}", f"root.users.u{number}", 4) == 2
    assert len({id(at.policy(f"root.users.u{number}")) for number in range(5)}) == 1
    quotas = at.at.quotas
    assert len(quotas._questions._exact) == 1
    at.cluster.advance(HOUR)
    at.cluster.run()
    assert at.running("app0") == 4
    for number in range(5):
        at.cluster.withdraw(f"app{number}")
    at.cluster.advance(60)
    assert not quotas._bound
    assert not quotas._questions


def test_tags_of_a_namespace_change_the_configured_max_below_a_policy(world: Make) -> None:
    template = {"properties": {"quota.policy": "time-of-day", "quota.policy.windows": "00:00-01:00=50%"}}
    at = world(text({"name": "users", "parent": True, "childtemplate": template}))
    tags = {"namespace.resourcequota": '{"resources": {"vcore": {"value": 8000}}}'}
    at.cluster.submit(application("app", "root.users.u", tags=tags), ask(count=20, vcore=1))
    at.cluster.run()
    assert at.running("app") == 4


@pytest.mark.parametrize("style", ["Soft", "Atomic"])
def test_gang_waits_for_a_max_that_may_grow(style: str) -> None:
    rm = GangRM(text(leaf("a", "time-of-day", {"vcore": 8}, windows="00:00-01:00=0%")))
    rm.node(vcore=64_000)
    rm.gang("gang", queue_name="root.a", style=style, vcore=4000)
    for number in range(4):
        rm.task("gang", f"t{number}", "group", 1, placeholder=style == "Soft", vcore=1000)
    assert not rm.schedule()
    rm.pass_time(HOUR)
    rm.schedule()
    assert len(rm.running) == 4


def test_drained_and_stopped_queues_keep_their_policy(world: Make) -> None:
    config = leaf("a", "time-of-day", {"vcore": 8}, windows="00:00-01:00=25%")
    at = world(text(config, leaf("b")))
    at.run("app", "root.a", 8)
    at.cluster.reload(text(leaf("b")))
    at.cluster.advance(HOUR)
    at.cluster.run()
    assert at.running("app") == 8, "a draining queue still serves its applications"
    at.cluster.withdraw("app")
    at.cluster.advance(60)
    assert at.cluster._objects().queue("root.a") is None


def test_recovered_tasks_over_the_limit_stay() -> None:
    rm = RM(text(leaf("a", "time-of-day", {"vcore": 8}, windows="00:00-01:00=vcore:1")))
    rm.app("app", "root.a")
    found = [Allocation("k", "app", f"u{n}", "n1", Resource(vcore=1000)) for n in range(3)]
    rm.node(vcore=64_000, existing=found)
    rm.ask("app", "more", vcore=1000)
    assert not rm.schedule()
    assert rm.find_queue("root.a").allocated == {"vcore": 3000}


# -- configuration ------------------------------------------------------------------------------------


def problems(config: str) -> list[str]:
    return [str(one) for one in check_config(config, Registry.load(third_party=False)).problems]


@pytest.mark.parametrize(
    ("queue", "found"),
    [
        (leaf("a", "time-of-dya"), "no quota policy is called 'time-of-dya', did you mean 'time-of-day'?"),
        (leaf("a", "time-of-day"), "windows"),
        (leaf("a", "time-of-day", windows="08:00-18:00=25%", zoen="UTC"), "zoen"),
        (leaf("a", "time-of-day", windows="8-18=25%"), "'8' is not a time of day such as 06:30"),
        (leaf("a", "time-of-day", windows="moo 08:00-18:00=25%"), "'moo' is not a day"),
        (leaf("a", "time-of-day", windows="08:00-18:00=25"), "neither a percentage such as 25% nor amounts"),
        (leaf("a", "time-of-day", windows="08:00-18:00=vcore:x"), "expected a whole number"),
        (leaf("a", "time-of-day", windows="08:00-18:00=25%", zone="Mars"), "unknown time zone 'Mars'"),
        (leaf("a", "borrowing", most="-5%"), "not a percentage from 0%"),
        (leaf("a", "", windows="x"), "option of no policy: the queue has no quota.policy, and inherits none"),
    ],
)
def test_mistakes_are_found_at_load(queue: dict[str, Any], found: str) -> None:
    (problem,) = problems(text(queue))
    assert found in problem
    assert "queues[0].queues[0].properties.quota.policy" in problem


def test_root_has_no_quota_policy_and_children_inherit_none(world: Make) -> None:
    config = partition(leaf("a"))
    config["queues"][0]["properties"] = {"quota.policy": "borrowing"}
    (problem,) = problems(document(config))
    assert "the root queue cannot have a quota policy" in problem
    parent = leaf("p", "time-of-day", {"vcore": 4}, windows="00:00-01:00=50%")
    at = world(text({**parent, "queues": [leaf("c", max={"vcore": 4})], "parent": True}))
    assert at.max("root.p.c") == {"vcore": 4000}
    assert "quota.policy" not in at.queue("root.p.c").properties


def test_a_bad_policy_of_a_template_is_found_at_load() -> None:
    parent = {"name": "p", "parent": True, "childtemplate": {"properties": {"quota.policy": "nope"}}}
    (problem,) = problems(text(parent))
    assert "childtemplate.properties.quota.policy" in problem


def test_reload_with_a_mistake_changes_nothing(world: Make) -> None:
    at = world(text(leaf("a", "time-of-day", {"vcore": 8}, windows="00:00-01:00=25%")))
    with pytest.raises(ConfigError):
        at.cluster.reload(text(leaf("a", "nope", {"vcore": 8})))
    assert at.run("app", "root.a", 9) == 2


def test_policies_of_queues_and_templates_are_listed_as_uses() -> None:
    template = {"properties": {"quota.policy": "borrowing"}}
    config = text(
        leaf("a", "time-of-day", {"vcore": 8}, windows="00:00-01:00=25%"),
        {"name": "users", "parent": True, "childtemplate": template},
    )
    checked = check_config(config, Registry.load(third_party=False)).config
    assert checked is not None
    uses = [(use.name, use.place) for use in plugin_uses(checked) if use.kind.id == "quota"]
    assert uses == [
        ("time-of-day", "root.a: quota.policy"),
        ("borrowing", "root.users: childtemplate: quota.policy"),
    ]
