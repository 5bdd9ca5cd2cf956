"""The default plugins, named in a configuration and used by a scheduler."""

from __future__ import annotations

import grp
import json
import logging
import pwd
from collections.abc import Mapping
from pathlib import Path

import pytest

from yunikorn.clock import ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import (
    AddApplicationRequest,
    AllocationAsk,
    NewNodeInfo,
    RegisterResourceManagerRequest,
    UpdateNodeInfo,
    UpdateRequest,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.resources import Resource

SELECTOR = "yunikorn.apache.org/node-selector"
TOLERATIONS = "yunikorn.apache.org/tolerations"
QUEUES = "queues: [{name: root, submitacl: '*', queues: [{name: a}]}]"


class ResourceManager:
    """Submits to `root.a`, and records all placements."""

    def __init__(self, registry: Registry, config: str) -> None:
        self.scheduler = Scheduler(registry, ManualClock())
        self.scheduler.register_resource_manager(RegisterResourceManagerRequest("rm", config=config), self)
        self.nodes: dict[str, str] = {}
        """Node by allocation key."""
        self.rejected: dict[str, str] = {}

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Record the response."""
        self.nodes |= {each.allocation_key: each.node_id for each in response.new_allocations}
        self.rejected |= {each.application_id: each.reason for each in response.rejected_applications}

    def add_node(self, node_id: str, **attributes: str) -> None:
        """Register a node with room for ten asks."""
        node = NewNodeInfo(node_id, attributes, Resource(vcore=10))
        self.scheduler.update(UpdateRequest("rm", new_schedulable_nodes=[node]))
        self.scheduler.schedule()

    def change_node(self, node_id: str, **attributes: str) -> None:
        """Update the attributes of a node."""
        self.scheduler.update(
            UpdateRequest("rm", updated_nodes=[UpdateNodeInfo(node_id, attributes=attributes)])
        )
        self.scheduler.schedule()

    def submit(self, app_id: str, tags: Mapping[str, str], user: str = "ann") -> None:
        """Submit an application."""
        new = AddApplicationRequest(app_id, "root.a", "", UserGroupInformation(user), dict(tags))
        self.scheduler.update(UpdateRequest("rm", new_applications=[new]))

    def ask(self, app_id: str, key: str, tags: Mapping[str, str]) -> None:
        """Send one ask for one vcore."""
        ask = AllocationAsk(key, app_id, resource_ask=Resource(vcore=1), tags=dict(tags))
        self.scheduler.update(UpdateRequest("rm", asks=[ask]))
        self.scheduler.schedule()


def test_predicates_are_reevaluated_when_a_node_changes(registry: Registry) -> None:
    config = f"partitions: [{{name: default, predicates: [node-selector, taints], {QUEUES}}}]"
    rm = ResourceManager(registry, config)
    rm.add_node("red", zone="x", taints="team=red:NoSchedule")
    rm.add_node("plain", zone="y")
    rm.submit("app", {})
    rm.ask("app", "anywhere", {})
    rm.ask("app", "tolerant", {TOLERATIONS: "team=red", SELECTOR: "zone in (x, z)"})
    rm.ask("app", "too-shy", {SELECTOR: "zone=x"})
    rm.ask("app", "too-far", {SELECTOR: "zone=z"})
    rm.ask("app", "garbled", {SELECTOR: "zone in"})
    assert rm.nodes == {"anywhere": "plain", "tolerant": "red"}

    rm.change_node("red", zone="x")
    assert rm.nodes == {"anywhere": "plain", "tolerant": "red", "too-shy": "red"}
    rm.add_node("far", zone="z")
    assert rm.nodes == {"anywhere": "plain", "tolerant": "red", "too-shy": "red", "too-far": "far"}
    assert not list(rm.scheduler.failures)


def test_selector_of_an_application_applies_to_its_asks(registry: Registry) -> None:
    rm = ResourceManager(registry, f"partitions: [{{name: default, predicates: [node-selector], {QUEUES}}}]")
    rm.add_node("x", zone="x", disk="ssd")
    rm.add_node("y", zone="y", disk="ssd")
    rm.submit("bound", {SELECTOR: "zone=y"})
    rm.submit("free", {})
    rm.ask("bound", "one", {})
    rm.ask("bound", "two", {SELECTOR: "disk=ssd"})
    rm.ask("bound", "three", {SELECTOR: "zone=x"})
    rm.ask("free", "four", {SELECTOR: "zone=x"})
    assert rm.nodes == {"one": "y", "two": "y", "four": "x"}


def test_sinks_receive_events(registry: Registry, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "yunikorn.events")
    path = tmp_path / "events.jsonl"
    sinks = f"events: {{sinks: [log, {{name: jsonl, path: {path}}}]}}\n"
    rm = ResourceManager(registry, f"{sinks}partitions: [{{name: default, {QUEUES}}}]")
    rm.add_node("n")
    rm.submit("app", {})
    rm.ask("app", "one", {})
    events = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [event["objectID"] for event in events if event["eventChangeDetail"] == "APP_ALLOC"] == ["app"]
    assert len(caplog.records) == len(events)
    rm.scheduler.close()


def test_sink_that_cannot_be_opened_is_reported_and_blocks_nothing(
    registry: Registry, tmp_path: Path
) -> None:
    sinks = f"events: {{sinks: [{{name: jsonl, path: {tmp_path / 'no' / 'events.jsonl'}}}]}}\n"
    rm = ResourceManager(registry, f"{sinks}partitions: [{{name: default, {QUEUES}}}]")
    rm.add_node("n")
    rm.submit("app", {})
    rm.ask("app", "one", {})
    assert rm.nodes == {"one": "n"}
    (failure,) = rm.scheduler.failures
    assert "jsonl" in failure.plugin
    assert "No such file or directory" in failure.message


def test_groups_are_resolved_by_the_operating_system(registry: Registry) -> None:
    names = {entry.gr_gid: entry.gr_name for entry in grp.getgrall()}
    user = next(entry for entry in pwd.getpwall() if entry.pw_gid in names)
    rules = f"placementrules: [{{name: provided, filter: {{groups: [{names[user.pw_gid]}, no-other]}}}}]"
    config = f"partitions: [{{name: default, usergroupresolver: {{type: os}}, {rules}, {QUEUES}}}]"
    rm = ResourceManager(registry, config)
    rm.submit("known", {}, user.pw_name)
    rm.submit("unknown", {}, "nobody-is-called-so")
    assert rm.rejected == {"unknown": "user resolution failed: there is no user 'nobody-is-called-so'"}
