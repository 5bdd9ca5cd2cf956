"""Cache updates for RMs with a node cache: allocations to assume and to forget.

See docs/decisions/archive/0037.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.kit import configuration, queue
from tests.shim_plugins.shim import Listening
from yunikorn.interface.messages import (
    AssumedAllocation,
    ForgotAllocation,
    NodeAction,
    ReSyncSchedulerCacheArgs,
    UpdateResponse,
)


class Caching(Listening):
    """Implements the cache update only."""

    send_events: Any = None
    update_container_scheduling_state: Any = None

    @property
    def changes(self) -> list[ReSyncSchedulerCacheArgs]:
        return [one for one in self.everything if isinstance(one, ReSyncSchedulerCacheArgs)]


@pytest.fixture
def rm() -> Caching:
    rm = Caching(configuration(queue("a")))
    rm.node("n1", vcore=2)
    rm.node("n2", vcore=2)
    rm.app()
    rm.ask(key="k", count=3, vcore=1)
    rm.schedule()
    return rm


def test_commits_are_assumed_before_they_are_reported(rm: Caching) -> None:
    assumed = [AssumedAllocation("k", node) for node in ("n1", "n2", "n1")]
    assert rm.changes == [ReSyncSchedulerCacheArgs(assumed, [])]
    last_two = rm.everything[-2:]
    assert last_two[0] == rm.changes[0]
    assert isinstance(last_two[1], UpdateResponse)
    assert len(last_two[1].new_allocations) == 3


def test_allocations_lost_with_their_node_are_forgotten_by_the_cache(rm: Caching) -> None:
    rm.change_node("n1", NodeAction.DECOMMISSION)
    assert rm.changes[1:] == [
        ReSyncSchedulerCacheArgs([], [ForgotAllocation("k", "n1"), ForgotAllocation("k", "n1")])
    ]


def test_allocations_lost_with_their_application_are_forgotten_by_the_cache(rm: Caching) -> None:
    rm.scheduler.fail_application("rm", "default", "app", "enough")
    (change,) = rm.changes[1:]
    assert sorted(one.node_id for one in change.forget_allocations) == ["n1", "n1", "n2"]


def test_evicted_allocations_stay_in_the_cache_until_the_rm_ends_them() -> None:
    rm = Caching(configuration(queue("a")))
    rm.node("n1", vcore=1)
    rm.app()
    rm.ask(key="low", vcore=1)
    rm.schedule()
    rm.app("other")
    rm.ask("other", "high", vcore=1, tags={"yunikorn.apache.org/requiredNode": "n1"}, priority=9)
    rm.schedule()
    rm.pass_time(60)
    assert list(rm.evicted), "the test needs an evicted allocation"
    assert all(not change.forget_allocations for change in rm.changes)


def test_commit_reverted_before_its_report_is_not_sent() -> None:
    rm = Caching(configuration(queue("a")))
    rm.node("n1", vcore=2)
    rm.app()
    rm.ask(key="k", vcore=1)
    at = rm.at_work()
    assert at.decide() is not None
    rm.change_node("n1", NodeAction.DECOMMISSION)
    assert rm.changes == []


def test_failing_cache_is_reported_without_other_effects() -> None:
    class Broken(Caching):
        def resync_scheduler_cache(self, args: ReSyncSchedulerCacheArgs) -> None:
            raise MemoryError

    rm = Broken(configuration(queue("a")))
    rm.node("n1", vcore=2)
    rm.app()
    rm.ask(key="k", vcore=1)
    assert rm.schedule() == [("app", "k", "n1")]
    assert "updating its cache" in rm.failures()[0]
    assert rm.scheduler.session_state("rm") == "Running"


def test_nested_updates_are_answered_after_the_current_response() -> None:
    class Hasty(Caching):
        """Registers a node from within the cache update."""

        def resync_scheduler_cache(self, args: ReSyncSchedulerCacheArgs) -> None:
            super().resync_scheduler_cache(args)
            if "n9" not in self.at_work().partition.nodes:
                self.node("n9", vcore=1)

    rm = Hasty(configuration(queue("a")))
    rm.node("n1", vcore=1)
    rm.app()
    rm.ask(key="k", count=2, vcore=1)
    rm.take_response()
    rm.scheduler.schedule(1)
    assert [(len(one.new_allocations), len(one.accepted_nodes)) for one in rm.responses] == [(1, 0), (0, 1)]
    assert len(rm.changes) == 1
    rm.scheduler.schedule()
    assert [one.node_id for one in rm.changes[1].assumed_allocations] == ["n9"]


def test_rm_that_stops_within_its_callback_receives_nothing_more() -> None:
    class StoppingCache(Caching):
        """Raises after enough updates."""

        def resync_scheduler_cache(self, args: ReSyncSchedulerCacheArgs) -> None:
            self.scheduler.stop("rm")

    rm = StoppingCache(configuration(queue("a")))
    rm.node("n1", vcore=1)
    rm.app()
    rm.ask(key="k", vcore=1)
    rm.take_response()
    assert rm.scheduler.schedule() == 1
    assert rm.responses == []
