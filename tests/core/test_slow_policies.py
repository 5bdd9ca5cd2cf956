"""Resolvers and submit policies that workers call: the core continues, and nothing gets out of order."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.core.kit import RM, configuration, document, partition, queue
from tests.core.manual_workers import (
    Groups,
    ManualWorkers,
    Site,
    acceptances,
    core_with_workers,
    registry_of,
    rejections,
)
from yunikorn.errors import UsageError
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationReleasesRequest,
    RegisterResourceManagerRequest,
    RemoveApplicationRequest,
    UserGroupInformation,
)
from yunikorn.resources import Resource
from yunikorn.scheduling.admission.worker_questions import FEW_HANGING, MOST_HANGING, PAUSE

LEAVES = queue("a"), queue("b")
SITE = configuration(*LEAVES, submitpolicies=["site"])
GROUPS = configuration(*LEAVES, usergroupresolver={"type": "groups"})
BOTH = configuration(*LEAVES, usergroupresolver={"type": "groups"}, submitpolicies=["fast", "site"])


def cluster(config: str = SITE) -> tuple[RM, ManualWorkers]:
    core: Any = core_with_workers(registry_of())
    return RM(config, scheduler=core), core.manual_workers


def check_idle(rm: RM, workers: ManualWorkers) -> None:
    """Assert that nothing of any application waits."""
    at = rm.at_work()
    assert not workers.waiting
    assert len(at.submitted) == len(at.existing.occupied) == len(at.existing.awaited) == 0
    assert at.questions is not None
    assert len(at.questions) == 0


def test_application_waits_with_its_asks_and_others_do_not() -> None:
    rm, workers = cluster()
    rm.node(vcore=4)
    rm.app("slow")
    rm.ask("slow", "s", vcore=1)
    assert rm.schedule() == []
    assert acceptances(rm.responses) == []
    with pytest.raises(UsageError, match="'slow' is not accepted yet: the answer of submit policy site"):
        rm.scheduler.explain("rm", "default", "slow")
    rm.app("other")
    workers.answer()
    rm.ask("other", "o", vcore=1)
    workers.answer()
    assert acceptances(rm.responses) == ["slow", "other"]
    assert rm.schedule() == [("slow", "s", "n1"), ("other", "o", "n1")]
    check_idle(rm, workers)


def test_entries_of_one_update_keep_their_order() -> None:
    rm, workers = cluster()
    rm.node(vcore=4)
    rm.update(
        new_applications=[AddApplicationRequest("app", "root.a", ugi=UserGroupInformation("ann"))],
        asks=[AllocationAsk(key, "app", resource_ask=Resource(vcore=1)) for key in "xyz"],
        releases=AllocationReleasesRequest([], [AllocationAskRelease("app", "y")]),
    )
    rm.ask("app", "x", 2, vcore=1)
    rm.release_ask("", "z")
    rm.ask("app", "z", vcore=2)
    assert rm.schedule() == []
    workers.answer()
    assert sorted(rm.schedule()) == [("app", "x", "n1"), ("app", "x", "n1"), ("app", "z", "n1")]
    released = [one.allocation_key for each in rm.responses for one in each.released_allocation_asks]
    assert released == ["y", "z"]
    check_idle(rm, workers)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("not today", "submit policy site rejects application app: not today"),
        ("raise", "checking application 'app': ValueError: the site is closed"),
        ("exit", "SystemExit: 0"),
        ("interrupt", "KeyboardInterrupt"),
        ("lie", "TypeError: it returned 7"),
        ("steal", "ValueError: it changed 'user'"),
    ],
)
def test_rejected_application_takes_its_asks_with_it(said: str, reason: str) -> None:
    rm, workers = cluster()
    rm.app("app", site=said)
    rm.ask("app", "x", vcore=1)
    workers.answer()
    assert reason in rejections(rm.responses)["app"]
    (refused,) = [one for each in rm.responses for one in each.rejected_allocations]
    assert (refused.allocation_key, refused.reason) == ("x", "failed to find application app")
    assert len(rm.failures()) == (said != "not today")
    check_idle(rm, workers)
    rm.app("app")
    workers.answer()
    assert acceptances(rm.responses) == ["app"]


def test_changes_apply_and_later_policies_see_them() -> None:
    rm, workers = cluster(BOTH)
    rm.app("app", "root.a", user="ann", groups=(), fast="to root.b")
    rm.ask("app", "x", priority=1, vcore=1)
    assert workers.answer_all() == 2
    app = rm.find_app()
    assert (app.queue is not None and app.queue.path, app.ask_priority) == ("root.b", 5)
    assert (app.user, list(app.groups)) == ("ann", ["group-of-ann"])
    assert app.asks["x"].priority == 5
    fast, site = Site.seen
    assert (fast.groups, fast.queue_name, fast.priority) == (("group-of-ann",), "root.a", None)
    assert (site.queue_name, dict(site.tags)["by"], site.priority) == ("root.b", "fast", 5)
    check_idle(rm, workers)


def test_applications_of_one_user_share_a_call() -> None:
    rm, workers = cluster(GROUPS)
    for number in range(5):
        rm.app(f"app{number}", user="ann", groups=())
    rm.app("her", user="bea", groups=())
    assert workers.answer_all() == 2
    rm.app("later", user="ann", groups=())
    assert Groups.calls == ["ann", "bea"]
    assert acceptances(rm.responses) == [*(f"app{number}" for number in range(5)), "her", "later"]


def test_groups_in_a_submission_need_no_call() -> None:
    rm, workers = cluster(GROUPS)
    rm.app("app", groups=("x",))
    assert acceptances(rm.responses) == ["app"]
    assert not workers.waiting


def test_unknown_user_is_rejected_and_remembered() -> None:
    rm, workers = cluster(GROUPS)
    rm.app("app", user="nobody", groups=())
    workers.answer()
    rm.app("again", user="nobody", groups=())
    assert "there is no user 'nobody'" in rejections(rm.responses)["app"]
    assert "there is no user 'nobody'" in rejections(rm.responses)["again"]
    assert Groups.calls == ["nobody"]


def test_call_that_hangs_costs_only_its_application(caplog: pytest.LogCaptureFixture) -> None:
    rm, workers = cluster(GROUPS)
    rm.node(vcore=4)
    rm.app("stuck", user="ann", groups=())
    rm.ask("stuck", "s", vcore=1)
    rm.pass_time(1)
    rm.app("other", user="bea", groups=())
    rm.ask("other", "o", vcore=1)
    rm.app("known", groups=("x",))
    rm.ask("known", "k", vcore=1)
    assert rm.schedule() == [("known", "k", "n1")]
    with caplog.at_level(logging.WARNING, "yunikorn.plugins"):
        rm.pass_time(9)
    reason = rejections(rm.responses)["stuck"]
    assert "finding the groups of user 'ann': it has not returned within 10s" in reason
    assert "a call has not returned within 10s; its thread is replaced" in caplog.text
    assert "slow.py:1 in wait" in caplog.text
    assert workers.abandoned == [1]
    workers.answer(2)
    assert rm.schedule() == [("other", "o", "n1")]
    workers.answer(1)
    assert acceptances(rm.responses) == ["known", "other"]
    check_idle(rm, workers)


def test_policy_with_many_hanging_calls_is_asked_once_per_pause(caplog: pytest.LogCaptureFixture) -> None:
    rm, workers = cluster()
    for number in range(1000):
        rm.app(f"app{number}")
    with caplog.at_level(logging.WARNING, "yunikorn.plugins"):
        rm.pass_time(10 * FEW_HANGING)
        rm.scheduler.fire_timers()
    reasons = list(rejections(rm.responses).values())
    assert len(reasons) == 1000
    assert sum("has not returned within 10s" in reason for reason in reasons) == FEW_HANGING
    assert sum(f"{FEW_HANGING} calls have not returned" in reason for reason in reasons) == 1000 - FEW_HANGING
    assert len(workers.waiting) == FEW_HANGING
    assert caplog.text.count("its thread is replaced") == 1

    rm.app("early")
    rm.pass_time(0)
    assert "was not called" in rejections(rm.responses)["early"]
    pause = PAUSE / 1e9
    rm.pass_time(pause)
    rm.app("probe")
    rm.app("behind")
    assert len(workers.waiting) == FEW_HANGING + 1
    rm.pass_time(10)
    assert "has not returned" in rejections(rm.responses)["probe"]
    assert "was not called" in rejections(rm.responses)["behind"]
    for attempt in range(1, 30):
        rm.pass_time(pause * 2**attempt)
        rm.app(f"probe{attempt}")
        rm.pass_time(10)
    assert len(workers.waiting) == MOST_HANGING


def test_policy_that_answers_again_is_asked_at_once(caplog: pytest.LogCaptureFixture) -> None:
    rm, workers = cluster()
    for number in range(FEW_HANGING):
        rm.app(f"app{number}")
    rm.pass_time(10 * FEW_HANGING)
    workers.answer(3)
    assert acceptances(rm.responses) == []
    rm.app("next")
    with caplog.at_level(logging.WARNING, "yunikorn.plugins"):
        workers.answer(FEW_HANGING + 1)
    assert acceptances(rm.responses) == ["next"]
    assert "plugin site of test-plugin (yunikorn-test 1.0) answers again" in caplog.text
    rm.app("another")
    workers.answer(FEW_HANGING + 2)
    assert acceptances(rm.responses) == ["next", "another"]


def test_removed_application_is_forgotten() -> None:
    rm, workers = cluster()
    rm.node(vcore=4)
    rm.app()
    rm.ask(vcore=1)
    rm.remove_app("app")
    assert rejections(rm.responses) == {}
    workers.answer()
    assert acceptances(rm.responses) == []
    assert rm.schedule() == []
    check_idle(rm, workers)


def test_application_removed_and_submitted_in_one_update_is_the_new_one() -> None:
    rm, workers = cluster()
    rm.node(vcore=4)
    rm.app("app", site="not today")
    rm.ask("app", "old", vcore=1)
    rm.update(
        remove_applications=[RemoveApplicationRequest("app")],
        new_applications=[AddApplicationRequest("app", "root.b", ugi=UserGroupInformation("ann"))],
        asks=[AllocationAsk("new", "app", resource_ask=Resource(vcore=1))],
    )
    workers.answer_all()
    assert (acceptances(rm.responses), rejections(rm.responses)) == (["app"], {})
    assert rm.schedule() == [("app", "new", "n1")]
    check_idle(rm, workers)


def test_second_submission_is_rejected_at_once() -> None:
    rm, workers = cluster()
    rm.app()
    rm.app()
    assert "exists already" in rejections(rm.responses)["app"]
    workers.answer()
    assert acceptances(rm.responses) == ["app"]


def test_failed_by_the_resource_manager() -> None:
    rm, workers = cluster()
    rm.app()
    rm.scheduler.fail_application("rm", "default", "app", "not wanted")
    assert rejections(rm.responses) == {"app": "not wanted"}
    workers.answer()
    check_idle(rm, workers)


def test_ask_without_application_waits() -> None:
    rules = [{"name": "fixed", "value": "root.a"}]
    rm, workers = cluster(configuration(*LEAVES, submitpolicies=["site"], placementrules=rules))
    rm.node(vcore=4)
    rm.ask("", "single", vcore=1)
    rm.ask("", "single", 2, vcore=1)
    rm.ask("", "bad", tags={"site": "not here"}, vcore=1)
    rm.ask("", "gone", vcore=1)
    rm.release_ask("", "gone")
    assert workers.answer_all() == 3
    assert sorted(rm.schedule()) == [("single", "single", "n1")] * 2
    (refused,) = [one for each in rm.responses for one in each.rejected_allocations]
    assert refused.allocation_key == "bad"
    assert refused.reason.endswith("rejects application bad: not here")
    assert rejections(rm.responses) == {}
    check_idle(rm, workers)


def test_recovered_application_is_neither_rejected_nor_moved() -> None:
    force = {"application.create.force": "true"}
    rm, workers = cluster(BOTH)
    running = Allocation("task", "app", uuid="u", resource_per_alloc=Resource(vcore=3), node_id="n1")
    rm.app_tagged("app", "root.a", {**force, "site": "raise"}, user="nobody", groups=())
    rm.app_tagged("moved", "root.a", {**force, "site": "to root.b"}, user="nobody", groups=())
    rm.app("new")
    rm.node(existing=[running], vcore=4)
    rm.ask("new", "n", vcore=2)
    workers.answer_all()
    assert set(acceptances(rm.responses)) == {"app", "moved", "new"}
    moved = rm.find_app("moved")
    assert moved.queue is not None
    assert (moved.queue.path, moved.tags["by"]) == ("root.a", "site")
    assert list(rm.find_app().allocations) == ["u"]
    assert rm.schedule() == []
    check_idle(rm, workers)


def test_running_task_of_a_waiting_application_keeps_its_room() -> None:
    rm, workers = cluster()
    rm.node(vcore=4)
    rm.app("app")
    rm.update(
        allocations=[
            Allocation("late", "app", resource_per_alloc=Resource(vcore=1)),
            Allocation("here", "app", uuid="u", resource_per_alloc=Resource(vcore=3), node_id="n1"),
            Allocation("here", "app", resource_per_alloc=Resource(vcore=2)),
        ]
    )
    rm.app("other")
    assert rm.find_node().available == {"vcore": 1}
    workers.answer_all()
    assert rm.find_node().available == {"vcore": 2}
    assert rm.schedule() == [("app", "late", "n1")]
    check_idle(rm, workers)


def test_room_is_free_again_after_a_rejection_or_a_removal() -> None:
    rm, workers = cluster()
    rm.node(vcore=4)
    placed = [
        Allocation("here", app, uuid=app, resource_per_alloc=Resource(vcore=2), node_id="n1")
        for app in ("bad", "gone")
    ]
    rm.app("bad", site="not here")
    rm.app("gone")
    rm.update(allocations=placed)
    assert not rm.find_node().available
    rm.remove_app("gone")
    assert rm.find_node().available == {"vcore": 2}
    workers.answer()
    assert rm.find_node().available == {"vcore": 4}
    check_idle(rm, workers)


def test_reload_asks_the_new_policies() -> None:
    rm, workers = cluster()
    rm.app("app", site="not today")
    rm.ask(vcore=1)
    assert rm.reload(configuration(*LEAVES, usergroupresolver={"type": "groups"}))
    assert acceptances(rm.responses) == ["app"]
    workers.answer()
    assert (acceptances(rm.responses), rejections(rm.responses)) == (["app"], {})
    check_idle(rm, workers)


def test_reload_that_keeps_the_policy_asks_again() -> None:
    rm, workers = cluster()
    rm.app()
    assert rm.reload(configuration(*LEAVES, queue("c"), submitpolicies=["site"]))
    assert len(workers.waiting) == 1
    workers.answer()
    assert acceptances(rm.responses) == []
    workers.answer()
    assert acceptances(rm.responses) == ["app"]
    check_idle(rm, workers)


def test_application_of_a_removed_partition_is_rejected() -> None:
    two = document(partition(queue("a")), partition(queue("a"), name="gpu", submitpolicies=["site"]))
    rm, workers = cluster(two)
    rm.app("app", partition_name="gpu")
    rm.ask("app", partition_name="gpu", vcore=1)
    assert rm.reload(document(partition(queue("a"))))
    assert "partition gpu was removed" in rejections(rm.responses)["app"]
    workers.answer()
    assert acceptances(rm.responses) == []


def test_stopped_partition_rejects_when_the_answer_arrives() -> None:
    rm, workers = cluster()
    rm.app()
    rm.scheduler.stop_partition("rm", "default")
    workers.answer()
    assert "is stopped" in rejections(rm.responses)["app"]


def test_new_registration_drops_what_waits() -> None:
    rm, workers = cluster()
    rm.app()
    rm.ask(vcore=1)
    rm.scheduler.register_resource_manager(RegisterResourceManagerRequest("rm", config=SITE), rm)
    assert workers.abandoned == [1]
    rm.app()
    workers.answer(1)
    assert acceptances(rm.responses) == []
    workers.answer(2)
    assert acceptances(rm.responses) == ["app"]
    check_idle(rm, workers)
