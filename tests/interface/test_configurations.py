"""The configuration of a registration: that of its policy group, or its own (docs/decisions/archive/0035)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.core.kit import RM, configuration, queue
from yunikorn.clock import ManualClock
from yunikorn.errors import ConfigError, UsageError
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import RegisterResourceManagerRequest, UpdateResponse
from yunikorn.interface.scheduler import Scheduler
from yunikorn_service.policy_groups import Configurations, Source


class Mute:
    """A callback that expects no response."""

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Ignore the response."""


def only(name: str) -> str:
    """Return a configuration with one queue of this name."""
    return configuration(queue(name))


def scheduler_with(registry: Registry, allow: bool = False, **sources: Source) -> Scheduler:
    """Return a scheduler whose owner has these configurations; `_` stands for the empty name."""
    named: Mapping[str, Source] = {"" if name == "_" else name: source for name, source in sources.items()}
    configurations = Configurations(named, allow_rm_config=allow)
    return Scheduler(registry, ManualClock(), configurations=configurations)


def queues(scheduler: Scheduler, rm_id: str = "rm") -> list[str]:
    """Return the queues below root that an RM has."""
    at = scheduler.partition(rm_id)
    assert at is not None
    return [name for name in ("gpu", "cpu", "own", "default", "late") if at.partition.queue(f"root.{name}")]


def register(scheduler: Scheduler, group: str = "", config: str = "", rm_id: str = "rm") -> list[str]:
    """Register, and return the queues."""
    request = RegisterResourceManagerRequest(rm_id, policy_group=group, config=config)
    scheduler.register_resource_manager(request, Mute())
    return queues(scheduler, rm_id)


def test_policy_group_selects_the_configuration(registry: Registry) -> None:
    scheduler = scheduler_with(registry, gpu=only("gpu"), cpu=only("cpu"))
    assert register(scheduler, "gpu", rm_id="one") == ["gpu"]
    assert register(scheduler, "cpu", rm_id="two") == ["cpu"]
    assert register(scheduler, "cpu", rm_id="three") == ["cpu"], "several may share one"
    assert [status.policy_group for status in scheduler.sessions()] == ["gpu", "cpu", "cpu"]


def test_unknown_policy_group_is_rejected_with_the_known_ones(registry: Registry) -> None:
    scheduler = scheduler_with(registry, gpu=only("gpu"), cpu=only("cpu"))
    with pytest.raises(UsageError) as refused:
        register(scheduler, "gpus")
    assert str(refused.value) == (
        "no policy group is called 'gpus', did you mean 'gpu'?; known: 'gpu', 'cpu'."
        " Register with one of these names as policy_group"
    )
    assert scheduler.session_state("rm") == "Stopped"


def test_default_group_without_a_name_is_described(registry: Registry) -> None:
    scheduler = Scheduler(registry, ManualClock(), configurations=Configurations({"": only("default")}))
    with pytest.raises(UsageError, match=r"known: the default group \(empty policy_group\)"):
        register(scheduler, "gpu")


@pytest.mark.parametrize("named", ["", "default", "queues"])
@pytest.mark.parametrize("asked", ["", "default", "queues"])
def test_the_default_group_has_three_names(registry: Registry, named: str, asked: str) -> None:
    """The empty name, `default`, and the group that YuniKorn's own shims send by default."""
    configurations = Configurations({"gpu": only("gpu"), named: only("default")})
    scheduler = Scheduler(registry, ManualClock(), configurations=configurations)
    assert register(scheduler, asked) == ["default"]


def test_policy_group_is_selected_among_the_default_names(registry: Registry) -> None:
    scheduler = scheduler_with(registry, queues=only("gpu"), default=only("default"))
    assert register(scheduler, "queues") == ["gpu"]
    assert register(scheduler, "") == ["default"]


def test_only_policy_group_is_the_default(registry: Registry) -> None:
    assert register(scheduler_with(registry, gpu=only("gpu"))) == ["gpu"]
    with pytest.raises(UsageError, match="there is no default policy group; known: 'gpu', 'cpu'"):
        register(scheduler_with(registry, gpu=only("gpu"), cpu=only("cpu")))


def test_configuration_of_the_owner_takes_precedence_and_is_logged(
    registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "yunikorn.config")
    scheduler = scheduler_with(registry, _=only("default"))
    assert register(scheduler, config=only("own")) == ["default"]
    assert "sent its own configuration, which is ignored" in caplog.text


def test_rm_configuration_is_used_if_allowed(registry: Registry) -> None:
    scheduler = scheduler_with(registry, allow=True, gpu=only("gpu"))
    assert register(scheduler, "nobody knows", config=only("own")) == ["own"]
    assert scheduler.session("rm").policy_group is None
    assert register(scheduler, "gpu") == ["gpu"]


def test_without_groups_registrations_bring_their_own_configuration(registry: Registry) -> None:
    scheduler = Scheduler(registry, ManualClock())
    assert register(scheduler, "whatever", config=only("own")) == ["own"]
    assert scheduler.session("rm").policy_group is None


def test_invalid_configuration_of_the_owner_fails_the_registration(registry: Registry) -> None:
    with pytest.raises(ConfigError):
        register(scheduler_with(registry, _="partitions: ["))


# -- reload --------------------------------------------------------------------------------------------------


def test_a_reload_reads_the_source_again(registry: Registry, tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text(only("gpu"), "utf-8")
    scheduler = scheduler_with(registry, _=file.read_bytes)
    register(scheduler)
    assert not scheduler.reload_configuration("rm"), "the same text is no change"
    file.write_text(only("late"), "utf-8")
    assert scheduler.reload_configuration("rm")
    assert "late" in queues(scheduler)


def test_unreadable_source_changes_nothing(registry: Registry, tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text(only("gpu"), "utf-8")
    scheduler = scheduler_with(registry, _=file.read_text)
    register(scheduler)
    file.unlink()
    with pytest.raises(UsageError, match=r"of policy group '' cannot be read: .*queues\.yaml"):
        scheduler.reload_configuration("rm")
    assert queues(scheduler) == ["gpu"]
    with pytest.raises(UsageError, match="cannot be read"):
        register(scheduler)
    assert scheduler.session_state("rm") == "Running"


def test_an_rm_with_its_own_configuration_keeps_it(registry: Registry) -> None:
    scheduler = scheduler_with(registry, allow=True, _=only("default"))
    register(scheduler, config=only("own"))
    assert not scheduler.reload_configuration("rm")
    assert queues(scheduler) == ["own"]


def test_invalid_text_changes_nothing_and_reports_all_problems() -> None:
    rm = RM(only("gpu"))
    with pytest.raises(ConfigError) as refused:
        rm.reload(
            configuration(queue("late", maxapplications="many"), queue("late"), nodesortpolicy={"type": "x"})
        )
    assert len(refused.value.problems) == 3
    assert rm.at_work().partition.queue("root.late") is None


def test_checksum_is_that_of_the_current_text() -> None:
    rm = RM(only("gpu"))
    before = rm.scheduler.session("rm").checksum
    rm.reload(only("late"))
    after = rm.scheduler.session("rm").checksum
    assert before != after
    assert after == rm.scheduler.configuration("rm").checksum
    assert rm.scheduler.configuration("rm").text == only("late")
