"""Text of the metrics: families of YuniKorn 1.9 with names, types and labels, and our own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.core.kit import RM, configuration, queue
from yunikorn.clock import ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import NodeAction
from yunikorn.interface.scheduler import Scheduler
from yunikorn_rest.event_store import EventStore
from yunikorn_rest.event_streams import EventHub
from yunikorn_rest.metrics.core_figures import CoreFigures, QueueFigures, read_figures
from yunikorn_rest.metrics.exposition import MetricsText, ServiceFigures
from yunikorn_rest.metrics.families import FAMILIES, Family, metric_name
from yunikorn_rest.rest_door import recording_figures, worker_figures
from yunikorn_service.buffered_sinks import SinkLoad
from yunikorn_service.measurements import Measurements
from yunikorn_service.method_meters import MethodUse
from yunikorn_service.runtime.policy_workers import PolicyWorkers

CONFIG = configuration(
    queue("a", maxapplications=2, resources={"guaranteed": {"vcore": "1"}, "max": {"vcore": "8"}}),
    queue("b-c"),
)
SCHEDULER_1_9 = {
    "yunikorn_scheduler_container_allocation_attempt_total": (
        "counter", {"state": {"allocated", "released", "rejected", "error"}}
    ),
    "yunikorn_scheduler_application_submission_total": (
        "counter", {"result": {"new", "accepted", "rejected"}}
    ),
    "yunikorn_scheduler_application_total": (
        "gauge", {"state": {"running", "resuming", "failing", "completing", "completed", "failed"}}
    ),
    "yunikorn_scheduler_node": ("gauge", {"state": {"active", "draining", "failed", "decommissioned"}}),
    "yunikorn_scheduler_vcore_node_usage_total": ("gauge", {"range": {
        "[0,10%]", "(10%,20%]", "(20%,30%]", "(30%,40%]", "(40%,50%]",
        "(50%,60%]", "(60%,70%]", "(70%,80%]", "(80%,90%]", "(90%,100%]",
    }}),
    "yunikorn_scheduler_scheduling_latency_milliseconds": ("histogram", {}),
    "yunikorn_scheduler_scheduling_cycle_milliseconds": ("histogram", {}),
    "yunikorn_scheduler_trynode_latency_milliseconds": ("histogram", {}),
    "yunikorn_scheduler_trynode_evaluation_milliseconds": ("histogram", {}),
    "yunikorn_scheduler_trypreemption_latency_milliseconds": ("histogram", {}),
    "yunikorn_scheduler_node_sorting_latency_milliseconds": ("histogram", {"level": {"app", "queue"}}),
}  # fmt: skip
"""Families of YuniKorn 1.9 whose samples exist from the start: type, and the values of each label."""
BOUNDS_1_9 = ["0.0001", "0.001", "0.01", "0.1", "1", "10", "100", "1000", "+Inf"]


@pytest.fixture
def rm() -> RM:
    """A resource manager whose scheduler is measured."""
    scheduler = Scheduler(
        Registry.load(third_party=False),
        ManualClock(),
        measurements=Measurements(iter(range(10**9)).__next__),
    )
    return RM(CONFIG, scheduler=scheduler)


def figures(rm: RM) -> CoreFigures:
    """Read all figures at once."""
    reading = read_figures(rm.scheduler)
    while True:
        try:
            next(reading)
        except StopIteration as end:
            found: CoreFigures = end.value
            return found


def parsed(text: bytes) -> dict[str, Metric]:
    """Return the families of a text as a stock parser reads them, by the names in their TYPE lines."""
    found = {}
    for family in text_string_to_metric_families(text.decode("utf-8")):
        name = family.name
        if family.type == "counter" and f"# TYPE {name} counter\n" not in text.decode():
            name += "_total"
        assert name not in found, "a family must not occur twice"
        found[name] = family
    return found


def scraped(rm: RM, text: MetricsText | None = None) -> dict[str, Metric]:
    """Return the families of a scrape."""
    return parsed((text or MetricsText()).of(figures(rm), ServiceFigures()))


def values(family: Metric) -> dict[tuple[str, ...], float]:
    """Return the values of a family by the values of its labels."""
    return {tuple(sample.labels.values()): sample.value for sample in family.samples}


def labels_of(family: Metric) -> dict[str, set[str]]:
    """Return the values of each label of a family; of a histogram without those of its buckets."""
    found: dict[str, set[str]] = {}
    for sample in family.samples:
        for label, value in sample.labels.items():
            if label != "le":
                found.setdefault(label, set()).add(value)
    return found


# -- families --------------------------------------------------------------------------------------------


def test_families_of_the_scheduler_are_those_of_yunikorn(rm: RM) -> None:
    rm.node(vcore=4)
    found = scraped(rm)
    for name, (kind, labels) in SCHEDULER_1_9.items():
        assert (found[name].type, labels_of(found[name])) == (kind, labels), name


def test_histograms_have_the_bounds_of_yunikorn(rm: RM) -> None:
    family = scraped(rm)["yunikorn_scheduler_scheduling_cycle_milliseconds"]
    assert [sample.labels["le"] for sample in family.samples if "le" in sample.labels] == BOUNDS_1_9


def test_families_of_queues_are_those_of_yunikorn(rm: RM) -> None:
    rm.node(vcore=4)
    rm.app("one")
    rm.ask("one", count=2, vcore=3)
    rm.app("two", "root.b-c")
    rm.ask("two", vcore=1)
    rm.schedule()
    rm.remove_app("two")
    found = scraped(rm)
    resources = found["yunikorn_queue_resource"]
    assert resources.type == "gauge"
    assert {sample.name for sample in resources.samples} == {"yunikorn_queue_resource"}
    of_a = {
        (sample.labels["resource"], sample.labels["state"]): sample.value
        for sample in resources.samples
        if sample.labels["queue"] == "root.a"
    }
    assert of_a == {
        ("vcore", "guaranteed"): 1000,
        ("vcore", "max"): 8000,
        ("vcore", "allocated"): 3,
        ("vcore", "pending"): 3,
        ("apps", "maxRunningApps"): 2,
    }
    assert found["yunikorn_queue_app"].type == "gauge"
    assert values(found["yunikorn_queue_app"])["root.a", "running"] == 1
    assert found["yunikorn_root_a_queue_container"].type == "counter"
    assert values(found["yunikorn_root_a_queue_container"]) == {("allocated",): 1, ("released",): 0}
    assert values(found["yunikorn_root_b_c_queue_container"]) == {("allocated",): 1, ("released",): 1}


def test_every_family_is_described_and_every_description_is_used(rm: RM) -> None:
    rm.node(vcore=4)
    rm.app()
    rm.ask(vcore=1)
    rm.schedule()
    rm.scheduler.failures.report("plugin", "deciding", "no")
    service = ServiceFigures(
        plugin_time={("plugin", "key"): 0.5},
        plugins=[MethodUse("plugin", "kind", "method", 1, 0.5, 0)],
        sinks=[SinkLoad("sink", 1, 2, 3)],
        figures={
            **EventHub(EventStore("instance"), lambda: 0).figures(),
            **worker_figures(cast(Any, SimpleNamespace(workers=PolicyWorkers()))),
            **recording_figures(
                SimpleNamespace(backlog=7, lost=2, committed=1_700_000_000_500, problem="away")
            ),
        },
    )
    found = parsed(MetricsText().of(figures(rm), service))
    described = {one.named("vcore" if "{resource}" in one.name else "root.a"): one for one in FAMILIES}
    foreign = {name for name in found if name.startswith(("python_", "process_"))}
    assert found.keys() - foreign == described.keys()
    for name, family in described.items():
        assert found[name].type == family.kind, name
        assert {*labels_of(found[name])} <= {*family.labels}, name
        assert found[name].documentation == family.help


def test_our_families_have_units_and_endings_of_prometheus() -> None:
    ours = [family for family in FAMILIES if family.own]
    assert all(family.name.endswith("_total") == (family.kind == "counter") for family in ours)
    assert all("milliseconds" not in family.name for family in ours)


def test_metrics_of_the_process_are_included(rm: RM) -> None:
    found = scraped(rm)
    assert found["process_cpu_seconds_total"].type == "counter"
    assert "python_gc_collections_total" in found
    assert not [name for name in found if name.startswith("go_")]


# -- values ----------------------------------------------------------------------------------------------


def test_nodes_are_counted_by_state_and_by_use(rm: RM) -> None:
    for number, used in enumerate((0, 1, 10, 11, 95, 100)):
        rm.node(f"n{number}", vcore=100)
        rm.app(f"app{number}", "root.b-c")
        if used:
            rm.ask(f"app{number}", tags={"yunikorn.apache.org/requiredNode": f"n{number}"}, vcore=used)
    rm.schedule()
    rm.change_node("n0", NodeAction.DRAIN_NODE)
    rm.node("n0", vcore=1)
    rm.change_node("n1", NodeAction.DECOMMISSION)
    rm.change_node("n5", vcore=50)
    found = scraped(rm)
    assert values(found["yunikorn_scheduler_node"]) == {
        ("active",): 4,
        ("draining",): 1,
        ("failed",): 1,
        ("decommissioned",): 1,
    }
    usage = values(found["yunikorn_scheduler_vcore_node_usage_total"])
    assert [usage[one,] for one in ("[0,10%]", "(10%,20%]", "(90%,100%]")] == [2, 1, 2]
    assert sum(usage.values()) == 5


def test_amounts_that_are_no_longer_limited_become_zero(rm: RM) -> None:
    text = MetricsText()
    scraped(rm, text)
    rm.scheduler.reload_configuration("rm", configuration(queue("a"), queue("b-c")))
    of_a = [
        sample
        for sample in scraped(rm, text)["yunikorn_queue_resource"].samples
        if sample.labels["queue"] == "root.a"
    ]
    assert {(one.labels["resource"], one.labels["state"]): one.value for one in of_a} == {
        ("vcore", "guaranteed"): 0,
        ("vcore", "max"): 0,
        ("apps", "maxRunningApps"): 0,
    }


def test_counts_of_ended_applications_survive_their_queue(rm: RM) -> None:
    rm.app("one", "root.b-c")
    rm.ask("one", vcore=1)
    rm.node(vcore=1)
    rm.schedule()
    rm.scheduler.fail_application("rm", "default", "one", "")
    rm.scheduler.reload_configuration("rm", configuration(queue("a")))
    rm.clock.advance(3600 * 1_000_000_000)
    rm.scheduler.fire_timers()
    found = scraped(rm)
    assert "root.b-c" not in {sample.labels["queue"] for sample in found["yunikorn_queue_app"].samples}
    assert "yunikorn_root_b_c_queue_container" not in found
    assert values(found["yunikorn_queue_app_total"])["root.b-c", "failed"] == 1
    assert values(found["yunikorn_scheduler_application_total"])["failed",] == 1


def test_queues_of_several_partitions_are_added_up(rm: RM) -> None:
    other = RM(CONFIG, rm_id="other", scheduler=rm.scheduler)
    for each in (rm, other):
        each.node(vcore=4)
        each.app()
        each.ask(vcore=1)
        each.schedule()
    found = scraped(rm)
    amounts = {tuple(one.labels.values()): one.value for one in found["yunikorn_queue_resource"].samples}
    assert amounts["root.a", "vcore", "allocated"] == 2
    assert values(found["yunikorn_root_a_queue_container"])["allocated",] == 2
    assert values(found["yunikorn_sessions"]) == {("running",): 2, ("paused",): 0}


def test_idle_nodes_are_counted_by_domain_and_size_of_gangs() -> None:
    rm = RM(configuration(queue("b-c"), topology=["rack"]))
    for rack, nodes in (("r1", 3), ("r2", 5)):
        for number in range(nodes):
            rm.node(f"{rack}-{number}", attributes={"rack": rack}, vcore=4)
    rm.node("elsewhere", vcore=4)
    rm.app("app", "root.b-c")
    rm.ask("app", tags={"yunikorn.apache.org/requiredNode": "r2-0"}, vcore=1)
    rm.schedule()
    found = scraped(rm)
    slices = values(found["yunikorn_topology_idle_slices"])
    assert slices == {("rack", "1"): 7, ("rack", "2"): 3, ("rack", "4"): 1}
    assert values(found["yunikorn_topology_domains"]) == {("rack", "idle"): 1, ("rack", "used"): 1}


# -- odd names -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("root.a-b", "root_a_b"),
        ("nvidia.com/gpu", "nvidia_com_gpu"),
        ("9lives", "_9lives"),
        ("a:b@c#d", "a:b_c_d"),
        ("é", "__"),
        ("", ""),
    ],
)
def test_names_become_parts_of_metric_names(name: str, expected: str) -> None:
    assert metric_name(name) == expected


def test_queues_whose_metric_names_are_equal_share_a_family() -> None:
    core = CoreFigures(
        {
            "root.a-b": QueueFigures(allocated=1, released=1),
            "root.a_b": QueueFigures(allocated=2),
        }
    )
    found = parsed(MetricsText().of(core, ServiceFigures()))
    assert values(found["yunikorn_root_a_b_queue_container"]) == {("allocated",): 3, ("released",): 1}


def test_resources_whose_metric_names_are_equal_share_a_family() -> None:
    core = CoreFigures(node_usage={"a.b": [1] * 10, "a/b": [2] * 10})
    found = parsed(MetricsText().of(core, ServiceFigures()))
    assert set(values(found["yunikorn_scheduler_a_b_node_usage_total"]).values()) == {3}


ODD = 'a"b\\c\nd{e}=,\r\t\x00 \u2028 ü'


NAMED = [family for family in FAMILIES if {"plugin", "sink"} & {*family.labels}]
"""Families with names of plugins in their labels."""


@pytest.mark.parametrize("family", NAMED, ids=lambda family: family.name)
def test_odd_names_of_plugins_are_escaped(family: Family) -> None:
    core = CoreFigures()
    core.faults[ODD, ODD] = 1
    service = ServiceFigures(
        plugin_time={(ODD, ODD): 0.5},
        plugins=[MethodUse(ODD, "kind", "method", 1, 0.5, 1)],
        sinks=[SinkLoad(ODD, 1, 2, 3)],
    )
    found = parsed(MetricsText().of(core, service))
    (sample,) = found[family.name].samples
    assert sample.labels[family.labels[0]] == ODD


def test_odd_names_of_queues_and_resources_are_escaped() -> None:
    figure = QueueFigures({f"max {ODD}": 1})
    found = parsed(MetricsText().of(CoreFigures({ODD: figure}), ServiceFigures()))
    (sample,) = found["yunikorn_queue_resource"].samples
    assert sample.labels == {"queue": ODD, "resource": ODD, "state": "max"}


def test_a_name_that_cannot_be_encoded_prevents_no_scrape() -> None:
    core = CoreFigures({"\ud800": QueueFigures(states={"Running": 1})})
    core.faults["\ud800", "x"] = 1
    found = parsed(MetricsText().of(core, ServiceFigures()))
    assert [sample.labels["plugin"] for sample in found["yunikorn_plugin_faults_total"].samples] == [
        "\\ud800"
    ]
