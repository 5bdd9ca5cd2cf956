"""Test kit for gangs: a resource manager that sends placeholders and confirms their releases."""

from __future__ import annotations

from typing import Any

import attrs

from tests.core.kit import RM, Decision, configuration, document, partition, queue, with_plugins
from yunikorn import api
from yunikorn.interface.messages import (
    AddApplicationRequest,
    AllocationAsk,
    TerminationType,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.model.gang import TaskGroup
from yunikorn.resources import Resource

IN_TWO_STEPS = (TerminationType.PLACEHOLDER_REPLACED, TerminationType.TIMEOUT)


class GangRM(RM):
    """An RM whose placeholders keep running, listed in `evicted`, until it confirms their release."""

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Record the response; placeholders keep running until their release is confirmed."""
        known = self.running | {one.uuid: one for one in response.new_allocations}
        reported = [
            release
            for release in response.released_allocations
            if release.termination_type in IN_TWO_STEPS and known[release.uuid].placeholder
        ]
        for release in reported:
            self.evicted[release.uuid] = release
        rest = [release for release in response.released_allocations if release not in reported]
        super().recv_update_response(attrs.evolve(response, released_allocations=rest))
        self.responses[-1] = response

    def gang(
        self,
        app_id: str,
        style: str = "",
        queue_name: str = "root.a",
        *,
        seconds: float = 0,
        user: str = "user",
        tags: dict[str, str] | None = None,
        **total: int,
    ) -> None:
        """Submit an application with a gang of this total size."""
        info = UserGroupInformation(user, ["group"])
        request = AddApplicationRequest(
            app_id, queue_name, "", info, tags or {}, round(seconds * 1000), Resource(total), style
        )
        self.update(new_applications=[request])

    def task(
        self,
        app_id: str,
        key: str,
        group: str,
        count: int = 1,
        *,
        placeholder: bool = False,
        priority: int | None = None,
        tags: dict[str, str] | None = None,
        **amounts: int,
    ) -> None:
        """Send an ask of a task group."""
        ask = AllocationAsk(key, app_id, "", Resource(amounts), count, priority, tags=tags or {})
        ask.task_group_name, ask.placeholder = group, placeholder
        self.update(asks=[ask])

    def schedule(self, most: int | None = None) -> list[Decision]:
        """Run the scheduler and return its placements.

        An Atomic gang is one decision with several placements, a replacement is a decision with none.
        """
        before = len(self.responses)
        count = self.scheduler.schedule(most)
        reported = self.responses[before:]
        made = [one for response in reported for one in response.new_allocations]
        replaced = any(
            one.termination_type == TerminationType.PLACEHOLDER_REPLACED
            for response in reported
            for one in response.released_allocations
        )
        assert (count > 0) == bool(made or replaced)
        return [(one.application_id, one.allocation_key, one.node_id) for one in made]

    def reported(self) -> list[tuple[str, str]]:
        """Return key and termination of the releases received since the last call, and clear the record."""
        return [
            (one.allocation_key, one.termination_type.name)
            for one in self.take_response().released_allocations
        ]

    def confirmed(self, *keys: str) -> list[Decision]:
        """Confirm requested releases, all or those of these keys; return the placements that follow."""
        self.take_response()
        self.confirm(*[uuid for uuid, one in self.evicted.items() if not keys or one.allocation_key in keys])
        return [
            (one.application_id, one.allocation_key, one.node_id)
            for one in self.take_response().new_allocations
        ]

    def group(self, app_id: str, name: str) -> TaskGroup:
        """Return a task group of an application."""
        gang = self.find_app(app_id).gang
        assert gang is not None
        return gang.groups[name]

    def counts(self, app_id: str, name: str) -> tuple[int, int, int]:
        """Return the placeholders of a task group: all that were created, replaced, and timed out."""
        group = self.group(app_id, name)
        return group.count, group.replaced, group.timed_out

    def used(self, path: str = "root.a") -> dict[str, int]:
        """Return the usage of a queue; assert that applications and nodes add up to the root's usage."""
        partition = self.at_work().partition
        root = partition.queues.root.allocated
        of_apps: dict[str, int] = {}
        of_nodes: dict[str, int] = {}
        for holders, total in (
            (partition.applications.values(), of_apps),
            (partition.nodes.values(), of_nodes),
        ):
            for holder in holders:
                for name, amount in holder.allocated.items():
                    total[name] = total.get(name, 0) + amount
        assert _plain(root) == _plain(of_apps)
        in_two_places = any(
            one.replaces is not None for node in partition.nodes.values() for one in node.allocations.values()
        )
        assert in_two_places or _plain(root) == _plain(of_nodes)
        return _plain(self.find_queue(path).allocated)


def _plain(amount: Any) -> dict[str, int]:
    return {name: value for name, value in amount.items() if value}


def ready(count: int = 3, style: str = "", *, nodes: int = 2, seconds: float = 0) -> GangRM:
    """Return an RM with nodes of 10 vcore and a gang of `count` placed placeholders of 2 vcore each."""
    rm = GangRM(configuration(queue("a"), queue("b")))
    for number in range(nodes):
        rm.node(f"n{number + 1}", vcore=10)
    rm.gang("app", style, seconds=seconds, vcore=2 * count)
    rm.task("app", "ph", "workers", count, placeholder=True, vcore=2)
    assert len(rm.schedule()) == count
    rm.take_response()
    return rm


class Keep(api.Predicate):
    """Refuses nodes to tasks that name them in the tag `not`."""

    name = "keep"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        """Return a reason if the tag names this node."""
        return "shunned" if ask.tags.get("not") == node.id else None


def picky() -> GangRM:
    """Return an RM with a gang of two on node n1, which some real tasks refuse, and with an empty node n2."""
    text = document(partition(queue("a"), predicates=[{"name": "keep"}]))
    rm = GangRM(text, with_plugins(predicates=[Keep]))
    rm.node("n1", vcore=4)
    rm.gang("app", vcore=4)
    rm.task("app", "ph", "workers", 2, placeholder=True, vcore=2)
    rm.schedule()
    rm.node("n2", vcore=2)
    rm.take_response()
    return rm
