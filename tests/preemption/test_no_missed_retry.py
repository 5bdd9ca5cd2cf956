"""After any history, when the scheduler is idle, a retry of all asks finds no further victims."""

from __future__ import annotations

from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.core.kit import RM
from tests.example_counts import examples
from tests.preemption.test_invariants import ASKS, LEAVES, configurations, submit
from yunikorn.interface.messages import NodeAction

CAPACITIES = st.fixed_dictionaries({"memory": st.integers(3, 6), "vcore": st.integers(2, 6)})
DAEMON = {"yunikorn.apache.org/requiredNode": "n0"}
STEPS = st.one_of(
    st.tuples(st.just("ask"), ASKS),
    st.tuples(st.just("ask"), ASKS),
    st.tuples(st.just("daemon"), st.sampled_from(LEAVES)),
    st.tuples(st.just("release"), st.integers(0, 9)),
    st.tuples(st.just("node"), CAPACITIES),
    st.tuples(st.just("remove node"), st.integers(0, 3)),
    st.tuples(st.just("withdraw"), st.sampled_from(LEAVES)),
    st.tuples(st.just("time"), st.sampled_from([1, 2, 14, 16, 31])),
    st.tuples(st.just("schedule"), st.sampled_from([None, 1])),
    st.tuples(st.just("confirm"), st.integers(0, 3)),
)


@settings(max_examples=examples(40), deadline=None)
@given(
    config=configurations(),
    nodes=st.lists(CAPACITIES, min_size=1, max_size=2),
    running=st.lists(ASKS, min_size=6, max_size=16),
    steps=st.lists(STEPS, min_size=8, max_size=40),
)
def test_no_retry_is_missed(config: str, nodes: list[Any], running: list[Any], steps: list[Any]) -> None:
    rm = RM(config)
    for number, capacity in enumerate(nodes):
        rm.node(f"n{number}", **capacity)
    for path in LEAVES:
        rm.app(path, path)
    for number, one in enumerate(running):
        submit(rm, f"first{number}", *one)
    rm.schedule()
    for number, (kind, value) in enumerate(steps):
        take(rm, number, kind, value)
        if rm.evicted:
            event("preempted on the way")
    rm.pass_time(31)
    for _ in range(60):
        rm.schedule()
        if not rm.evicted:
            rm.pass_time(16)
            rm.schedule()
            if not rm.evicted:
                break
        event("preempted at the end")
        rm.confirm()
    else:
        raise AssertionError("work displaces work without an end")
    at_work = rm.at_work()
    preemption = at_work.config.preemption
    at_work.preemption.reconfigure(
        at_work.preemption.quotas(preemption), preemption, at_work.preemption.policy
    )
    assert rm.schedule() == []
    assert rm.evicted == {}, "this was overslept"


def take(rm: RM, number: int, kind: str, value: Any) -> None:
    if kind == "ask":
        submit(rm, f"ask{number}", *value)
    elif kind == "daemon":
        rm.ask(value, f"daemon{number}", priority=1, tags=DAEMON, memory=2)
    elif kind == "release" and rm.running:
        uuid = sorted(rm.running)[value % len(rm.running)]
        rm.release(rm.running[uuid].application_id, uuid)
    elif kind == "node":
        rm.node(f"m{number}", **value)
    elif kind == "remove node" and rm.at_work().partition.nodes:
        names = sorted(rm.at_work().partition.nodes)
        rm.change_node(names[value % len(names)], NodeAction.DECOMMISSION)
    elif kind == "withdraw":
        rm.release_ask(value)
    elif kind == "time":
        rm.pass_time(value)
    elif kind == "schedule":
        rm.schedule(value)
    elif kind == "confirm" and rm.evicted:
        rm.confirm(sorted(rm.evicted)[value % len(rm.evicted)])
