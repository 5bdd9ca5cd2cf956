"""Recorded histories with workers, permits, quotas and reservation bounds at once replay exactly."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.drawn_quotas import QUOTAS
from tests.core.gatekeepers import GATEKEEPERS
from tests.core.kit import RM, configuration, queue, with_plugins
from tests.core.manual_workers import Directory, Fast, Groups, Licence, Site, core_with_workers
from tests.service.recording.test_policy_answers import Run, play
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import RegisterResourceManagerRequest
from yunikorn.interface.scheduler import Scheduler
from yunikorn_service.recording.recording_scheduler import RecordingScheduler
from yunikorn_service.recording.recording_writer import RecordingWriter

BORROWING = {"quota.policy": "borrowing", "quota.preemption.delay": "5s"}
SHIFTS = {
    "quota.policy": "shift-plan",
    "quota.policy.amounts": "4, 0, 2, 8",
    "quota.policy.period": "7",
    "quota.preemption.delay": "5s",
}
WORKERS = {
    "usergroupresolver": {"type": "groups"},
    "submitpolicies": ["fast", "site"],
    "admission": ["licence"],
    "placementrules": [{"name": "directory"}, {"name": "provided"}],
}
TURNSTILE = {"name": "turnstile", "needed": 2, "timeout": 12}
GATEKEEPER = {"name": "gatekeeper", "answers": [5, 0, -1, 20, 0]}


def _config(quotas: bool, permits: list[Any], reservations: dict[str, Any], **keys: Any) -> str:
    a: dict[str, Any] = {"resources": {"max": {"vcore": 3}}}
    b: dict[str, Any] = {"resources": {"max": {"vcore": 2}}}
    if quotas:
        a, b = a | {"properties": BORROWING}, b | {"properties": SHIFTS}
    return configuration(
        queue("a", **a),
        queue("b", **b),
        permits=permits,
        reservations=reservations,
        preemption={"quotapreemptionenabled": True},
        predicates=[{"name": "spread", "attribute": "zone", "max": 3}],
        **keys,
    )


BOUNDS = {"total": 1, "delay": 1, "duration": 9, "pause": 3}
CONFIGS = [
    _config(True, [TURNSTILE, GATEKEEPER], BOUNDS, **WORKERS),
    _config(False, [GATEKEEPER], BOUNDS, **WORKERS),
    _config(True, [], {"delay": 1}, **WORKERS),
    _config(True, [TURNSTILE], BOUNDS),
]
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("app"), st.integers(0, 5), st.sampled_from(["", "", "no", "to root.b"])),
        st.tuples(st.just("licence"), st.integers(0, 5), st.sampled_from(["", "5"])),
        st.tuples(st.just("ask"), st.integers(0, 5), st.sampled_from(["x", "y"])),
        st.tuples(st.just("asks"), st.integers(0, 5), st.sampled_from(["x", "z"])),
        st.tuples(st.just("release_ask"), st.integers(0, 5), st.sampled_from(["x", ""])),
        st.tuples(st.just("remove"), st.integers(0, 5), st.just("")),
        st.tuples(st.just("pass"), st.integers(0, 8), st.just("")),
        st.tuples(st.just("answer"), st.integers(0, 5), st.just("")),
        st.tuples(st.just("answer"), st.integers(0, 5), st.just("")),
        st.tuples(st.just("schedule"), st.just(0), st.just("")),
        st.tuples(st.just("schedule"), st.just(0), st.just("")),
        st.tuples(st.just("confirm"), st.just(0), st.just("")),
        st.tuples(st.just("configure"), st.sampled_from([0, 0, 1, 2, 3]), st.just("")),
    ),
    min_size=20,
    max_size=80,
)


@cache
def _registry() -> Registry:
    return with_plugins(
        user_group_resolvers=[Groups],
        submit_policies=[Site, Fast],
        admission_policies=[Licence],
        placement_rules=[Directory],
        permit_policies=GATEKEEPERS,
        quota_policies=QUOTAS,
    )


class Together(Run):
    """A recorded core with policies of all these kinds."""

    def __init__(self, file: Path) -> None:
        for one in (Groups.calls, Site.seen, Fast.seen, Licence.seen):
            one.clear()
        self.file = file
        self.registry = _registry()
        self.writer = RecordingWriter(file, pytest.fail)

        def make(*arguments: Any, **options: Any) -> Scheduler:
            return RecordingScheduler(self.writer, *arguments, **options)

        core: Any = core_with_workers(self.registry, make)
        self.workers = core.manual_workers
        self.rm = RM(CONFIGS[0], scheduler=core)
        for name in ("n1", "n2"):
            self.rm.node(name, {"zone": name}, vcore=3)


@settings(max_examples=15, deadline=None)
@given(operations=OPERATIONS, ending=st.booleans())
def test_any_history_is_replayed_exactly(
    operations: Any, ending: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = Together(tmp_path_factory.mktemp("history") / "run.jsonl")
    rm = run.rm
    for operation, number, text in operations:
        if operation == "configure":
            rm.reload(CONFIGS[number])
        elif operation == "asks":
            rm.ask(f"app{number}", text, count=2, vcore=2)
        elif operation == "confirm" and rm.evicted:
            rm.confirm()
        else:
            play(run, operation, number, text, {})
    assert all("has not returned within" in one for one in rm.failures())
    if ending:
        # A new registration ends the session with everything that is outstanding.
        rm.scheduler.register_resource_manager(RegisterResourceManagerRequest("rm", config=CONFIGS[0]), rm)
        run.workers.answer_all()
        rm.pass_time(1)
        assert (
            len(rm.at_work().partition.held_placements)
            == len(rm.at_work().held_applications)
            == len(rm.at_work().submitted)
            == 0
        )
    else:
        run.workers.answer_all()
        rm.pass_time(30)
        rm.schedule()
    run.check()
