"""Pages: content for a fixed cluster, filters, parts of lists, and unknown objects."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import attrs
import pytest

from tests.core.kit import RM, configuration, document, partition, queue, with_plugins
from tests.core.manual_workers import core_with_workers, registry_of
from tests.rest.web.kit import PAGES, Web, eventful
from yunikorn.api import Predicate
from yunikorn.interface.messages import RegisterResourceManagerRequest

GIB = 1 << 30


def at_work(config: str = "") -> Web:
    """Return the pages of a cluster with a running and a waiting task in a queue with a quota."""
    quota = {"guaranteed": {"vcore": "2"}, "max": {"vcore": "6", "memory": "16Gi"}}
    rm, store = eventful(config or configuration(queue("a", resources=quota), queue("b")))
    rm.pass_time(1_000)
    rm.node("n1", {"si/hostname": "host-1", "si/rackname": "r1"}, vcore=8000, memory=32 * GIB)
    rm.node("n2", vcore=2000, memory=4 * GIB)
    rm.app()
    rm.ask(key="small", count=2, vcore=2500, memory=4 * GIB)
    rm.ask(key="large", vcore=3000, memory=GIB)
    rm.schedule()
    rm.pass_time(65)
    rm.schedule()
    return Web(rm, store)


@pytest.fixture(scope="module")
def web() -> Web:
    """Create a cluster that the tests only read."""
    return at_work()


@pytest.mark.parametrize("path", PAGES)
def test_page_is_well_formed_with_landmarks_and_labels(web: Web, path: str) -> None:
    page = web.page(path)
    for tag in ("header", "main", "footer", "h1"):
        assert len(page.all(tag)) == 1, tag
    assert page.all("html") == [{"lang": "en"}]
    assert page.links[0] == "#main"
    navigation = page.all("nav")
    assert all(one.get("aria-label") for one in navigation)
    current = [one for one in page.all("a") if one.get("aria-current") == "page"]
    assert len(current) == 1
    assert all(one.get("scope") in ("col", "row") for one in page.all("th"))
    for image in page.all("svg"):
        assert image.get("role") == "img" or image.get("aria-hidden") or "x" in image, image
    for field in (*page.all("input"), *page.all("select")):
        assert field.get("name")
    # Nothing is loaded from elsewhere.
    loaded = [one.get("src") for one in (*page.all("script"), *page.all("img"))]
    loaded += [one.get("href") for one in page.all("link")]
    assert all(str(one).startswith("/static/") for one in loaded)


def test_every_link_of_every_page_leads_to_a_page(web: Web) -> None:
    links = {link for path in PAGES for link in web.page(path).links}
    assert len(links) > 25
    for link in sorted(links - {"#main"}):
        assert web.get(link).status_code == 200, link


def test_applications_without_tasks_do_not_count_as_running() -> None:
    rm, store = eventful(configuration(queue("a")))
    rm.node("n1", vcore=8000)
    rm.app()
    rm.ask(key="only", vcore=1000)
    rm.schedule()
    rm.release(key="only")
    assert "Applications running 0 Waiting to start 0 Finishing 1 Ended 0" in Web(rm, store).page("/").words


def test_cluster_at_a_glance(web: Web) -> None:
    page = web.page("/")
    assert "Nodes 2 Applications running 1 Waiting to start 0 Ended 0 Allocations 2" in page.words
    assert "vcore 5 / 10 vcores" in page.words
    assert "memory 8 / 36 GiB" in page.words
    assert "+3 vcores waiting" in page.words
    assert "all 9 checks pass" in page.words
    assert "waits for 3 vcores, 1 GiB (30 % of the cluster) in root.a, submitted 1 min ago" in page.words
    assert "over the quota of queue root.a" in page.words
    assert "raise the max of queue root.a by vcore 2" in page.words
    assert "No plugin has failed." in page.words
    assert "application app" in page.words


def test_tree_of_queues(web: Web) -> None:
    page = web.page("/queues")
    assert "3 queues" in page.words
    label = "vcore: 5 vcores used of 6 vcores (83 %), 3 vcores waiting, 2 vcores guaranteed"
    assert label in page.words
    assert {"/queue?name=root", "/queue?name=root.a", "/queue?name=root.b"} <= set(page.links)
    (opened,) = page.all("details")
    assert opened == {"id": "below-root", "open": None}
    shown = web.page("/queues?q=.B")
    assert "3 queues, 2 shown" in shown.words
    assert "/queue?name=root.a" not in shown.links
    assert "3 queues, 2 shown" in web.page("/queues?waiting=1").words
    assert "No queue matches." in web.page("/queues?q=none").words


def test_deep_tree_closes_every_list() -> None:
    deep = queue("a", queue("b", queue("c"), queue("d", queue("e"))), queue("f"))
    page = Web(RM(configuration(deep, queue("g", queue("h"))))).page("/queues")
    names = [parse_qs(urlsplit(link).query)["name"][0] for link in page.links if "?name=" in link]
    assert names == [
        *("root", "root.a", "root.a.b", "root.a.b.c", "root.a.b.d", "root.a.b.d.e", "root.a.f"),
        *("root.g", "root.g.h"),
    ]


def test_large_tree_is_closed_below_the_root() -> None:
    many = [queue(f"p{number}", queue("a"), queue("b")) for number in range(40)]
    page = Web(RM(configuration(*many))).page("/queues")
    assert [("open" in one) for one in page.all("details")] == [True] + [False] * 40


def test_queue(web: Web) -> None:
    page = web.page("/queue?name=ROOT.a")
    assert "root.a" in page.words
    assert "vcore 5 vcores 3 vcores 2 vcores 6 vcores 1 vcore –" in page.words
    assert "1 active application" in page.words
    assert "/application?id=app" in page.links
    above = web.page("/queue?name=root")
    assert "2 queues below" in above.words


def test_application_with_its_course_and_why_it_waits(web: Web) -> None:
    page = web.page("/application?id=app")
    assert "State Running Queue root.a User user (group) Submitted 1 min ago Age 1 min 5 s" in page.words
    assert "2 running 1 waiting" in page.words
    assert "States over time: Accepted for 0 s" in page.words
    assert "1 of 1 requests that wait in the queue" in page.words
    assert "1 × 3 vcores, 1 GiB" in page.words
    assert "rank 1 in the queue: large" in page.words
    assert "over the quota of queue root.a" in page.words
    assert "raise the max of queue root.a by vcore 2" in page.words
    assert "root.a is 1 of 1 in root" in page.words
    assert "/node?id=n1" in page.links


def test_ended_and_rejected_applications() -> None:
    rm = RM(configuration(queue("a")))
    rm.node(vcore=1)
    rm.app("gone")
    rm.ask("gone", vcore=1)
    rm.schedule()
    rm.release("gone")
    rm.pass_time(60)
    rm.app("lost", "root.none")
    web = Web(rm)
    assert "Took" in web.page("/application?id=gone").words
    assert "Rejected: " in web.page("/application?id=lost").words
    assert "0 applications" in web.page("/applications").words
    assert "1 application " in web.page("/applications?state=rejected").words
    assert {"/application?id=gone", "/application?id=lost"} <= set(web.page("/applications?state=all").links)


def test_application_that_waits_for_the_answer_of_a_policy() -> None:
    core: Any = core_with_workers(registry_of())
    rm = RM(configuration(submitpolicies=["site"]), scheduler=core)
    rm.app()
    page = Web(rm).page("/application?id=app")
    assert "the answer of submit policy site is awaited" in page.words
    core.manual_workers.answer()


def test_filters_of_applications(web: Web) -> None:
    for query, count in {
        "state=running": 1,
        "state=waiting": 1,
        "state=accepted": 0,
        "user=user&queue=root": 1,
        "queue=ROOT.A": 1,
        "queue=root.b": 0,
        "user=other": 0,
        "q=AP": 1,
        "q=none": 0,
        "state=nonsense&order=nonsense&page=nonsense": 1,
        "order=waiting&state=waiting": 1,
    }.items():
        words = web.page(f"/applications?{query}").words
        assert f"{count} application" in words, query


@pytest.mark.parametrize("order", ["newest", "oldest", "id", "waiting"])
def test_each_application_is_on_one_part_of_the_list(order: str) -> None:
    rm = RM()
    ids = [f"app-{number}" for number in range(120)]
    for one in ids:
        rm.app(one)
    web = Web(rm)
    found, path = [], f"/applications?order={order}"
    while path:
        page = web.page(path)
        found += [parse_qs(urlsplit(one).query)["id"][0] for one in page.links if "?id=" in one]
        path = next((str(one["href"]) for one in page.all("a") if one.get("rel") == "next"), "")
    assert sorted(found) == sorted(ids)
    assert "101 to 120 of 120" in web.page("/applications?page=99").words
    assert "1 to 50 of 120" in web.page("/applications?page=0").words


def test_nodes_by_use(web: Web) -> None:
    page = web.page("/nodes")
    assert "2 nodes by use" in page.words
    assert "5 / 8 vcores" in page.words
    titles = [str(one.get("title")) for one in page.all("a") if one.get("title")]
    assert "1 nodes use 60-70% of their vcore" in titles
    only = web.page("/nodes?type=vcore&use=60-70%25")
    assert "1 node whose use of vcore is 60-70%" in only.words
    assert "/node?id=n1" in only.links
    assert "/node?id=n2" not in only.links
    order = [one for one in web.page("/nodes?order=free").links if "/node?" in one]
    assert order == ["/node?id=n2", "/node?id=n1"]
    assert "No node matches." in web.page("/nodes?state=draining").words
    assert "1 node" in web.page("/nodes?q=N2").words


def test_node(web: Web) -> None:
    page = web.page("/node?id=n1")
    assert "Host host-1 Rack r1" in page.words
    assert "vcore 8 vcores 5 vcores 0 vcores 3 vcores" in page.words
    assert page.links.count("/application?id=app") == 2


def test_users_and_groups() -> None:
    limits = [
        {"limit": "user", "users": ["user"], "maxresources": {"vcore": "4"}, "maxapplications": 3},
        {"limit": "group", "groups": ["group"], "maxresources": {"vcore": "8"}},
    ]
    rm = RM(configuration(queue("a", limits=limits)))
    rm.node(vcore=8)
    for number in range(60):
        rm.app(f"app-{number}", user=f"user{number}")
    rm.app()
    rm.ask(vcore=2)
    rm.schedule()
    web = Web(rm)
    page = web.page("/users")
    assert "61 users" in page.words
    assert "1 to 50 of 61" in page.words
    assert "Groups with a limit" in page.words
    page = web.page("/user?name=user")
    assert "vcore: 0 vcores used of 0 vcores" not in page.words
    assert "/queue?name=root.a" in page.links
    assert "1 / 3" in page.words
    assert "1 user " in web.page("/users?q=user59").words


def test_events(web: Web) -> None:
    page = web.page("/events")
    assert "application app" in page.words
    assert '>app</span><br><span class="quiet">Request &#39;large&#39; does not fit in queue' in page.html
    assert "/application?id=app" in page.links
    nodes = web.page("/events?type=node&q=n2")
    assert set(nodes.links) >= {"/node?id=n2"}
    assert "/application?id=app" not in nodes.links
    assert "No event matches." in web.page("/events?q=never").words


def test_events_without_a_store() -> None:
    web = Web(RM())
    assert "Nothing has happened yet." in web.page("/events").words


class Fails(Predicate):
    """Fails always."""

    name = "fails"

    def check(self, ask: Any, node: Any) -> str | None:
        raise ValueError("the licence server <b>said</b> no")


def test_plugin_faults() -> None:
    rm = RM(configuration(predicates=["fails"]), with_plugins(predicates=[Fails]))
    rm.node(vcore=8)
    rm.app()
    rm.ask(vcore=1)
    rm.schedule()
    web = Web(rm)
    for path in ("/", "/plugins"):
        page = web.page(path)
        assert "fails of test-plugin (yunikorn-test 1.0)" in page.words
        assert "the licence server <b>said</b> no" in page.words
        assert "1 of 9 health checks fail" in page.words or path != "/"
    assert "partitions[0].predicates[0]" in web.page("/plugins").words


# -- several partitions ----------------------------------------------------------------------------------


def test_partitions_of_one_name() -> None:
    rm = RM(document(partition(queue("a")), partition(queue("ml"), name="gpu")))
    second = RegisterResourceManagerRequest("slurm", config=configuration(queue("x")))
    rm.scheduler.register_resource_manager(second, rm)
    rm.app("elsewhere", "root.ml", partition_name="gpu")
    web = Web(rm)
    page = web.page("/")
    assert [one["value"] for one in page.all("option")] == ["default", "gpu", "[slurm]default"]
    assert "/nodes?partition=%5Bslurm%5Ddefault" in page.links
    assert "/queue?partition=%5Bslurm%5Ddefault&name=root.x" in (
        web.page("/queues?partition=[slurm]default").links
    )
    chosen = web.page("/applications?partition=gpu")
    assert "/application?partition=gpu&id=elsewhere" in chosen.links
    assert "/queues?partition=gpu" in chosen.links
    missing = web.page("/application?id=elsewhere", 404)
    assert "/application?partition=gpu&id=elsewhere" in missing.links
    unknown = web.page("/nodes?partition=gpus", 404)
    assert "There is no partition gpus." in unknown.words
    assert "/?partition=gpu" in unknown.links


def test_without_a_resource_manager() -> None:
    rm = RM()
    rm.scheduler.stop("rm")
    web = Web(rm)
    assert "No resource manager is registered yet" in web.page("/").words
    assert "No resource manager is registered yet" in web.page("/queues", 404).words
    assert web.page("/events")
    assert web.page("/plugins")


# -- unknown objects -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "text", "link"),
    [
        ("/queue?name=root.aa", "There is no queue root.aa.", "/queue?name=root.a"),
        ("/queue?name=..", "There is no queue ...", ""),
        ("/application?id=apq", "There is no application apq.", "/application?id=app"),
        ("/node?id=N1", "There is no node N1.", "/node?id=n1"),
        ("/user?name=usr", "There is no use by a user usr.", "/user?name=user"),
    ],
)
def test_unknown_object_with_similar_names(web: Web, path: str, text: str, link: str) -> None:
    page = web.page(path, 404)
    assert text in page.words
    assert not link or link in page.links


def test_address_without_a_name(web: Web) -> None:
    for path in ("/application", "/node", "/queue", "/queue?path=root.a", "/user"):
        assert "The address names no" in web.page(path, 400).words


@attrs.frozen
class Hostile:
    """Names that would break a page which did not escape them."""

    app: str = "<script>alert(1)</script>&\"'/..%2F?#"
    node: str = "n</title><b>1</b>/../x%00"
    queue: str = "root.a/b@#1"
    user: str = "o@x.org/y"


def test_hostile_names_are_text_and_their_links_work() -> None:
    names = Hostile()
    rm, store = eventful(configuration(queue("a/b@#1")))
    odd: dict[str, Any] = {"x<u>y": 4}
    rm.node(names.node, {"<i>": "</dd>\"'"}, vcore=2, **odd)
    rm.app(names.app, names.queue, user=names.user)
    rm.ask(names.app, "<img src=x onerror=alert(1)>", 3, vcore=1)
    rm.schedule()
    web = Web(rm, store)
    for path in ("/", "/queues", "/applications", "/nodes", "/users", "/events", "/plugins"):
        page = web.page(path)
        assert not any(one["src"] == "x" for one in page.all("img"))
        for link in page.links:
            if "?" in link:
                found = web.get(link)
                assert found.status_code == 200, link
                assert "<b>1" not in found.text
                assert "<script>" not in found.text
    page = web.page("/applications?q=%3Cscript")
    link = next(one for one in page.links if one.startswith("/application?"))
    assert parse_qs(urlsplit(link).query)["id"] == [names.app]
    assert names.app in web.page(link).words
    assert names.node in web.page(link).words


def test_what_waits_most_has_links_to_what_blocks() -> None:
    limits = [{"limit": "few", "users": ["user"], "maxresources": {"vcore": "5"}}]
    web = at_work(configuration(queue("a", limits=limits), queue("b")))
    assert "/user?name=user" in web.page("/").links
    assert "/user?name=user" in web.page("/application?id=app").links
    for link in web.page("/").links:
        assert link == "#main" or web.get(link).status_code == 200, link


def test_a_reserved_node_is_linked() -> None:
    rm, store = eventful(configuration(queue("a")))
    rm.node("n1", vcore=4000)
    rm.app()
    rm.ask(key="half", vcore=2000)
    rm.schedule()
    rm.ask(key="whole", vcore=4000)
    rm.schedule()
    rm.pass_time(60)
    rm.schedule()
    assert "/node?id=n1" in Web(rm, store).page("/").links
