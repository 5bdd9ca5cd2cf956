"""Gangs on a topology together with limits of users and applications, and with sizes that change in place."""

from __future__ import annotations

import attrs

from tests.core.gangs import GangRM
from tests.core.kit import configuration, queue
from tests.topology.racks import TAG, domains, gang, placed, racks, reason
from yunikorn.resources import Resource


def resize(rm: GangRM, app_id: str, node_id: str, gpu: int, *, placeholder: bool = False) -> None:
    """Change the size of one allocation of an application on a node."""
    one = next(one for one in rm.running.values() if one.application_id == app_id and one.node_id == node_id)
    assert one.placeholder == placeholder
    rm.update(allocations=[attrs.evolve(one, resource_per_alloc=Resource(gpu=gpu))])


def test_limit_of_a_user_stops_a_gang_though_a_rack_has_room() -> None:
    rm = racks(blocks=1)
    limits = [{"limit": "one user", "users": ["user"], "maxresources": {"gpu": "15"}}]
    assert rm.reload(configuration(queue("a", limits=limits), queue("b"), topology=["block", "rack"]))
    gang(rm, "app", 16, "rack")
    assert placed(rm, "app") == []
    limits[0]["maxresources"] = {"gpu": "16"}
    assert rm.reload(configuration(queue("a", limits=limits), queue("b"), topology=["block", "rack"]))
    assert len(domains(placed(rm, "app"))) == 1
    rm.used()


def test_gang_beyond_the_number_of_applications_is_placed_in_one_rack_when_another_ends() -> None:
    rm = racks(blocks=1)
    assert rm.reload(configuration(queue("a", maxapplications=1), queue("b"), topology=["block", "rack"]))
    gang(rm, "first", 4, "rack")
    gang(rm, "second", 16, "rack")
    assert len(placed(rm, "first")) == 4
    assert placed(rm, "second") == []
    rm.release("first")
    rm.remove_app("first")
    nodes = placed(rm, "second")
    assert len(nodes) == 16
    assert len(domains(nodes)) == 1


def test_member_that_shrinks_in_place_makes_room_for_a_gang_in_its_rack() -> None:
    rm = racks(blocks=1, per_block=1)
    rm.node("without-a-rack", {"block": "b1"}, gpu=8)
    gang(rm, "first", 1, "rack", gpu=4)
    (node_id,) = placed(rm, "first")
    gang(rm, "second", 14, "rack")
    assert placed(rm, "second") == []
    assert "has room for 12 of 14 members" in reason(rm, "second")
    resize(rm, "first", node_id, 2)
    assert len(placed(rm, "second")) == 14
    rm.used()


def test_member_that_grows_in_place_is_no_room_for_a_gang() -> None:
    rm = racks(blocks=1, per_block=1)
    rm.node("without-a-rack", {"block": "b1"}, gpu=8)
    gang(rm, "first", 1, "rack", gpu=1)
    (node_id,) = placed(rm, "first")
    resize(rm, "first", node_id, 3)
    gang(rm, "second", 14, "rack")
    assert placed(rm, "second") == []
    assert "has room for 13 of 14 members" in reason(rm, "second")


def test_placeholder_that_is_resized_is_replaced_in_the_rack() -> None:
    rm = racks(blocks=1)
    rm.gang("app", "Soft", tags={TAG: "rack"}, gpu=8)
    rm.task("app", "ph", "workers", 2, placeholder=True, gpu=4)
    nodes = placed(rm, "app")
    resize(rm, "app", nodes[0], 2, placeholder=True)
    rm.task("app", "real", "workers", 2, gpu=2)
    rm.schedule()
    rm.confirmed()
    real = [one.node_id for one in rm.running.values() if one.allocation_key == "real"]
    assert len(real) == 2
    assert domains(real) == domains(nodes)
    rm.used()
