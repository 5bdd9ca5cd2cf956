"""The default workload readers pass the contract, and the contract finds violations."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.kubernetes.shim.owned_pods import DEFAULTS
from yunikorn.framework.kinds import WORKLOAD_READER
from yunikorn.framework.offers import Offer
from yunikorn_kubernetes.objects import Json, ObjectMeta, Pod
from yunikorn_kubernetes.workloads.reader_contract import WorkloadReaderContract
from yunikorn_kubernetes.workloads.workload_reader import WorkloadGang, WorkloadReader, WorkloadRole

INDEXED = {"parallelism": 3, "completions": 3, "completionMode": "Indexed"}
FIRST = {"batch.kubernetes.io/job-completion-index": "0"}
JOBSET = {"replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": INDEXED}}]}
REPLICAS = {"Worker": {"replicas": 2}, "Master": {"replicas": 1}, "Launcher": {}}
TRAINING = {
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "MPIJob": "mpiReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
    "JAXJob": "jaxReplicaSpecs",
}
POLICY = {"schedulingPolicy": {"minAvailable": 2}}
WORKER = {"training.kubeflow.org/replica-type": "worker"}
HEAD, GROUP = {"ray.io/node-type": "head"}, {"ray.io/node-type": "worker", "ray.io/group": "g"}
WORKERS = {"groupName": "g", "replicas": 3, "minReplicas": 2, "numOfHosts": 2, "suspend": False}
EXAMPLES: Mapping[str, Sequence[tuple[Json, dict[str, str]]]] = {
    "Job": [({"spec": INDEXED, "status": {"succeeded": 0, "failed": 0}}, FIRST), ({"spec": {}}, FIRST)],
    "JobSet": [({"spec": JOBSET}, {"jobset.sigs.k8s.io/replicatedjob-name": "w"})],
    "LeaderWorkerSet": [
        ({"spec": {"leaderWorkerTemplate": {"size": 3}, "startupPolicy": policy}}, {})
        for policy in ("LeaderReady", "LeaderCreated")
    ],
    "RayCluster": [({"spec": {"workerGroupSpecs": [WORKERS]}}, labels) for labels in (HEAD, GROUP)],
    **{
        kind: [({"spec": {field: REPLICAS, "runPolicy": policy}}, WORKER) for policy in ({}, POLICY)]
        for kind, field in TRAINING.items()
    },
}
TESTS = [name for name in dir(WorkloadReaderContract) if name.startswith("test_")]


def violations(reader: WorkloadReader, examples: Sequence[tuple[Json, dict[str, str]]]) -> dict[str, str]:
    """Return the messages of the tests of the contract that fail."""

    class Case(WorkloadReaderContract):
        def examples(self) -> Sequence[tuple[Json, Pod]]:
            return [(owner, Pod(metadata=ObjectMeta(labels=labels))) for owner, labels in examples]

    setattr(Case, "reader", reader)  # noqa: B010
    found = {}
    for name in TESTS:
        try:
            getattr(Case(), name)()
        except Exception as error:
            found[name] = str(error)
    return found


@pytest.mark.parametrize("offer", DEFAULTS.offers(WORKLOAD_READER), ids=lambda offer: offer.name)
def test_default_readers_pass_the_contract(offer: Offer) -> None:
    assert offer.name == offer.cls.kind
    assert violations(offer.cls(), EXAMPLES[offer.name]) == {}


class Tandem(WorkloadReader):
    """Two pods."""

    name = "tandem"
    group, kind, plural = "lab.example.com", "Tandem", "tandems"
    answer: Any = WorkloadGang((WorkloadRole("members", 2),), "a tandem has two")

    def gang(self, owner: Json, pod: Pod) -> WorkloadGang | str:
        found: WorkloadGang | str = self.answer
        return found


class Remembering(Tandem):
    def gang(self, owner: Json, pod: Pod) -> WorkloadGang | str:
        self.seen = owner.setdefault("seen", 1)
        return super().gang(owner, pod)


class Stubborn(Tandem):
    """A reader that passes on what the object has."""

    def gang(self, owner: Json, pod: Pod) -> WorkloadGang | str:
        return WorkloadGang((WorkloadRole("members", owner["spec"]["size"]),), "size")


class ByTheHost(Tandem):
    """A reader that passes on by how many pods the gang grows."""

    def gang(self, owner: Json, pod: Pod) -> WorkloadGang | str:
        role = WorkloadRole("members", 4, minimum=2, step=owner["spec"]["hosts"])
        return WorkloadGang((role,), "hosts")


class Unlabelled(Tandem):
    """A reader whose pods have a role of which the gang has none."""

    def role(self, pod: Pod) -> str:
        return pod.metadata.labels["role"]


class Optional(Tandem):
    """A reader with an argument that no setting can give."""

    def __init__(self, size: int = 1) -> None:
        self.size = size


class Opening(Tandem):
    """A reader that reads a file when it is made."""

    def __init__(self) -> None:
        with open(os.devnull, "rb"):
            pass


@pytest.mark.parametrize("attribute", ["group", "kind", "plural", "name_label", "index_label"])
def test_a_class_that_does_not_say_what_it_reads_is_refused(attribute: str) -> None:
    with pytest.raises(TypeError, match=rf"^Wrong has no {attribute}: set"):
        type("Wrong", (Tandem,), {attribute: 1})
    if attribute in ("kind", "plural"):
        with pytest.raises(TypeError, match=rf"^{attribute} of Wrong is ''"):
            type("Wrong", (Tandem,), {attribute: ""})
    if not attribute.endswith("_label"):
        with pytest.raises(TypeError, match=rf"^{attribute} of Wrong is 'batch/v1'"):
            type("Wrong", (Tandem,), {attribute: "batch/v1"})


@pytest.mark.parametrize(
    ("reader", "examples", "expected"),
    [
        (Tandem(), [({"spec": {}}, {})], set()),
        (Tandem(), [], {"test_an_example_is_a_gang"}),
        (
            Remembering(),
            [({"spec": {}}, {})],
            {"test_reader_has_no_state", "test_owner_is_not_changed", "test_class_has_a_docstring"},
        ),
        (Optional(2), [({"spec": {}}, {})], {"test_options_survive_the_configuration"}),
        (Opening(), [({"spec": {}}, {})], {"test_creation_opens_nothing"}),
        (Stubborn(), [({"spec": {"size": 2}}, {})], {"test_wrong_fields_are_refused"}),
        (ByTheHost(), [({"spec": {"hosts": 2}}, {})], {"test_wrong_fields_are_refused"}),
        (
            Unlabelled(),
            [({}, {"role": "other"})],
            {
                "test_a_pod_of_a_gang_has_a_role_or_starts_by_itself",
                "test_pods_without_labels_are_answered",
            },
        ),
    ],
)
def test_violations_are_found(
    reader: WorkloadReader, examples: Sequence[tuple[Json, dict[str, str]]], expected: set[str]
) -> None:
    found = violations(reader, examples)
    assert {*found} >= expected
    assert bool(found) == bool(expected)
    assert all(found.values())
