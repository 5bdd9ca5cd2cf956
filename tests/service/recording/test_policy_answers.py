"""Answers of policies that workers call are recorded, and a replay repeats them without the policies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.kit import RM, configuration, queue
from tests.core.manual_workers import (
    Directory,
    Groups,
    Licence,
    Site,
    acceptances,
    core_with_workers,
    registry_of,
    rejections,
)
from tests.example_counts import examples
from tests.service.recording.collecting_listener import CollectingListener
from yunikorn.clock import SECOND
from yunikorn.framework.policy_calls import ApplicationChange, PolicyAnswer
from yunikorn.interface.commands import TakePolicyAnswer
from yunikorn.interface.scheduler import Scheduler
from yunikorn_service.recording.recording_reader import parse_recording, read_recording
from yunikorn_service.recording.recording_scheduler import RecordingScheduler
from yunikorn_service.recording.recording_writer import RecordingWriter
from yunikorn_service.recording.replayer import Replay

CONFIG = configuration(
    queue("a"),
    queue("b"),
    usergroupresolver={"type": "groups", "cache": {"found": "20s"}},
    submitpolicies=["fast", "site"],
    admission=["licence"],
    placementrules=[{"name": "directory"}, {"name": "provided"}],
)


class Run:
    """A recorded core with workers, and its replay."""

    def __init__(self, file: Path) -> None:
        self.file, self.registry = file, registry_of()
        self.writer = RecordingWriter(file, pytest.fail)

        def make(*arguments: Any, **options: Any) -> Scheduler:
            return RecordingScheduler(self.writer, *arguments, **options)

        core: Any = core_with_workers(self.registry, make)
        self.workers = core.manual_workers
        self.rm = RM(CONFIG, scheduler=core)
        self.rm.node(vcore=6)

    def check(self) -> None:
        """Replay the recording, and assert that it is equal and calls no policy."""
        self.writer.close()
        for seen in (Groups.calls, Site.seen, Licence.seen, Directory.seen):
            seen.clear()
        listener = CollectingListener()
        replay = Replay(read_recording(self.file).lines, self.registry, listener)
        replay.run()
        assert str(replay.comparison.first or "") == ""
        assert listener.of("rm") == self.rm.responses
        assert not Groups.calls
        assert not Licence.seen
        assert not Directory.seen
        assert all(type(app).__name__ == "Submission" for app in Site.seen), "those of the policy `fast`"
        assert listener.refusals == listener.remarks == []


def test_replay_is_exact_and_calls_no_policy(tmp_path: Path) -> None:
    run = Run(tmp_path / "run.jsonl")
    rm, workers = run.rm, run.workers
    rm.app("moved", user="ann", groups=(), site="to root.b")
    rm.ask("moved", "m", vcore=1)
    rm.app("bad", user="bea", groups=(), site="half")
    rm.app("stuck", site="raise")
    workers.answer()
    rm.pass_time(3)
    workers.answer()
    rm.schedule()
    rm.app("waits", licence="15", user="ann", groups=())
    rm.ask("waits", "w", vcore=2)
    rm.reload(CONFIG + " ")
    while workers.waiting:
        rm.pass_time(2)
        workers.answer()
        rm.schedule()
    rm.app("late")
    rm.app("placed", directory="root.b")
    rm.app("refused", directory="refuse")
    rm.app("away", directory="raise")
    rm.pass_time(3)
    workers.answer_all()
    assert set(rejections(rm.responses)) >= {"refused", "away"}
    rm.pass_time(30)
    workers.answer_all()
    rm.schedule()
    assert set(acceptances(rm.responses)) >= {"moved", "waits", "placed"}
    run.check()


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(
            st.just("app"), st.integers(0, 5), st.sampled_from(["", "raise", "no", "to root.b", "lie"])
        ),
        st.tuples(st.just("licence"), st.integers(0, 5), st.sampled_from(["", "5", "no", "raise"])),
        st.tuples(
            st.just("directory"), st.integers(0, 5), st.sampled_from(["root.b", "half", "raise", "refuse"])
        ),
        st.tuples(st.just("ask"), st.integers(0, 5), st.sampled_from(["x", "y"])),
        st.tuples(st.just("implicit"), st.integers(0, 5), st.just("")),
        st.tuples(st.just("release_ask"), st.integers(0, 5), st.sampled_from(["x", "y", ""])),
        st.tuples(st.just("remove"), st.integers(0, 5), st.just("")),
        st.tuples(st.just("fail"), st.integers(0, 5), st.just("")),
        st.tuples(st.just("pass"), st.integers(0, 25), st.just("")),
        st.tuples(st.just("answer"), st.integers(0, 5), st.just("")),
        st.tuples(st.just("schedule"), st.just(0), st.just("")),
        st.tuples(st.just("reload"), st.integers(0, 1), st.just("")),
    ),
    max_size=60,
)


@settings(max_examples=examples(15), deadline=None)
@given(operations=OPERATIONS)
def test_any_history_is_replayed_exactly(operations: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    run = Run(tmp_path_factory.mktemp("history") / "run.jsonl")
    submitted: dict[str, int] = {}
    for operation, number, text in operations:
        play(run, operation, number, text, submitted)
    rm = run.rm
    run.workers.answer_all()
    rm.pass_time(200)
    for _ in range(5):
        run.workers.answer_all()
        rm.pass_time(100)
    at = rm.at_work()
    assert len(at.submitted) == len(at.existing.awaited) == 0
    assert at.questions is not None
    answered = [*acceptances(rm.responses)]
    answered += [one.application_id for each in rm.responses for one in each.rejected_applications]
    for app_id, times in submitted.items():
        assert answered.count(app_id) <= times
    run.check()


def play(run: Run, operation: str, number: int, text: str, submitted: dict[str, int]) -> None:
    """Play one operation of a history."""
    rm, app_id = run.rm, f"app{number}"
    if operation in ("app", "fast", "licence", "directory"):
        submitted[app_id] = submitted.get(app_id, 0) + 1
        tags = {"site" if operation == "app" else operation: text}
        rm.app(app_id, user=f"user{number % 3}", groups=("g",) if number == 5 else (), **tags)
    elif operation == "ask":
        rm.ask(app_id, text, vcore=1)
    elif operation == "implicit":
        rm.ask("", f"own{number}", vcore=1)
    elif operation == "release_ask":
        rm.release_ask(app_id, text)
    elif operation == "remove":
        rm.remove_app(app_id)
    elif operation == "fail":
        known = (rm.at_work().partition.applications, rm.at_work().submitted)
        if any(app_id in one for one in known):
            rm.scheduler.fail_application("rm", "default", app_id, "")
    elif operation == "pass":
        rm.pass_time(number)
    elif operation == "answer" and run.workers.waiting:
        run.workers.answer(list(run.workers.waiting)[number % len(run.workers.waiting)])
    elif operation == "schedule":
        rm.schedule()
    elif operation == "reload":
        rm.reload(CONFIG + " " * number)


def test_what_if_calls_the_policies(tmp_path: Path) -> None:
    run = Run(tmp_path / "run.jsonl")
    run.rm.app("app", user="ann", groups=(), site="no")
    run.workers.answer_all()
    run.writer.close()
    listener = CollectingListener()
    config = configuration(queue("a"), usergroupresolver={"type": "groups"})
    Groups.calls.clear()
    Replay(read_recording(run.file).lines, run.registry, listener, config).run()
    assert Groups.calls == ["ann"]
    assert acceptances(listener.of("rm")) == ["app"]
    assert listener.refusals == []


ANSWERS = [
    PolicyAnswer(),
    PolicyAnswer(groups=[]),
    PolicyAnswer(groups=["a", "ü"]),
    PolicyAnswer(reason=""),
    PolicyAnswer(change=ApplicationChange("root.a", {"x": "y"}, -3)),
    PolicyAnswer(change=ApplicationChange("", {})),
    PolicyAnswer(wait=SECOND // 10, why="later"),
    PolicyAnswer(wait=123456789 * SECOND + 1),
    PolicyAnswer(failed="ValueError: no"),
    PolicyAnswer(queue="root.ü"),
    PolicyAnswer(queue=""),
    PolicyAnswer(max={"vcore": 3, "ü": 2**62}, until=7 * SECOND, why="ö"),
    PolicyAnswer(max={}),
]


@pytest.mark.parametrize("answer", ANSWERS, ids=str)
def test_answer_is_read_as_it_was_written(answer: PolicyAnswer, tmp_path: Path) -> None:
    file = tmp_path / "one.jsonl"
    writer = RecordingWriter(file, pytest.fail)
    writer.on_call(SECOND, TakePolicyAnswer(7, answer))
    writer.close()
    (entry,) = parse_recording(file.read_bytes(), "one").lines
    assert entry.commands == [TakePolicyAnswer(7, answer)]
    assert "null" not in json.dumps(json.loads(file.read_text("utf-8"))) or answer.change is not None
