"""Quota policies that workers call: the previous answer stays in force until the next one arrives."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.core.kit import RM, Tree, configuration, queue, with_plugins
from tests.core.manual_workers import ManualWorkers, core_with_workers
from tests.rest.kit import Rest
from tests.service.recording.collecting_listener import CollectingListener
from yunikorn.api import Context, Queue, Quota, QuotaPolicy
from yunikorn.clock import SECOND
from yunikorn.errors import ConfigError
from yunikorn.interface.scheduler import Scheduler
from yunikorn.scheduling.admission.policy_copies import QueueCopy
from yunikorn_service.recording.recording_reader import read_recording
from yunikorn_service.recording.recording_scheduler import RecordingScheduler
from yunikorn_service.recording.recording_writer import RecordingWriter
from yunikorn_service.recording.replayer import Replay


class Office(QuotaPolicy):
    """Answers as a test says."""

    name = "office"
    blocking = True
    calls_at_once = 2
    watches_cluster = True
    answer: ClassVar[Any] = None
    seen: ClassVar[list[Any]] = []
    wake: ClassVar[Any] = None

    def opened(self, context: Context) -> None:
        Office.wake = context.wake

    def quota(self, queue: Queue) -> Any:
        self.seen.append(queue)
        if isinstance(Office.answer, Exception):
            raise Office.answer
        return Office.answer


REGISTRY = with_plugins(quota_policies=[Office])
PATH = "partition/default/queue/root.a"


@pytest.fixture(autouse=True)
def clear() -> None:
    """Forget answer and questions of earlier tests."""
    Office.answer = None
    Office.seen.clear()


def leaf(name: str = "a", vcore: int = 4) -> Tree:
    return queue(name, properties={"quota.policy": "office"}, resources={"max": {"vcore": str(vcore)}})


def cluster(*leaves: Tree, make: Any = Scheduler) -> tuple[RM, ManualWorkers]:
    core: Any = core_with_workers(REGISTRY, make)
    rm = RM(configuration(*(leaves or (leaf(),))), scheduler=core)
    rm.node(vcore=20000)
    rm.app()
    rm.schedule()
    return rm, core.manual_workers


def most(rm: RM) -> int:
    found = rm.find_queue().max
    assert found is not None
    return found["vcore"]


def test_configured_max_applies_until_the_first_answer() -> None:
    rm, workers = cluster()
    rm.ask(count=9, vcore=1000)
    assert len(rm.schedule()) == 4
    assert Rest(rm).json(PATH)["quotaReason"].count("its answer is awaited") == 1
    Office.answer = Quota({"vcore": 6000}, why="lunch")
    workers.answer_all()
    assert len(rm.schedule()) == 2
    assert "lunch" in Rest(rm).json(PATH)["quotaReason"]
    (seen, *_) = Office.seen
    assert isinstance(seen, QueueCopy)
    assert (seen.path, seen.configured_max) == ("root.a", {"vcore": 4000})


def test_policy_gets_a_copy_without_workers() -> None:
    Office.answer = Quota({"vcore": 1000})
    rm = RM(configuration(leaf()), REGISTRY)
    assert most(rm) == 1000
    assert isinstance(Office.seen[0], QueueCopy)


def test_previous_answer_stays_in_force_and_changes_meanwhile_are_asked_about_again() -> None:
    rm, workers = cluster()
    Office.answer = Quota({"vcore": 1000})
    workers.answer_all()
    Office.seen.clear()
    rm.node("n2", vcore=1000)
    rm.schedule()
    rm.node("n3", vcore=1000)
    rm.schedule()
    assert most(rm) == 1000
    Office.answer = Quota({"vcore": 2000})
    workers.answer()
    assert most(rm) == 2000
    Office.answer = Quota({"vcore": 3000})
    workers.answer()
    assert most(rm) == 3000
    assert not workers.waiting
    assert len(Office.seen) == 2


def test_failure_and_silence_put_the_configured_max_in_force() -> None:
    rm, workers = cluster()
    Office.answer = Quota({"vcore": 1000}, until=5 * SECOND)
    workers.answer_all()
    assert most(rm) == 1000
    Office.answer = ConnectionError("the office is closed")
    rm.pass_time(5)
    workers.answer()
    assert most(rm) == 4000
    assert "ConnectionError: the office is closed" in rm.failures()[0]
    rm.pass_time(60)
    assert len(workers.waiting) == 1
    rm.pass_time(10)
    assert len(workers.abandoned) == 1
    assert "it has not returned within 10s" in Rest(rm).json(PATH)["quotaReason"]
    assert most(rm) == 4000
    rm.pass_time(60)
    Office.answer = Quota({"vcore": 7000})
    workers.answer(next(reversed(workers.waiting)))
    assert most(rm) == 7000


@pytest.mark.parametrize("answer", [7, Quota({"vcore": -1}), Quota({"vcore": 1}, until=-5), Quota({7: 1})])  # type: ignore[dict-item]
def test_wrong_answers_are_reported(answer: Any) -> None:
    rm, workers = cluster()
    Office.answer = answer
    workers.answer_all()
    assert most(rm) == 4000
    assert "setting the max of" in rm.failures()[0]


def test_reload_asks_again_and_ignores_earlier_answers() -> None:
    rm, workers = cluster()
    Office.answer = Quota({"vcore": 1000})
    assert rm.reload(configuration(leaf(vcore=9), queue("b")))
    assert most(rm) == 9000, "no answer yet: the new configured max"
    workers.answer()
    assert most(rm) == 9000, "the answer was one to a question before the reload"
    workers.answer_all()
    assert most(rm) == 1000
    rm.schedule()
    assert rm.reload(configuration(queue("a", resources={"max": {"vcore": "3"}})))
    workers.answer_all()
    assert most(rm) == 3000


def test_wake_up_asks_again() -> None:
    rm, workers = cluster()
    workers.answer_all()
    Office.answer = Quota({"vcore": 2000})
    Office.wake("quota")
    rm.pass_time(1)
    rm.schedule()
    assert workers.answer_all()
    assert most(rm) == 2000


def test_queue_that_is_removed_meanwhile_is_forgotten() -> None:
    rm, workers = cluster(leaf(), leaf("b"))
    workers.answer_all()
    rm.node("n2", vcore=1000)
    rm.schedule()
    assert len(workers.waiting) == 2
    rm.reload(configuration(leaf()))
    rm.pass_time(60)
    workers.answer_all()
    assert rm.at_work().partition.queue("root.b") is None
    assert not rm.at_work().quotas._questions._open


class Looks(QuotaPolicy):
    name = "looks"
    blocking = True
    watches_siblings = True

    def quota(self, queue: Queue) -> None:
        pass


def test_policy_that_blocks_watches_no_siblings() -> None:
    named = queue("a", properties={"quota.policy": "looks"})
    with pytest.raises(ConfigError) as caught:
        RM(configuration(named), with_plugins(quota_policies=[Looks]))
    assert "plugin looks of test-plugin (yunikorn-test 1.0)" in str(caught.value)
    assert "cannot have watches_siblings" in str(caught.value)


def test_replay_is_exact_and_asks_no_policy(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "run.jsonl", pytest.fail)

    def make(*arguments: Any, **options: Any) -> Scheduler:
        return RecordingScheduler(writer, *arguments, **options)

    rm, workers = cluster(leaf(), leaf("b"), make=make)
    rm.ask(count=9, vcore=1000)
    large, later = Quota({"vcore": 6000, "gpu": 1}, why="ü"), Quota(None, 90 * SECOND)
    answers = [None, large, ValueError("away"), later, 7]
    for number in range(20):
        Office.answer = answers[number % len(answers)]
        if number % 3 == 0:
            rm.node(f"m{number}", vcore=1000)
        rm.schedule()
        rm.pass_time(number)
        if workers.waiting:
            workers.answer(list(workers.waiting)[-1])
    writer.close()
    Office.seen.clear()
    listener = CollectingListener()
    replay = Replay(read_recording(tmp_path / "run.jsonl").lines, REGISTRY, listener)
    replay.run()
    assert str(replay.comparison.first or "") == ""
    assert listener.of("rm") == rm.responses
    assert not Office.seen
