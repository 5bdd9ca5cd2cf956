"""Configuration from ConfigMaps: read at the start, followed, and refused with all problems."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import pytest

from yunikorn.errors import ConfigError, Problem
from yunikorn_kubernetes.api_server.pod_events import LONGEST_NOTE, PodEvents
from yunikorn_kubernetes.api_server.reflector import ChangeKind, ObjectChange
from yunikorn_kubernetes.objects import ConfigMap, ObjectMeta, ObjectReference
from yunikorn_kubernetes.shim.config_map_follower import Configuration, notes_of
from yunikorn_kubernetes.shim_settings import ShimLogLevels

CONFIGS, DEFAULTS = "yunikorn-configs", "yunikorn-defaults"


class World:
    """ConfigMaps of a cluster, and what a configuration has done with them."""

    def __init__(self) -> None:
        self.maps: dict[str, ConfigMap] = {}
        self.used: list[str] = []
        """Queue configurations that the core was given."""
        self.events: list[tuple[str, str, str]] = []
        self.levels: list[ShimLogLevels] = []
        self.settings: list[Mapping[str, str]] = []
        self.configuration = Configuration(
            self.check, self.use, cast(PodEvents, self), self.levels.append, self.use_settings
        )

    def check(self, text: str) -> list[Problem]:
        """Return problems for texts with `bad`."""
        return [Problem("queues", "bad"), Problem("root", "worse")] if "bad" in text else []

    async def use(self, text: str) -> None:
        """Use a text, unless the core refuses it."""
        if "refused" in text:
            raise ConfigError([Problem("core", "refused by the core")])
        self.used.append(text)

    async def use_settings(self, settings: Mapping[str, str]) -> None:
        """Use settings besides the queues."""
        self.settings.append(settings)

    def report(
        self, found: ObjectReference, reason: str, action: str, note: str, *, warning: bool = False
    ) -> None:
        """Record an event."""
        self.events.append((found.name, reason, note))

    async def find(self, resource: object, namespace: str, name: str) -> ConfigMap | None:
        """Return a ConfigMap, as an API server does."""
        return self.maps.get(name)

    def put(self, name: str, **data: str) -> ConfigMap:
        """Store a ConfigMap; two underscores in a key are a point."""
        texts = {key.replace("__", "."): text for key, text in data.items()}
        found = self.maps[name] = ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data=texts)
        return found

    async def load(self) -> None:
        """Read all ConfigMaps."""
        server: Any = self
        await self.configuration.load(server, "default")

    async def change(self, name: str, **data: str) -> None:
        """Change a ConfigMap, and wait for the consequences."""
        kind = ChangeKind.MODIFIED if name in self.maps else ChangeKind.ADDED
        self.configuration.changed(ObjectChange(kind, self.put(name, **data)))
        await self.settle()

    async def settle(self) -> None:
        """Wait until a change is used or refused."""
        follow = asyncio.create_task(self.configuration.follow())
        before = len(self.events)
        for _ in range(1000):
            await asyncio.sleep(0.001)
            if len(self.events) > before:
                break
        follow.cancel()


def run(test: Callable[[World], Awaitable[None]]) -> None:
    """Run a test in an event loop."""

    async def main() -> None:
        await test(World())

    asyncio.run(main())


def test_later_maps_take_precedence_and_missing_ones_are_empty() -> None:
    async def test(world: World) -> None:
        await world.load()
        assert world.configuration.current.queues == ""
        world.put(DEFAULTS, service__clusterId="one", queues__yaml="first")
        world.put(CONFIGS, queues__yaml="second")
        await world.load()
        assert world.configuration.current.settings.service.cluster_id == "one"
        assert world.configuration.current.queues == "second"

    run(test)


def test_a_bad_configuration_is_refused_at_the_start_with_all_problems() -> None:
    async def test(world: World) -> None:
        world.put(CONFIGS, queues__yaml="bad", kubernetes__qps="many")
        with pytest.raises(ConfigError) as caught:
            await world.load()
        assert all(text in str(caught.value) for text in ("bad", "worse", "kubernetes.qps"))
        ((name, reason, note),) = world.events
        assert (name, reason) == (CONFIGS, "ConfigurationRefused")
        assert all(text in note for text in ("bad", "worse", "kubernetes.qps"))

    run(test)


def test_changes_are_used() -> None:
    async def test(world: World) -> None:
        world.put(CONFIGS, queues__yaml="first")
        await world.load()
        await world.change(CONFIGS, queues__yaml="second", log__level="debug")
        assert world.used == ["second"]
        assert world.levels[-1].root == "debug"
        assert world.events[-1][:2] == (CONFIGS, "ConfigurationUpdated")

    run(test)


@pytest.mark.parametrize("text", ["bad", "refused"])
def test_a_refused_change_leaves_everything_as_it_was(text: str) -> None:
    async def test(world: World) -> None:
        world.put(CONFIGS, queues__yaml="first")
        await world.load()
        await world.change(CONFIGS, queues__yaml=text, log__level="debug")
        assert world.used == []
        assert world.configuration.current.queues == "first"
        assert world.levels[-1].root == "info"
        name, reason, note = world.events[-1]
        assert (name, reason) == (CONFIGS, "ConfigurationRefused")
        assert all(part in note for part in (["bad", "worse"] if text == "bad" else ["refused by the core"]))
        await world.change(CONFIGS, queues__yaml="second")
        assert world.used == ["second"]

    run(test)


def test_settings_of_the_core_are_used_at_once_and_bad_ones_are_warnings() -> None:
    async def test(world: World) -> None:
        await world.load()
        await world.change(CONFIGS, event__ringBufferCapacity="500")
        assert world.settings == [{"event.ringBufferCapacity": "500"}]
        assert "restart" not in world.events[-1][2]
        await world.change(CONFIGS, event__trackingEnabled="maybe", health__checkInterval="often")
        assert world.settings[-1]["event.trackingEnabled"] == "maybe"
        _, reason, note = world.events[-1]
        assert reason == "ConfigurationUpdated"
        assert "event.trackingEnabled: 'maybe': expected true or false; a default applies" in note
        assert "health.checkInterval: 'often'" in note

    run(test)


def test_problems_that_do_not_fit_into_one_event_are_in_several() -> None:
    assert notes_of("refused", ["a", "b"]) == ["refused: a; b"]
    texts = [f"problem {number} {'x' * 400}" for number in range(5)]
    notes = notes_of("refused", texts)
    assert [note.partition(":")[0] for note in notes] == [f"refused ({part} of 3)" for part in (1, 2, 3)]
    assert all(sum(text in note for note in notes) == 1 for text in texts)
    notes = notes_of("refused", ["y" * 2000, *(f"{number} {'ö' * 300}" for number in range(30))])
    assert len(notes) == 10
    assert notes[-1].endswith("; and 21 more in the log")
    assert all(len(note.encode()) <= LONGEST_NOTE for note in notes[1:])


def test_what_needs_a_restart_is_kept_with_a_warning() -> None:
    async def test(world: World) -> None:
        world.put(CONFIGS, service__clusterId="one")
        await world.load()
        await world.change(CONFIGS, service__clusterId="two")
        assert "needs a restart" in world.events[-1][2]
        assert world.configuration.current.settings.service.cluster_id == "one"

    run(test)
