"""A configuration change at runtime: checked, saved by the RM, then applied (docs/decisions/archive/0038)."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.core.kit import RM, configuration, document, partition, queue
from yunikorn.clock import ManualClock
from yunikorn.errors import ConfigError, UsageError
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import (
    RegisterResourceManagerRequest,
    UpdateConfigurationRequest,
    UpdateConfigurationResponse,
    UpdateResponse,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn_service.policy_groups import Configurations

OLD, NEW = configuration(queue("a")), configuration(queue("a"), queue("b"))
SAVED = UpdateConfigurationResponse(True)


class Keeper(RM):
    """An RM that saves configurations, or refuses to."""

    def __init__(self, text: str = OLD) -> None:
        self.saved: list[str] = []
        self.answer: Callable[[str], object] = lambda text: SAVED
        super().__init__(text)

    def update_configuration(self, request: UpdateConfigurationRequest) -> UpdateConfigurationResponse:
        """Save a text, and return the prepared answer."""
        self.saved.append(request.configs)
        return self.answer(request.configs)  # type: ignore[return-value]

    def change(self, text: str) -> UpdateConfigurationResponse:
        """Request another configuration."""
        return self.scheduler.update_configuration(self.rm_id, UpdateConfigurationRequest(text))

    def queues(self) -> list[str]:
        """Return the existing queues among a and b."""
        tree = self.at_work().partition
        return [name for name in ("a", "b") if tree.queue(f"root.{name}")]


def test_configuration_is_saved_then_applied_and_the_old_one_is_returned() -> None:
    rm = Keeper()
    rm.answer = lambda text: SAVED if rm.queues() == ["a"] else UpdateConfigurationResponse(False)
    assert rm.change(NEW) == UpdateConfigurationResponse(True, OLD)
    assert rm.saved == [NEW]
    assert rm.queues() == ["a", "b"]
    assert rm.scheduler.configuration("rm").text == NEW


SECRET = "hunter"
BROKEN = {
    "rule": configuration(queue("a"), placementrules=[{"name": SECRET}]),
    "key": configuration(queue("a"), hunter=1),
    "yaml": f"{{{SECRET}",
}
"""Invalid configurations by kind; each contains the secret."""


@pytest.mark.parametrize(
    ("kind", "logged"),
    [
        ("rule", "line 1, column 140: a value that cannot be used"),
        ("key", "line 1, column 112: an unknown key"),
        ("yaml", "not valid YAML"),
    ],
)
@pytest.mark.parametrize("by", ["reload", "update"])
def test_invalid_configuration_is_logged_without_its_text_and_ignored(
    kind: str, logged: str, by: str, caplog: pytest.LogCaptureFixture
) -> None:
    rm = Keeper()
    if by == "update":
        assert not rm.change(BROKEN[kind]).success
    else:
        with pytest.raises(ConfigError, match=SECRET if kind != "yaml" else "YAML"):
            rm.reload(BROKEN[kind])
    (record,) = [record for record in caplog.records if record.name == "yunikorn.config"]
    text = record.getMessage()
    assert text.startswith(
        "resource manager rm: the new configuration cannot be used, the current one stays in use: "
    )
    assert logged in text
    assert SECRET not in caplog.text
    assert rm.scheduler.configuration("rm").text == OLD


def test_invalid_configuration_of_the_owner_is_logged_with_all_problems(
    registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    text = OLD
    scheduler = Scheduler(registry, ManualClock(), configurations=Configurations({"": lambda: text}))
    scheduler.register_resource_manager(RegisterResourceManagerRequest("rm"), Keeper())
    text = BROKEN["rule"]
    with pytest.raises(ConfigError):
        scheduler.reload_configuration("rm")
    assert f"no placement rule is called '{SECRET}'" in caplog.text


@pytest.mark.parametrize(
    ("kind", "logged"),
    [
        ("rule", "line 1, column 140: a value that cannot be used"),
        ("key", "line 1, column 112: an unknown key"),
        ("yaml", "not valid YAML"),
    ],
)
def test_invalid_configuration_at_registration_is_logged_without_its_text(
    kind: str, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ConfigError, match=SECRET if kind != "yaml" else "YAML"):
        Keeper(BROKEN[kind])
    (record,) = [record for record in caplog.records if record.name == "yunikorn.config"]
    text = record.getMessage()
    start = "resource manager rm: the registration was refused, the configuration cannot be used: "
    assert text.startswith(start)
    assert logged in text
    assert SECRET not in caplog.text


def test_invalid_configuration_of_the_owner_is_logged_in_full_at_registration(
    registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler = Scheduler(registry, ManualClock(), configurations=Configurations({"": BROKEN["rule"]}))
    with pytest.raises(ConfigError):
        scheduler.register_resource_manager(RegisterResourceManagerRequest("rm"), Keeper())
    assert f"no placement rule is called '{SECRET}'" in caplog.text


def test_invalid_configuration_is_not_saved_and_all_problems_are_reported() -> None:
    rm = Keeper()
    bad = configuration(queue("a", maxapplications="many"), nodesortpolicy={"type": "sideways"})
    answer = rm.change(bad)
    assert not answer.success
    assert answer.old_config == OLD
    assert answer.reason.startswith("the configuration cannot be used: partitions[0].")
    assert len(answer.reason.splitlines()) == 2
    assert rm.saved == []
    assert rm.queues() == ["a"]


def test_configuration_in_conflict_with_running_applications_is_not_saved() -> None:
    rm = Keeper()
    rm.app()
    answer = rm.change(configuration(queue("a", queue("b"))))
    assert "queue root.a cannot change its type now: it has 1 application" in answer.reason
    assert rm.saved == []


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (UpdateConfigurationResponse(False, reason="the disk is full"), "the disk is full"),
        (UpdateConfigurationResponse(False), "the resource manager gave no reason"),
        (None, "saving a configuration: it returned None instead of an UpdateConfigurationResponse"),
    ],
)
def test_configuration_that_is_not_saved_is_not_applied(answer: object, reason: str) -> None:
    rm = Keeper()
    rm.answer = lambda text: answer
    reported = rm.change(NEW)
    assert not reported.success
    assert reported.old_config == OLD
    assert reported.reason.startswith("the configuration was not saved: ")
    assert reported.reason.endswith(reason)
    assert rm.queues() == ["a"]


def test_saving_that_raises_is_contained_and_reported() -> None:
    rm = Keeper()

    def fail(text: str) -> object:
        raise OSError("no space left")

    rm.answer = fail
    reported = rm.change(NEW)
    assert reported.reason == (
        "the configuration was not saved: callback of resource manager rm: saving a configuration:"
        " OSError: no space left"
    )
    assert rm.failures() == [
        "callback of resource manager rm: saving a configuration: OSError: no space left"
    ]
    assert rm.queues() == ["a"]


def test_current_text_is_neither_saved_nor_applied_again() -> None:
    rm = Keeper()
    assert rm.change(OLD) == UpdateConfigurationResponse(True, OLD)
    assert rm.saved == []


def test_rm_without_saving_applies_configurations() -> None:
    rm = RM(OLD)
    answer = rm.scheduler.update_configuration("rm", UpdateConfigurationRequest(NEW))
    assert answer == UpdateConfigurationResponse(True, OLD)
    assert rm.find_queue("root.b")


def test_old_configuration_is_saved_again_if_state_changes_during_saving() -> None:
    rm = Keeper()

    def submit(text: str) -> UpdateConfigurationResponse:
        rm.app()
        return SAVED

    rm.answer = submit
    answer = rm.change(configuration(queue("a", queue("b"))))
    assert not answer.success
    assert "queue root.a cannot change its type now" in answer.reason
    assert rm.saved[1:] == [OLD]
    assert rm.queues() == ["a"]


def test_removed_partition_fails_its_applications() -> None:
    rm = Keeper(document(partition(queue("a")), partition(queue("a"), name="other")))
    rm.node("n1", {"si/node-partition": "other"}, vcore=1)
    rm.app(partition_name="other")
    rm.ask(partition_name="other", vcore=1)
    rm.schedule()
    rm.take_response()
    assert rm.change(OLD).success
    received = rm.take_response()
    assert [one.allocation_key for one in received.released_allocations] == ["ask"]
    assert [one.state for one in received.updated_applications] == ["Failing", "Failed"]


def test_check_has_no_effect() -> None:
    """A partition created for the check only has no timers and no sinks."""
    rm = Keeper()
    rm.answer = lambda text: UpdateConfigurationResponse(False, reason="no")
    for number in range(3):
        rm.change(document(partition(queue("a")), partition(name=f"other-{number}")))
    assert [one.name for one in rm.scheduler.partitions("rm")] == ["default"]
    assert rm.scheduler.next_timer() is None


def test_a_paused_rm_cannot_save() -> None:
    rm = Keeper()
    rm.scheduler.pause("rm", "the stream broke")
    assert rm.change(NEW).reason == (
        "the configuration was not saved: resource manager rm is paused (the stream broke)"
    )
    assert rm.saved == []
    assert rm.queues() == ["a"]


class Mute:
    """A callback that expects no response."""

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Ignore the response."""


def test_rm_cannot_change_the_configuration_of_the_owner(registry: Registry) -> None:
    scheduler = Scheduler(registry, ManualClock(), configurations=Configurations({"gpu": OLD}))
    scheduler.register_resource_manager(RegisterResourceManagerRequest("rm", policy_group="gpu"), Mute())
    answer = scheduler.update_configuration("rm", UpdateConfigurationRequest(NEW))
    assert not answer.success
    assert answer.reason.startswith("the configuration of policy group 'gpu' belongs to the scheduler")
    assert answer.old_config == scheduler.configuration("rm").text == OLD
    scheduler.reload_configuration("rm", NEW)
    assert scheduler.configuration("rm").text == NEW, "its owner may"


def test_unknown_rm_has_no_configuration() -> None:
    with pytest.raises(UsageError, match="no resource manager 'other' is registered"):
        RM().scheduler.update_configuration("other", UpdateConfigurationRequest(NEW))


def test_empty_text_is_the_default_configuration() -> None:
    rm = Keeper()
    assert rm.change("").success
    assert "namespace" in json.dumps(rm.saved)
