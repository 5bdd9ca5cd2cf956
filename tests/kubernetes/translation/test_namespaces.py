"""Annotations of namespaces as tags of applications."""

from __future__ import annotations

import pytest

from tests.kubernetes.bodies import namespace_of
from yunikorn_kubernetes.translation.namespaces import namespace_labels, namespace_tags

OURS = "yunikorn.apache.org/"
QUOTA, GUARANTEED = f"{OURS}namespace.quota", f"{OURS}namespace.guaranteed"
MAX_CPU, MAX_MEMORY = f"{OURS}namespace.max.cpu", f"{OURS}namespace.max.memory"
MAX_APPS, PARENT = f"{OURS}namespace.maxApps", f"{OURS}parentqueue"


@pytest.mark.parametrize(
    ("annotations", "tags"),
    [
        ({}, {}),
        (
            {QUOTA: '{"cpu": "1500m", "memory": "1Ki", "nvidia.com/gpu": "2"}'},
            {
                "namespace.resourcequota": '{"resources":{"memory":{"value":1024},'
                '"nvidia.com/gpu":{"value":2},"vcore":{"value":1500}}}'
            },
        ),
        (
            {GUARANTEED: '{"cpu": "1"}'},
            {"namespace.resourceguaranteed": '{"resources":{"vcore":{"value":1000}}}'},
        ),
        (
            {MAX_CPU: "2", MAX_MEMORY: "1k"},
            {"namespace.resourcequota": '{"resources":{"memory":{"value":1000},"vcore":{"value":2000}}}'},
        ),
        ({MAX_CPU: "2"}, {"namespace.resourcequota": '{"resources":{"vcore":{"value":2000}}}'}),
        (
            {QUOTA: '{"cpu": "1"}', MAX_CPU: "2"},
            {"namespace.resourcequota": '{"resources":{"vcore":{"value":1000}}}'},
        ),
        (
            {MAX_APPS: "5", PARENT: "root.teams"},
            {"namespace.resourcemaxapps": "5", "namespace.parentqueue": "root.teams"},
        ),
        ({MAX_APPS: "0"}, {"namespace.resourcemaxapps": "0"}),
        (
            {QUOTA: '{"cpu": "1", "e.com/gpu": "0"}'},
            {"namespace.resourcequota": '{"resources":{"e.com/gpu":{"value":0},"vcore":{"value":1000}}}'},
        ),
        ({QUOTA: "{}"}, {}),
    ],
)
def test_tags(annotations: dict[str, str], tags: dict[str, str]) -> None:
    assert namespace_tags(namespace_of(annotations)).tags == tags


@pytest.mark.parametrize(
    ("annotations", "problem"),
    [
        ({QUOTA: "10"}, f"{QUOTA} is ignored: expected a JSON object"),
        ({QUOTA: "{cpu: 1}"}, f"{QUOTA} is ignored: Expecting property name"),
        ({QUOTA: '{"cpu": 1}'}, f"{QUOTA} is ignored: cpu: expected a JSON object of quantities in quotes"),
        (
            {QUOTA: '{"cpu": "1", "memory": "x"}'},
            f"{QUOTA}: ignored, because of a quantity: {QUOTA}.memory: 'x'",
        ),
        ({QUOTA: '{"cpu": "-1", "memory": "1Gi"}'}, f"{QUOTA}: ignored: no amount may be below 0"),
        ({QUOTA: '{"cpu": "0"}'}, f"{QUOTA}: ignored: no amount may be below 0, and one has to be above"),
        ({GUARANTEED: "[" * 5000}, f"{GUARANTEED} is ignored:"),
        ({MAX_MEMORY: "x"}, f"{MAX_CPU} and {MAX_MEMORY}: ignored"),
        ({MAX_APPS: "-1"}, f"{MAX_APPS} is ignored: expected a whole number, got '-1'"),
        ({MAX_APPS: "1" * 11}, f"{MAX_APPS} is ignored"),
    ],
)
def test_an_annotation_that_cannot_be_read_is_left_out(annotations: dict[str, str], problem: str) -> None:
    found = namespace_tags(namespace_of(annotations))
    assert found.tags == {}
    assert [text for text in found.problems if text.startswith(problem)], found.problems


def test_deprecated_annotations_are_named() -> None:
    old = namespace_tags(namespace_of({MAX_CPU: "2"}))
    assert old.problems == (f"{MAX_CPU} and {MAX_MEMORY} are deprecated: use {QUOTA}",)
    both = namespace_tags(namespace_of({MAX_CPU: "2", QUOTA: '{"cpu": "1"}'}))
    assert both.problems == (f"{MAX_CPU} and {MAX_MEMORY} are ignored, because {QUOTA} is set",)


def test_labels_are_one_text() -> None:
    text = namespace_labels(namespace_of(labels={"team": "a", "env": "prod"}))
    assert text == '{"env":"prod","team":"a"}'
    assert namespace_labels(namespace_of(labels={"env": "prod", "team": "a"})) is text
    assert namespace_labels(namespace_of()) == namespace_labels(None) == ""
