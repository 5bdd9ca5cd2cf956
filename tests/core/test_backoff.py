"""Application back-off: after asks without a node the application is skipped for a while."""

from __future__ import annotations

from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn import api
from yunikorn.clock import SECOND


class Never(api.Predicate):
    """Refuses asks that carry its tag, and counts its calls."""

    name = "never"
    asked: list[str]

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        type(self).asked.append(ask.key)
        return "not here" if ask.tags.get("refuse") else None


def cluster(count: int = 2, delay: str = "30s") -> RM:
    """Return an RM with one node and a queue with back-off."""
    Never.asked = []
    properties = {
        "application.unschedasks.backoff": str(count),
        "application.unschedasks.backoff.delay": delay,
    }
    tree = configuration(queue("a", properties=properties), queue("b"), predicates=["never"])
    rm = RM(tree, with_plugins(predicates=[Never]))
    rm.node(memory=10)
    rm.app()
    return rm


def test_an_application_backs_off_after_repeated_misses() -> None:
    rm = cluster()
    rm.ask(key="first", memory=1, tags={"refuse": "yes"})
    rm.ask(key="second", memory=1, tags={"refuse": "yes"})
    rm.ask(key="third", memory=1)
    assert rm.schedule() == []
    assert Never.asked == ["first", "second"]
    backoff_timer = rm.find_app().backoff_timer
    assert backoff_timer is not None
    assert backoff_timer.due == 30 * SECOND

    # No event ends the back-off early; other applications are tried.
    rm.change_node("n1", memory=20)
    rm.app("other", "root.b")
    rm.ask("other", "task", memory=1)
    assert rm.schedule() == [("other", "task", "n1")]
    assert Never.asked == ["first", "second", "task"]
    assert rm.scheduler.next_timer() is not None


def test_backoff_ends_by_timer() -> None:
    rm = cluster()
    for key in ("first", "second"):
        rm.ask(key=key, memory=1, tags={"refuse": "yes"})
    rm.ask(key="third", memory=1)
    rm.schedule()
    rm.pass_time(29)
    assert rm.schedule() == []
    rm.pass_time(1)
    assert rm.schedule() == [("app", "third", "n1")]


def test_backoff_ended_by_a_reload_does_not_shorten_the_next() -> None:
    rm = cluster()
    for key in ("first", "second"):
        rm.ask(key=key, memory=1, tags={"refuse": "yes"})
    rm.ask(key="third", memory=1)
    rm.schedule()
    rm.pass_time(10)
    properties = {
        "application.unschedasks.backoff": "2",
        "application.unschedasks.backoff.delay": "30s",
    }
    rm.reload(configuration(queue("a", properties=properties), queue("c"), predicates=["never"]))
    assert rm.schedule() == []
    assert Never.asked == ["first", "second"] * 2
    # The first back-off would have ended at 30 seconds; the second began at 10 and ends at 40.
    rm.pass_time(29)
    assert rm.schedule() == []
    rm.pass_time(1)
    assert rm.schedule() == [("app", "third", "n1")]


def test_an_allocation_resets_the_misses() -> None:
    rm = cluster()
    rm.ask(key="first", memory=1, tags={"refuse": "yes"})
    rm.ask(key="second", memory=1)
    rm.ask(key="third", memory=1, tags={"refuse": "yes"})
    assert rm.schedule(1) == [("app", "second", "n1")]
    assert rm.find_app().misses == 0
    assert rm.find_app().backoff_timer is None
    # Two misses in a row: the third ask, then the first again.
    assert rm.schedule() == []
    assert rm.find_app().backoff_timer is not None


def test_without_the_property_there_is_no_backoff() -> None:
    rm = cluster(count=0)
    for number in range(5):
        rm.ask(key=f"k{number}", memory=1, tags={"refuse": "yes"})
    rm.ask(key="last", memory=1)
    assert rm.schedule() == [("app", "last", "n1")]
    assert rm.find_app().backoff_timer is None


def test_an_application_without_room_backs_off_and_finds_room_afterwards() -> None:
    rm = cluster(count=1, delay="10s")
    rm.node("n2", memory=10)
    rm.ask(key="big", memory=11)
    assert rm.schedule() == []
    rm.change_node("n1", memory=11)
    assert rm.schedule() == []
    rm.pass_time(10)
    assert rm.schedule() == [("app", "big", "n1")]
    assert rm.find_app().backoff_timer is None


def test_a_reload_ends_all_backoffs() -> None:
    rm = cluster(count=1)
    rm.node("n2", memory=10)
    rm.ask(key="big", memory=11)
    assert rm.schedule() == []
    rm.change_node("n1", memory=11)
    assert rm.schedule() == []
    rm.reload(configuration(queue("a"), queue("b")))
    assert rm.schedule() == [("app", "big", "n1")]


def test_removed_application_leaves_no_backoff_timer() -> None:
    rm = cluster(count=1)
    rm.ask(key="first", memory=1, tags={"refuse": "yes"})
    rm.schedule()
    rm.remove_app("app")
    assert rm.scheduler.next_timer() is None
