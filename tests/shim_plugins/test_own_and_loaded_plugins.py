"""Plugins of a resource manager are used beside those that a configuration of the operator loads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.core.kit import configuration, plugin_with, queue
from yunikorn.api import Ask, Event, EventSink, Node, Predicate
from yunikorn.clock import ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import (
    AddApplicationRequest,
    AllocationAsk,
    NewNodeInfo,
    RegisterResourceManagerRequest,
    UpdateRequest,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.resources import Resource
from yunikorn_commands.plugin_files import CodePermission
from yunikorn_service.policy_groups import Configurations

FILE = """
from yunikorn.api import hookimpl

@hookimpl
def yunikorn_predicates():
    return []
"""


class Never(Predicate):
    """Refuses every node."""

    name = "never"

    def check(self, ask: Ask, node: Node) -> str | None:
        return "never"


@pytest.mark.parametrize("loads", [False, True])
def test_plugins_of_a_resource_manager_are_in_force_beside_loaded_files(loads: bool, tmp_path: Path) -> None:
    received: list[Event] = []

    class Own(EventSink):
        name = "own"

        def send(self, batch: Sequence[Event]) -> None:
            received.extend(batch)

    class Callback:
        plugins = (plugin_with(event_sinks=[Own], predicates=[Never]),)

        def recv_update_response(self, response: UpdateResponse) -> None:
            assert not response.new_allocations

    (tmp_path / "mine.py").write_text(FILE, "utf-8")
    config = json.loads(configuration(queue("a")))
    if loads:
        config["plugins"] = {"load": ["./mine.py"]}
    configurations = Configurations({"": json.dumps(config)}, code={"": CodePermission.of_operator(tmp_path)})
    scheduler = Scheduler(Registry.load(third_party=False), ManualClock(), configurations=configurations)
    scheduler.register_resource_manager(RegisterResourceManagerRequest("rm"), Callback())
    scheduler.update(
        UpdateRequest(
            "rm",
            new_schedulable_nodes=[NewNodeInfo("n", {}, Resource(memory=4))],
            new_applications=[AddApplicationRequest("app", "root.a", ugi=UserGroupInformation("user"))],
        )
    )
    scheduler.update(UpdateRequest("rm", asks=[AllocationAsk("ask", "app", resource_ask=Resource(memory=1))]))
    assert not scheduler.schedule()
    assert received


def test_a_plugin_is_removed_beside_a_file_that_was_loaded_from_another_folder(
    tmp_path: Path,
) -> None:
    class Callback:
        def recv_update_response(self, response: UpdateResponse) -> None:
            """Receive nothing of interest."""

    (tmp_path / "mine.py").write_text(FILE, "utf-8")
    config = json.loads(configuration(queue("a")))
    config["plugins"] = {"load": ["./mine.py"]}
    configurations = Configurations({"": json.dumps(config)}, code={"": CodePermission.of_operator(tmp_path)})
    scheduler = Scheduler(Registry.load(third_party=False), ManualClock(), configurations=configurations)
    scheduler.register_resource_manager(RegisterResourceManagerRequest("rm"), Callback())
    assert scheduler.register_plugin("rm", plugin_with(predicates=[Never]), "own")
    scheduler.unregister_plugin("rm", "own")
    assert scheduler.configuration("rm").loaded[0].path == str(tmp_path / "mine.py")
    assert scheduler.register_plugin("rm", plugin_with(predicates=[Never]), "own")
