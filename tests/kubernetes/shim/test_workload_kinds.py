"""Kinds of work, by scripts that make their pods in the order of their controllers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.kubernetes.shim.owned_pods import INDEX, OwnedCluster, room, run
from yunikorn_kubernetes.objects import OwnerReference, Pod

# -- JobSets and TrainJobs ----------------------------------------------------------------------------


class JobSetScript:
    """JobSet with its Jobs; pods are made Job by Job."""

    def __init__(self, cluster: OwnedCluster, *parts: tuple[str, int, int], owner: str = "") -> None:
        """Make a JobSet of `parts`: names of replicated Jobs, Jobs and pods of a Job."""
        self.cluster = cluster
        jobs = [
            {"name": name, "replicas": replicas, "template": {"spec": {"parallelism": pods}}}
            for name, replicas, pods in parts
        ]
        above = None
        if owner:
            above = cluster.own(owner, "training", {}, api="trainer.kubeflow.org/v1alpha1")
        self.reference = cluster.own(
            "JobSet", "training", {"replicatedJobs": jobs}, api="jobset.x-k8s.io/v1alpha2", owner=above
        )

    def annotate(self, annotations: dict[str, str], *, on_template: bool = False) -> None:
        """Annotate the JobSet, or the template of its first replicated Job."""
        made = self.cluster.owners["JobSet", "training"]
        place = made["spec"]["replicatedJobs"][0]["template"] if on_template else made
        place.setdefault("metadata", {})["annotations"] = annotations

    def make(self, part: str, number: int, pods: int, attempt: int = 0, first: int = 0) -> list[Pod]:
        """Make a Job with pods."""
        name = f"training-{part}-{number}-{attempt}"
        job = self.cluster.job(name, pods, owner=self.reference)
        labels = {
            "jobset.sigs.k8s.io/jobset-name": "training",
            "jobset.sigs.k8s.io/replicatedjob-name": part,
            "jobset.sigs.k8s.io/restart-attempt": str(attempt),
        }
        return [
            self.cluster.owned_pod(f"{name}-{index}", job, {**labels, INDEX: str(index)})
            for index in range(first, pods)
        ]


@pytest.mark.parametrize("owner", ["", "TrainJob"])
def test_a_replicated_job_is_a_gang_of_all_its_jobs(owner: str) -> None:
    async def test(cluster: OwnedCluster) -> None:
        script = JobSetScript(cluster, ("workers", 2, 2), owner=owner)
        script.make("workers", 0, 2)
        await cluster.settle()
        script.make("workers", 1, 2)
        await cluster.settle()
        assert not await room(cluster, 3)
        assert len(await room(cluster, 1)) == 4
        [app] = cluster.partition().applications.values()
        made_by = f" of {owner} training" if owner else ""
        assert app.tags["yunikorn.apache.org/workload"].startswith(
            f"gang of 4 pods of JobSet default/training{made_by} (replicated Job workers"
        )

    run(test)


def test_jobs_of_a_jobset_in_order_do_not_wait_for_later_ones() -> None:
    async def test(cluster: OwnedCluster) -> None:
        script = JobSetScript(cluster, ("driver", 1, 2), ("workers", 1, 2))
        script.make("driver", 0, 2)
        await cluster.settle()
        assert len(await room(cluster, 2)) == 2
        script.make("workers", 0, 2)
        await cluster.settle()
        assert len(await room(cluster, 1)) == 2
        assert len(await room(cluster, 1)) == 4

    run(test)


def test_a_jobset_that_restarts_is_a_gang_again() -> None:
    async def test(cluster: OwnedCluster) -> None:
        script = JobSetScript(cluster, ("workers", 1, 2))
        first = script.make("workers", 0, 2)
        await cluster.settle()
        assert len(await room(cluster, 2)) == 2
        for pod in first:
            cluster.finish(pod, "Failed")
        script.make("workers", 0, 2, attempt=1, first=1)
        await cluster.settle()
        assert not any(name.startswith("training-workers-0-1") for name in cluster.placed())

    run(test)


EXCLUSIVE = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}
IN_ADVANCE = {**EXCLUSIVE, "alpha.jobset.sigs.k8s.io/node-selector": ""}


@pytest.mark.parametrize("on_template", [False, True])
def test_first_pods_of_jobs_with_a_domain_each_start_before_the_others_exist(on_template: bool) -> None:
    async def test(cluster: OwnedCluster) -> None:
        script = JobSetScript(cluster, ("workers", 2, 3))
        script.annotate(EXCLUSIVE, on_template=on_template)
        script.make("workers", 0, 1)
        await cluster.settle()
        assert not await room(cluster, 1)
        script.make("workers", 1, 1)
        await cluster.settle()
        assert await room(cluster, 1) == {"training-workers-0-0-0", "training-workers-1-0-0"}
        [app] = cluster.partition().applications.values()
        assert app.tags["yunikorn.apache.org/workload"].endswith(
            "2 Jobs of 3 pods, whose first pods start before the others exist)"
        )
        script.make("workers", 0, 3, first=1)
        await cluster.settle()
        assert len(await room(cluster, 1)) == 3

    run(test)


def test_jobs_whose_nodes_are_labelled_in_advance_start_with_all_pods() -> None:
    async def test(cluster: OwnedCluster) -> None:
        script = JobSetScript(cluster, ("workers", 1, 3))
        script.annotate(IN_ADVANCE)
        script.make("workers", 0, 2)
        await cluster.settle()
        assert not await room(cluster, 3)
        script.make("workers", 0, 3, first=2)
        await cluster.settle()
        assert len(await room(cluster, 1)) == 3

    run(test)


# -- LeaderWorkerSets -----------------------------------------------------------------------------------


class LeaderWorkerSetScript:
    """LeaderWorkerSet: a StatefulSet of leaders, and one of workers for each leader, which it owns."""

    def __init__(self, cluster: OwnedCluster, size: int, policy: str) -> None:
        self.cluster = cluster
        spec = {"leaderWorkerTemplate": {"size": size}, "startupPolicy": policy}
        top = cluster.own("LeaderWorkerSet", "llm", spec, api="leaderworkerset.x-k8s.io/v1")
        self.leaders = cluster.own("StatefulSet", "llm", {}, api="apps/v1", owner=top)

    def pod(self, group: int, worker: int, owner: OwnerReference) -> Pod:
        """Make a pod of a group."""
        label = "leaderworkerset.sigs.k8s.io/"
        labels = {f"{label}name": "llm", f"{label}group-index": str(group)}
        labels[f"{label}worker-index"] = str(worker)
        return self.cluster.owned_pod(f"llm-{group}-{worker}", owner, labels)

    def leader(self, group: int) -> Pod:
        """Make the leader of a group."""
        return self.pod(group, 0, self.leaders)

    def workers(self, leader: Pod, group: int, size: int) -> None:
        """Make the workers of a leader."""
        meta = leader.metadata
        self.cluster.owners["Pod", meta.name] = {
            "metadata": {
                "name": meta.name,
                "uid": meta.uid,
                "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "llm", "controller": True}
                    | {"uid": self.leaders.uid}
                ],
            }
        }
        above = OwnerReference(api_version="v1", kind="Pod", name=meta.name, uid=meta.uid, controller=True)
        owner = self.cluster.own("StatefulSet", f"llm-{group}", {}, api="apps/v1", owner=above)
        for number in range(1, size):
            self.pod(group, number, owner)


def test_a_group_of_leader_and_workers_is_a_gang() -> None:
    async def test(cluster: OwnedCluster) -> None:
        script = LeaderWorkerSetScript(cluster, 3, "LeaderCreated")
        leaders = [script.leader(group) for group in range(2)]
        await cluster.settle()
        for group, leader in enumerate(leaders):
            script.workers(leader, group, 3)
            await cluster.settle()
        assert not await room(cluster, 2)
        assert await room(cluster, 1) == {"llm-0-0", "llm-0-1", "llm-0-2"}
        assert len(await room(cluster, 3)) == 6

    run(test)


def test_a_leader_of_a_group_with_a_domain_alone_starts_before_its_workers_exist() -> None:
    async def test(cluster: OwnedCluster) -> None:
        script = LeaderWorkerSetScript(cluster, 3, "LeaderCreated")
        annotation = {"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}
        cluster.owners["LeaderWorkerSet", "llm"]["metadata"]["annotations"] = annotation
        leader = script.leader(0)
        await cluster.settle()
        assert await room(cluster, 1) == {"llm-0-0"}
        script.workers(leader, 0, 3)
        await cluster.settle()
        assert await room(cluster, 1) == {"llm-0-0"}
        assert len(await room(cluster, 1)) == 3

    run(test)


def test_a_leader_that_must_be_ready_starts_before_its_workers_exist() -> None:
    async def test(cluster: OwnedCluster) -> None:
        script = LeaderWorkerSetScript(cluster, 3, "LeaderReady")
        leader = script.leader(0)
        await cluster.settle()
        assert await room(cluster, 1) == {"llm-0-0"}
        script.workers(leader, 0, 3)
        await cluster.settle()
        assert await room(cluster, 1) == {"llm-0-0"}
        assert len(await room(cluster, 1)) == 3

    run(test)


# -- Ray ------------------------------------------------------------------------------------------------


def ray_pods(cluster: OwnedCluster, owner: OwnerReference, workers: int, hosts: str = "gpu") -> None:
    """Make the pods of a RayCluster, the head first."""
    label = "ray.io/"
    cluster.owned_pod("head", owner, {f"{label}cluster": "ray", f"{label}node-type": "head"})
    for number in range(workers):
        labels = {f"{label}cluster": "ray", f"{label}node-type": "worker", f"{label}group": hosts}
        cluster.owned_pod(f"worker-{number}", owner, labels)


@pytest.mark.parametrize(
    ("group", "workers", "needed"),
    [
        ({"replicas": 2}, 2, 3),
        ({"replicas": 3, "minReplicas": 1, "maxReplicas": 9}, 3, 2),
        ({"replicas": 2, "numOfHosts": 2}, 4, 5),
        ({"replicas": 1, "minReplicas": 1, "numOfHosts": 3}, 3, 4),
        ({"replicas": 4, "suspend": True}, 0, 1),
    ],
)
def test_a_ray_cluster_starts_with_its_least_workers(
    group: dict[str, Any], workers: int, needed: int
) -> None:
    async def test(cluster: OwnedCluster) -> None:
        job = cluster.own("RayJob", "ray", {}, api="ray.io/v1")
        spec = {"workerGroupSpecs": [{"groupName": "gpu", **group}]}
        owner = cluster.own("RayCluster", "ray", spec, api="ray.io/v1", owner=job)
        ray_pods(cluster, owner, workers)
        await cluster.settle()
        if needed > 1:
            assert not await room(cluster, needed - 1)
        found = await room(cluster, 1)
        assert len(found) == needed
        assert "head" in found
        # The others follow.
        assert len(await room(cluster, 99)) == workers + 1

    run(test)


def test_a_ray_cluster_grows_by_workers_with_all_their_hosts() -> None:
    async def test(cluster: OwnedCluster) -> None:
        group = {"groupName": "tpu", "replicas": 3, "minReplicas": 1, "numOfHosts": 2}
        owner = cluster.own("RayCluster", "ray", {"workerGroupSpecs": [group]}, api="ray.io/v1")
        ray_pods(cluster, owner, 6, "tpu")
        await cluster.settle()
        assert await room(cluster, 4) == {"head", "worker-0", "worker-1"}
        assert len(await room(cluster, 1)) == 5
        [app] = cluster.partition().applications.values()
        assert app.tags["yunikorn.apache.org/gang-step"] == '{"group tpu": 2}'
        await cluster.settle()
        assert len(await room(cluster, 1)) == 5
        assert len(await room(cluster, 1)) == 7

    run(test)


def test_a_pod_that_replaces_a_host_of_a_worker_starts_alone() -> None:
    async def test(cluster: OwnedCluster) -> None:
        group = {"groupName": "tpu", "replicas": 2, "minReplicas": 1, "numOfHosts": 2}
        owner = cluster.own("RayCluster", "ray", {"workerGroupSpecs": [group]}, api="ray.io/v1")
        ray_pods(cluster, owner, 4, "tpu")
        await cluster.settle()
        assert len(await room(cluster, 5)) == 5
        cluster.remove_pod(next(pod for pod in cluster.pods() if pod.metadata.name == "worker-3"))
        labels = {"ray.io/cluster": "ray", "ray.io/node-type": "worker", "ray.io/group": "tpu"}
        cluster.owned_pod("again", owner, labels)
        await cluster.settle()
        assert "again" in cluster.placed()

    run(test)


def test_the_submitter_of_a_ray_job_waits_for_no_gang() -> None:
    async def test(cluster: OwnedCluster) -> None:
        job = cluster.own("RayJob", "ray", {}, api="ray.io/v1")
        spec = {"workerGroupSpecs": [{"groupName": "gpu", "replicas": 1}]}
        ray_pods(cluster, cluster.own("RayCluster", "ray", spec, api="ray.io/v1", owner=job), 1)
        await cluster.settle()
        assert len(await room(cluster, 2)) == 2
        submitter = cluster.own("Job", "submit", {"parallelism": 1}, owner=job)
        cluster.owned_pod("submit-x", submitter)
        await cluster.settle()
        assert "submit-x" in await room(cluster, 1)

    run(test)


# -- Kubeflow -------------------------------------------------------------------------------------------


def training(cluster: OwnedCluster, kind: str, field: str, spec: Mapping[str, Any]) -> OwnerReference:
    """Make a training job with a master and three workers."""
    replicas = {"Master": {"replicas": 1}, "Worker": {"replicas": 3}}
    return cluster.own(kind, "fit", {field: replicas, **spec}, api="kubeflow.org/v1")


def training_pod(
    cluster: OwnedCluster, owner: OwnerReference, kind: str, number: int, label_of_kind: str = "replica-type"
) -> Pod:
    """Make a pod of a replica type."""
    label = "training.kubeflow.org/"
    labels = {f"{label}job-name": "fit", f"{label}{label_of_kind}": kind}
    labels[f"{label}replica-index"] = str(number)
    return cluster.owned_pod(f"fit-{kind}-{number}", owner, labels)


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("PyTorchJob", "pytorchReplicaSpecs"),
        ("TFJob", "tfReplicaSpecs"),
        ("XGBoostJob", "xgbReplicaSpecs"),
        ("PaddleJob", "paddleReplicaSpecs"),
        ("JAXJob", "jaxReplicaSpecs"),
    ],
)
def test_a_training_job_is_a_gang_of_all_replicas(kind: str, field: str) -> None:
    async def test(cluster: OwnedCluster) -> None:
        owner = training(cluster, kind, field, {})
        for number in range(3):
            training_pod(cluster, owner, "worker", number)
        await cluster.settle()
        assert not await room(cluster, 3)
        training_pod(cluster, owner, "master", 0)
        await cluster.settle()
        assert len(await room(cluster, 1)) == 4

    run(test)


@pytest.mark.parametrize(
    "spec",
    [{"elasticPolicy": {"minReplicas": 1}}, {"runPolicy": {"schedulingPolicy": {"minAvailable": 2}}}],
)
def test_a_training_job_starts_with_its_least_workers(spec: dict[str, Any]) -> None:
    async def test(cluster: OwnedCluster) -> None:
        owner = training(cluster, "PyTorchJob", "pytorchReplicaSpecs", spec)
        for number in (2, 1, 0):
            training_pod(cluster, owner, "worker", number)
        training_pod(cluster, owner, "master", 0)
        await cluster.settle()
        # The workers with the lowest numbers are the members.
        assert await room(cluster, 2) == {"fit-master-0", "fit-worker-0"}

    run(test)


@pytest.mark.parametrize("label", ["replica-type", "job-role"])
def test_the_launcher_of_an_mpi_job_waits_for_no_worker(label: str) -> None:
    async def test(cluster: OwnedCluster) -> None:
        replicas = {"Launcher": {"replicas": 1}, "Worker": {"replicas": 2}}
        owner = cluster.own("MPIJob", "fit", {"mpiReplicaSpecs": replicas}, api="kubeflow.org/v2beta1")
        for number in range(2):
            training_pod(cluster, owner, "worker", number, label)
        await cluster.settle()
        assert not await room(cluster, 1)
        assert len(await room(cluster, 1)) == 2
        training_pod(cluster, owner, "launcher", 0, label)
        await cluster.settle()
        assert "fit-launcher-0" in await room(cluster, 1)

    run(test)


# -- Spark, workflows -----------------------------------------------------------------------------------


def test_the_driver_of_spark_waits_for_no_executor() -> None:
    async def test(cluster: OwnedCluster) -> None:
        owner = cluster.own("SparkApplication", "pi", {}, api="sparkoperator.k8s.io/v1beta2")
        labels = {"spark-app-selector": "spark-1", "spark-role": "driver"}
        driver = cluster.owned_pod("pi-driver", owner, labels)
        await cluster.settle()
        assert await room(cluster, 1) == {"pi-driver"}
        above = OwnerReference(
            api_version="v1", kind="Pod", name="pi-driver", uid=driver.metadata.uid, controller=True
        )
        for number in range(2):
            cluster.owned_pod(f"pi-exec-{number}", above, {**labels, "spark-role": "executor"})
        await cluster.settle()
        assert len(await room(cluster, 1)) == 2
        assert {app.id for app in cluster.partition().applications.values()} == {"spark-1"}

    run(test)


def test_pods_of_a_workflow_start_one_by_one_and_its_jobs_are_gangs() -> None:
    async def test(cluster: OwnedCluster) -> None:
        flow = cluster.own("Workflow", "etl", {}, api="argoproj.io/v1alpha1")
        cluster.owned_pod("etl-step", flow, {"workflows.argoproj.io/workflow": "etl"})
        await cluster.settle()
        assert await room(cluster, 1) == {"etl-step"}
        job = cluster.job("inner", 2, owner=flow)
        cluster.job_pod(job, 0)
        await cluster.settle()
        assert await room(cluster, 1) == {"etl-step"}
        cluster.job_pod(job, 1)
        await cluster.settle()
        assert len(await room(cluster, 1)) == 3

    run(test)
