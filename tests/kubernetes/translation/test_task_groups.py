"""Task groups in annotations: what is read, and every problem of what cannot be used."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kubernetes.bodies import pod_of
from yunikorn_kubernetes.translation.task_groups import GangReading, read_gang, read_parameters

OURS = "yunikorn.apache.org/"
GROUP = {"name": "workers", "minMember": 3, "minResource": {"cpu": "500m", "memory": "1Gi"}}


def read(groups: Any, parameters: str = "") -> GangReading:
    """Return the gang of a pod with these task groups."""
    text = groups if isinstance(groups, str) else json.dumps(groups)
    return read_gang(
        pod_of(annotations={f"{OURS}task-groups": text, f"{OURS}schedulingPolicyParameters": parameters})
    )


def test_a_gang() -> None:
    found = read([GROUP, {"name": "driver", "minMember": 1, "minResource": {"gpu": 2}}])
    assert found.problems == found.ignored == ()
    assert found.gang is not None
    workers, driver = found.gang.groups
    assert (workers.name, workers.min_member) == ("workers", 3)
    assert workers.min_resource == {"cpu": "500m", "memory": "1Gi"}
    assert workers.resource == {"pods": 1, "vcore": 500, "memory": 2**30}
    assert driver.min_resource == {"gpu": "2"}
    assert found.gang.total == {"pods": 4, "vcore": 1500, "memory": 3 * 2**30, "gpu": 2}
    assert (found.gang.timeout_seconds, found.gang.style, found.gang.has_placeholders) == (0, "Soft", True)


def test_a_pod_without_task_groups() -> None:
    assert read("") == GangReading()


def test_names_of_fields_are_compared_without_case() -> None:
    found = read(
        [
            {
                "NAME": "workers",
                "minmember": 1,
                "MinResource": {},
                "NODESELECTOR": {"Disk": "ssd"},
                "Tolerations": [{"Key": "a", "OPERATOR": "Exists"}],
                "affinity": {"podaffinity": {"x": [{"labelSelector": {"matchLabels": {"Values": "v"}}}]}},
                "topologyspreadconstraints": [{"maxskew": 1}],
                "labels": {"A": "b"},
                "annotations": None,
                "unknown": 1,
            }
        ]
    )
    assert found.problems == ()
    assert found.gang is not None
    (group,) = found.gang.groups
    assert (group.name, group.min_member, group.resource) == ("workers", 1, {"pods": 1})
    assert group.node_selector == {"Disk": "ssd"}
    assert group.tolerations == [{"key": "a", "operator": "Exists"}]
    assert group.affinity == {"podAffinity": {"x": [{"labelSelector": {"matchLabels": {"Values": "v"}}}]}}
    assert group.topology_spread_constraints == [{"maxSkew": 1}]
    assert (group.labels, group.annotations) == ({"A": "b"}, {})


@pytest.mark.parametrize(
    ("groups", "problems"),
    [
        ("[", ["not JSON: Expecting value: line 1 column 2 (char 1)"]),
        ("{}", ["expected a list of task groups"]),
        ("[]", ["expected a list of task groups"]),
        ("null", ["expected a list of task groups"]),
        ([7], ["[0]: expected a task group, a JSON object"]),
        (
            [{}],
            [
                '[0].minResource: expected the requests of one member, such as {"cpu": "1"}',
                "[0].name: expected the name of the group",
                "[0].minMember: expected a number of members from 1 to 150000, got 0",
            ],
        ),
        (
            [{**GROUP, "minMember": "3"}],
            ["[0].minMember: expected a number of members from 1 to 150000, got '3'"],
        ),
        (
            '[{"name": "a", "minMember": 1.0, "minResource": {}}]',
            ["[0].minMember: expected a number of members from 1 to 150000, got '1.0'"],
        ),
        (
            [{**GROUP, "minMember": -1}],
            ["[0].minMember: expected a number of members from 1 to 150000, got -1"],
        ),
        ([{**GROUP, "name": 1.5}], ["[0].name: expected the name of the group"]),
        (
            [{**GROUP, "minResource": {"cpu": "-1", "memory": "1", "gpu": None}}],
            [
                "[0].minResource.cpu: expected 0 or more, got -1",
                "[0].minResource.gpu: '' is not a quantity: expected a number with an optional suffix ("
                "n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei) or exponent, such as 500m, 1.5Gi or 2e3",
            ],
        ),
        (
            [{**GROUP, "minResource": {"cpu": "1", "vcore": "1", "pods": "1"}}],
            [
                "[0].minResource.vcore: means the same as cpu: remove one",
                "[0].minResource.pods: means the same as the number of pods, which is always 1: remove one",
            ],
        ),
        (
            [{**GROUP, "minResource": {"memory": "5E"}}],
            ["[0]: minMember times memory does not fit into 64 bits"],
        ),
        (
            [{**GROUP, "name": name, "minResource": {"memory": "2E"}} for name in "ab"],
            ["memory of all groups does not fit into 64 bits"],
        ),
        (
            [{**GROUP, "name": name, "minMember": 80_000} for name in "ab"],
            ["the groups have 160000 members, more than 150000"],
        ),
        ([GROUP, GROUP], ["each task group needs a name of its own: workers given twice"]),
        (
            [
                {
                    **GROUP,
                    "nodeSelector": {"a": 1},
                    "tolerations": {},
                    "affinity": [],
                    "topologySpreadConstraints": [1],
                    "labels": "x",
                }
            ],
            [
                "[0].nodeSelector: expected texts in quotes: a",
                "[0].tolerations: expected a list of JSON objects",
                "[0].affinity: expected a JSON object",
                "[0].topologySpreadConstraints: expected a list of JSON objects",
                "[0].labels: expected a JSON object",
            ],
        ),
    ],
)
def test_all_problems_are_named_and_nothing_is_used(groups: Any, problems: list[str]) -> None:
    found = read(groups)
    assert found.gang is None
    assert sorted(found.problems) == sorted(f"{OURS}task-groups: {problem}" for problem in problems)


@pytest.mark.parametrize(
    ("text", "timeout", "style", "ignored"),
    [
        ("", 0, "Soft", []),
        ("placeholderTimeoutInSeconds=60 gangSchedulingStyle=Hard", 60, "Hard", []),
        ("gangSchedulingStyle=soft", 0, "Soft", []),
        ("  gangSchedulingStyle=ATOMIC  ", 0, "Atomic", []),
        ("gangSchedulingStyle=Hrd", 0, "Soft", ["expected Soft, Hard, Atomic; Soft applies"]),
        ("placeholderTimeoutInSeconds=1m", 0, "Soft", ["expected a number of seconds, 0 or more"]),
        (
            "placeholderTimeoutInSeconds=-1 gangSchedulingStyle=Hard",
            0,
            "Hard",
            ["expected a number of seconds"],
        ),
        ("placeholderTimeoutInSeconds=9999999999999999999", 0, "Soft", ["expected a number of seconds"]),
        ("placeholderTimeoutInSeconds", 0, "Soft", ["expected NAME=VALUE"]),
        (
            "placeholderTimeout=5 x=",
            0,
            "Soft",
            ["unknown parameter, did you mean 'placeholderTimeoutInSeconds'?", "expected NAME=VALUE"],
        ),
    ],
)
def test_parameters(text: str, timeout: int, style: str, ignored: list[str]) -> None:
    found = read_parameters(text)
    assert found[:2] == (timeout, style)
    assert len(found[2]) == len(ignored)
    assert all(part in message for part, message in zip(ignored, found[2], strict=True))


def test_an_atomic_gang_has_no_placeholders() -> None:
    gang = read([GROUP], "gangSchedulingStyle=atomic").gang
    assert gang is not None
    assert not gang.has_placeholders


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "minMember", "minResource", "affinity", "labels", "cpu", "pods"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(value=JSON | st.lists(st.fixed_dictionaries({"name": JSON, "minMember": JSON, "minResource": JSON})))
def test_any_json_is_read_or_refused_with_a_reason(value: Any) -> None:
    found = read(json.dumps(value))
    assert (found.gang is None) == bool(found.problems)
