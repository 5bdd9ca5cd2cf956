"""Preferences of pods as text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.kubernetes.bodies import pod_of
from tests.kubernetes.shim.fake_cluster import FakeCluster
from yunikorn_kubernetes import names
from yunikorn_kubernetes.translation.pod_preferences_text import image_name, preferences_text

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
ON_SSD = [
    {"weight": 5, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}}
]
NEAR = [{"weight": 9, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {}}}]
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, None, id="a pod that prefers nothing has no text"),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {PREFERRED: ON_SSD, REQUIRED: {"nodeSelectorTerms": [{}]}},
                    "podAffinity": {PREFERRED: NEAR},
                    "podAntiAffinity": {PREFERRED: NEAR, REQUIRED: [{}]},
                }
            },
            {"nodeAffinity": ON_SSD, "podAffinity": NEAR, "podAntiAffinity": NEAR},
            id="preferred affinity only",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "effect": "PreferNoSchedule"}, {"key": "b"}]},
            {"tolerations": [{"key": "a", "effect": "PreferNoSchedule"}]},
            id="tolerations of PreferNoSchedule alone",
        ),
        pytest.param(
            {"topologySpreadConstraints": [SPREAD, {**SPREAD, "whenUnsatisfiable": "DoNotSchedule"}]},
            {"topologySpread": [SPREAD]},
            id="constraints with ScheduleAnyway only",
        ),
    ],
)
def test_preferences(spec: dict[str, Any], expected: Any) -> None:
    text = preferences_text(pod_of(**spec))
    assert (json.loads(text) if text else None) == expected


def test_images_only_where_they_count() -> None:
    spec: dict[str, Any] = {
        "containers": [{"name": "a", "image": "web"}, {"name": "b", "image": "host:5000/db:1"}],
        "initContainers": [{"name": "i", "image": "web"}],
        "volumes": [{"name": "v", "image": {"reference": "model:2"}}, {"name": "w", "emptyDir": {}}],
    }
    assert preferences_text(pod_of(**spec)) == ""
    assert json.loads(preferences_text(pod_of(**spec), images=True)) == {
        "images": ["host:5000/db:1", "model:2", "web:latest", "web:latest"],
        "containers": 3,
    }


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("web", "web:latest"),
        ("host:5000/web", "host:5000/web:latest"),
        ("host:5000/web:1", "host:5000/web:1"),
        ("web@sha256:0a", "web@sha256:0a"),
    ],
)
def test_names_of_images(reference: str, name: str) -> None:
    assert image_name(reference) == name


def test_images_count_for_pods_of_ours_alone() -> None:
    translation = FakeCluster(images=True).shim.cluster.translation
    pod = pod_of(containers=[{"name": "a", "image": "web"}])
    assert names.TAG_PREFERENCES in translation.tags(pod)
    assert names.TAG_PREFERENCES not in translation.foreign_tags(pod)
    assert names.TAG_PREFERENCES not in FakeCluster().shim.cluster.translation.tags(pod)
