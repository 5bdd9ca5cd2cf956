"""Submit policies check single asks: priorities are capped, asks are refused, also those that come later."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from tests.core.manual_workers import ManualWorkers, core_with_workers
from tests.service.recording.collecting_listener import CollectingListener
from yunikorn.api import AskSubmission, Submission, SubmitPolicy
from yunikorn.interface.messages import Allocation
from yunikorn.interface.scheduler import Scheduler
from yunikorn.resources import Resource
from yunikorn_service.recording.recording_reader import read_recording
from yunikorn_service.recording.recording_scheduler import RecordingScheduler
from yunikorn_service.recording.recording_writer import RecordingWriter
from yunikorn_service.recording.replayer import Replay


def verdict(ask: AskSubmission) -> Any:
    """Return the answer that the tags of an ask ask for."""
    wanted = ask.tags.get("check", "")
    if wanted == "raise":
        raise LookupError("no luck")
    if wanted == "move":
        return attrs.evolve(ask, count=99)
    if wanted == "odd":
        return 7
    if wanted == "huge":
        return attrs.evolve(ask, priority=2**40)
    if wanted:
        return f"{wanted} is not allowed in {ask.app.queue.path if ask.app.queue else ''}"
    return attrs.evolve(ask, priority=5) if ask.priority > 5 else None


class Cap(SubmitPolicy):
    """Caps priorities at 5, and refuses asks by their tags."""

    name = "cap"
    blocking = False
    seen: ClassVar[list[str]] = []

    def submit(self, app: Submission) -> Submission | None:
        return attrs.evolve(app, priority=int(app.tags["fixed"])) if "fixed" in app.tags else None

    def submit_ask(self, ask: AskSubmission) -> Any:
        self.seen.append(ask.key)
        return verdict(ask)


class SlowCap(Cap):
    """The same, for a service that may block."""

    name = "slow-cap"
    blocking = True

    def submit_ask(self, ask: AskSubmission) -> Any:
        assert not hasattr(ask.app, "allocations")
        return super().submit_ask(ask)


class Lower(SubmitPolicy):
    """Lowers the priority by one."""

    name = "lower"
    blocking = False

    def submit(self, app: Submission) -> None:
        return None

    def submit_ask(self, ask: AskSubmission) -> AskSubmission:
        return attrs.evolve(ask, priority=ask.priority - 1)


REGISTRY = with_plugins(submit_policies=[Cap, SlowCap, Lower])


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    Cap.seen.clear()


def make(*policies: str, scheduler: Scheduler | None = None) -> RM:
    config = configuration(queue("a"), submitpolicies=list(policies))
    rm = RM(config, REGISTRY) if scheduler is None else RM(config, scheduler=scheduler)
    rm.node(vcore=4)
    rm.app()
    return rm


def priorities(rm: RM) -> dict[str, int]:
    return {key: ask.priority for key, ask in rm.find_app().asks.items()}


def rejected(rm: RM) -> dict[str, str]:
    return {one.allocation_key: one.reason for one in rm.entries("rejected_allocations")}


def test_priorities_are_capped_of_plain_asks_and_of_later_ones() -> None:
    rm = make("cap")
    rm.ask(key="low", priority=1, vcore=1)
    rm.ask(key="high", priority=900, vcore=1)
    rm.schedule()
    rm.ask(key="later", priority=6, vcore=9, tags={"x": "y"})
    assert priorities(rm) == {"low": 1, "high": 5, "later": 5}
    rm.ask(key="later", priority=-3, vcore=9)
    assert priorities(rm)["later"] == -3
    rm.ask(key="later", priority=80, vcore=9)
    assert priorities(rm)["later"] == 5
    assert Cap.seen == ["low", "high", "later", "later", "later"]


def test_single_asks_are_refused_with_the_reason() -> None:
    rm = make("cap")
    rm.ask(key="good", vcore=1)
    rm.ask(key="bad", vcore=1, tags={"check": "gold"})
    assert [key for _, key, _ in rm.schedule()] == ["good"]
    assert rejected(rm) == {"bad": "submit policy cap rejects ask bad: gold is not allowed in root.a"}


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ("raise", "LookupError: no luck"),
        ("move", "ValueError: it changed 'count', which a submit policy cannot change"),
        ("odd", "TypeError: it returned 7 instead of None, a submission or a reason"),
        ("huge", "ValueError: it set priority to 1099511627776 instead of a whole number of 32 bits"),
    ],
)
def test_a_failing_policy_rejects_the_ask(check: str, said: str) -> None:
    rm = make("cap")
    rm.ask(key="bad", vcore=1, tags={"check": check})
    rm.ask(key="good", vcore=1)
    assert [key for _, key, _ in rm.schedule()] == ["good"]
    (reason,) = rejected(rm).values()
    assert said in reason
    (failure,) = rm.failures()
    assert said in failure


def test_policies_are_asked_in_order() -> None:
    rm = make("lower", "cap", "lower")
    rm.ask(key="x", priority=90, vcore=1)
    assert priorities(rm) == {"x": 4}


def test_the_priority_of_an_application_is_what_a_policy_sees_and_may_change() -> None:
    rm = make("cap")
    rm.app("fixed", fixed="77")
    rm.ask("fixed", "x", priority=1, vcore=1)
    rm.ask("fixed", "y", priority=1, vcore=1)
    assert {key: ask.priority for key, ask in rm.find_app("fixed").asks.items()} == {"x": 5, "y": 5}
    other = make("lower", "cap")
    other.app("fixed", fixed="3")
    other.ask("fixed", "x", priority=900, vcore=1)
    assert other.find_app("fixed").asks["x"].priority == 2


def test_a_policy_without_submit_ask_sees_no_asks() -> None:
    class Plain(SubmitPolicy):
        """Leaves everything as it is."""

        name = "plain"

        def submit(self, app: Submission) -> None:
            return None

    config = configuration(queue("a"), submitpolicies=["plain"])
    rm = RM(config, with_plugins(submit_policies=[Plain]))
    assert not rm.at_work().submitted_asks.policies


def test_a_reload_asks_about_new_asks_only() -> None:
    rm = make()
    rm.ask(key="before", priority=50, vcore=9)
    rm.reload(configuration(queue("a"), submitpolicies=["cap"]))
    rm.ask(key="with", priority=50, vcore=9)
    rm.reload(configuration(queue("a")))
    rm.ask(key="after", priority=50, vcore=9)
    assert priorities(rm) == {"before": 50, "with": 5, "after": 50}


def test_tasks_that_run_already_are_not_asked_about() -> None:
    rm = make("cap")
    rm.update(
        allocations=[
            Allocation("runs", "app", node_id="n1", resource_per_alloc=Resource(vcore=1), priority=99),
            Allocation("waits", "app", resource_per_alloc=Resource(vcore=1), priority=99),
        ]
    )
    assert Cap.seen == ["waits"]
    assert priorities(rm)["waits"] == 5


def test_asks_without_an_application_are_asked_about() -> None:
    rules = [{"name": "fixed", "value": "root.a"}]
    rm = RM(configuration(queue("a"), submitpolicies=["cap"], placementrules=rules), REGISTRY)
    rm.ask("", "alone", priority=9, vcore=1)
    assert rm.find_app("alone").asks["alone"].priority == 5


# -- workers -------------------------------------------------------------------------------------------------


def slow(*policies: str) -> tuple[RM, ManualWorkers]:
    core: Any = core_with_workers(REGISTRY)
    config = configuration(queue("a"), submitpolicies=list(policies or ["slow-cap"]))
    rm = RM(config, scheduler=core)
    rm.node(vcore=4)
    rm.app()
    core.manual_workers.answer_all()
    return rm, core.manual_workers


def test_an_ask_waits_for_the_answer_of_a_worker_and_others_do_not() -> None:
    rm, workers = slow()
    rm.ask(key="slow", priority=9, vcore=1)
    assert rm.schedule() == []
    assert priorities(rm) == {}
    workers.answer()
    assert [key for _, key, _ in rm.schedule()] == ["slow"]
    assert priorities(rm) == {"slow": 5}
    rm.ask(key="bad", vcore=1, tags={"check": "gold"})
    workers.answer()
    assert rejected(rm) == {"bad": "submit policy slow-cap rejects ask bad: gold is not allowed in root.a"}


def test_a_released_ask_is_not_admitted_later() -> None:
    rm, workers = slow()
    rm.ask(key="gone", vcore=1)
    rm.ask(key="stays", vcore=1)
    rm.release_ask("app", "gone")
    assert [one.allocation_key for one in rm.entries("released_allocation_asks")] == ["gone"]
    workers.answer_all()
    assert [key for _, key, _ in rm.schedule()] == ["stays"]
    assert rejected(rm) == {}


def test_the_latest_of_two_asks_with_one_key_counts() -> None:
    rm, workers = slow()
    rm.ask(key="x", priority=1, vcore=1)
    rm.ask(key="x", priority=2, vcore=2)
    workers.answer_all()
    assert priorities(rm) == {"x": 2}


def test_an_application_that_ends_meanwhile_rejects_its_ask() -> None:
    rm, workers = slow()
    rm.ask(key="x", vcore=1)
    rm.scheduler.fail_application("rm", "default", "app", "no longer needed")
    workers.answer_all()
    assert list(rejected(rm)) == ["x"]
    rm, workers = slow()
    rm.ask(key="x", vcore=1)
    rm.remove_app("app")
    rm.app("app")
    workers.answer_all()
    assert rm.find_app().asks == {}


def test_a_reload_asks_the_policies_of_the_new_configuration() -> None:
    rm, workers = slow()
    rm.ask(key="x", priority=90, vcore=1)
    rm.reload(configuration(queue("a"), submitpolicies=["lower"]))
    assert priorities(rm) == {"x": 89}
    rm, workers = slow()
    rm.ask(key="x", priority=90, vcore=1)
    rm.reload(configuration(queue("a")))
    workers.answer_all()
    assert priorities(rm) == {"x": 90}


def test_a_policy_that_does_not_answer_rejects_the_ask() -> None:
    rm, _ = slow()
    rm.ask(key="x", vcore=1)
    rm.pass_time(3600)
    (reason,) = rejected(rm).values()
    assert "it has not returned within" in reason


def test_asks_of_an_application_that_waits_itself_are_checked_after_it() -> None:
    rm, workers = slow()
    rm.app("late")
    rm.ask("late", "x", priority=9, vcore=1)
    assert workers.answer_all() == 2
    assert rm.find_app("late").asks["x"].priority == 5


def test_a_replay_has_the_answers_of_the_recording(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    writer = RecordingWriter(file, pytest.fail)
    core: Any = core_with_workers(
        REGISTRY, lambda *arguments, **options: RecordingScheduler(writer, *arguments, **options)
    )
    rm = RM(configuration(queue("a"), submitpolicies=["slow-cap"]), scheduler=core)
    rm.node(vcore=4)
    rm.app()
    rm.ask(key="x", priority=9, vcore=1)
    rm.ask(key="y", vcore=1, tags={"check": "gold"})
    core.manual_workers.answer_all()
    rm.schedule()
    writer.close()
    Cap.seen.clear()
    listener = CollectingListener()
    replay = Replay(read_recording(file).lines, REGISTRY, listener)
    replay.run()
    assert listener.of("rm") == rm.responses
    assert Cap.seen == []
    assert str(replay.comparison.first or "") == ""
