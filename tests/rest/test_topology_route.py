"""The route of the topology: domains with their use, filters, pages, and domains that change meanwhile."""

from __future__ import annotations

import re
from typing import Any

from tests.core.kit import RM, configuration, queue
from tests.rest.kit import Rest
from tests.topology.racks import GPUS, TAG, fill, gang, placed, racks
from tests.whole_readings import read_at_once
from yunikorn.interface.messages import NodeAction
from yunikorn.interface.scheduler import Scheduler
from yunikorn_rest.topology_reader import read_domain, read_domains
from yunikorn_service.runtime.sliced_reads import Slices

PATH = "partition/default/topology"


def names(rest: Rest, query: str = "") -> list[str]:
    return [one["name"] for one in rest.json(PATH + query)]


def domain(rest: Rest, name: str) -> dict[str, Any]:
    """Return the domain of this name."""
    found: dict[str, Any] = rest.json(f"{PATH}?domain={name}")[0]
    assert found["name"] == name
    return found


def test_domains_with_their_use() -> None:
    rm = racks()
    fill(rm, "b1-r1-n1", 3)
    gang(rm, "train", 10, "rack")
    assert set(placed(rm, "train")) == {"b1-r1-n1", "b1-r1-n2"}
    rm.change_node("b2-r2-n1", NodeAction.DRAIN_NODE, {"block": "b2", "rack": "r2"})
    rest = Rest(rm)
    assert names(rest) == ["b1", "b1/r1", "b1/r2", "b2", "b2/r1", "b2/r2"]
    member = {"applicationID": "train", "members": 10, "resource": {"gpu": 10}}
    assert domain(rest, "b1/r1") == {
        "level": "rack",
        "name": "b1/r1",
        "parent": "b1",
        "totalNodes": 2,
        "idleNodes": 0,
        "drainingNodes": 0,
        "reservedNodes": 0,
        "capacity": {"gpu": 16},
        "allocated": {"gpu": 13},
        "free": {"gpu": 3},
        "gangs": [member],
    }
    block = domain(rest, "b1")
    assert (block["totalNodes"], block["idleNodes"], block["allocated"]) == (4, 2, {"gpu": 13})
    assert block["gangs"] == [member]
    assert "parent" not in block
    drained = domain(rest, "b2/r2")
    assert (drained["drainingNodes"], drained["idleNodes"], drained["free"]) == (1, 1, {"gpu": GPUS})


def test_reserved_nodes_are_named_with_their_application() -> None:
    rm = racks(blocks=1, per_block=2, nodes=1)
    fill(rm, "b1-r1-n1", 1)
    rm.app("large")
    rm.ask("large", "task", 1, tags={"yunikorn.apache.org/requiredNode": "b1-r1-n1"}, gpu=GPUS)
    rm.schedule()
    found = domain(Rest(rm), "b1/r1")
    assert found["reservations"] == [{"applicationID": "large", "nodes": 1}]
    assert (found["reservedNodes"], found["reservedFor"]) == (1, "large")
    assert "free" not in found
    assert "reservedFor" not in domain(Rest(rm), "b1")
    assert names(Rest(rm), "?level=rack&application=large") == ["b1/r1"]


def test_domain_that_drains_is_reserved_for_its_gang() -> None:
    rm = racks(blocks=1, per_block=2)
    for node in ("b1-r1-n1", "b1-r1-n2", "b1-r2-n1", "b1-r2-n2"):
        fill(rm, node, 5)
    gang(rm, "train", 8, "rack")
    rm.schedule()
    rm.pass_time(601)
    rm.schedule()
    rest = Rest(rm)
    (kept,) = [one for one in rest.json(f"{PATH}?level=rack") if "reservedFor" in one]
    assert kept["reservedFor"] == "train"
    assert kept["reservations"] == [{"applicationID": "train", "nodes": kept["reservedNodes"]}]
    assert names(rest, "?level=rack&application=train") == [kept["name"]]
    assert "reservedFor" not in domain(rest, "b1")


