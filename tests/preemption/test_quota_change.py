"""Lowered quotas: usage above the new quota is preempted once, after a delay."""

from __future__ import annotations

from typing import Any

from tests.core.event_collector import EventCollector
from tests.core.kit import RM, configuration, partition, queue
from yunikorn.interface.messages import Allocation, PreemptionPolicy
from yunikorn.resources import Resource

ON = {"quotapreemptionenabled": True}


def capped(name: str, most: int, *children: Any, delay: str = "10s", guaranteed: int = 0) -> dict[str, Any]:
    resources = {"max": {"memory": str(most)}}
    if guaranteed:
        resources["guaranteed"] = {"memory": str(guaranteed)}
    return queue(name, *children, resources=resources, properties={"quota.preemption.delay": delay})


def text(*queues: Any, preemption: Any = ON) -> str:
    return configuration(*queues, preemption=preemption)


def filled(config: str, count: int = 8) -> RM:
    rm = RM(config)
    rm.node("n1", memory=100)
    rm.app("work")
    rm.ask("work", "x", count, memory=1)
    rm.schedule()
    return rm


def test_allocations_above_the_new_max_are_preempted_after_the_delay() -> None:
    rm = filled(text(capped("a", 10)))
    rm.reload(text(capped("a", 5)))
    rm.pass_time(9)
    assert rm.evicted == {}
    rm.pass_time(1)
    assert len(rm.evicted) == 3
    assert {one.message for one in rm.evicted.values()} == {
        "preempting allocations to enforce new max quota for queue : root.a"
    }
    assert rm.find_queue().preempting == {"memory": 3}
    rm.confirm()
    assert rm.find_queue().allocated == {"memory": 5}
    assert rm.find_queue().preempting == {}


def test_quota_preemption_happens_once_per_change() -> None:
    rm = RM(text(capped("a", 10)))
    rm.node("n1", memory=100)
    rm.app("work")
    rm.ask("work", "x", 2, memory=4)
    rm.schedule()
    rm.reload(text(capped("a", 7)))
    rm.pass_time(3600)
    # Never more than the excess: 4 would be, 1 is.
    assert rm.evicted == {}
    rm.reload(text(capped("a", 4)))
    rm.pass_time(10)
    assert len(rm.evicted) == 1
    assert rm.find_queue().allocated == {"memory": 8}


def test_quota_preemption_must_be_enabled_for_partition_and_queue() -> None:
    for before, after in (
        (text(capped("a", 10), preemption={}), text(capped("a", 5), preemption={})),
        (text(capped("a", 10, delay="0")), text(capped("a", 5, delay="0"))),
    ):
        rm = filled(before)
        rm.reload(after)
        rm.pass_time(3600)
        assert rm.evicted == {}


def test_first_max_counts_as_lowered() -> None:
    rm = filled(text(queue("a", properties={"quota.preemption.delay": "10s"})))
    rm.reload(text(capped("a", 5)))
    rm.pass_time(10)
    assert len(rm.evicted) == 3


def test_raising_the_max_in_time_cancels_the_preemption() -> None:
    rm = filled(text(capped("a", 10)))
    rm.reload(text(capped("a", 5)))
    rm.pass_time(5)
    rm.reload(text(capped("a", 8)))
    rm.pass_time(60)
    assert rm.evicted == {}


def test_changed_delay_reschedules_the_preemption() -> None:
    rm = filled(text(capped("a", 10)))
    rm.reload(text(capped("a", 5)))
    rm.pass_time(5)
    rm.reload(text(capped("a", 5, delay="20s")))
    rm.pass_time(14)
    assert rm.evicted == {}
    rm.pass_time(1)
    assert len(rm.evicted) == 3


def test_further_decrease_keeps_the_scheduled_time() -> None:
    rm = filled(text(capped("a", 10)))
    rm.reload(text(capped("a", 5)))
    rm.pass_time(5)
    rm.reload(text(capped("a", 3)))
    rm.pass_time(5)
    assert len(rm.evicted) == 5


