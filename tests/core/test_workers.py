"""Workers and policies: declarations, life cycle, gangs, limits, and equality with a core without workers."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, queue, with_plugins
from tests.core.manual_workers import ManualWorkers, acceptances, core_with_workers, registry_of
from tests.core.test_slow_policies import LEAVES, SITE, check_idle, cluster
from tests.example_counts import examples
from yunikorn.api import Context, PlacementRule, Submission, SubmitPolicy, UserGroupResolver
from yunikorn.interface.messages import (
    AddApplicationRequest,
    AllocationAsk,
    UpdateRequest,
    UserGroupInformation,
)
from yunikorn.resources import Resource
from yunikorn_service.rm_limits import RMAdmission
from yunikorn_service.service_settings import RMLimits


class Quick(UserGroupResolver):
    name = "quick"
    blocking = False

    def groups(self, user: str) -> list[str]:
        return [user]


class Two(SubmitPolicy):
    name = "two"
    calls_at_once = 2

    def submit(self, app: Submission) -> None:
        pass


class TwoAtOnce(PlacementRule):
    name = "two"
    blocking = True
    calls_at_once = 2

    def place(self, app: Any) -> str:
        return "root.a"


class Odd(Two):
    name = "odd"
    calls_at_once = True
    blocking: ClassVar[Any] = "no"


def cluster_of(config: str, **classes: Any) -> tuple[RM, ManualWorkers]:
    core: Any = core_with_workers(with_plugins(**classes))
    return RM(config, scheduler=core), core.manual_workers


def test_resolver_that_never_blocks_is_called_at_once() -> None:
    config = configuration(*LEAVES, usergroupresolver={"type": "quick"})
    rm, workers = cluster_of(config, user_group_resolvers=[Quick])
    rm.app("app", user="ann", groups=())
    assert acceptances(rm.responses) == ["app"]
    assert not workers.waiting


def test_policy_is_called_as_often_at_once_as_it_permits() -> None:
    rm, workers = cluster_of(configuration(*LEAVES, submitpolicies=["two"]), submit_policies=[Two])
    for number in range(5):
        rm.app(f"app{number}")
    assert list(workers.waiting) == [1, 2]
    workers.answer(2)
    assert list(workers.waiting) == [1, 3]
    workers.answer_all()
    assert acceptances(rm.responses) == ["app1", "app0", "app2", "app3", "app4"]


def test_rule_is_called_as_often_at_once_as_it_permits() -> None:
    rm, workers = cluster_of(
        configuration(*LEAVES, placementrules=[{"name": "two"}]), placement_rules=[TwoAtOnce]
    )
    for number in range(3):
        rm.app(f"app{number}")
    assert list(workers.waiting) == [1, 2]
    workers.answer_all()
    assert acceptances(rm.responses) == ["app0", "app1", "app2"]


def test_wrong_declarations_are_reported_and_the_safe_ones_apply() -> None:
    rm, workers = cluster_of(configuration(*LEAVES, submitpolicies=["odd"]), submit_policies=[Odd])
    assert rm.failures() == [
        "plugin odd of test-plugin (yunikorn-test 1.0): reading its calls_at_once: True is not a whole number"
        " from 1 on; 1 applies"
    ]
    rm.app("app")
    rm.app("next")
    assert len(workers.waiting) == 1


class Stateful(SubmitPolicy):
    name = "stateful"
    log: ClassVar[list[str]] = []

    def opened(self, context: Context) -> None:
        self.log.append("opened")

    def submit(self, app: Submission) -> None:
        self.log.append(app.id)

    def reloaded(self, context: Context) -> None:
        self.log.append("reloaded")

    def closed(self) -> None:
        self.log.append("closed")


@attrs.define(eq=False)
class Exclusive(Stateful):
    name = "exclusive"
    close_before_open = True
    number: int = 0


def test_reloaded_and_closed_wait_for_the_calls_in_progress() -> None:
    Stateful.log.clear()
    rm, workers = cluster_of(
        configuration(*LEAVES, submitpolicies=["stateful"]), submit_policies=[Stateful, Exclusive]
    )
    rm.app("first")
    rm.reload(configuration(*LEAVES, queue("c"), submitpolicies=["stateful"]))
    rm.app("second")
    assert Stateful.log == ["opened"]
    workers.answer()
    assert Stateful.log == ["opened", "first", "reloaded"]
    rm.reload(configuration(*LEAVES))
    assert acceptances(rm.responses) == ["first", "second"]
    assert Stateful.log == ["opened", "first", "reloaded"]
    workers.answer()
    assert Stateful.log == ["opened", "first", "reloaded", "first", "closed"]
    assert not workers.waiting


def test_policy_that_is_closed_first_does_not_wait_for_its_calls() -> None:
    Stateful.log.clear()
    policies = [[{"name": "exclusive", "number": number}] for number in (1, 2)]
    first, second = (configuration(*LEAVES, submitpolicies=named) for named in policies)
    rm, workers = cluster_of(first, submit_policies=[Exclusive])
    rm.app("app")
    rm.reload(second)
    assert Stateful.log == ["opened", "closed", "opened"]
    assert workers.abandoned == [1]
    workers.answer(2)
    workers.answer(1)
    assert acceptances(rm.responses) == ["app"]


def test_session_that_is_paused_takes_answers() -> None:
    rm, workers = cluster()
    rm.node(vcore=2)
    rm.app()
    rm.ask(vcore=1)
    rm.scheduler.pause("rm")
    workers.answer()
    assert rm.find_app().asks
    assert rm.schedule() == []
    rm.scheduler.stop("rm")
    assert len(rm.scheduler._sessions.core_context.policy_calls or ()) == 0


@pytest.mark.parametrize("style", ["Hard", "Soft", "Atomic"])
def test_gang_waits_as_a_whole(style: str) -> None:
    core: Any = core_with_workers(registry_of())
    rm, workers = GangRM(SITE, scheduler=core), core.manual_workers
    rm.node(vcore=4)
    rm.gang("gang", style, vcore=2)
    placeholder = style != "Atomic"
    rm.task("gang", "member", "group", 2, placeholder=placeholder, vcore=1)
    assert rm.schedule() == []
    workers.answer()
    assert rm.schedule() == [("gang", "member", "n1")] * 2
    if placeholder:
        rm.task("gang", "real", "group", 2, vcore=1)
        rm.schedule()
        assert len(rm.at_work().partition.changes.outbox.releases) == 0
    check_idle(rm, workers)


ENTRIES = st.lists(
    st.tuples(
        st.sampled_from(["app", "ask", "ask", "release_ask", "remove", "node", "schedule"]),
        st.integers(0, 3),
        st.sampled_from(["", "no", "raise", "to root.b", "place"]),
        st.sampled_from("xy"),
    ),
    max_size=40,
)


ALL = configuration(
    *LEAVES,
    usergroupresolver={"type": "groups"},
    submitpolicies=["fast", "site"],
    placementrules=[{"name": "directory"}, {"name": "provided"}],
)


@settings(max_examples=examples(20), deadline=None)
@given(entries=ENTRIES)
def test_prompt_answers_change_no_decision(entries: list[tuple[str, int, str, str]]) -> None:
    """Workers that answer before the next update lead to the decisions of a core without workers."""
    core: Any = core_with_workers(registry_of())
    both = [RM(ALL, scheduler=core), RM(ALL, registry_of())]
    for rm in both:
        for number, entry in enumerate(entries):
            play(rm, number, *entry)
            if rm is both[0]:
                core.manual_workers.answer_all()
        rm.schedule()
    seen, plain = [summary(rm) for rm in both]
    assert seen == plain


def play(rm: RM, number: int, operation: str, index: int, said: str, key: str) -> None:
    """Play one operation of a history."""
    app_id = f"app{index}"
    if operation == "app":
        user = f"user{index % 2}"
        tags = {"directory": "root.b"} if said == "place" else {"site": said}
        rm.app(app_id, user="nobody" if said == "no" and index else user, groups=(), **tags)
    elif operation == "ask":
        rm.ask(app_id, key, vcore=1)
    elif operation == "release_ask":
        rm.release_ask(app_id, key)
    elif operation == "remove":
        rm.remove_app(app_id)
    elif operation == "node":
        rm.node(f"n{number}", vcore=2)
    else:
        rm.schedule()


def summary(rm: RM) -> list[list[Any]]:
    """Return everything that an RM was told, without the times."""
    return [
        [(one.application_id, one.allocation_key, one.node_id) for one in rm.entries("new_allocations")],
        [(one.application_id, one.reason) for one in rm.entries("rejected_applications")],
        [(one.application_id, one.state) for one in rm.entries("updated_applications")],
        [(one.application_id, one.allocation_key, one.reason) for one in rm.entries("rejected_allocations")],
        [one.application_id for one in rm.entries("accepted_applications")],
        rm.failures(),
    ]


def test_entries_that_wait_count_for_the_limits_of_a_resource_manager() -> None:
    rm, _ = cluster()
    rm.app("app")
    rm.update(asks=[AllocationAsk(f"{key}", "app", resource_ask=Resource(vcore=1)) for key in range(3)])
    admission = RMAdmission("rm", RMLimits(asks=4, applications=1))
    more = UpdateRequest(
        "rm",
        new_applications=[AddApplicationRequest("other", "root.a", ugi=UserGroupInformation("ann"))],
        asks=[AllocationAsk(f"more-{key}", "app", resource_ask=Resource(vcore=1)) for key in range(9)],
    )
    refused = admission.apply_limits(rm.scheduler, more)
    assert refused is not None
    assert [one.application_id for one in refused.rejected_applications] == ["other"]
    assert len(refused.rejected_allocations) == 8
    assert [ask.allocation_key for ask in more.asks] == ["more-0"]
