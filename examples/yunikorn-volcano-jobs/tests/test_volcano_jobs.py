"""Tests of the reader for Jobs of Volcano: the contract, and the sizes of gangs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from yunikorn_volcano_jobs import TASK, VolcanoJobReader

from yunikorn_kubernetes.objects import Json, ObjectMeta, Pod
from yunikorn_kubernetes.workloads.reader_contract import WorkloadReaderContract
from yunikorn_kubernetes.workloads.workload_reader import WorkloadGang


def job(least: int | None, **tasks: int) -> Json:
    """Return a Job with tasks of these sizes."""
    more: dict[str, Any] = {} if least is None else {"minAvailable": least}
    return {"spec": {"tasks": [{"name": name, "replicas": size} for name, size in tasks.items()], **more}}


def pod(task: str) -> Pod:
    """Return a pod of a task."""
    return Pod(metadata=ObjectMeta(labels={TASK: task}))


class TestContract(WorkloadReaderContract):
    """The reader passes the contract."""

    reader = VolcanoJobReader()

    def examples(self) -> Sequence[tuple[Json, Pod]]:
        """Return Jobs with one and with two tasks."""
        return [
            (job(3, worker=4), pod("worker")),
            (job(None, master=1, worker=2), pod("master")),
            (job(2, master=1, worker=2), pod("worker")),
        ]


@pytest.mark.parametrize(
    ("owner", "needed"), [(job(None, worker=4), 4), (job(3, worker=4), 3), (job(3, master=1, worker=2), 3)]
)
def test_as_many_pods_start_together_as_the_job_says(owner: Json, needed: int) -> None:
    found = VolcanoJobReader().gang(owner, pod("worker"))
    assert isinstance(found, WorkloadGang)
    assert found.needed == needed


def test_a_number_that_names_no_task_is_no_gang() -> None:
    assert VolcanoJobReader().gang(job(2, master=1, worker=2), pod("worker")) == (
        "minAvailable is 2, of 3 pods of 2 tasks"
    )
