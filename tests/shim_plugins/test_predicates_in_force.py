"""Installed predicates that an RM's callback puts in force (docs/decisions/archive/0119)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.core.kit import RM, configuration, document, partition, plugin_with, queue, with_plugins
from tests.service.recording.collecting_listener import CollectingListener
from yunikorn import api
from yunikorn.clock import ManualClock
from yunikorn.errors import ConfigError, UsageError
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import RegisterResourceManagerRequest
from yunikorn.interface.scheduler import Scheduler
from yunikorn_service.recording.recording_reader import read_recording
from yunikorn_service.recording.recording_scheduler import RecordingScheduler
from yunikorn_service.recording.recording_writer import RecordingWriter
from yunikorn_service.recording.replayer import Replay


class Refusing(api.Predicate):
    """Refuses the nodes in `refused`."""

    refused: frozenset[str] = frozenset()

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        return self.name if node.id in self.refused else None


class First(Refusing):
    name = "first"
    refused = frozenset({"n1"})


class Second(Refusing):
    name = "second"
    refused = frozenset({"n2"})


@attrs.define
class Choosy(Refusing):
    name = "choosy"
    node: str

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        return "choosy" if node.id != self.node else None


def registry() -> Registry:
    return with_plugins(predicates=[First, Second, Choosy])


class InForce(RM):
    """An RM whose callback names predicates."""

    def __init__(self, config: str, *names: Any, **keys: Any) -> None:
        self.predicates_in_force: Any = list(names)
        super().__init__(config, keys.pop("registry", None) or registry(), **keys)


def placed(rm: RM) -> list[str]:
    if not rm.at_work().partition.nodes:
        for name in ("n1", "n2", "n3"):
            rm.node(name, vcore=1)
        rm.app()
        rm.ask(count=3, vcore=1)
    return sorted(node for _, _, node in rm.schedule())


def names(rm: RM) -> list[str]:
    return [predicate.name for predicate, _ in rm.at_work().policies.predicates._made]


def test_predicates_in_force_apply_without_configuration() -> None:
    rm = InForce(configuration(), "first", "second")
    assert names(rm) == ["first", "second"]
    assert placed(rm) == ["n3"]


def test_a_callback_without_them_changes_nothing() -> None:
    assert names(RM(configuration(), registry())) == []
    assert names(InForce(configuration())) == []


def test_a_configuration_sets_the_position_and_the_options() -> None:
    rm = InForce(
        configuration(predicates=[{"name": "choosy", "node": "n2"}, "second"]), "first", "second", "choosy"
    )
    assert names(rm) == ["choosy", "second", "first"]


def test_a_configuration_may_disable_them() -> None:
    plugin = plugin_with(predicates=[First])
    found = Registry.load(third_party=False)
    assert found.register(plugin, "one", "one", "1")
    rm = InForce(
        document(partition(queue("a")), plugins={"disable": ["one"]}), "first", "taints", registry=found
    )
    assert names(rm) == ["taints"]
    rm.reload(configuration())
    assert names(rm) == ["first", "taints"]


def test_they_apply_to_all_partitions() -> None:
    rm = InForce(document(partition(queue("a")), partition(queue("a"), name="other")), "first")
    for name in ("default", "other"):
        assert [one.name for one, _ in rm.at_work(name).policies.predicates._made] == ["first"]


def test_own_predicates_and_the_rm_come_last() -> None:
    class Own(Refusing):
        name = "own"

    class Asking(InForce):
        def predicates(self, args: Any) -> None:
            return None

    Asking.plugins = [plugin_with(predicates=[Own])]  # type: ignore[attr-defined]
    assert names(Asking(configuration(predicates=["taints"]), "first")) == ["taints", "first", "own", "rm"]


@pytest.mark.parametrize(
    ("in_force", "reasons"),
    [
        (["frist", "second", "zoo"], ["puts 'frist' in force: ", "did you mean", "puts 'zoo' in force: "]),
        (["choosy"], ["puts predicate 'choosy' in force, which needs options", "partition default"]),
    ],
)
def test_what_cannot_be_used_is_refused(in_force: list[str], reasons: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        InForce(configuration(), *in_force)
    for reason in reasons:
        assert reason in str(caught.value)


@pytest.mark.parametrize("given", ["first", 3, [3], [""], [None]])
def test_what_is_no_list_of_names_is_refused(given: object) -> None:
    class Odd(RM):
        predicates_in_force = given

    with pytest.raises(UsageError, match=r"resource manager rm:.*'predicates_in_force' of its callback"):
        Odd(configuration(), registry())


def test_another_callback_puts_others_in_force() -> None:
    rm = InForce(configuration(), "first")
    rm.predicates_in_force = ["second"]
    rm.scheduler.use_callback("rm", rm)
    assert names(rm) == ["second"]
    rm.predicates_in_force = ["third"]
    with pytest.raises(ConfigError, match="puts 'third' in force"):
        rm.scheduler.use_callback("rm", rm)
    assert names(rm) == ["second"]
    rm.reload(configuration(predicates=["taints"]))
    assert names(rm) == ["taints", "second"]


def test_a_recording_contains_them(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    scheduler = RecordingScheduler(RecordingWriter(file, print), registry(), ManualClock(10**18))
    rm = InForce(configuration(), "first", "taints", scheduler=scheduler)
    placed(rm)
    rm.predicates_in_force = ["second"]
    scheduler.use_callback("rm", rm)
    placed(rm)
    assert '"predicates_in_force": ["first", "taints"]' in file.read_text().replace('":[', '": [').replace(
        '","', '", "'
    )
    listener = CollectingListener()
    replay = Replay(read_recording(file).lines, registry(), listener)
    replay.run()
    assert replay.comparison.first is None
    assert listener.of("rm") == rm.responses


def test_registration_is_refused_as_a_whole() -> None:
    scheduler = Scheduler(registry(), ManualClock())

    class Odd:
        predicates_in_force = ("nothing",)

        def recv_update_response(self, response: Any) -> None:
            raise AssertionError(response)

    with pytest.raises(ConfigError):
        scheduler.register_resource_manager(
            RegisterResourceManagerRequest("rm", config=configuration()), Odd()
        )
    assert not list(scheduler.sessions())
