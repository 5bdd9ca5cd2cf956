"""Quota policies together with other mechanisms."""

from __future__ import annotations

from pathlib import Path

from tests.core.kit import RM
from tests.core.test_scheduling_states import Curious
from tests.plugins.quota_kit import HOUR, Make, leaf, lenders, text
from tests.service.recording.collecting_listener import CollectingListener
from yunikorn import api
from yunikorn.clock import SECOND, ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.model.context import Timeouts
from yunikorn_service.recording.recording_reader import read_recording
from yunikorn_service.recording.recording_scheduler import RecordingScheduler
from yunikorn_service.recording.recording_writer import RecordingWriter
from yunikorn_service.recording.replayer import Replay
from yunikorn_testing import application, ask


def test_many_dynamic_queues_share_timers_and_cost_a_decision_nothing() -> None:
    template = {"properties": {"quota.policy": "time-of-day", "quota.policy.windows": "00:00-01:00=vcore:1"}}
    rm = RM(text({"name": "users", "parent": True, "childtemplate": template}))
    rm.node(vcore=10_000_000)
    for number in range(200):
        rm.app(f"app{number}", f"root.users.u{number}")
        rm.ask(f"app{number}", "task", count=2, vcore=1000)
    quotas = rm.at_work().quotas
    assert (len(quotas._bound), len(quotas._questions._exact), len(quotas._policies)) == (200, 1, 1)
    (policy,) = quotas._policies.values()
    asked: list[api.Queue] = []
    plain = policy.call

    def quota(argument: tuple[api.Queue, int]) -> object:
        asked.append(argument[0])
        return plain(argument)

    policy.call = quota
    assert len(rm.schedule()) == 200
    assert not asked
    rm.pass_time(HOUR)
    assert len(asked) == 200
    assert len(rm.schedule()) == 200


def test_a_placement_asks_about_its_own_queue_only(world: Make) -> None:
    names = [f"q{number}" for number in range(50)]
    at = world(text(*(leaf(name, "borrowing", {"vcore": 1}) for name in names)))
    for name in names[:2]:
        at.cluster.submit(application(name, f"root.{name}"), ask(count=10, vcore=1))
    (policy,) = at.at.quotas._policies.values()
    asked: list[str] = []
    plain = policy.call

    def quota(argument: tuple[api.Queue, int]) -> object:
        asked.append(argument[0].path)
        return plain(argument)

    policy.call = quota
    assert len(at.cluster.run()) == 20
    # A placement asks about one queue, and a round of decisions about all of them.
    assert len(asked) <= 20 + 4 * len(names)


def test_reserved_node_is_not_used_above_a_lowered_max() -> None:
    rm = RM(
        text(leaf("a", "time-of-day", {"vcore": 8}, windows="00:30-02:00=0%"), leaf("b")),
        timeouts=Timeouts(reservation=2 * SECOND),
    )
    rm.node(vcore=4000)
    rm.app("full", "root.b")
    rm.ask("full", "task", vcore=4000)
    rm.schedule()
    rm.app("app", "root.a")
    rm.ask("app", "task", vcore=4000)
    rm.schedule()
    rm.pass_time(60)
    rm.schedule()
    assert [ask.key for ask in rm.find_node().reservations] == ["task"]
    rm.pass_time(HOUR / 2)
    rm.release("full")
    assert not rm.schedule()
    rm.pass_time(2 * HOUR)
    assert len(rm.schedule()) == 1


def test_user_limits_hold_below_a_raised_max(world: Make) -> None:
    queue = leaf("a", "time-of-day", {"vcore": 2}, windows="00:00-01:00=vcore:10")
    queue["limits"] = [{"limit": "ann", "users": ["ann"], "maxresources": {"vcore": 2}}]
    at = world(text(queue))
    assert at.run("app", "root.a", 9) == 2
    at.cluster.submit(application("bob", "root.a", user="bob"), ask(count=20, vcore=1))
    at.cluster.run()
    assert at.running("bob") == 8


def test_stopped_queue_gets_its_max_and_starts_nothing(world: Make) -> None:
    at = world(text(leaf("a", "time-of-day", {"vcore": 8}, windows="00:00-01:00=0%")))
    at.run("app", "root.a", 8)
    at.cluster.scheduler.stop_queue("test", "default", "root.a")
    at.cluster.advance(HOUR)
    assert not at.cluster.run()
    at.cluster.scheduler.start_queue("test", "default", "root.a")
    assert len(at.cluster.run()) == 8


def test_states_for_an_autoscaler_follow_the_max_in_force() -> None:
    config = text(leaf("a", "time-of-day", {"vcore": 8}, windows="00:00-01:00=0%"))
    rm = Curious(config, timeouts=Timeouts(reservation=None))
    rm.node(vcore=1000)
    rm.app()
    rm.ask(key="task", count=2, vcore=1000)
    assert rm.settle() == [("task", "SKIPPED")]
    rm.pass_time(HOUR)
    assert rm.settle() == [("task", "FAILED")], "one is placed, and another node would help the other"


def test_explanations_change_nothing(world: Make) -> None:
    at = world(lenders())
    at.run("c", "root.c", 10)
    at.run("b", "root.b", 10)
    assert at.run("a", "root.a", 60) == 10
    at.cluster.finish("c")
    before = at.queue("root.a").bits
    assert at.cluster.why("a")
    assert at.max("root.a") == {"vcore": 20_000}
    assert before == 0
    assert len(at.cluster.run()) == 10


def test_fair_shares_do_not_count_what_is_borrowed(world: Make) -> None:
    at = world(lenders())
    assert at.max("root.a") == {"vcore": 30_000}
    assert at.queue("root.a").fair_max["vcore"] == 10_000


def test_replay_of_a_recording_is_exact(tmp_path: Path, registry: Registry) -> None:
    config = text(
        leaf("a", "borrowing", {"vcore": 4}),
        leaf("b", "time-of-day", {"vcore": 4}, windows="00:00-01:00=25%, 01:00-02:00=0%"),
    )
    file = tmp_path / "run.jsonl"
    rm = RM(config, scheduler=RecordingScheduler(RecordingWriter(file, print), registry, ManualClock()))
    rm.node(vcore=64_000)
    for number in range(6):
        rm.app(f"app{number}", f"root.{'ab'[number % 2]}")
        rm.ask(f"app{number}", "task", count=4, vcore=1000)
        rm.schedule()
        rm.pass_time(HOUR / 2)
        rm.schedule(2)
    assert len(rm.running) == 8
    listener = CollectingListener()
    replay = Replay(read_recording(file).lines, registry, listener)
    replay.run()
    assert replay.comparison.first is None
    assert replay.comparison.equal == len(listener.responses) == len(rm.responses)
