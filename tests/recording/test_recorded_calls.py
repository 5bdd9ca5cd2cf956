"""Every call that can change a scheduler is recorded."""

from __future__ import annotations

from yunikorn.interface.scheduler import Scheduler
from yunikorn.recording.recording_scheduler import CALLS

WITHOUT_EFFECT = {
    "all_partitions",
    "change_settings",
    "check_configuration",
    "configuration",
    "core_activity",
    "discard_reloads",
    "explain",
    "first_reasons",
    "load_ahead",
    "next_timer",
    "partition",
    "partitions",
    "plugins",
    "prepare_reload",
    "session",
    "session_state",
    "sessions",
}
"""Methods that change nothing a decision depends on."""


def test_all_methods_of_a_scheduler_are_recorded_or_have_no_effect() -> None:
    methods = {name for name in dir(Scheduler) if not name.startswith("_")}
    assert methods == {*CALLS, *WITHOUT_EFFECT}