def test_members_are_tasks_of_gangs_and_of_applications_that_must_be_in_a_domain() -> None:
    rm = racks(blocks=1, per_block=1)
    fill(rm, "b1-r1-n1", 1)
    rm.app_tagged("near", "root.a", {TAG: "rack"})
    rm.ask("near", "task", 2, gpu=1)
    gang(rm, "train", 3, "rack")
    rm.task("train", "driver", "", 1, gpu=1)
    rm.schedule()
    found = domain(Rest(rm), "b1/r1")
    assert found["allocated"] == {"gpu": 7}
    members = {one["applicationID"]: one["members"] for one in found["gangs"]}
    assert members == {"near": 2, "train": 3}


def test_filters() -> None:
    rm = racks()
    gang(rm, "train", 24, {"required": "block"})
    rm.schedule()
    rest = Rest(rm)
    assert names(rest, "?level=block") == ["b1", "b2"]
    assert names(rest, "?domain=b2") == ["b2", "b2/r1", "b2/r2"]
    assert names(rest, "?domain=b2/r1") == ["b2/r1"]
    assert names(rest, "?domain=b2&level=rack") == ["b2/r1", "b2/r2"]
    assert names(rest, "?application=train") == ["b1", "b1/r1", "b1/r2"]
    assert names(rest, "?application=none") == []
    (found,) = rest.json(f"{PATH}?domain=b1/r2&nodes")
    assert found["nodes"] == ["b1-r2-n1", "b1-r2-n2"]


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    rest = Rest(racks())
    text = 'The partition has no level "rax": its levels are block, rack'
    assert rest.error(f"{PATH}?level=rax") == (404, text)
    assert rest.error(f"{PATH}?domain=b1/r8") == (404, "Domain not found, did you mean 'b1/r2'?")
    assert rest.error("partition/none/topology")[0] == 404
    assert rest.error("partition/none/topology?domain=b1")[0] == 404
    assert rest.error(f"{PATH}?continue=YQ==")[0] == 400


def test_partition_without_topology_has_no_domains() -> None:
    rest = Rest(RM(configuration(queue("a"))))
    assert rest.json(PATH) == []
    assert rest.error(f"{PATH}?level=rack") == (404, 'The partition has no level "rack": it has no topology')


def test_nodes_without_a_level_are_in_no_domain_of_it() -> None:
    rm = racks(blocks=1, per_block=1)
    rm.node("no-rack", {"block": "b1"}, gpu=GPUS)
    rm.node("no-block", {"rack": "r9"}, gpu=GPUS)
    rm.node("nowhere", gpu=GPUS)
    rest = Rest(rm)
    assert names(rest) == ["b1", "b1/r1", "r9"]
    assert (domain(rest, "b1")["totalNodes"], domain(rest, "b1/r1")["totalNodes"]) == (3, 2)
    assert "parent" not in domain(rest, "r9")


def test_pages_have_each_domain_once_in_the_order_of_the_tree() -> None:
    rest = Rest(racks(blocks=12, per_block=3, nodes=1))
    whole = rest.json(PATH)
    path, found = f"{PATH}?limit=5", []
    while path:
        answer = rest.get(path)
        found += answer.json()
        link = re.match("<(.*)>", answer.headers.get("link", ""))
        path = link[1] if link else ""
    assert len(found) == len(whole) == 48
    assert sorted(one["name"] for one in whole) == sorted(one["name"] for one in found)
    for one in found:
        before = [other["name"] for other in found[: found.index(one)]]
        assert "parent" not in one or one["parent"] in before


def test_unchanged_answer_is_not_sent_again() -> None:
    rm = racks()
    rest = Rest(rm)
    tag = rest.get(PATH).headers["etag"]
    assert rest.get(PATH, if_none_match=tag).status_code == 304
    fill(rm, "b1-r1-n1", 1)
    assert rest.get(PATH, if_none_match=tag).status_code == 200


def test_large_domain_is_counted_in_parts_while_nodes_leave() -> None:
    rm = racks(blocks=1, per_block=1, nodes=700)
    topology = rm.at_work().policies.topology
    (known,) = read_at_once(rm.scheduler, lambda _: read_domains(topology, "rack"))

    def read(_: Scheduler) -> Slices[int]:
        reading = read_domain(rm.at_work(), known)
        next(reading)
        rm.change_node("b1-r1-n700", NodeAction.DECOMMISSION)
        return (yield from reading).total_nodes

    assert read_at_once(rm.scheduler, read) == 699
