"""Readers of the kinds of Kubeflow's training operator, whose pods have one replica type each."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from yunikorn.api import hookimpl
from yunikorn_kubernetes.workloads.workload_reader import (
    WorkloadGang,
    WorkloadReader,
    WorkloadRole,
    number_in,
)

if TYPE_CHECKING:
    from yunikorn_kubernetes.objects import Json, Pod

REPLICA_TYPE = "training.kubeflow.org/replica-type"
REPLICA_INDEX = "training.kubeflow.org/replica-index"
JOB_ROLE = "training.kubeflow.org/job-role"
LAUNCHER = "launcher"


class TrainingReader(WorkloadReader):
    """Training job of Kubeflow: a gang of all replicas, or of the least number that its policy names."""

    group = "kubeflow.org"
    index_label = REPLICA_INDEX
    specs: ClassVar[str]
    """Name of the field with the replica specifications."""

    def role(self, pod: Pod) -> str:
        """Return the replica type in lower case, as the operator writes it."""
        return pod.metadata.labels.get(REPLICA_TYPE, "").lower()

    def gang(self, owner: Json, pod: Pod) -> WorkloadGang | str:
        """Return the gang of all replica types."""
        spec = owner.get("spec") or {}
        replicas = {
            name.lower(): number_in(one or {}, "replicas", 1)
            for name, one in (spec.get(self.specs) or {}).items()
            if name.lower() != LAUNCHER
        }
        policy = ((spec.get("runPolicy") or {}).get("schedulingPolicy")) or {}
        elastic = number_in(spec.get("elasticPolicy") or {}, "minReplicas", 0)
        least = number_in(policy, "minAvailable", 0)
        workers = replicas.get("worker", 0)
        minimum: int | None = None
        reason = " and ".join(f"{count} of the replica type {name}" for name, count in replicas.items())
        if workers and elastic:
            minimum, reason = elastic, f"elasticPolicy.minReplicas is {elastic}"
        elif workers and least:
            # The few others, such as a master, are needed by all workers.
            minimum = max(0, least - (sum(replicas.values()) - workers))
            reason = f"schedulingPolicy.minAvailable is {least}"
        roles = [
            WorkloadRole(name, count, minimum if name == "worker" else None)
            for name, count in replicas.items()
            if count > 0
        ]
        return WorkloadGang(tuple(roles), reason)


class PyTorchJobReader(TrainingReader):
    """PyTorchJob of Kubeflow: a gang of all replicas, or of the least number that its policy names."""

    name = "PyTorchJob"
    kind, plural, specs = "PyTorchJob", "pytorchjobs", "pytorchReplicaSpecs"


class TFJobReader(TrainingReader):
    """TFJob of Kubeflow: a gang of all replicas, or of the least number that its policy names."""

    name = "TFJob"
    kind, plural, specs = "TFJob", "tfjobs", "tfReplicaSpecs"


class XGBoostJobReader(TrainingReader):
    """XGBoostJob of Kubeflow: a gang of all replicas, or of the least number that its policy names."""

    name = "XGBoostJob"
    kind, plural, specs = "XGBoostJob", "xgboostjobs", "xgbReplicaSpecs"


class PaddleJobReader(TrainingReader):
    """PaddleJob of Kubeflow: a gang of all replicas, or of the least number that its policy names."""

    name = "PaddleJob"
    kind, plural, specs = "PaddleJob", "paddlejobs", "paddleReplicaSpecs"


class JAXJobReader(TrainingReader):
    """JAXJob of Kubeflow: a gang of all replicas, or of the least number that its policy names."""

    name = "JAXJob"
    kind, plural, specs = "JAXJob", "jaxjobs", "jaxReplicaSpecs"


class MPIJobReader(TrainingReader):
    """MPIJob: a gang of the workers; the launcher may be made when they run, so it starts by itself."""

    name = "MPIJob"
    kind, plural, specs = "MPIJob", "mpijobs", "mpiReplicaSpecs"

    def recognises(self, pod: Pod) -> bool:
        """Return True for workers."""
        return self.role(pod) != LAUNCHER

    def role(self, pod: Pod) -> str:
        """Return the replica type, for which the operator of MPIJobs alone has another label."""
        return super().role(pod) or pod.metadata.labels.get(JOB_ROLE, "")


@hookimpl
def yunikorn_workload_readers() -> list[type[WorkloadReader]]:
    """Return the readers of this module."""
    return [PyTorchJobReader, TFJobReader, XGBoostJobReader, PaddleJobReader, JAXJobReader, MPIJobReader]
