"""Plugins in the REST interface: installed, in use, and faulty."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.core.kit import RM, configuration, document, partition, queue, with_plugins
from tests.rest.kit import Rest
from tests.whole_readings import read_at_once
from yunikorn.api import Predicate
from yunikorn.framework.registry import Registry
from yunikorn.interface.scheduler import Scheduler
from yunikorn_commands.plugin_files import trusting
from yunikorn_rest.routes.plugin_route import read_plugins, shape_of
from yunikorn_service.method_meters import MethodUse


class Fails(Predicate):
    """Fails always."""

    name = "fails"

    def check(self, ask: Any, node: Any) -> str | None:
        raise ValueError("no answer")


def by_name(found: Any) -> dict[tuple[str, str], Any]:
    return {(one["kind"], one["name"]): one for one in found["plugins"]}


def failing() -> RM:
    rm = RM(configuration(predicates=["fails"]), with_plugins(predicates=[Fails]))
    rm.node(vcore=8)
    rm.app()
    rm.ask(vcore=1)
    rm.schedule()
    return rm


def test_plugin_with_its_use_and_its_faults() -> None:
    found = Rest(failing()).json("plugins")
    one = by_name(found)["predicate", "fails"]
    (fault,) = one.pop("faults")
    assert fault.pop("count") >= 1
    assert "no answer" in fault.pop("message")
    assert fault.pop("operation")
    assert fault == {"plugin": "fails of test-plugin (yunikorn-test 1.0)"}
    assert one == {
        "kind": "predicate",
        "name": "fails",
        "summary": "Fails always.",
        "className": "tests.rest.test_plugins_route.Fails",
        "plugin": "test-plugin",
        "distribution": "yunikorn-test",
        "version": "1.0",
        "inUse": True,
        "uses": [
            {
                "rmId": "rm",
                "partition": "default",
                "count": 1,
                "places": ["partitions[0].predicates[0]"],
            }
        ],
    }
    assert (found["broken"], found["otherFaults"]) == ([], [])


def test_uses_are_listed_by_partition_and_counted() -> None:
    queues = [queue(f"q{number}", properties={"application.sort.policy": "fair"}) for number in range(12)]
    rm = RM(document(partition(*queues), partition(queue("a"), name="gpu")))
    found = by_name(Rest(rm).json("plugins"))
    (fair,) = found["app-sort", "fair"]["uses"]
    assert (fair["partition"], fair["count"], len(fair["places"])) == ("default", 12, 10)
    assert fair["places"][0] == "root.q0: application.sort.policy"
    assert [one["partition"] for one in found["app-sort", "fifo"]["uses"]] == ["gpu"]


def test_installed_plugin_that_nothing_uses() -> None:
    one = by_name(Rest(RM()).json("plugins"))["permit", "together"]
    assert (one["inUse"], one["uses"], one["faults"]) == (False, [], [])


MINE = """
from yunikorn.api import Predicate, hookimpl

class Mine(Predicate):
    name = "mine"
    def check(self, ask, node):
        return None

@hookimpl
def yunikorn_predicates():
    return [Mine]
"""


def test_plugins_of_a_file_are_listed_where_they_are_used(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE, "utf-8")
    registry = trusting(Registry.load(third_party=False), tmp_path)
    config = document(partition(queue("a"), predicates=["mine"]), plugins={"load": ["./mine.py"]})
    one = by_name(Rest(RM(config, registry)).json("plugins"))["predicate", "mine"]
    assert one["plugin"] == "./mine.py"
    assert [use["places"] for use in one["uses"]] == [["partitions[0].predicates[0]"]]


def test_only_the_chosen_one_of_several_offers_is_in_use() -> None:
    class Taints(Predicate):
        name = "taints"

        def check(self, ask: Any, node: Any) -> str | None:
            return None

    registry = with_plugins(predicates=[Taints])
    found = Rest(RM(configuration(predicates=["taints@yunikorn-test"]), registry)).json("plugins")
    offers = [one for one in found["plugins"] if one["name"] == "taints"]
    assert {one["distribution"]: one["inUse"] for one in offers} == {"yunikorn": False, "yunikorn-test": True}


def test_broken_plugin() -> None:
    registry = Registry.load(third_party=False)
    assert not registry.register(object(), "hollow", "hollow-plugin", "2.0")
    (one,) = Rest(RM(registry=registry)).json("plugins")["broken"]
    assert (one["plugin"], one["distribution"], one["version"]) == ("hollow", "hollow-plugin", "2.0")
    assert "implements no hook" in one["reason"]


def test_counted_calls() -> None:
    scheduler = failing().scheduler

    def read(core: Scheduler) -> Any:
        return read_plugins(core, core.registry)

    use = MethodUse("fails of test-plugin (yunikorn-test 1.0)", "predicate", "check", 7, 0.5, 2)
    found = shape_of(read_at_once(scheduler, read), [use])
    (calls,) = next(one.calls for one in found.plugins if one.name == "fails")
    assert (calls.method, calls.calls, calls.seconds, calls.refusals) == ("check", 7, 0.5, 2)
