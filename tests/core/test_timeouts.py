"""Delays that a configuration sets for a partition."""

from __future__ import annotations

import pytest

from tests.core.kit import RM, configuration, queue
from yunikorn.clock import SECOND
from yunikorn.config.load import check_config
from yunikorn.framework.registry import Registry
from yunikorn.model.context import Timeouts


def run_one_task(rm: RM) -> None:
    rm.node(vcore=10)
    rm.app()
    rm.ask(vcore=1)
    rm.schedule()


def test_states_time_out_as_configured() -> None:
    rm = RM(configuration(periods={"starting": "1m", "completing": "5s", "retention": "1h"}))
    run_one_task(rm)
    rm.pass_time(59)
    assert rm.state() == "Starting"
    rm.pass_time(1)
    assert rm.state() == "Running"
    rm.release(uuid=next(iter(rm.running)))
    rm.pass_time(5)
    assert rm.state() == "Completed"
    rm.pass_time(3600)
    assert rm.entries("updated_applications")[-1].state == "Expired"


def test_default_timeouts_are_those_of_yunikorn() -> None:
    rm = RM(configuration(periods={"cleanup": "1s"}))
    assert rm.at_work().partition.timeouts == Timeouts(cleanup=SECOND)


def test_reservations_can_be_disabled() -> None:
    rm = RM(configuration(periods={"reservation": "never"}))
    assert rm.at_work().partition.timeouts.reservation is None


def test_a_reload_changes_delays_from_then_on() -> None:
    rm = RM(configuration(queue("a"), periods={"completing": "5s"}))
    run_one_task(rm)
    rm.reload(configuration(queue("a"), periods={"completing": "1h"}))
    rm.release(uuid=next(iter(rm.running)))
    rm.pass_time(3599)
    assert rm.state() == "Completing"
    rm.pass_time(1)
    assert rm.state() == "Completed"


@pytest.mark.parametrize(
    ("timeouts", "path", "message"),
    [
        ({"starting": "soon"}, "starting", "expected a duration such as 30s"),
        ({"completing": "-5s"}, "completing", "a delay is 0 or more, got -5s"),
        ({"completing": "never"}, "completing", "expected a duration"),
        ({"reservation": "no"}, "reservation", "or never"),
        ({"reservations": "2s"}, "reservations", "did you mean 'reservation'?"),
    ],
)
def test_invalid_delay_is_reported(timeouts: dict[str, str], path: str, message: str) -> None:
    outcome = check_config(configuration(periods=timeouts), Registry.load(third_party=False))
    (problem,) = outcome.problems
    assert problem.path == f"partitions[0].periods.{path}"
    assert message in problem.message


def test_key_is_reported_as_unknown_to_yunikorn() -> None:
    outcome = check_config(configuration(periods={}), Registry.load(third_party=False))
    assert [note.path for note in outcome.notes] == ["partitions[0].periods"]
