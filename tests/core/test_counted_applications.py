"""Applications that count as running for their user and group."""

from __future__ import annotations

import pytest

from tests.core.kit import RM
from tests.core.test_limits import end_one, limit, limited, names, rm_with, submit
from yunikorn.model.usage_tracker import USER


def test_application_that_never_had_an_allocation_does_not_count() -> None:
    rm = rm_with(limited(limit(users=["ann"], apps=1)), memory=4)
    submit(rm, "idle", "ann", memory=5)
    rm.release_ask("idle")
    rm.ask("idle", memory=5)
    assert rm.schedule() == []
    assert rm.state("idle") == "Running"
    assert running(rm, "ann") == ()
    for app in ("a1", "a2"):
        submit(rm, app, "ann")
    assert names(rm.schedule()) == ["a1"]
    assert running(rm, "ann") == ("a1",)


@pytest.mark.parametrize("apps", [9, 0], ids=["limited", "unlimited"])
def test_application_counts_from_its_first_allocation_until_it_wants_nothing(apps: int) -> None:
    limits = [limit(users=["ann"], apps=apps)] if apps else []
    rm = rm_with(limited(*limits), memory=2)
    submit(rm, "app", "ann", count=3)
    assert running(rm, "ann") == ()
    rm.schedule()
    # It counts while it only waits.
    end_one(rm, "app")
    end_one(rm, "app")
    assert running(rm, "ann") == ("app",)
    rm.schedule()
    end_one(rm, "app")
    assert running(rm, "ann") == ()
    rm.ask("app", "more", memory=3)
    rm.schedule()
    assert running(rm, "ann") == ()
    rm.ask("app", "small", count=2, memory=1)
    rm.schedule()
    for uuid in list(rm.running):
        rm.release("app", uuid)
    assert running(rm, "ann") == ("app",)
    rm.release_ask("app")
    rm.ask("app", "again", memory=3)
    assert running(rm, "ann") == ()


def running(rm: RM, user: str) -> tuple[str, ...]:
    """Return the applications of a user that count as running."""
    tracker = rm.at_work().partition.usage.of(USER, user, "root.a")
    return () if tracker is None else tracker.applications
