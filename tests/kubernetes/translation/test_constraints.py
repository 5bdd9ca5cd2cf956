"""Constraints of pods as text: a table, and equality of texts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kubernetes.bodies import container, pod_of
from yunikorn_kubernetes.translation.constraints import pod_constraints, required_node

NODE_TERMS = [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]
POD_TERMS = [{"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 3}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, None, id="a pod that may run anywhere has no text"),
        pytest.param(
            {"nodeSelector": {"disk": "ssd"}}, {"nodeSelector": {"disk": "ssd"}}, id="node selector"
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        REQUIRED: {"nodeSelectorTerms": NODE_TERMS},
                        PREFERRED: [{"weight": 1, "preference": {}}],
                    },
                    "podAffinity": {REQUIRED: POD_TERMS},
                    "podAntiAffinity": {REQUIRED: POD_TERMS, PREFERRED: []},
                }
            },
            {"nodeAffinity": NODE_TERMS, "podAffinity": POD_TERMS, "podAntiAffinity": POD_TERMS},
            id="required affinity only",
        ),
        pytest.param(
            {"affinity": {"nodeAffinity": {PREFERRED: []}, "podAffinity": None}},
            None,
            id="preferences exclude nothing",
        ),
        pytest.param(
            {
                "tolerations": [
                    {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"},
                    {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                    {"key": "a", "operator": "Exists", "effect": "PreferNoSchedule"},
                    {"operator": "Exists"},
                ]
            },
            {
                "tolerations": [
                    {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"},
                    {"key": "a", "operator": "Exists", "effect": "NoExecute"},
                    {"operator": "Exists"},
                ]
            },
            id="tolerations of taints that exclude nodes",
        ),
        pytest.param(
            {
                "containers": [
                    {
                        "name": "a",
                        "ports": [
                            {"containerPort": 1, "hostPort": 443},
                            {"containerPort": 2, "hostPort": 80, "protocol": "UDP", "hostIP": "10.0.0.1"},
                            {"containerPort": 3},
                        ],
                    },
                    {"name": "b", "ports": [{"containerPort": 1, "hostPort": 443}]},
                ],
                "initContainers": [
                    {"name": "c", "ports": [{"hostPort": 5}]},
                    {"name": "d", "ports": [{"hostPort": 6}], "restartPolicy": "Always"},
                ],
            },
            {"hostPorts": [["0.0.0.0", "TCP", 6], ["0.0.0.0", "TCP", 443], ["10.0.0.1", "UDP", 80]]},
            id="ports of the node, each once, of containers and sidecars",
        ),
        pytest.param(
            {"topologySpreadConstraints": [SPREAD, {**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}]},
            {"topologySpread": [SPREAD]},
            id="spread constraints that exclude nodes",
        ),
        pytest.param({"resourceClaims": [{"name": "gpu"}]}, {"resourceClaims": True}, id="resource claims"),
    ],
)
def test_constraints(spec: dict[str, Any], expected: dict[str, Any] | None) -> None:
    text = pod_constraints(pod_of(**spec))
    if expected is None:
        assert text == ""
    else:
        assert json.loads(text) == expected
        assert text == json.dumps(expected, sort_keys=True, separators=(",", ":"))


NAMES = st.sampled_from(["a", "b", "zone"])
SPECS = st.fixed_dictionaries(
    {
        "nodeSelector": st.dictionaries(NAMES, NAMES, max_size=2),
        "tolerations": st.lists(
            st.fixed_dictionaries({"key": NAMES, "operator": st.just("Exists")}), max_size=2
        ),
        "topologySpreadConstraints": st.lists(st.just(SPREAD), max_size=1),
    }
)


@given(spec=SPECS, other=SPECS)
def test_equal_pods_share_one_text_and_different_pods_do_not(
    spec: dict[str, Any], other: dict[str, Any]
) -> None:
    reordered = {key: spec[key] for key in reversed(list(spec))}
    reordered["nodeSelector"] = {
        key: spec["nodeSelector"][key] for key in reversed(list(spec["nodeSelector"]))
    }
    one = pod_constraints(pod_of(containers=[container("x", cpu="1")], **spec))
    assert pod_constraints(pod_of(name="other", uid="1", **reordered)) is one
    assert (pod_constraints(pod_of(**other)) == one) == (spec == other)


def field_term(operator: str, *names: str) -> dict[str, Any]:
    """Return an affinity that requires nodes by name."""
    field = {"key": "metadata.name", "operator": operator, "values": list(names)}
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [field]}]}}}


DAEMON = [{"kind": "DaemonSet", "name": "log"}]


@pytest.mark.parametrize(
    ("owners", "affinity", "expected"),
    [
        (DAEMON, field_term("In", "node-1"), "node-1"),
        (DAEMON, field_term("In", "node-1", "node-2"), ""),
        (DAEMON, field_term("NotIn", "node-1"), ""),
        (DAEMON, {}, ""),
        ([{"kind": "ReplicaSet", "name": "log"}], field_term("In", "node-1"), ""),
        ([], field_term("In", "node-1"), ""),
    ],
)
def test_required_node_of_a_daemon_set(
    owners: list[dict[str, Any]], affinity: dict[str, Any], expected: str
) -> None:
    assert required_node(pod_of(owners=owners, affinity=affinity)) == expected
