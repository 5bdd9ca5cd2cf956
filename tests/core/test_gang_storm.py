"""Long random histories with gangs: accounting holds, Atomic gangs are placed whole, no ask is overlooked."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from tests.core.gangs import GangRM
from tests.core.kit import partition, queue, with_plugins
from tests.example_counts import examples
from yunikorn import api
from yunikorn.accounting.partition import Partition
from yunikorn.clock import SECOND
from yunikorn.interface.messages import Allocation, NodeAction, TerminationType
from yunikorn.model.context import Timeouts

SEEDS = examples(4)
STEPS = 150
QUEUES = ("root.a", "root.b", "root.c")
STYLES = ("Soft", "Hard", "Atomic", "Atomic", "")


class Shy(api.Predicate):
    """Refuses crowded nodes to asks with the tag `shy`, without declaring its inputs."""

    name = "shy"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        crowded = node.allocated.get("vcore", 0) > 4
        return "crowded" if crowded and ask.tags.get("shy") else None


class Storm:
    """Random history of one seed."""

    def __init__(self, seed: int, *, shy: bool) -> None:
        self.random = Random(seed)
        self.shy = shy
        self.apps = 0
        self.nodes = 0
        self.keys = 0
        self.size: dict[str, int] = {}
        self.broken: set[str] = set()
        """Atomic gangs of which an external event, not a decision, ended some members."""
        self.config = self.draw_config()
        timeouts = Timeouts(reservation=None, gang_patience=60 * SECOND)
        self.rm = GangRM(self.text(self.config), with_plugins(predicates=[Shy]), timeouts=timeouts)
        for _ in range(3):
            self.add_node()

    # -- configuration --------------------------------------------------------------------------------

    def draw_config(self) -> dict[str, Any]:
        draw = self.random
        queues = []
        for path in QUEUES:
            config = queue(path.rpartition(".")[2])
            policies = ["fifo", "stateaware"] + ["fair"] * (path == "root.c")
            config["properties"] = {"application.sort.policy": draw.choice(policies)}
            if draw.random() < 0.4:
                config["resources"] = {"max": {"vcore": f"{draw.randint(4, 14)}m"}}
            if draw.random() < 0.3:
                config["maxapplications"] = draw.randint(1, 4)
            if draw.random() < 0.3:
                limit = {"limit": "some", "users": ["*"], "maxresources": {"vcore": f"{draw.randint(2, 4)}m"}}
                config["limits"] = [limit]
            queues.append(config)
        return partition(*queues, predicates=[{"name": "shy"}] if self.shy else [])

    @staticmethod
    def text(config: dict[str, Any]) -> str:
        return json.dumps({"partitions": [config]})

    def reload(self) -> None:
        self.config = self.draw_config()
        self.rm.reload(self.text(self.config))

    # -- random operations ----------------------------------------------------------------------------

    @property
    def objects(self) -> Partition:
        return self.rm.at_work().partition

    def add_node(self) -> None:
        self.nodes += 1
        self.rm.node(f"n{self.nodes}", vcore=self.random.choice([4, 6, 8]))

    def change_node(self) -> None:
        nodes = list(self.objects.nodes.values())
        if not nodes:
            return
        node = self.random.choice(nodes)
        action = self.random.choice(list(NodeAction))
        if action == NodeAction.DECOMMISSION:
            for one in node.allocations.values():
                self.broken.add(one.app.id)
        if action == NodeAction.UPDATE:
            self.rm.change_node(node.id, vcore=self.random.choice([2, 4, 8]))
        else:
            self.rm.change_node(node.id, action)

    def submit(self) -> None:
        self.apps += 1
        app_id, path = f"app{self.apps}", self.random.choice(QUEUES)
        user = self.random.choice(["u1", "u2"])
        if self.random.random() < 0.2:
            self.rm.app(app_id, path, user=user)
            return
        style = self.random.choice(STYLES)
        count = self.random.randint(2, 5)
        if style == "Atomic":
            self.size[app_id] = count
        seconds = self.random.choice([0, 30, 90])
        self.rm.gang(app_id, style, path, seconds=seconds, user=user, vcore=count)
        if self.random.random() < 0.8:
            self.ask_for_all(app_id, count, placeholder=style != "Atomic")

    def ask_for_all(self, app_id: str, count: int, *, placeholder: bool) -> None:
        while count:
            part = self.random.randint(1, count)
            size = self.random.choice([1, 1, 2]) if part > 1 and part % 2 == 0 else 1
            self.task(app_id, part // size, size, placeholder=placeholder)
            count -= part

    def task(self, app_id: str, count: int, size: int, *, placeholder: bool = False) -> None:
        self.keys += 1
        tags = {"shy": "yes"} if self.shy and not placeholder and self.random.random() < 0.5 else {}
        self.rm.task(
            app_id, f"k{self.keys}", self.random.choice(["g1", "g1", "g1", "g2"]), count,
            placeholder=placeholder, priority=self.random.choice([0, 0, 1]), tags=tags, vcore=size,
        )  # fmt: skip

    def ask_in_place(self) -> None:
        """Send real tasks for placeholders that run."""
        gangs = [app for app in self.objects.applications.values() if app.gang and app.gang.placeholders]
        if gangs:
            app = self.random.choice(gangs)
            self.task(app.id, self.random.randint(1, 3), 1)

    def ask(self) -> None:
        app_id = self.some_app()
        if app_id:
            if self.random.random() < 0.3:
                self.keys += 1
                self.rm.ask(app_id, f"k{self.keys}", self.random.randint(1, 3), vcore=1)
            else:
                self.task(app_id, self.random.randint(1, 3), self.random.choice([1, 1, 1, 2]))

    def some_app(self) -> str:
        apps = list(self.objects.applications)
        return self.random.choice(apps) if apps else ""

    def release(self) -> None:
        for uuid in self.random.sample(sorted(self.rm.running), min(3, len(self.rm.running))):
            if uuid in self.rm.running and uuid not in self.rm.evicted:
                self.broken.add(self.rm.running[uuid].application_id)
                self.rm.release(self.rm.running[uuid].application_id, uuid)

    def confirm(self) -> None:
        reported = sorted(self.rm.evicted)
        some = [uuid for uuid in reported if self.random.random() < 0.7]
        if some:
            self.rm.confirm(*some)

    def drop_ask(self) -> None:
        app_id = self.some_app()
        if app_id:
            asks = list(self.objects.applications[app_id].asks)
            self.rm.release_ask(app_id, self.random.choice(asks) if asks else "")

    def remove_app(self) -> None:
        app_id = self.some_app()
        if app_id:
            for uuid in [uuid for uuid, one in self.rm.evicted.items() if one.application_id == app_id]:
                del self.rm.evicted[uuid]
            self.rm.remove_app(app_id)

    def pass_time(self) -> None:
        self.rm.pass_time(self.random.choice([1, 10, 31, 61]))

    def step(self) -> None:
        weights = {
            self.submit: 4, self.ask: 3, self.ask_in_place: 6, self.release: 8, self.confirm: 6,
            self.drop_ask: 2, self.remove_app: 1, self.pass_time: 3, self.add_node: 1, self.change_node: 1.5,
            self.reload: 0.5,
        }  # fmt: skip
        act = self.random.choices(list(weights), list(weights.values()))[0]
        act()
        self.check_accounting()
        self.rm.take_response()
        if self.random.random() < 0.3:
            self.rm.schedule(self.random.randint(1, 3))
        else:
            self.rm.schedule()
            self.check_accounting()
            self.no_placeable_gang_is_pending()
        self.check_accounting()
        self.gangs_are_complete(self.rm.take_response().new_allocations)

    # -- invariants -----------------------------------------------------------------------------------

    def gangs_are_complete(self, placed: list[Allocation]) -> None:
        for app_id in list(self.size):
            amount = sum(one.resource_per_alloc["vcore"] for one in placed if one.application_id == app_id)
            members = sum(
                one.resource_per_alloc["vcore"]
                for one in placed
                if one.application_id == app_id and one.task_group_name
            )
            if members:
                assert members >= self.size.pop(app_id), f"{app_id} was placed in part: {amount}"

    def no_placeable_gang_is_pending(self) -> None:
        """Assert that a reconsideration of all objects places nothing: no activation was lost."""
        orders = self.rm.at_work().orders
        orders.replace(orders.policies, orders.predicates)
        self.objects.reconsider()
        for app in self.objects.applications.values():
            for ask in app.asks.values():
                if ask.gang_blocked:
                    self.objects.gangs.blocked_added(ask)
        before = len(self.rm.responses)
        assert self.rm.schedule() == []
        assert not [one for response in self.rm.responses[before:] for one in response.released_allocations]

    def check_accounting(self) -> None:
        objects = self.objects
        assert self.rm.failures() == []
        assert set(objects.accounting.allocations) == set(self.rm.running)
        promised = 0
        for node in objects.nodes.values():
            used = sum(one.resource["vcore"] for one in node.allocations.values())
            assert node.allocated.get("vcore", 0) == used
            assert node.available.get("vcore", 0) == node.capacity.get("vcore", 0) - used
            promised += sum(1 for one in node.allocations.values() if one.replaces is not None)
            for one in node.allocations.values():
                assert one.uuid in self.rm.running or one.replaces is not None
        for app in objects.applications.values():
            self.check_application(app)
        for each in objects.queues:
            apps = [app for app in objects.applications.values() if each in app.chain]
            for tally in ("allocated", "pending"):
                total = sum(getattr(app, tally).get("vcore", 0) for app in apps)
                assert getattr(each, tally).get("vcore", 0) == total, (each, tally)
            assert each.running == sum(app.counted for app in apps), each
            waiting = sum(any(ask.pending for ask in app.asks.values()) for app in apps)
            assert each.waiting == waiting, each
        for tracker in objects.usage:
            apps = [app for app in objects.applications.values() if tracker in app.tracked]
            total = sum(app.allocated.get("vcore", 0) for app in apps)
            assert tracker.usage.get("vcore", 0) == total, tracker.label

    def check_application(self, app: Any) -> None:
        held = sum(one.resource["vcore"] for one in app.allocations.values())
        assert app.allocated.get("vcore", 0) == held, app
        assert app.pending.get("vcore", 0) == sum(
            ask.resource["vcore"] * ask.pending for ask in app.asks.values()
        ), app
        active = app.state in ("Starting", "Running")
        assert app.counted == (active or (app.state in ("Accepted", "Resuming") and bool(app.allocations)))
        if app.gang is not None:
            placeholders = [one for one in app.allocations.values() if one.placeholder]
            assert app.gang.placeholders == len(placeholders), app
            assert app.gang.placed.get("vcore", 0) == sum(one.resource["vcore"] for one in placeholders)
            for group in app.gang.groups.values():
                mine = [one for one in placeholders if one.task_group == group.name]
                asks = [ask for ask in app.asks.values() if ask.task_group == group.name]
                left = sum(ask.pending for ask in asks if ask.placeholder)
                assert group.count - group.replaced - group.timed_out == len(mine) + left, (app, group.name)
                free = [one for one in mine if one.releasing is None]
                assert list(group.placeholders.values()) == free
                for ask in app.asks.values():
                    if ask.pending and ask.task_group == group.name and not ask.placeholder:
                        assert ask.gang_blocked == group.is_replaceable
            if app.gang.timer is not None:
                assert placeholders
        if app.atomic is not None and app.atomic.done:
            assert not any(ask.gang_blocked for ask in app.asks.values())


@pytest.mark.parametrize("shy", [False, True])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_gangs_stay_complete_and_accounting_holds(seed: int, shy: bool) -> None:
    storm = Storm(seed, shy=shy)
    for _ in range(STEPS):
        storm.step()
    end(storm)


def end(storm: Storm) -> None:
    """End all applications, and assert that the partition is empty."""
    rm = storm.rm
    for app_id in list(storm.objects.applications):
        rm.remove_app(app_id)
    rm.evicted.clear()
    storm.check_accounting()
    rm.pass_time(4 * 24 * 3600)
    assert rm.scheduler.next_timer() is None
    assert rm.running == {}
    assert not storm.objects.accounting.allocations
    assert not any(storm.objects.queues.root.allocated.values())
    for uuid in ("any", ""):
        rm.release("nobody", uuid, termination=TerminationType.PLACEHOLDER_REPLACED)
