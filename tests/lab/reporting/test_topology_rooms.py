"""Room of domains for gangs, and the places of gangs, in small clusters with known results."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import attrs
import pytest

from tests.core.kit import configuration, queue
from yunikorn.framework.registry import Registry
from yunikorn_lab.reporting.csv_files import write_topology
from yunikorn_lab.reporting.figures import measures
from yunikorn_lab.reporting.full_report import FullReport, study
from yunikorn_lab.reporting.saved_run import RESULT, pack_result, read_result
from yunikorn_lab.reporting.sections.report_sections import report_sections
from yunikorn_lab.reporting.topology_rooms import GangPlaces
from yunikorn_lab.simulation.scenario_reader import read_scenario, read_scenario_file

CONFIG = configuration(queue("a"), topology=["block", "rack"])
NODES = [
    {"name": rack, "count": 3, "resources": {"vcore": 2}, "attributes": {"block": "b", "rack": rack}}
    for rack in ("r1", "r2")
]


def observed(
    registry: Registry, *applications: dict[str, object], config: str = CONFIG, **more: object
) -> FullReport:
    """Return the report of gangs on two racks of three nodes, each with room for two members."""
    scenario = {"nodes": NODES, "applications": list(applications), **more}
    return study(config, read_scenario(json.dumps(scenario), "scenario.yaml", "test"), registry)


def gang(name: str, size: int, wanted: object, submit: str = "0s") -> dict[str, object]:
    """Return a gang of members that run for 10 s."""
    return {
        "id": name,
        "queue": "root.a",
        "submit": submit,
        "gang": "Atomic",
        "tags": {"yunikorn.apache.org/gang-topology": json.dumps(wanted)},
        "tasks": [{"count": size, "resources": {"vcore": 1}, "runtime": "10s"}],
    }


def places(result: FullReport) -> list[GangPlaces]:
    """Return the places of the gangs."""
    return result.figures.topology["default"].gangs


def test_room_is_measured_over_time_by_level_and_size(registry: Registry) -> None:
    later = gang("later", 1, {"required": "rack"}, submit="20s")
    found = observed(registry, gang("five", 5, {"required": "rack"}), later).figures.topology["default"]
    assert found.unit == {"vcore": 1000}
    rooms = {(room.level, room.size): room for room in found.slices}
    assert [size for level, size in rooms if level == "rack"] == [1, 2, 4, 8]
    # 10 s with room for 1 and 6 members, 10 s for 6 and 6, 10 s for 5 and 6.
    assert rooms["rack", 1].fitting == pytest.approx((7 + 12 + 11) / 3)
    assert rooms["rack", 2].fitting == pytest.approx((3 + 6 + 5) / 3)
    assert rooms["rack", 4].fitting == pytest.approx((1 + 2 + 2) / 3)
    assert rooms["rack", 4].loss == pytest.approx(1 / 3, abs=1e-6)
    assert rooms["block", 8].fitting == pytest.approx((0 + 1 + 1) / 3)
    assert rooms["rack", 4].fitting_at_end == 2
    assert rooms["rack", 4].loss_at_end == pytest.approx(1 / 3, abs=1e-6)


def test_places_and_waits_of_gangs_by_size(registry: Registry) -> None:
    result = observed(
        registry,
        gang("rack", 6, {"required": "rack"}),
        gang("split", 6, {"preferred": ["rack"]}, submit="1s"),
        gang("waits", 5, {"required": "rack"}, submit="2s"),
        gang("one", 1, {"required": "rack"}, submit="30s"),
        gang("never", 7, {"required": "rack"}, submit="31s"),
    )
    single, several = places(result)
    assert (single.smallest, single.largest, single.gangs, single.placed) == (1, 1, 1, 1)
    assert (several.smallest, several.largest, several.gangs, several.placed) == (5, 8, 4, 3)
    assert (several.median_wait, several.p99_wait) == (0, 8)
    assert several.in_one == {"block": 1, "rack": 1}
    assert several.spread == {"block": 1, "rack": 1}


def test_gang_that_is_spread_needs_more_domains_than_necessary(registry: Registry) -> None:
    result = observed(
        registry,
        gang("r1", 4, {"required": "rack"}),
        gang("r2", 4, {"required": "rack"}),
        gang("spread", 4, {"preferred": ["rack"]}, submit="1s"),
    )
    (found,) = places(result)
    assert found.in_one["rack"] == pytest.approx(2 / 3, abs=1e-6)
    assert found.spread["rack"] == pytest.approx(4 / 3, abs=1e-6)


def test_drained_and_removed_nodes_have_no_room(registry: Registry) -> None:
    result = observed(
        registry,
        gang("one", 1, {"required": "rack"}, submit="20s"),
        events=[
            {"at": "1s", "node": "r1-1", "action": "drain"},
            {"at": "2s", "node": "r2-1", "action": "remove"},
        ],
    )
    rooms = {(room.level, room.size): room for room in result.figures.topology["default"].slices}
    assert rooms["rack", 1].fitting_at_end == 8


def test_free_amounts_without_room_for_a_member_are_stranded(registry: Registry) -> None:
    nodes = [{"name": "n", "resources": {"vcore": 2, "gpu": 4}, "attributes": {"block": "b", "rack": "r"}}]
    wide = gang("one", 2, {"required": "rack"})
    wide["tasks"] = [{"count": 2, "resources": {"vcore": 1, "gpu": 1}, "runtime": "10s"}]
    found = observed(registry, wide, nodes=nodes).figures.topology["default"]
    assert found.stranded == {"gpu": 0.5, "vcore": 0}


def test_levels_of_a_later_configuration_are_measured_from_then_on(
    registry: Registry, tmp_path: Path
) -> None:
    (tmp_path / "later.yaml").write_text(configuration(queue("a"), topology=["block"]), "utf-8")
    scenario = {
        "nodes": NODES,
        "applications": [gang("one", 1, {"required": "block"}, submit="10s")],
        "events": [{"at": "15s", "config": "later.yaml"}],
    }
    (tmp_path / "scenario.yaml").write_text(json.dumps(scenario), "utf-8")
    result = study(CONFIG, read_scenario_file(tmp_path / "scenario.yaml"), registry)
    racks, blocks = (
        next(room for room in result.figures.topology["default"].slices if room.level == level)
        for level in ("rack", "block")
    )
    assert blocks.fitting == 11
    assert (racks.fitting, racks.fitting_at_end) == (5.5, 0)


def test_workload_without_topology_has_no_figures_of_it(registry: Registry) -> None:
    plain = gang("plain", 2, "rack")
    del plain["tags"]
    result = observed(registry, plain)
    assert not result.figures.topology
    assert '"topology"' not in result.to_json()
    assert b"topology" not in pack_result(result)
    assert "topology" not in [section.key for section in report_sections(result)]


def test_results_are_read_again_shown_and_compared(registry: Registry, tmp_path: Path) -> None:
    result = observed(registry, gang("one", 4, {"required": "rack"}))
    (tmp_path / RESULT).write_bytes(pack_result(result))
    assert read_result(tmp_path) == attrs.evolve(result)
    section = next(one for one in report_sections(result) if one.key == "topology")
    assert [table.title for table in section.tables] == [
        "Room of domains for gangs, in members of vcore 1",
        "Gangs by size",
    ]
    found = {one.name: one.value for one in measures(result) if one.section == "topology"}
    assert found["gangs of 3 to 4: in one rack"] == 1
    assert found["gangs of 4 in a rack that fit"] == 1
    with (tmp_path / "topology.csv").open("w+", encoding="utf-8", newline="") as file:
        write_topology(file, result.history)
        file.seek(0)
        rows = list(csv.DictReader(file))
    assert rows[0]["level"] == "block"
    assert {row["size"] for row in rows} == {"1", "2", "4"}
    racks = next(row for row in rows if row["level"] == "rack" and row["size"] == "4")
    assert (racks["fitting"], racks["loss"]) == ("1", "0.5")
