"""The dashboard for Grafana is valid, names metrics that exist, and covers what operators look for."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from yunikorn_rest.metrics.families import FAMILIES, HISTOGRAM

FILE = Path(__file__).parents[3] / "deploy" / "grafana" / "yunikorn.json"
DASHBOARD: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
GRAPHS = [panel for panel in PANELS if panel["type"] != "row"]
METRIC = re.compile(r"\b(?:yunikorn|process|python|promhttp)_\w+")
OF_THE_PROCESS = {"process_cpu_seconds_total", "process_resident_memory_bytes"}
LABELS = {"job", "instance", "le", *(label for family in FAMILIES for label in family.labels)}
"""Labels of the families, and those that Prometheus adds."""


def exposed() -> set[str]:
    """Return the names of all samples, with two resource types."""
    names = set(OF_THE_PROCESS)
    for family in FAMILIES:
        if "{queue}" not in family.name:
            for name in {family.named("vcore"), family.named("memory")}:
                endings = ("_bucket", "_sum", "_count") if family.kind == HISTOGRAM else ("",)
                names |= {f"{name}{ending}" for ending in endings}
    return names


def expressions(panel: dict[str, Any]) -> list[str]:
    """Return the expressions of a panel."""
    return [target["expr"] for target in panel["targets"]]


@pytest.mark.parametrize("panel", GRAPHS, ids=lambda panel: f"{panel['id']} {panel['title']}")
def test_panels_use_metrics_and_labels_that_exist(panel: dict[str, Any]) -> None:
    for expression in expressions(panel):
        metrics = METRIC.findall(expression)
        assert metrics
        assert {*metrics} <= exposed(), expression
        selected = re.findall(r"(\w+)(?:=~|!~|!=|=)\"", expression)
        grouped = [name for group in re.findall(r"by \(([^)]*)\)", expression) for name in group.split(", ")]
        assert {*selected, *grouped} <= LABELS, expression


def test_variables_use_metrics_that_exist() -> None:
    variables = {one["name"]: one for one in DASHBOARD["templating"]["list"]}
    queries = [one["query"]["query"] for one in variables.values() if one["type"] == "query"]
    assert {name for query in queries for name in METRIC.findall(query)} <= exposed()
    used = {name for panel in GRAPHS for text in expressions(panel) for name in re.findall(r"\$(\w+)", text)}
    assert used <= variables.keys() | {"__rate_interval"}


def test_counters_are_shown_as_rates() -> None:
    counters = {family.name for family in FAMILIES if family.kind == "counter"} | {
        "process_cpu_seconds_total"
    }
    for panel in GRAPHS:
        for expression in expressions(panel):
            for name in counters & {*METRIC.findall(expression)}:
                assert re.search(rf"(rate|increase)\({name}{{", expression), expression


def test_panels_have_ids_and_places_of_their_own() -> None:
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    taken: set[tuple[int, int]] = set()
    for panel in PANELS:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (place["x"] + column, place["y"] + line)
            for column in range(place["w"])
            for line in range(place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def test_what_operators_look_for_is_shown() -> None:
    shown = " ".join(text for panel in GRAPHS for text in expressions(panel))
    for wanted in (
        'state="allocated"',
        'state="pending"',
        "yunikorn_decisions_total",
        "yunikorn_decision_latency_seconds_bucket",
        "yunikorn_plugin_faults_total",
        "yunikorn_plugin_seconds_total",
        "yunikorn_scheduler_node{",
        "yunikorn_inbox_entries",
        "yunikorn_sessions",
    ):
        assert wanted in shown
