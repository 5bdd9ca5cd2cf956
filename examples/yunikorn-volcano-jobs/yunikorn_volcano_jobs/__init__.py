"""Workload reader for Jobs of Volcano (`batch.volcano.sh`) whose pods have `schedulerName: yunikorn`."""

from __future__ import annotations

from yunikorn.api import hookimpl
from yunikorn_kubernetes.objects import Json, Pod
from yunikorn_kubernetes.workloads.workload_reader import (
    WorkloadGang,
    WorkloadReader,
    WorkloadRole,
    number_in,
)

TASK, TASK_INDEX = "volcano.sh/task-spec", "volcano.sh/task-index"


class VolcanoJobReader(WorkloadReader):
    """Job of Volcano: a gang of the least number of pods of each of its tasks."""

    name = "volcano-job"
    group, kind, plural = "batch.volcano.sh", "Job", "jobs"
    index_label = TASK_INDEX

    def role(self, pod: Pod) -> str:
        """Return the task of a pod."""
        return pod.metadata.labels.get(TASK, "")

    def gang(self, owner: Json, pod: Pod) -> WorkloadGang | str:
        """Return the gang, unless the number of the Job does not say which tasks start."""
        spec = owner.get("spec") or {}
        roles = [
            WorkloadRole(one["name"], number_in(one, "replicas", 1), one.get("minAvailable"))
            for one in spec.get("tasks") or []
        ]
        total = sum(role.size for role in roles)
        least = number_in(spec, "minAvailable", total)
        if least == sum(role.needed for role in roles):
            return WorkloadGang(tuple(roles), f"minAvailable is {least}")
        if len(roles) == 1:
            return WorkloadGang((WorkloadRole(roles[0].name, total, least),), f"minAvailable is {least}")
        return f"minAvailable is {least}, of {total} pods of {len(roles)} tasks"


@hookimpl
def yunikorn_workload_readers() -> list[type[WorkloadReader]]:
    """Return the plugins of this package."""
    return [VolcanoJobReader]