def test_parent_preempts_children_in_proportion_above_their_guarantees() -> None:
    def config(most: int) -> str:
        return text(
            queue(
                "p",
                queue("a", resources={"guaranteed": {"memory": "4"}}),
                queue("b"),
                queue("c", resources={"guaranteed": {"memory": "2"}}),
                resources={"max": {"memory": str(most)}},
                properties={"quota.preemption.delay": "10s"},
            )
        )

    rm = RM(config(20))
    rm.node("n1", memory=100)
    for name, count in (("a", 8), ("b", 8), ("c", 2)):
        rm.app(name, f"root.p.{name}")
        rm.ask(name, f"of-{name}", count, memory=1)
    rm.schedule()
    rm.reload(config(12))
    rm.pass_time(10)
    # 6 too many: a has 4 above its guarantee, b 8, c none.
    gone = sorted(uuid.partition("#")[0] for uuid in rm.evicted)
    assert gone == ["of-a"] * 2 + ["of-b"] * 4


def test_shares_too_small_for_any_victim_are_combined() -> None:
    def config(most: int) -> str:
        return text(capped("p", most, queue("a"), queue("b")))

    rm = RM(config(8))
    rm.node("n1", memory=100)
    for name in "ab":
        rm.app(name, f"root.p.{name}")
        rm.ask(name, f"of-{name}", memory=4)
    rm.schedule()
    rm.reload(config(4))
    rm.pass_time(10)
    assert len(rm.evicted) == 1


def test_originators_are_preempted_last_and_opted_out_allocations_never() -> None:
    rm = RM(text(capped("a", 10)))
    rm.node("n1", memory=100)
    rm.app("work")
    rm.ask("work", "safe", memory=1, policy=PreemptionPolicy(allow_preempt_self=False))
    rm.ask("work", "driver", memory=1, originator=True)
    rm.ask("work", "low", memory=1, priority=-1)
    rm.ask("work", "x", memory=1)
    rm.schedule()
    rm.reload(text(capped("a", 3)))
    rm.pass_time(10)
    assert [uuid.partition("#")[0] for uuid in rm.evicted] == ["low"]
    rm.reload(text(capped("a", 1)))
    rm.pass_time(10)
    assert [uuid.partition("#")[0] for uuid in rm.evicted] == ["low", "x", "driver"]
    rm.reload(text(capped("a", 1), queue("b")))
    rm.pass_time(60)
    assert len(rm.evicted) == 3


def test_recovered_allocations_over_the_max_count_as_a_change() -> None:
    rm = RM(text(capped("a", 2)))
    rm.app("work")
    running = [Allocation(f"r{n}", "work", f"r{n}", "n1", Resource(memory=1)) for n in range(4)]
    rm.running = {one.uuid: one for one in running}
    rm.node("n1", memory=8, existing=running)
    rm.pass_time(10)
    assert len(rm.evicted) == 2


def test_events_summarise_the_preemption() -> None:
    collector = EventCollector()
    rm = collector.rm(partition(capped("a", 10), preemption=ON))
    rm.node("n1", memory=100)
    rm.app("work")
    rm.ask("work", "x", 4, memory=1)
    rm.schedule()
    rm.reload(collector.text(partition(capped("a", 3), preemption=ON)))
    rm.pass_time(10)
    reported = [(one.type, one.object_id, one.message) for one in collector.events if "reempt" in one.message]
    assert reported == [
        ("REQUEST", "x", "Preempted by Quota change enforcement process in root.a"),
        (
            "QUEUE",
            "root.a",
            "Quota Preemption results summary: preemptable resources: memory 1, "
            "claimed resources: memory 1, selected victims: 1, preempted victims: 1",
        ),
    ]


def test_allocations_that_the_rm_places_beyond_a_quota_are_preempted() -> None:
    rm = RM(text(capped("a", 5)))
    rm.node("n1", memory=100)
    rm.app("work")
    rm.ask("work", "x", 7, memory=4)
    for number in range(7):
        rm.update(allocations=[Allocation("x", "work", f"u{number}", "n1", Resource(memory=1))])
    assert rm.find_queue().allocated == {"memory": 7}
    rm.pass_time(10)
    assert len(rm.evicted) == 2
