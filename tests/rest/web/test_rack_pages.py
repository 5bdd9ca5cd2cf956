"""Pages of racks: the picture with its filters, a single domain, and a partition without topology."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.core.kit import RM, configuration, queue
from tests.rest.web.kit import Page, Web
from tests.topology.racks import GPUS, fill, gang, racks
from yunikorn.interface.messages import NodeAction
from yunikorn_rest.topology_shapes import DomainGang, DomainUse
from yunikorn_rest.web.rack_pages import COLOURS, cell_of, colours_of


@pytest.fixture(scope="module")
def web() -> Web:
    """Two blocks of two racks: a gang in b1/r1, a full and reserved node in b1/r2, a drained one in b2/r2."""
    rm = racks()
    gang(rm, "train", 12, "rack")
    rm.schedule()
    fill(rm, "b1-r2-n1", GPUS)
    rm.app("large", "root.b")
    rm.ask("large", "task", 1, tags={"yunikorn.apache.org/requiredNode": "b1-r2-n1"}, gpu=GPUS)
    rm.schedule()
    rm.change_node("b2-r2-n1", NodeAction.DRAIN_NODE, {"block": "b2", "rack": "r2"})
    return Web(rm)


def cells(page: Page) -> list[str]:
    """Return the names of the domains in the picture."""
    return [str(one["id"]).removeprefix("d-").replace("%2F", "/") for one in page.all("li") if "id" in one]


def test_picture_has_a_cell_for_each_rack_with_everything_in_words(web: Web) -> None:
    page = web.page("/racks")
    assert cells(page) == ["b1/r1", "b1/r2", "b2/r1", "b2/r2"]
    assert "gpu of each rack" in page.words
    assert "all 4 wholly idle 1 with free room 4 without free room 0" in page.words
    assert "gpu: 4 of 16 free, 0 of 2 nodes idle, train with 12" in page.words
    assert "gpu: 8 of 16 free, 1 of 2 nodes idle, 1 reserved for large" in page.words
    assert "gpu: 8 of 16 free, 1 of 2 nodes idle, 1 draining" in page.words
    assert "train , 12 in 1" in page.words
    assert "b1 12 / 32 free in 2" in page.words
    assert {"/application?id=train", "/rack?level=rack&name=b1%2Fr1"} <= set(page.links)
    kinds = [one.get("class") or one.get("fill") for one in page.all("rect")]
    assert {"used", "url(#reserved)", "url(#closed)"} <= set(kinds)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("show=idle", ["b2/r1"]),
        ("show=reserved", ["b1/r2"]),
        ("show=draining", ["b2/r2"]),
        ("show=full", []),
        ("q=B2", ["b2/r1", "b2/r2"]),
        ("domain=b1", ["b1/r1", "b1/r2"]),
        ("application=train", ["b1/r1"]),
        ("application=large", ["b1/r2"]),
        ("application=none", []),
        ("level=block", ["b1", "b2"]),
        ("level=none&type=none&show=none&page=9", ["b1/r1", "b1/r2", "b2/r1", "b2/r2"]),
    ],
)
def test_filters(web: Web, query: str, expected: list[str]) -> None:
    page = web.page(f"/racks?{query}")
    assert cells(page) == expected
    assert ("No rack matches." in page.words) == (not expected)


def test_domain_with_its_gangs_and_nodes(web: Web) -> None:
    page = web.page("/rack?level=rack&name=b1/r1")
    assert "rack b1/r1" in page.words
    assert "Nodes 2 Idle 0 Draining 0 Reserved 0 Free on open nodes 4 gpu" in page.words
    assert "gpu 12 / 16" in page.words
    assert "train 12 12 gpu" in page.words
    links = set(page.links)
    assert {"/application?id=train", "/node?id=b1-r1-n1", "/rack?level=block&name=b1"} <= links
    assert "/racks?level=rack&application=train" in links
    assert "Reserved for large (1)" in web.page("/rack?level=block&name=b1").words
    assert "/racks?level=rack&domain=b1" in web.page("/rack?level=block&name=b1").links


def test_node_names_its_domains(web: Web) -> None:
    page = web.page("/node?id=b1-r2-n1")
    assert "In block b1 In rack b1/r2" in page.words
    assert {"/rack?level=block&name=b1", "/rack?level=rack&name=b1%2Fr2"} <= set(page.links)


def test_every_link_leads_to_a_page(web: Web) -> None:
    paths = ("/racks", "/racks?level=block&show=room", "/rack?level=rack&name=b1/r2", "/node?id=b2-r2-n1")
    links = {link for path in paths for link in web.page(path).links}
    for link in sorted(links - {"#main"}):
        assert web.get(link).status_code == 200, link


def test_unknown_domains_are_errors_with_similar_names(web: Web) -> None:
    page = web.page("/rack?level=rack&name=b1/r8", 404)
    assert "There is no rack b1/r8." in page.words
    assert "/rack?level=rack&name=b1%2Fr1" in page.links
    web.page("/rack?level=none&name=b1", 404)
    web.page("/rack?level=rack", 400)


def test_partition_without_topology_says_how_to_configure_one() -> None:
    web = Web(RM(configuration(queue("a"))))
    assert "topology: [block, rack]" in web.page("/racks").words


def test_nodes_without_the_attribute_are_counted() -> None:
    rm = racks(blocks=0)
    rm.node("nowhere", gpu=GPUS)
    assert "No node has the attribute rack." in Web(rm).page("/racks").words
    rm.node("n1", {"block": "b1", "rack": "r1"}, gpu=GPUS)
    assert "Nodes without rack 1" in Web(rm).page("/racks").words


@pytest.mark.slow
def test_racks_are_in_the_order_of_their_numbers_and_cells_in_pages() -> None:
    rm = racks(blocks=1, per_block=1001, nodes=1)
    first, second = Web(rm).page("/racks?level=rack"), Web(rm).page("/racks?level=rack&page=2")
    assert cells(first) == [f"b1/r{number}" for number in range(1, 1001)]
    assert cells(second) == ["b1/r1001"]


def test_level_of_single_nodes_is_not_the_first_choice() -> None:
    rm = racks(topology=["block", "rack", "host"], blocks=0)
    for number in range(4):
        rm.node(f"n{number}", {"block": "b1", "rack": f"r{number // 2}", "host": f"h{number}"}, gpu=GPUS)
    assert cells(Web(rm).page("/racks")) == ["b1/r0", "b1/r1"]
    assert len(cells(Web(rm).page("/racks?level=host"))) == 4


def use(amount: int, *gangs: tuple[str, int]) -> DomainUse:
    """Return a domain of this size with gangs, each with an application and its members of 1 gpu."""
    members = tuple(DomainGang(application_id=app, members=n, resource={"gpu": n}) for app, n in gangs)
    used = sum(number for _, number in gangs)
    return DomainUse(
        level="rack",
        name="r1",
        total_nodes=1,
        idle_nodes=0,
        draining_nodes=0,
        reserved_nodes=0,
        capacity={"gpu": amount},
        allocated={"gpu": used},
        free={"gpu": amount - used},
        gangs=members,
    )


def test_largest_gangs_have_colours_that_differ_and_others_are_pale() -> None:
    gangs = [(f"app-{number}", 20 - number) for number in range(12)]
    colours, others = colours_of([use(200, *gangs)])
    assert [one.application_id for one in colours] == [f"app-{number}" for number in range(COLOURS)]
    assert len({one.colour for one in colours}) == COLOURS
    assert others == 4
    cell = cell_of("r1", use(200, *gangs), "gpu", {one.application_id: one.colour for one in colours})
    assert [part.kind.endswith(" pale") for part in cell.parts] == [False] * COLOURS + [True] * 4
    assert "9 more gangs" in cell.label


@pytest.mark.parametrize("make", [lambda: use(0), lambda: use(4, ("app", 9))])
def test_bars_never_leave_their_cell(make: Callable[[], DomainUse]) -> None:
    cell = cell_of("r1", make(), "gpu", {})
    assert sum(float(part.width.removesuffix("%")) for part in cell.parts) <= 100
