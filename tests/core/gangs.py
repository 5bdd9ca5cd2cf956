"""A resource manager with gangs: it asks for placeholders, and ends them when it is told to."""

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
from yunikorn.objects.gang import TaskGroup
from yunikorn.resources import Resource

IN_TWO_STEPS = (TerminationType.PLACEHOLDER_REPLACED, TerminationType.TIMEOUT)


class GangRM(RM):
    """What it is told to end runs on, in `evicted`, until it confirms."""

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Remember the answer; placeholders end only when that is confirmed."""
        known = self.running | {one.uuid: one for one in response.new_allocations}
        told = [
            release
            for release in response.released_allocations
            if release.termination_type in IN_TWO_STEPS and known[release.uuid].placeholder
        ]
        for release in told:
            self.evicted[release.uuid] = release
        rest = [release for release in response.released_allocations if release not in told]
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
        """A gang of this size is submitted."""
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
        """An ask of a task group."""
        ask = AllocationAsk(key, app_id, "", Resource(amounts), count, priority, tags=tags or {})
        ask.task_group_name, ask.placeholder = group, placeholder
        self.update(asks=[ask])

    def schedule(self, most: int | None = None) -> list[Decision]:
        """Have the scheduler decide; returns what it placed (a gang is one decision, a replacement none)."""
        before = len(self.responses)
        count = self.scheduler.schedule(most)
        said = self.responses[before:]
        made = [one for response in said for one in response.new_allocations]
        replaced = any(
            one.termination_type == TerminationType.PLACEHOLDER_REPLACED
            for response in said
            for one in response.released_allocations
        )
        assert (count > 0) == bool(made or replaced)
        return [(one.application_id, one.allocation_key, one.node_id) for one in made]

    def told(self) -> list[tuple[str, str]]:
        """Key and reason of what it was told to end since it was last asked, and forgets."""
        return [(one.allocation_key, one.termination_type.name) for one in self.heard().released_allocations]

    def confirmed(self, *keys: str) -> list[Decision]:
        """Ends what it was told to end, or of that only these keys; returns what it is given for it."""
        self.heard()
        self.confirm(*[uuid for uuid, one in self.evicted.items() if not keys or one.allocation_key in keys])
        return [(one.application_id, one.allocation_key, one.node_id) for one in self.heard().new_allocations]

    def group(self, app_id: str, name: str) -> TaskGroup:
        """A task group."""
        gang = self.find_app(app_id).gang
        assert gang is not None
        return gang.groups[name]

    def counts(self, app_id: str, name: str) -> tuple[int, int, int]:
        """Of a task group: placeholders ever, replaced, and gone for another reason."""
        group = self.group(app_id, name)
        return group.count, group.replaced, group.timed_out

    def used(self, path: str = "root.a") -> dict[str, int]:
        """What a queue uses, and with it (they must agree) the application, node and user that do."""
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
    """Two nodes of 10; a gang of `count` placeholders of 2, all of them placed."""
    rm = GangRM(configuration(queue("a"), queue("b")))
    for number in range(nodes):
        rm.node(f"n{number + 1}", vcore=10)
    rm.gang("app", style, seconds=seconds, vcore=2 * count)
    rm.task("app", "ph", "workers", count, placeholder=True, vcore=2)
    assert len(rm.schedule()) == count
    rm.heard()
    return rm


class Keep(api.Predicate):
    """Real tasks that shun a node do not run there."""

    name = "keep"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        """Only where the task does not say no."""
        return "shunned" if ask.tags.get("not") == node.id else None


def picky() -> GangRM:
    """A gang of two on a node that some of its real tasks shun; another node comes afterwards."""
    text = document(partition(queue("a"), predicates=[{"name": "keep"}]))
    rm = GangRM(text, with_plugins(predicates=[Keep]))
    rm.node("n1", vcore=4)
    rm.gang("app", vcore=4)
    rm.task("app", "ph", "workers", 2, placeholder=True, vcore=2)
    rm.schedule()
    rm.node("n2", vcore=2)
    rm.heard()
    return rm
