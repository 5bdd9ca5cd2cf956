"""Resources of pods: a table of cases, and a comparison with the peak of a simulated life of the pod."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kubernetes.bodies import container, pod_of
from yunikorn.errors import QuantityError
from yunikorn_kubernetes.translation.pod_resources import pod_resource

RUNNING = {"phase": "Running"}


def sidecar(name: str, **requests: str) -> dict[str, Any]:
    """Return an init container that runs as long as the pod."""
    return {**container(name, **requests), "restartPolicy": "Always"}


def statuses(allocated: str | None = None, in_force: str | None = None, **rest: Any) -> dict[str, Any]:
    """Return the status of a pod whose container has these cores."""
    status: dict[str, Any] = {"name": "web"}
    if allocated:
        status["allocatedResources"] = {"cpu": allocated}
    if in_force:
        status["resources"] = {"requests": {"cpu": in_force}}
    return {"containerStatuses": [status], **rest}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [container()]}, {}, id="no requests: one pod and nothing else"),
        pytest.param(
            {"containers": [container(cpu="500m", memory="1Gi"), container("log", cpu="1")]},
            {"vcore": 1500, "memory": 2**30},
            id="containers add up",
        ),
        pytest.param(
            {"containers": [container(gpu="2", **{"ephemeral-storage": "1k", "hugepages-2Mi": "2Mi"})]},
            {"nvidia.com/gpu": 2, "ephemeral-storage": 1000, "hugepages-2Mi": 2**21},
            id="other types keep their names, in whole units",
        ),
        pytest.param({"containers": [container(cpu="0")]}, {"vcore": 0}, id="a request of 0 stays"),
        pytest.param(
            {"containers": [container(cpu="1")], "initContainers": [container("init", cpu="3", memory="1k")]},
            {"vcore": 3000, "memory": 1000},
            id="an init container counts where it needs more than all containers",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1")],
                "initContainers": [container("a", cpu="3"), container("b", cpu="2")],
            },
            {"vcore": 3000},
            id="init containers run one after the other",
        ),
        pytest.param(
            {"containers": [container(cpu="1")], "initContainers": [sidecar("proxy", cpu="2")]},
            {"vcore": 3000},
            id="a sidecar runs beside the containers",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1")],
                "initContainers": [sidecar("proxy", cpu="2"), container("init", cpu="3")],
            },
            {"vcore": 5000},
            id="a sidecar runs beside later init containers",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1")],
                "initContainers": [container("init", cpu="3"), sidecar("proxy", cpu="1")],
            },
            {"vcore": 3000},
            id="but not beside earlier ones",
        ),
        pytest.param(
            {"containers": [container(cpu="1")], "overhead": {"cpu": "250m", "memory": "1k"}},
            {"vcore": 1250, "memory": 1000},
            id="the overhead of the runtime is added",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1", memory="5", gpu="1")],
                "resources": {"requests": {"cpu": "4", "hugepages-1Gi": "1Gi", "nvidia.com/gpu": "9"}},
                "overhead": {"cpu": "1"},
            },
            {"vcore": 5000, "memory": 5, "nvidia.com/gpu": 1, "hugepages-1Gi": 2**30},
            id="the pod's own cores, memory and huge pages replace the sum, before the overhead",
        ),
    ],
)
def test_resources_of_a_pod(spec: dict[str, Any], expected: dict[str, int]) -> None:
    assert pod_resource(pod_of(**spec)) == {"pods": 1, **expected}


@pytest.mark.parametrize(
    ("status", "cores"),
    [
        pytest.param(statuses(), 2000, id="no amounts of the node: the request"),
        pytest.param(statuses("1", "1"), 2000, id="a larger request counts before the node has granted it"),
        pytest.param(statuses("3", "1"), 3000, id="granted, but not yet in force"),
        pytest.param(statuses("1", "3"), 3000, id="a smaller request counts once it is in force"),
        pytest.param(statuses("1", "1", resize="Infeasible"), 1000, id="a resize that the node cannot grant"),
        pytest.param(
            statuses("1", "1", conditions=[{"type": "PodResizePending", "reason": "Infeasible"}]),
            1000,
            id="the same as a condition",
        ),
        pytest.param(
            statuses("1", "1", conditions=[{"type": "PodResizePending", "reason": "Deferred"}]),
            2000,
            id="a resize that the node may grant later",
        ),
        pytest.param(statuses("1", resize="Infeasible"), 2000, id="infeasible, amounts in force unknown"),
        pytest.param(
            {"containerStatuses": [{"name": "other", "allocatedResources": {"cpu": "9"}}]},
            2000,
            id="the status of another container",
        ),
    ],
)
def test_resize_in_place(status: dict[str, Any], cores: int) -> None:
    assert pod_resource(pod_of(containers=[container(cpu="2")], status=status))["vcore"] == cores


def test_a_resized_sidecar() -> None:
    status = {"initContainerStatuses": [{"name": "proxy", "allocatedResources": {"cpu": "3"}}]}
    pod = pod_of(containers=[container(cpu="1")], initContainers=[sidecar("proxy", cpu="1")], status=status)
    assert pod_resource(pod)["vcore"] == 4000


def test_all_bad_quantities_are_named() -> None:
    pod = pod_of(
        containers=[container(cpu="x"), container("b", memory="y")],
        initContainers=[container("c", gpu="z")],
        overhead={"cpu": "v"},
    )
    with pytest.raises(QuantityError) as caught:
        pod_resource(pod)
    assert [problem.partition(":")[0] for problem in str(caught.value).split("; ")] == [
        "spec.containers[0].resources.requests.cpu",
        "spec.containers[1].resources.requests.memory",
        "spec.initContainers[0].resources.requests.nvidia.com/gpu",
        "spec.overhead.cpu",
    ]


def test_a_sum_beyond_64_bits_is_refused() -> None:
    pod = pod_of(containers=[container("a", memory="5E"), container("b", memory="5E")])
    with pytest.raises(QuantityError, match="the pod: the sum of memory does not fit into 64 bits"):
        pod_resource(pod)


AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(0, 9), max_size=2)
INIT = st.tuples(AMOUNTS, st.booleans())


@given(containers=st.lists(AMOUNTS, min_size=1, max_size=4), init=st.lists(INIT, max_size=5))
def test_resources_are_the_peak_of_the_life_of_the_pod(
    containers: list[dict[str, int]], init: list[tuple[dict[str, int], bool]]
) -> None:
    # What runs at the same time: the init container of each step with the sidecars before it, then the rest.
    sidecars = [amounts for amounts, stays in init if stays]
    steps = [
        [amounts, *(earlier for earlier, stays in init[:index] if stays)]
        for index, (amounts, _) in enumerate(init)
    ]
    moments = [*steps, [*containers, *sidecars]]
    expected = {
        name: max(sum(amounts.get(name, 0) for amounts in moment) for moment in moments)
        for name in ("cpu", "memory")
    }

    def texts(amounts: dict[str, int]) -> dict[str, str]:
        return {name: str(value) for name, value in amounts.items()}

    pod = pod_of(
        containers=[container(f"c{index}", **texts(each)) for index, each in enumerate(containers)],
        initContainers=[
            (sidecar if stays else container)(f"i{index}", **texts(each))
            for index, (each, stays) in enumerate(init)
        ],
    )
    found = pod_resource(pod)
    assert (found.get("vcore", 0), found.get("memory", 0)) == (expected["cpu"] * 1000, expected["memory"])
