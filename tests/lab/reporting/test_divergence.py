"""The first difference of two runs: found exactly, and described in a sentence with the reason."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from yunikorn.clock import SECOND
from yunikorn.interface.messages import Allocation
from yunikorn.resources import Resource
from yunikorn_lab.reporting.decision_log import (
    PLACES,
    DecisionLog,
    Divergence,
    LoggedDecision,
    describe,
    find_divergence,
    question,
    question_to_first,
    unpack,
)
from yunikorn_lab.simulation.explain_requests import Cause, ExplainAnswer, WaitingRequest

DECISIONS = st.lists(
    st.builds(
        LoggedDecision,
        st.integers(0, 3),
        st.sampled_from([PLACES, "preempted"]),
        st.sampled_from(["a", "b"]),
        st.just("t"),
        st.sampled_from(["n", "m"]),
        st.just("root.q"),
    ),
    max_size=5,
)


def packed(decisions: Sequence[LoggedDecision]) -> bytes:
    """Return the packed log of a run with these decisions."""
    decision_log = DecisionLog()
    for one in decisions:
        place = Allocation(one.task, one.application, "id", one.node, Resource(vcore=1), one.queue)
        if one.is_placing:
            decision_log.allocated(one.time, place)
        else:
            decision_log.released(one.time, place, one.kind)
    decision_log.released(9, Allocation("t", "a", "id", "n", Resource(vcore=1), "root.q"), "ended")
    return decision_log.pack()


@given(DECISIONS, DECISIONS)
def test_the_divergence_is_the_first_difference(
    one: list[LoggedDecision], other: list[LoggedDecision]
) -> None:
    assert list(unpack(packed(one))) == one
    divergence = find_divergence(packed(one), packed(other))
    if one == other:
        assert divergence is None
    else:
        assert divergence is not None
        assert one[: divergence.equal] == other[: divergence.equal]
        assert (divergence.one, divergence.other) == (
            one[divergence.equal] if divergence.equal < len(one) else None,
            other[divergence.equal] if divergence.equal < len(other) else None,
        )


def test_a_long_decision_log_is_unpacked_in_pieces() -> None:
    long = [
        LoggedDecision(number, PLACES, f"app-{number * 7919 % 10007}", "t", "n", "q")
        for number in range(30_000)
    ]
    assert len(packed(long)) > 1 << 16
    assert list(unpack(packed(long))) == long


def placing(time: int, application: str, node: str = "n1") -> LoggedDecision:
    """Return the placement of a task; `time` in seconds."""
    return LoggedDecision(time * SECOND, PLACES, application, "task", node, "root.a")


def answer(*causes: str) -> ExplainAnswer:
    """Return an explain answer with these reasons."""
    found = [Cause("order", cause, cause) for cause in causes]
    request = WaitingRequest("task", 1, {}, found, "2nd of 3 requests that wait", [])
    return ExplainAnswer("x", 90, "root.a", "1 waiting", [request], None)


def test_sentence_describes_both_decisions_and_the_obstacle() -> None:
    divergence = Divergence(1200, placing(90, "x"), placing(90, "y"))
    assert str(question(divergence)) == "x@1m30s"
    divergence_report = describe("fifo", "fair", divergence, 1200, answer("the cluster is full"))
    assert (divergence_report.variant, divergence_report.equal, divergence_report.time) == ("fair", 1200, 90)
    assert divergence_report.sentence == (
        "At 1m30s, after 1,200 equal decisions, fifo places task of x (root.a) on n1, "
        "while fair places task of y (root.a) on n1; under fair x is stopped by: the cluster is full; "
        "position: 2nd of 3 requests that wait."
    )


def test_different_node_for_the_same_task_is_attributed_to_node_order() -> None:
    divergence = Divergence(0, placing(5, "x"), placing(5, "x", "n2"))
    sentence = describe("a", "b", divergence, 0, answer("anything")).sentence
    assert sentence == (
        "At 5s, with the first decision, a places task of x (root.a) on n1, "
        "while b places task of x (root.a) on n2: the order of nodes differs."
    )


def test_a_later_placement_of_the_same_task_is_explained() -> None:
    later = Divergence(3, placing(90, "x"), placing(95, "x", "n2"))
    sentence = describe("a", "b", later, 3, answer("others go first")).sentence
    assert sentence.endswith(
        "while b makes no decision until 1m35s, when it places task of x (root.a) on n2; "
        "under b x is stopped by: others go first; position: 2nd of 3 requests that wait."
    )
    earlier = Divergence(3, placing(90, "x"), placing(85, "x", "n2"))
    assert describe("a", "b", earlier, 3, answer("anything")).sentence == (
        "At 1m25s, after 3 equal decisions, a makes no decision until 1m30s, when it places task of x "
        "(root.a) on n1, while b places task of x (root.a) on n2."
    )


def test_an_earlier_placement_is_asked_of_the_first_run() -> None:
    later = LoggedDecision(95 * SECOND, "preempted", "y", "t", "n", "q")
    for one in (placing(90, "x"), placing(95, "y"), None, later):
        found = Divergence(3, one, placing(85, "x", "n2"))
        assert str(question_to_first(found)) == "x@1m25s"
        sentence = describe("a", "b", found, 3, answer("no room"), is_of_first=True).sentence
        assert sentence.endswith("; under a x is stopped by: no room; position: 2nd of 3 requests that wait.")
    released = LoggedDecision(85 * SECOND, "preempted", "y", "t", "n", "q")
    for found in (
        Divergence(3, placing(85, "y"), placing(85, "x")),
        Divergence(3, placing(80, "y"), placing(85, "x")),
        Divergence(3, released, placing(90, "x")),
        Divergence(3, placing(90, "x"), released),
        Divergence(3, placing(90, "x"), None),
    ):
        assert question_to_first(found) is None


def test_idle_and_later_decisions_are_described() -> None:
    later = Divergence(1, placing(5, "x"), placing(8, "y"))
    assert str(question(later)) == "x@5s"
    assert "b makes no decision until 8s, when it places task" in describe("a", "b", later, 1, None).sentence
    over = Divergence(1, placing(5, "x"), None)
    assert "while b makes no further decision" in describe("a", "b", over, 1, None).sentence
    taken = Divergence(1, LoggedDecision(5 * SECOND, "preempted", "x", "t", "n", "q"), None)
    assert question(taken) is None
    assert "a releases t of x (q) on n (preempted)" in describe("a", "b", taken, 1, None).sentence


def test_equal_runs_are_reported_as_equal() -> None:
    divergence_report = describe("a", "b", None, 4321, None)
    assert (divergence_report.time, divergence_report.sentence) == (
        None,
        "b makes the same decisions as a: all 4,321 are equal.",
    )
    assert describe("a", "b", None, 0, None).sentence == "Neither a nor b makes any decision."
