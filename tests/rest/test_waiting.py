"""Routes about requests and applications that wait: for nodes, for quotas, and for policies."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from tests.core.manual_workers import core_with_workers, registry_of
from tests.core.test_scheduling_states import cluster
from tests.plugins.permit_kit import Gate, clear
from tests.rest.kit import Rest
from yunikorn.api import Ask, Node, Predicate
from yunikorn.clock import SECOND
from yunikorn.metrics.core_figures import read_figures
from yunikorn.runtime.sliced_reads import read_at_once

_ = pytest.fixture(autouse=True)(clear)
PATH = "partition/default/application/app"


def test_request_for_which_the_rm_was_told_that_no_node_fits() -> None:
    rm = cluster()
    rm.ask(key="waits", memory=5)
    assert "triggeredScaleUp" not in Rest(rm).json(PATH)["requests"][0]
    assert rm.settle() == [("waits", "FAILED")]
    assert Rest(rm).json(PATH)["requests"][0]["triggeredScaleUp"] is True


class Refusing(Predicate):
    """Refuses all nodes."""

    name = "refusing"
    by_ask = True

    def check(self, ask: Ask, node: Node) -> str | None:
        return "it is Sunday"


class RefusingClasses(Refusing):
    """Refuses all nodes, for all equal requests together."""

    name = "refusing-classes"

    def ask_class(self, ask: Ask) -> str:
        return ""


@pytest.mark.parametrize("predicate", [Refusing, RefusingClasses])
def test_refusals_have_the_time_of_the_latest_attempt(predicate: type[Predicate]) -> None:
    rm = RM(configuration(predicates=[predicate.name]), with_plugins(predicates=[predicate]))
    rm.pass_time(3)
    rm.node("n1", vcore=4)
    rm.app()
    rm.ask(vcore=1)
    rm.schedule()
    log = Rest(rm).json(PATH)["requests"][0]["allocationLog"]
    assert log == [{"message": "it is Sunday", "lastOccurrence": 3 * SECOND, "count": 1}]
    rm.pass_time(100)
    rm.node("n2", vcore=4)
    rm.schedule()
    later = Rest(rm).json(PATH)["requests"][0]["allocationLog"][0]["lastOccurrence"]
    assert later == 103 * SECOND


def test_placement_that_a_permit_policy_refused() -> None:
    rm = RM(configuration(permits=["gate"]), with_plugins(permit_policies=[Gate]))
    Gate.answers["ask"] = "no licence"
    rm.pass_time(2)
    rm.node("n1", vcore=4)
    rm.app()
    rm.ask(vcore=1)
    rm.schedule()
    (entry,) = Rest(rm).json(PATH)["requests"][0]["allocationLog"]
    assert "no licence" in entry["message"]
    assert entry["lastOccurrence"] == 2 * SECOND


def waiting() -> tuple[RM, Rest]:
    """Return an RM with an application that waits for a submit policy, and one that does not."""
    core: Any = core_with_workers(registry_of())
    rm = RM(configuration(submitpolicies=["site"]), scheduler=core)
    rm.pass_time(1)
    rm.app("known")
    core.manual_workers.answer_all()
    rm.ask("known", vcore=1)
    rm.app("waits", user="ann")
    rm.ask("waits", vcore=1)
    return rm, Rest(rm)


def test_application_that_waits_for_the_answer_of_a_policy_is_listed() -> None:
    rm, rest = waiting()
    listed = rest.json("partition/default/applications/active")
    assert [(one["applicationID"], one["applicationState"], one.get("awaited")) for one in listed] == [
        ("known", "Accepted", None),
        ("waits", "New", "submit policy site"),
    ]
    assert rest.json("partition/default/application/waits") == listed[1]
    assert [one["user"] for one in rest.json("partition/default/applications/active?status=new")] == ["ann"]
    assert rest.json("partition/default/applications/active?limit=1&continue=a25vd24=") == [listed[1]]
    assert rest.json("partitions")[0]["applications"] == {"Accepted": 1, "New": 1, "total": 2}
    assert len(rest.json("/debug/fullstatedump")["applications"]) == 2
    assert rest.json("partition/default/queue/root.a/applications") == listed[:1]
    assert read_at_once(rm.scheduler, read_figures).waiting == {"submit policy site": 1}
    core: Any = rm.scheduler
    core.manual_workers.answer_all()
    assert "awaited" not in rest.json("partition/default/application/waits")
    assert read_at_once(rm.scheduler, read_figures).waiting == {}


def test_queue_whose_quota_a_policy_sets() -> None:
    config = configuration(
        queue(
            "a",
            resources={"max": {"vcore": "2"}},
            properties={
                "quota.policy": "time-of-day",
                "quota.policy.windows": "00:00-00:00=vcore:5",
            },
        )
    )
    rm = RM(config)
    found = Rest(rm).json("partition/default/queue/root.a")
    assert found["maxResource"] == {"vcore": 5000}
    assert found["configuredMaxResource"] == {"vcore": 2000}
    assert found["quotaPolicy"] == "time-of-day"
    assert found["quotaReason"]


def test_queue_with_back_off() -> None:
    properties = {"application.unschedasks.backoff": "3", "application.unschedasks.backoff.delay": "10s"}
    rm = RM(configuration(queue("a", properties=properties), queue("b")))
    found = Rest(rm).json("partition/default/queue/root.a")
    assert (found["unschedAskBackoff"], found["askBackoffDelay"]) == (3, "10s")
    other = Rest(rm).json("partition/default/queue/root.b")
    assert not {"unschedAskBackoff", "askBackoffDelay", "quotaPolicy", "configuredMaxResource"} & set(other)
