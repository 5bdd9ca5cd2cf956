"""Readers of Jobs, and of what is made of Jobs: JobSets and, through them, TrainJobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.api import hookimpl
from yunikorn_kubernetes.workloads.workload_reader import (
    MEMBERS,
    WorkloadGang,
    WorkloadReader,
    WorkloadRole,
    annotations_of,
    number_in,
)

if TYPE_CHECKING:
    from yunikorn_kubernetes.objects import Json, Pod

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
"""Annotation of a JobSet or a replicated Job: each Job has a domain of its own, where its first pod leads."""
NODE_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"
"""Annotation beside it: nodes are labelled for Jobs in advance, and pods need not follow the first one."""
REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
RESTART_ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
GLOBAL_INDEX = "jobset.sigs.k8s.io/job-global-index"


def pods_at_once(job: Json) -> tuple[int, str]:
    """Return the number of pods of a Job that only work together, and why; 0 if each works by itself.

    Only an Indexed Job with all indexes at once is clear: the pods of other Jobs may take work one by one.
    """
    spec = job.get("spec") or {}
    parallelism = number_in(spec, "parallelism", 1)
    completions = number_in(spec, "completions", 0)
    if spec.get("completionMode") != "Indexed":
        return 0, "it is not Indexed"
    if parallelism != completions:
        return 0, f"parallelism is {parallelism}, and completions are {completions}"
    return parallelism, f"Indexed, and parallelism and completions are {parallelism}"


class JobReader(WorkloadReader):
    """Job: a gang of all its pods if it is Indexed with as many completions as pods at once."""

    name = "Job"
    group, kind, plural = "batch", "Job", "jobs"
    index_label = COMPLETION_INDEX

    def recognises(self, pod: Pod) -> bool:
        """Return True for pods of Indexed Jobs."""
        return COMPLETION_INDEX in pod.metadata.labels

    def gang(self, owner: Json, pod: Pod) -> WorkloadGang | str:
        """Return the gang of all pods."""
        size, reason = pods_at_once(owner)
        if not size:
            return reason
        status = owner.get("status") or {}
        has_started = bool(number_in(status, "succeeded", 0) or number_in(status, "failed", 0))
        return WorkloadGang((WorkloadRole(MEMBERS, size),), reason, has_started)


class JobSetReader(WorkloadReader):
    """JobSet: a gang for each replicated Job, because later ones may wait for earlier ones."""

    name = "JobSet"
    group, kind, plural = "jobset.x-k8s.io", "JobSet", "jobsets"
    name_label = "jobset.sigs.k8s.io/jobset-name"
    index_label = GLOBAL_INDEX

    def part(self, pod: Pod) -> str:
        """Return the replicated Job, and the number of the restart: a restart makes all pods again."""
        labels = pod.metadata.labels
        name, attempt = labels.get(REPLICATED_JOB, ""), labels.get(RESTART_ATTEMPT, "")
        return f"{name}-restart-{attempt}" if attempt not in ("", "0") else name

    def gang(self, owner: Json, pod: Pod) -> WorkloadGang | str:
        """Return the gang of the replicated Job of a pod.

        It starts with the first pod of each Job if the others are made only when that one has a node.
        """
        name = pod.metadata.labels.get(REPLICATED_JOB, "")
        jobs = (owner.get("spec") or {}).get("replicatedJobs") or []
        found = next((job for job in jobs if job.get("name") == name), None)
        if found is None:
            return f"it has no replicated Job {name}"
        template = found.get("template") or {}
        # The controller makes Indexed Jobs unless the template says otherwise.
        spec = {"completionMode": "Indexed", **(template.get("spec") or {})}
        spec.setdefault("completions", spec.get("parallelism", 1))
        pods, reason = pods_at_once({"spec": spec})
        if not pods:
            return f"of its replicated Job {name}, {reason}"
        replicas = number_in(found, "replicas", 1)
        text = f"replicated Job {name} with {replicas} Jobs of {pods} pods"
        annotations = {**annotations_of(owner), **annotations_of(template)}
        if EXCLUSIVE not in annotations or NODE_SELECTOR in annotations:
            return WorkloadGang((WorkloadRole(MEMBERS, replicas * pods),), text)
        text += ", whose first pods start before the others exist"
        return WorkloadGang((WorkloadRole(MEMBERS, replicas * pods, replicas),), text)


@hookimpl
def yunikorn_workload_readers() -> list[type[WorkloadReader]]:
    """Return the readers of this module."""
    return [JobReader, JobSetReader]
