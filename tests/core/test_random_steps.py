"""Random lives of elastic gangs: no decision places a part of a step, or less than the size of a gang."""

from __future__ import annotations

from collections import Counter

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.gangs import GangRM
from tests.core.kit import configuration, queue
from tests.example_counts import examples

STEP, TOPOLOGY = "yunikorn.apache.org/gang-step", "yunikorn.apache.org/gang-topology"
APPS = 3
KINDS = (
    "gang",
    "more",
    "lose",
    "replace",
    "node",
    "task",
    "end",
    "urgent",
    "reload",
    "wait",
    "drop",
    "remove",
)


@attrs.define
class Life:
    """A cluster with gangs, and what is known of them."""

    rm: GangRM
    steps: dict[str, int] = attrs.Factory(dict)
    made: int = 0
    ran: dict[str, bool] = attrs.Factory(dict)
    reloads: int = 0

    def running(self, app_id: str) -> list[str]:
        """Return the uuids of the members of a gang that run and are not about to end."""
        return [
            uuid
            for uuid, one in self.rm.running.items()
            if one.application_id == app_id and uuid not in self.rm.evicted
        ]

    def key(self) -> str:
        """Return a new key."""
        self.made += 1
        return f"k{self.made}"

    def members(self, app_id: str, count: int) -> None:
        """Ask for further members, one by one."""
        for _ in range(count):
            self.rm.task(app_id, self.key(), "workers", vcore=1)

    def act(self, kind: str, number: int, amount: int) -> None:
        """Carry out one event."""
        rm, app_id = self.rm, f"g{number}"
        there = self.running(app_id)
        if kind == "gang" and app_id not in self.steps:
            self.steps[app_id] = step = amount % 4 + 1
            topology = {TOPOLOGY: '{"required": "rack"}'} if number == 2 else {}
            rm.gang(
                app_id,
                "Atomic",
                f"root.{'ab'[number % 2]}",
                tags={STEP: str(step), **topology},
                vcore=2 * step,
            )
            self.members(app_id, 2 * step)
        elif kind == "node":
            rm.node(f"n{self.key()}", {"rack": f"r{number}"}, vcore=amount)
        elif kind == "task":
            key = self.key()
            rm.app(key, "root.a")
            rm.ask(key, key, amount, vcore=1)
        elif kind == "urgent":
            key = self.key()
            rm.app(key, "root.b")
            rm.ask(key, key, amount, vcore=1, priority=10)
            rm.pass_time(40)
        elif kind == "end":
            others = [one for one in rm.running.values() if one.application_id.startswith("k")]
            for one in others[:amount]:
                if one.uuid in rm.running and one.uuid not in rm.evicted:
                    rm.release(one.application_id, one.uuid)
                    rm.running.pop(one.uuid, None)
        elif kind == "reload":
            self.reloads += 1
            rm.reload(text(self.reloads % 2))
        elif kind == "wait":
            rm.pass_time(100 * amount)
        elif app_id in self.steps:
            if kind == "more":
                self.members(app_id, amount)
            elif kind in ("lose", "replace") and there:
                for uuid in there[: amount % 3 + 1]:
                    rm.release(app_id, uuid)
                    rm.running.pop(uuid, None)
                    if kind == "replace":
                        self.members(app_id, 1)
            elif kind == "drop":
                asks = [key for key, ask in rm.find_app(app_id).asks.items() if ask.pending]
                for key in asks[:amount]:
                    rm.release_ask(app_id, key)
            elif kind == "remove":
                rm.remove_app(app_id)
                for uuid in [uuid for uuid, one in rm.running.items() if one.application_id == app_id]:
                    rm.running.pop(uuid)
                    rm.evicted.pop(uuid, None)
                del self.steps[app_id]
                self.ran.pop(app_id, None)

    def decide(self) -> None:
        """Let the scheduler decide, one decision after the other, and check each of them."""
        while True:
            before = {app_id: len(self.running(app_id)) for app_id in self.steps}
            placed = Counter(app_id for app_id, *_ in self.rm.schedule(1))
            for app_id, count in placed.items():
                if app_id not in self.steps:
                    continue
                step = self.steps[app_id]
                if not self.ran.get(app_id):
                    assert count == 2 * step, "a gang starts with its size"
                    self.ran[app_id] = True
                else:
                    assert count == step or (count == 1 and before[app_id] % step), "a part of a step"
            self.rm.used()
            if self.rm.evicted:
                self._confirm()
            elif not placed:
                return

    def _confirm(self) -> None:
        """End what was preempted, and ask for members again."""
        for uuid, release in list(self.rm.evicted.items()):
            app_id = release.application_id
            self.rm.confirm(uuid)
            if app_id in self.steps:
                self.members(app_id, 1)
        for app_id in self.steps:
            if not self.running(app_id):
                # A gang that was preempted starts again as a whole.
                self.ran[app_id] = not self.rm.find_app(app_id).atomic or self._is_done(app_id)

    def _is_done(self, app_id: str) -> bool:
        gang = self.rm.find_app(app_id).atomic
        return gang is not None and gang.done


def text(spare: int) -> str:
    """Return a configuration in which queue b has a guarantee."""
    of_b = queue("b", resources={"guaranteed": {"vcore": "8m"}})
    return configuration(queue("a"), of_b, *([queue("c")] if spare else []), topology=["rack"])


EVENT = st.tuples(st.sampled_from(KINDS), st.integers(0, APPS - 1), st.integers(1, 9))


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(EVENT, min_size=5, max_size=40))
def test_decisions_place_whole_steps(events: list[tuple[str, int, int]]) -> None:
    life = Life(GangRM(text(0)))
    life.rm.node("first", {"rack": "r0"}, vcore=12)
    for kind, number, amount in events:
        life.act(kind, number, amount)
        life.decide()
