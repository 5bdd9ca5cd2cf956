"""Permit policies that workers call: the placement is held until the answer arrives."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

from tests.core.kit import configuration, queue, with_plugins
from tests.core.manual_workers import ManualWorkers, core_with_workers
from tests.plugins.permit_kit import PermitRM
from tests.service.recording.collecting_listener import CollectingListener
from yunikorn.api import Allocation, Node, PermitPolicy, Task, Wait
from yunikorn.errors import ConfigError
from yunikorn.interface.scheduler import Scheduler
from yunikorn.scheduling.admission.policy_copies import AllocationCopy, NodeCopy
from yunikorn_service.recording.recording_reader import read_recording
from yunikorn_service.recording.recording_scheduler import RecordingScheduler
from yunikorn_service.recording.recording_writer import RecordingWriter
from yunikorn_service.recording.replayer import Replay


class Server(PermitPolicy):
    """Answers as a test says, by key."""

    name = "server"
    blocking = True
    timeout = 100.0
    answers: ClassVar[dict[str, Any]] = {}
    seen: ClassVar[list[Any]] = []

    def permit(self, allocation: Any) -> Any:
        self.seen.append(allocation)
        answer = self.answers.get(allocation.key, self.answers.get("*"))
        if isinstance(answer, Exception):
            raise answer
        return answer

    def group(self, allocation: Any) -> Any:
        return allocation.tags.get("group")


class Twin(Server, PermitPolicy):
    name = "twin"
    calls_at_once = 2


REGISTRY = with_plugins(permit_policies=[Server, Twin])
WAIT = Wait(20, "no licence is free")


@pytest.fixture(autouse=True)
def clear() -> None:
    """Forget answers and questions of earlier tests."""
    Server.answers.clear()
    Server.seen.clear()


def cluster(*policies: str, make: Any = Scheduler, **keys: Any) -> tuple[PermitRM, ManualWorkers]:
    core: Any = core_with_workers(REGISTRY, make)
    text = configuration(queue("a"), queue("b"), permits=list(policies or ("server",)), **keys)
    rm = PermitRM(text, scheduler=core)
    rm.node("n1", vcore=4)
    rm.app()
    return rm, core.manual_workers


def answered(rm: PermitRM, workers: ManualWorkers, number: int = 0) -> list[str]:
    """Let a worker answer, and return the keys of the placements that are announced then."""
    before = len(rm.responses)
    workers.answer(number)
    rm.scheduler.schedule()
    return [key for _, key, _ in rm.since(before)]


def test_placement_is_held_until_the_answer() -> None:
    rm, workers = cluster()
    rm.ask(vcore=1)
    rm.app("other", "root.b")
    assert rm.schedule() == []
    assert rm.held() == ["ask"]
    assert rm.why() == ["placed on node n1 0s ago, held by permit policy server: its answer is awaited"]
    assert rm.find_node().available["vcore"] == 3
    assert answered(rm, workers) == ["ask"]
    assert not rm.failures()


def test_policy_gets_a_copy_with_and_without_workers() -> None:
    rm, workers = cluster()
    rm.ask(vcore=1, tags={"team": "physics"})
    rm.schedule()
    workers.answer()
    plain = PermitRM(configuration(queue("a"), permits=["server"]), REGISTRY)
    plain.node("n1", vcore=4)
    plain.app()
    plain.ask(vcore=1, tags={"team": "physics"})
    assert plain.schedule() == [("app", "ask", "n1")]
    for seen in Server.seen:
        assert isinstance(seen, AllocationCopy)
        assert (seen.key, seen.app.id, seen.app.queue.path) == ("ask", "app", "root.a")
        assert (seen.node.id, seen.node.available, dict(seen.tags)) == (
            "n1",
            {"vcore": 3},
            {"team": "physics"},
        )


@pytest.mark.parametrize(
    ("view", "copy"), [(Allocation, AllocationCopy), (Node, NodeCopy), (Task, AllocationCopy)]
)
def test_copies_have_everything_but_allocations(view: type[Any], copy: type[Any]) -> None:
    declared = {name for name, one in vars(view).items() if isinstance(one, property)}
    assert declared - {one.name for one in attrs.fields(copy)} <= {"allocations"}


def test_refusal_takes_the_placement_back() -> None:
    rm, workers = cluster()
    Server.answers["*"] = "no licence"
    rm.ask(vcore=1)
    rm.schedule()
    assert answered(rm, workers) == []
    assert rm.held() == []
    assert rm.why() == ["permit policy server refuses the placement: no licence"]
    assert not workers.waiting
    Server.answers.clear()
    assert rm.after(1) == []
    assert not workers.waiting, "nothing has changed"
    rm.node("n2", vcore=1)
    rm.schedule()
    assert answered(rm, workers) == ["ask"]


def test_wait_failure_and_silence_hold_the_placement() -> None:
    rm, workers = cluster()
    Server.answers["*"] = WAIT
    rm.ask(vcore=1)
    rm.schedule()
    assert answered(rm, workers) == []
    assert "no licence is free" in rm.why()[0]
    Server.answers["*"] = ValueError("the licence server is away")
    assert rm.after(20) == []
    assert answered(rm, workers) == []
    assert "permitting" in rm.why()[0]
    assert rm.after(60) == []
    assert rm.after(10) == []
    assert workers.abandoned == [3]
    assert "it has not returned within 10s" in rm.why()[0]
    assert rm.held() == ["ask"]


def test_timeout_of_the_policy_applies_while_answers_are_awaited() -> None:
    rm, workers = cluster(periods={"policyanswer": "1h"})
    rm.ask(vcore=1)
    rm.schedule()
    assert rm.after(99) == []
    assert rm.held() == ["ask"]
    rm.pass_time(1)
    assert rm.held() == []
    assert "did not permit the placement within 100s: its answer is awaited" in rm.why()[0]
    workers.answer()
    assert rm.running == {}


@pytest.mark.parametrize("end", ["release", "remove", "drain", "reload", "stop"])
def test_placement_that_ends_meanwhile_is_not_announced(end: str) -> None:
    rm, workers = cluster()
    rm.ask(vcore=1)
    rm.schedule()
    if end == "release":
        rm.release_ask("app")
    elif end == "remove":
        rm.remove_app("app")
    elif end == "drain":
        rm.scheduler.drain_node("rm", "default", "n1")
    elif end == "reload":
        rm.reload(configuration(queue("a"), queue("b"), queue("c"), permits=["server"]))
    else:
        rm.scheduler.stop_queue("rm", "default", "root.a")
    assert answered(rm, workers) == []
    assert rm.running == {}
    if end == "reload":
        assert answered(rm, workers) == ["ask"], "it is asked about again"
    elif end == "stop":
        assert rm.held() == ["ask"]
        rm.scheduler.start_queue("rm", "default", "root.a")
        rm.after(60)
        assert answered(rm, workers) == ["ask"]
    else:
        assert rm.held() == []


def test_permission_lets_the_group_be_asked_about() -> None:
    rm, workers = cluster("twin")
    Server.answers["*"] = Wait(90, "the others are missing")
    for number in range(4):
        rm.ask("app", f"k{number}", vcore=1, tags={"group": "one"})
    rm.schedule()
    # New members of the group lead to questions about the others, whose answers are the same.
    for _ in range(20):
        if not workers.waiting:
            break
        assert answered(rm, workers) == []
    assert not workers.waiting
    assert len(rm.held()) == 4
    Server.answers["*"] = None
    rm.pass_time(90)
    placed: list[str] = []
    while workers.waiting:
        placed += answered(rm, workers)
    assert sorted(placed) == ["k0", "k1", "k2", "k3"]


def test_answer_before_a_change_of_the_group_is_asked_for_again() -> None:
    rm, workers = cluster("twin")
    Server.answers["*"] = Wait(90, "the others are missing")
    rm.ask("app", "first", vcore=1, tags={"group": "one"})
    rm.schedule()
    rm.ask("app", "second", vcore=1, tags={"group": "one"})
    rm.schedule()
    assert len(workers.waiting) == 2
    workers.answer(1)
    assert 3 in workers.waiting, "the second one has joined since the question"
    Server.answers["*"] = None
    placed: list[str] = []
    while workers.waiting:
        placed += answered(rm, workers)
    assert sorted(placed) == ["first", "second"]


def test_wake_up_asks_again_also_where_an_answer_is_awaited() -> None:
    rm, workers = cluster()
    Server.answers["*"] = WAIT
    rm.ask(vcore=1)
    rm.schedule()
    rm.at_work().context.wake("permit")
    rm.pass_time(1)
    rm.schedule()
    assert list(workers.waiting) == [1]
    assert answered(rm, workers) == []
    assert list(workers.waiting) == [2], "the answer was one from before the wake-up"
    Server.answers.clear()
    assert answered(rm, workers) == ["ask"]


def test_gang_is_asked_about_member_by_member() -> None:
    rm, workers = cluster()
    rm.gang("gang", "Atomic", vcore=3)
    rm.task("gang", "member", "group", 3, vcore=1)
    assert rm.schedule() == []
    assert len(rm.held()) == 3
    assert answered(rm, workers) == answered(rm, workers) == []
    assert answered(rm, workers) == ["member"] * 3


def test_several_policies_are_asked_in_order() -> None:
    rm, workers = cluster("server", "twin")
    rm.ask(vcore=1)
    rm.schedule()
    assert answered(rm, workers) == []
    assert "held by permit policy twin" in rm.why()[0]
    assert answered(rm, workers) == ["ask"]


class Keeps(PermitPolicy):
    """A policy that blocks and keeps books."""

    name = "keeps"
    blocking = True

    def permit(self, allocation: Any) -> None:
        pass

    def placed(self, task: Task, node: Node) -> None:
        pass

    def released(self, task: Task, node: Node) -> None:
        pass


def test_policy_that_blocks_keeps_no_books() -> None:
    with pytest.raises(ConfigError) as caught:
        PermitRM(configuration(permits=["keeps"]), with_plugins(permit_policies=[Keeps]))
    assert "plugin keeps of test-plugin (yunikorn-test 1.0)" in str(caught.value)
    assert "a permit policy with blocking = True keeps no books" in str(caught.value)


def test_replay_is_exact_and_asks_no_policy(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "run.jsonl", pytest.fail)

    def make(*arguments: Any, **options: Any) -> Scheduler:
        return RecordingScheduler(writer, *arguments, **options)

    rm, workers = cluster("server", "twin", make=make)
    Server.answers.update({"k0": WAIT, "k1": "no licence", "k2": ValueError("away")})
    for number in range(5):
        rm.ask("app", f"k{number}", vcore=1, tags={"group": f"{number % 2}"})
    for _ in range(40):
        rm.schedule()
        rm.pass_time(3)
        if workers.waiting:
            workers.answer(list(workers.waiting)[-1])
    writer.close()
    assert rm.running
    Server.seen.clear()
    listener = CollectingListener()
    replay = Replay(read_recording(tmp_path / "run.jsonl").lines, REGISTRY, listener)
    replay.run()
    assert str(replay.comparison.first or "") == ""
    assert listener.of("rm") == rm.responses
    assert not Server.seen
