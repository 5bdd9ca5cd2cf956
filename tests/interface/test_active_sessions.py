"""The scheduler visits only sessions that may have work, and its decisions equal those of visiting all."""

from __future__ import annotations

import json
import random
from collections.abc import Hashable, Mapping, Sequence

import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn import api
from yunikorn.clock import SECOND, ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.scheduler import Scheduler

MINUTE = 60 * SECOND
SEEDS = range(12)
STEPS = 150


class EveryThird(api.AppSortPolicy):
    """Admits one application in three, and another third every minute."""

    name = "every-third"
    refresh_every = 60.0

    def opened(self, context: api.Context) -> None:
        self.context = context

    def key(self, app: api.Application) -> float:
        return app.submitted

    def admission_class(self, app: api.Application) -> int:
        return (int(app.id.rpartition("-")[2]) + self.context.now() // MINUTE) % 3

    def admission_limits(self, counts: Mapping[Hashable, int]) -> Mapping[Hashable, int]:
        return {0: counts.get(0, 0), 1: 0, 2: 0}


def configurations() -> dict[str, str]:
    guaranteed = {"resources": {"guaranteed": {"vcore": 8}}}
    aging = {"application.sort.policy": "every-third"}
    limits = [{"limit": "few", "users": ["user"], "maxapplications": 2, "maxresources": {"vcore": 6}}]
    return {
        "plain": configuration(queue("a"), queue("b")),
        "aware": configuration(
            queue("a", properties={"application.sort.policy": "stateaware"}), queue("b", limits=limits)
        ),
        "preempting": configuration(queue("a", **guaranteed), queue("b", **guaranteed)),
        "aging": configuration(queue("a", properties=aging), queue("b", properties=aging)),
    }


class Everyone(Scheduler):
    """Visits all sessions at each step."""

    def schedule(self, max_decisions: int | None = None) -> int:
        for session in self._sessions.by_rm.values():
            session.activate()
        return super().schedule(max_decisions)

    def fire_timers(self) -> int:
        for session in self._sessions.by_rm.values():
            session.activate()
        return super().fire_timers()


def play(scheduler: Scheduler, seed: int) -> dict[str, list[object]]:
    """Return the responses to all resource managers in a random history."""
    rng = random.Random(seed)
    rms = {name: RM(text, rm_id=name, scheduler=scheduler) for name, text in configurations().items()}
    for step in range(STEPS):
        rm = rms[rng.choice(list(rms))]
        operation = rng.randrange(10)
        if operation == 0:
            rm.node(f"node-{step}", vcore=rng.randint(1, 8))
        elif operation < 4:
            rm.app(f"app-{step}", rng.choice(["root.a", "root.b"]))
            rm.ask(f"app-{step}", count=rng.randint(1, 4), vcore=rng.randint(1, 3))
        elif operation < 6 and rm.running:
            one = rng.choice(list(rm.running.values()))
            rm.release(one.application_id, one.uuid)
        elif operation == 6:
            rm.confirm()
        elif operation == 7:
            rm.remove_app(f"app-{rng.randrange(STEPS)}")
        elif operation == 8:
            scheduler.clock.advance(rng.choice([0.1, 1, 15, 61, 400]))  # type: ignore[attr-defined]
            scheduler.fire_timers()
        scheduler.schedule(rng.choice([0, 1, 2, 5, None]))
    return {name: list(rm.responses) for name, rm in rms.items()}


@pytest.mark.parametrize("seed", SEEDS)
def test_skipping_idle_sessions_changes_no_decision(seed: int) -> None:
    registry = with_plugins(app_sort_policies=[EveryThird])
    reported, expected = (play(kind(registry, ManualClock()), seed) for kind in (Scheduler, Everyone))
    assert reported == expected
    assert all(len(responses) > 5 for responses in reported.values())


def test_sinks_of_an_idle_rm_receive_plugin_failures() -> None:
    received: list[str] = []

    class EventCollector(api.EventSink):
        name = "collector"

        def send(self, batch: Sequence[api.Event]) -> None:
            received.extend(event.object_id for event in batch if event.type == "PLUGIN")

    class Broken(api.AppSortPolicy):
        name = "broken"

        def key(self, app: api.Application) -> float:
            raise RuntimeError("broken")

    scheduler = Scheduler(
        with_plugins(event_sinks=[EventCollector], app_sort_policies=[Broken]), ManualClock()
    )
    listening = json.loads(configuration())
    RM(json.dumps({**listening, "events": {"sinks": ["collector"]}}), rm_id="idle", scheduler=scheduler)
    broken = queue("a", properties={"application.sort.policy": "broken"})
    busy = RM(configuration(broken), rm_id="busy", scheduler=scheduler)
    scheduler.schedule()
    busy.node(vcore=2)
    for app_id in ("one", "two"):
        busy.app(app_id)
        busy.ask(app_id, vcore=1)
    scheduler.schedule()
    assert [name.split()[0] for name in received] == ["broken"]


def test_interrupt_during_delivery_loses_no_response(registry: Registry) -> None:
    scheduler = Scheduler(registry, ManualClock())
    rms = [RM(rm_id=rm_id, scheduler=scheduler) for rm_id in ("one", "two", "three")]
    for rm in rms:
        rm.node(vcore=1)
        rm.app()
        rm.ask(vcore=1)

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    rms[0].recv_update_response = interrupted  # type: ignore[method-assign,assignment]
    with pytest.raises(KeyboardInterrupt):
        scheduler.schedule()
    scheduler.schedule()
    assert [len(rm.running) for rm in rms[1:]] == [1, 1]
